/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IA on the fake fabric with a transport that only records requests. The test acts as the
 * fabric: it establishes connections, completes operations and ends connections.
 */
#ifndef UNIT_OBJ_FIXTURE_H
#define UNIT_OBJ_FIXTURE_H

#include "fab/fake.h"
#include "obj/caps.h"
#include "obj/sp/cr.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_cm.h"
#include "obj/ep/ep_dto.h"
#include "obj/ep/ep_post.h"
#include "obj/evd/evd.h"
#include "obj/ep/fast.h"
#include "obj/mem/lmr.h"
#include "obj/mem/rmr.h"
#include "obj/sp/sp.h"

#include <criterion/criterion.h>

#define SUBMITS 512

struct transport {
	int ia_init_result, listen_result;
	int ia_inits, ia_finis, listens, unlistens, connects, accepts, rejects, closes;
	DAT_CONN_QUAL any_qual;		/* given to a PSP that requests any */
	struct dofi_ep *connecting;
	enum dofi_reject why;
	unsigned char reject_data[64];
	size_t reject_size;

	/* operations, in the order of submission */
	int taken;			/* this many are taken, then -FI_EAGAIN */
	int fail;			/* if not 0, the next operation fails with this */
	unsigned n;
	unsigned plain;			/* operations submitted on the fast path */
	/* The last operation on the fast path held the EP's lock. */
	bool at_ep;
	struct dofi_dto *dto[SUBMITS];
	void *context[SUBMITS];
	uint64_t remote_addr[SUBMITS];
	uint32_t remote_key[SUBMITS];
	unsigned cancels;		/* requests to cancel a receive */
	bool keeps;			/* cancelled receives do not come back */
};

extern struct transport transport;
extern const struct dofi_xport transport_ops;
/* The datagram service of IAs that are opened from now on; NULL at first. */
extern const struct dofi_datagrams *datagrams;

#define EVD_ALL_FLAGS (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG | \
		       DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_ASYNC_FLAG)

extern struct dofi_ia *ia;
extern DAT_PZ_HANDLE pz;
extern DAT_EVD_HANDLE evd;		/* for all streams, 64 events */
extern DAT_LMR_HANDLE lmr;		/* over memory, with all privileges */
extern DAT_LMR_CONTEXT lmr_context;
extern DAT_RMR_CONTEXT rmr_context;
extern char memory[4096];

#define PEER_SECRET 0x5ec2e7		/* the secret of every request */
#define NOWHERE ((DAT_HANDLE)0x7fff00001000)	/* no object has this address */

/* Initialises the fake fabric and its attributes. */
void fabric_init(void);
int ia_try_open(struct dofi_ia **out);
/* Opens ia on a real fabric, with a tick of 100 us. The test ends if libfabric lacks it. */
void ia_open_real(const struct dofi_xports *xports, const struct dofi_params *params);
/* The IA alone, for .init and .fini. ia_fini() finds objects that were not freed. */
void ia_init(void);
void ia_fini(void);
/* The IA, a PZ, an EVD and an LMR. */
void objects_init(void);
/* A PZ, an EVD of this length and an LMR. */
void objects_make(DAT_COUNT qlen);
/* objects_init() on a fabric where the target of RDMA moves the bytes. */
void objects_init_granting(void);
/*
 * objects_init() on a fabric that allows one thread at a time for a CQ and its endpoints
 * (FI_THREAD_COMPLETION).
 */
void objects_init_serial(void);

/* Whether a peer has this access, through a connection with this secret. */
bool peer_may(DAT_RMR_CONTEXT context, uint32_t secret, uint64_t addr, uint64_t len,
		uint64_t access);

DAT_EVD_HANDLE evd_make(DAT_COUNT qlen, DAT_EVD_FLAGS flags);
/* Makes @handle the IA's EVD of asynchronous events; NULL: the IA has none. */
void async_set(DAT_EVD_HANDLE handle);
DAT_EP_HANDLE ep_make(void);
DAT_RETURN lmr_make(DAT_PZ_HANDLE in_pz, void *addr, DAT_VLEN len, DAT_MEM_PRIV_FLAGS priv,
		    DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *local, DAT_RMR_CONTEXT *remote);

/* Returns when the progress thread has run all queued work. */
void settle(void);

/* An address to connect to. */
DAT_IA_ADDRESS_PTR some_address(void);

/* Connects @ep_handle and takes the event. */
void make_connected(DAT_EP_HANDLE ep_handle);
/* Starts a connection, and establishes it. */
void start_connecting(DAT_EP_HANDLE ep_handle);
void establish(DAT_EP_HANDLE ep_handle, const void *data, size_t size);

/* A connection request arrives at a service point. Returns 0, or the reason for a refusal. */
int arrive_at(DAT_HANDLE sp, const void *data, size_t size);
/* Sets the source of later requests. */
void come_from(const char *ip, uint16_t port);
/* A request arrives with data "hello". Returns the CR of its event on evd. */
DAT_CR_HANDLE request_at(DAT_HANDLE sp);
DAT_RETURN turn_down(DAT_CR_HANDLE cr);
DAT_EP_STATE state_of_ep(DAT_EP_HANDLE ep_handle);

/* Gives an EP that came with a request the PZ and EVD that it needs. */
void furnish(DAT_EP_HANDLE ep_handle);

/* The fabric completes the @i-th operation. */
void complete(unsigned i);
void complete_with(unsigned i, int err, size_t len);

DAT_DTO_COOKIE cookie_of(uint64_t n);

/* Takes the next event of @from, which must be @number. event_none(): there is none. */
DAT_EVENT event_take(DAT_EVD_HANDLE from, DAT_EVENT_NUMBER number);
bool event_none(DAT_EVD_HANDLE from);

/* Posts a software event that carries @n. */
DAT_RETURN post_number(DAT_EVD_HANDLE to, uintptr_t n);
uintptr_t number_of(const DAT_EVENT *event);

/* Segments of any memory; segment() is one of memory[], remote_segment() one of a peer. */
DAT_LMR_TRIPLET segment_of(DAT_LMR_CONTEXT context, const void *at, size_t length);
DAT_RMR_TRIPLET remote_of(DAT_RMR_CONTEXT context, uint64_t at, size_t length);
DAT_LMR_TRIPLET segment(size_t offset, size_t length);
/* Posts @length bytes of memory at @offset to @srq, as a receive with cookie @n. */
DAT_RETURN srq_post_at(DAT_SRQ_HANDLE srq, size_t offset, size_t length, uint64_t n);
DAT_RMR_TRIPLET remote_segment(size_t length);

#define expect_ret(call, want)                                                   \
	do {                                                                     \
		DAT_RETURN expect_got = (call);                                  \
		cr_expect_eq(expect_got, want, "%#x", (unsigned)expect_got);     \
	} while (0)
#define expect_type(call, type) expect_ret(DAT_GET_TYPE(call), (DAT_RETURN)(type))
#define expect_arg(call, n) expect_ret(call, DOFI_BAD_ARG(n))
#define expect_handle(call, kind) expect_ret(call, DOFI_BAD_HANDLE(kind))
#define expect_state(call, what) expect_ret(call, DOFI_BAD_STATE(what))
#define succeed(call)                                                            \
	do {                                                                     \
		DAT_RETURN succeed_ret = (call);                                 \
		cr_assert_eq(succeed_ret, DAT_SUCCESS, "%#x", (unsigned)succeed_ret); \
	} while (0)

#endif
