/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram service that only records requests. The test acts as the fabric and as the peers: it
 * ends exchanges and delivers datagrams.
 */
#ifndef UNIT_OBJ_SERVICE_H
#define UNIT_OBJ_SERVICE_H

#include "obj/ep/datagram.h"
#include "obj/fixture.h"

#define SERVICE_SIZE 1000		/* most bytes of a datagram */
#define SERVICE_AHS 8
#define SERVICE_OPS 128

/* The targets of the fake address handles. */
struct service_ah {
	int references;
	struct dofi_pz *pz;
};

struct service {
	int ia_init_result, open_result;
	int ia_inits, ia_finis, opens, closes, pz_closes, listens, unlistens, rejects;
	enum dofi_reject why;
	struct dofi_cr *rejected;
	bool full;			/* sends return -FI_EAGAIN */
	/* ends each exchange at once */
	const struct dofi_exchanged *answer;

	/* exchanges, in the order in which the service got them */
	unsigned n_connect, n_accept;
	struct dofi_exchange *connect[SERVICE_OPS], *accept[SERVICE_OPS];
	void *request[SERVICE_OPS];	/* of accept */

	/* operations, in the order of submission */
	unsigned n;
	struct dofi_dto *dto[SERVICE_OPS];

	struct service_ah ah[SERVICE_AHS];
};

extern struct service service;
extern const struct dofi_datagrams service_ops;

/* objects_init() with this service; service_fini() is ia_fini(). */
void service_init(void);
void service_fini(void);

#if DAT_VERSION_MAJOR >= 2
/* A datagram EP with @connect for its exchanges, and the attributes that it has. */
DAT_EP_ATTR datagram_attr(void);
DAT_EP_HANDLE datagram_ep_with(DAT_EVD_HANDLE connect);
DAT_EP_HANDLE datagram_ep(void);
#endif

/* Makes address handle @i valid in pz, with another reference. */
void *ah_make(unsigned i);
/* A post of a segment of 8 bytes to address handle @i. */
struct dofi_post datagram(unsigned i, uint64_t cookie);

/* A datagram of @len bytes, with the header, arrives for the oldest receive of @ep_handle. */
void deliver(DAT_EP_HANDLE ep_handle, uint64_t len);
void deliver_immed(DAT_EP_HANDLE ep_handle, uint64_t len, uint32_t immed);
/* The oldest receive fails with the positive @err. */
void deliver_error(DAT_EP_HANDLE ep_handle, int err);

/* Ends @x as the transport does. */
void exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how);

#endif
