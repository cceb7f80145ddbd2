/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's DAT side, and the part that connections of --peers share.
 *
 *	perf_dat.c		opening and closing
 *	perf_dat_cm.c		connections
 *	perf_dat_io.c		data transfers
 *	perf_dat_ud.c		datagrams
 *	perf_dat_ext.c		immediate data and atomics
 *	perf_peers_dat.c	the connections of --peers
 */
#ifndef PERF_DAT_H
#define PERF_DAT_H

#include "dat_text.h"
#include "perf.h"

#define PERF_DAT_HELD 8

struct perf_dat_request {
	DAT_CR_HANDLE cr;
	struct perf_hello hello;
};

struct perf_dat {
	struct perf_xport x; /* first: ops get a pointer to it */
	const char *device;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR ia_attr;
	struct perf_fabric fabric;
	DAT_EVD_HANDLE async_evd, cr_evd, conn_evd, dto_evd;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_SRQ_HANDLE srq; /* all receives come from it, or DAT_HANDLE_NULL */
	DAT_EP_HANDLE ep;   /* EP to post to */
	DAT_EP_HANDLE *eps; /* all EPs */
	unsigned int neps;
	bool connected;
	struct perf_dat *owner; /* transport that the IA belongs to; NULL: this one */
	/* listener: requests that came while another client's were expected */
	struct perf_dat_request held[PERF_DAT_HELD];
	unsigned int nheld;
	DAT_LMR_TRIPLET local;	/* template: context of the local memory */
	DAT_RMR_CONTEXT own;	/* context of the local memory for the peer */
	DAT_RMR_TRIPLET remote; /* template: context of the peer's memory */
	uint64_t raddr;
	struct sockaddr_storage server; /* client: address of the peer */
	struct perf_dat_ud *ud;		/* datagram EPs, or NULL */
};

static inline struct perf_dat *perf_to_dat(struct perf_xport *x)
{
	return (struct perf_dat *)x;
}

/* Names that differ between the two API versions. */
#if DAT_VERSION_MAJOR >= 2
#define RMR_ADDRESS(triplet) ((triplet).virtual_address)
#else
#define RMR_ADDRESS(triplet) ((triplet).target_address)
#endif

static inline DAT_LMR_TRIPLET perf_dat_local(const struct perf_dat *dat, size_t off, size_t len)
{
	DAT_LMR_TRIPLET iov = dat->local;

	iov.virtual_address = (uintptr_t)(dat->x.mem + off);
	iov.segment_length = len;
	return iov;
}

/*
 * Describes a message in as many segments as the options ask for, but at least a byte each. Returns
 * their number, at most PERF_SEGMENTS_MAX.
 */
static inline DAT_COUNT perf_dat_split(const struct perf_dat *dat, size_t off, size_t len,
				       DAT_LMR_TRIPLET *iov)
{
	size_t n = dat->x.segments < len ? dat->x.segments : len, i, from = 0, to;

	if (n <= 1) {
		iov[0] = perf_dat_local(dat, off, len);
		return 1;
	}
	for (i = 0; i < n; i++, from = to) {
		to = len * (i + 1) / n;
		iov[i] = perf_dat_local(dat, off + from, to - from);
	}
	return (DAT_COUNT)n;
}

static inline DAT_RMR_TRIPLET perf_dat_remote(const struct perf_dat *dat, size_t off, size_t len)
{
	DAT_RMR_TRIPLET iov = dat->remote;

	RMR_ADDRESS(iov) = dat->raddr + off;
	iov.segment_length = len;
	return iov;
}

/* Functions that return int return 0, or -1 with an error text in x->err. */

/* perf_dat.c */
int perf_dat_fail(struct perf_dat *dat, const char *what, DAT_RETURN ret);
/* Opens the IA and a PZ. */
int perf_dat_open_ia(struct perf_dat *dat);
/* Creates the EVD for the completions of the EPs, and registers memory of x->lay.total bytes. */
int perf_dat_open_dtos(struct perf_dat *dat);
/* Creates an EVD that holds a few events of each connection, or a request. */
int perf_dat_open_cm_evd(struct perf_dat *dat, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd);
/* Creates the EVD for the connection events of the EPs. */
int perf_dat_open_conns(struct perf_dat *dat);
/* Attributes of an EP for the layout of x->lay. */
void perf_dat_ep_attr(const struct perf_dat *dat, DAT_EP_ATTR *attr);
/* Creates everything up to endpoints that can receive. */
int perf_dat_open_eps(struct perf_dat *dat);

/* perf_dat_cm.c */
int perf_dat_listen(struct perf_xport *x, unsigned int *port);
int perf_dat_accept(struct perf_xport *x);
int perf_dat_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port);
void perf_dat_disconnect(struct perf_xport *x);
const char *perf_dat_event_text(DAT_EVENT_NUMBER number);
/* Waits for an event of @evd; @timeout_ms < 0 is forever. */
int perf_dat_event(struct perf_dat *dat, DAT_EVD_HANDLE evd, int timeout_ms, DAT_EVENT *event);
int perf_dat_established(struct perf_dat *dat, DAT_EVENT *event);
/* Takes a connection request and its greeting; rejects a request without a valid greeting. */
int perf_dat_wait_cr(struct perf_dat *dat, int timeout_ms, struct perf_dat_request *request);
/* Writes PERF_HELLO_LEN bytes, for connection number @index. */
void perf_dat_hello(struct perf_dat *dat, unsigned int index, unsigned char *buf);

/* perf_dat_ud.c: not in datperf1 */
extern const struct perf_ud_ops perf_dat_ud_ops;

/* perf_dat_ext.c: not in datperf1 */
extern const struct perf_ext_ops perf_dat_ext_ops;

/* perf_dat_io.c */
int perf_dat_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie);
int perf_dat_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie);
int perf_dat_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_dat_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie);
int perf_dat_poll(struct perf_xport *x, struct perf_comp *comp);
int perf_dat_check(struct perf_xport *x);
/* Reports why a completion failed; may wait for the end of the connection. Returns -1. */
int perf_dat_dto_error(struct perf_dat *dat, DAT_DTO_COMPLETION_STATUS status);

#endif
