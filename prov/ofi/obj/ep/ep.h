/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: its state, its operation queues, and its connection. */
#ifndef DOFI_OBJ_EP_EP_H
#define DOFI_OBJ_EP_EP_H

#include "base/mutex.h"
#include "obj/evd/evd.h"
#include "obj/exchange.h"
#include "obj/mem/lmr.h"
#include "obj/mem/srq.h"
#include "obj/xport.h"
#include "wq/queue.h"

struct fid_ep;

/* The permitted calls and the meaning of a state. */
enum {
	DOFI_EP_MAY_REQUEST = 1 << 0,	/* sends and RDMA are accepted */
	DOFI_EP_MAY_FREE = 1 << 1,
	DOFI_EP_HAS_PEER = 1 << 2,	/* the remote address is meaningful */
	DOFI_EP_IS_LIVE = 1 << 3,	/* a connection is being made, used or ended */
};

struct dofi_ep_state {
	const char *name;
	unsigned may;
	uint32_t next;			/* bits of the states that may follow */
	DAT_RETURN_SUBTYPE error;	/* of DAT_INVALID_STATE when the state forbids a call */
};

extern const struct dofi_ep_state dofi_ep_states[];

/* Work of an EP for the progress thread. */
enum {
	DOFI_EP_CONNECT = 1 << 0,
	DOFI_EP_ACCEPT = 1 << 1,
	DOFI_EP_CLOSE = 1 << 2,
	DOFI_EP_EXCHANGE = 1 << 3,	/* of a datagram EP */
	DOFI_EP_WATCH = 1 << 4,		/* reads: see dofi_ep.probe */
};

#define DOFI_EP_COUNTERS 24
/* Bytes of dofi_ep.part. */
#define DOFI_EP_PART 160

/* The assumptions of the fast path of an EP, see fast.h. Written by dofi_fast_renew(). */
struct dofi_fast {
	dofi_send *send;		/* NULL: the slow path, also of RDMA */
	dofi_recv *recv;		/* NULL: the slow path */
	struct fid_ep *to;		/* the first argument of send and recv */
};

/* A line of the log with the names of the EP's IA and the EP. */
#define dofi_ep_log(ep, level, subsys, fmt, ...) \
	dofi_obj_log(&(ep)->obj, level, subsys, "ep %p: " fmt, (void *)(ep), ##__VA_ARGS__)

/*
 * How a connection ends. Members of an EP, in the order in which they are set:
 *
 *	graceful	a disconnect waits for requests, in the state DISCONNECT_PENDING
 *	lost		the fabric reports an end that was not requested here: dofi_ep_lost()
 *	data_lost	and did so before it read all that the peer sent
 *	closing		any cause: the EP posts nothing, and `end` is the event: dofi_ep_end()
 *	finishing	in place of graceful: waits for the peer in dofi_xport.finish()
 *	no_goodbye	the peer's last message did not come: if lost, the event is BROKEN
 *
 * Then dofi_ep_close_now() flushes the operations, queues the event and clears these members.
 * failed_early, of an attempt, ends the connection as soon as it is established. no_events, of an
 * EP that is being freed, suppresses the event.
 */
struct dofi_ep {
	struct dofi_obj obj;

	/* changed under the lock, and only without a connection: dofi_ep_modify() */
	struct dofi_pz *pz;		/* may be NULL, like the EVDs */
	struct dofi_evd *recv_evd, *request_evd, *connect_evd;
	struct dofi_srq *srq;		/* never changes; may be NULL */
	struct dofi_srq_user srq_user;	/* has a lock of its own */
	DAT_EP_ATTR attr;

	struct dofi_mutex lock;		/* the fields below; "EP lock" in comments */
	DAT_EP_STATE state;
	const struct dofi_xport *xport;	/* the transport to its peer; the IA's without a peer */
	struct dofi_cq *cq;		/* where operations complete; the PZ's CQ without a peer */
	struct dofi_cq *feed;		/* the CQ that its EVDs poll: cq, or NULL without a peer */
	struct dofi_cq *second_cq;	/* another CQ of a datagram EP, or NULL */
	struct dofi_shard *shard;	/* of the CQ; NULL unless an own endpoint is open */
	struct fid_ep *fid;		/* its own endpoint or its PZ's; NULL unless open */
	bool graceful;			/* see above; the CQ has a sleeper meanwhile */
	bool lost, data_lost, closing, finishing, no_goodbye;
	bool failed_early;		/* a receive failed before the event of the connection */
	bool no_events;			/* being freed: no more events */
	bool had_other_connect_evd;	/* which may have its events */
	bool scoped;			/* RMRs of EP scope may be bound through it */
	bool preambles;			/* the peer wants a preamble with each message */
	bool datagrams;			/* a datagram EP, see datagram.h; never changes */
	/* exchanges of a datagram EP, oldest first, which the transport has */
	struct dofi_exchanges exchanges;
	/* not yet with the transport; established, or without an event; failed */
	struct dofi_exchanges exchanges_new, exchanges_kept, exchanges_failed;
	unsigned n_failed;		/* in exchanges_failed */
	struct dofi_fast fast;
	struct dofi_queue sq, rq;	/* requests and receives */
	struct dofi_unread sq_unread, rq_unread;	/* their events not dequeued; no lock */
	int reads;			/* RDMA reads and atomics at the fabric */
	int atomics;			/* atomics at the fabric; also counted in reads */
	bool watched;	/* the timer watch runs, or will; or the fabric loses no answers */
	uint32_t watched_head;		/* sq.head when it last fired */
	struct dofi_mailbox mailbox;	/* the peer's */
	bool resume_pending;			/* dofi_xport.resume() has something to do */
	uint32_t secret, peer_secret;	/* sent and received: dofi_mr_fabric_key() */
	DAT_COUNT soft_watermark;	/* more receives raise an asynchronous event, once */
	DAT_COUNT hard_watermark;	/* more receives break the connection */
	struct dofi_tally posted[DOFI_DTO_KINDS], receipts[DOFI_DTO_KINDS];
	uint64_t n_connect, n_disconnect;
	uint64_t base[DOFI_EP_COUNTERS]; /* see obj/counters.c */
	unsigned todo;			/* DOFI_EP_CONNECT, ... */
	DAT_EVENT_NUMBER end;		/* the event that will report the end */
	bool explained;			/* the log has the operation that broke the connection */
	bool lost_rdma;			/* lost_request is RDMA */
	char lost_request[DOFI_DTO_TEXT]; /* the first request that the connection's loss ended */
	struct dofi_work work;
	SLIST_ENTRY(dofi_ep) holder;	/* see ep_revoke.c; progress thread */

	/* the RSP's pointer to this EP, or NULL; under the IA's lock */
	struct dofi_ep **reserved_by;

	/* of the connection; progress thread, or the consumer's while no connection is live */
	struct dofi_request request;
	void *conn;			/* the transport's state of the open endpoint */
	/* further state of the IA's transport; zero at first, see dofi_xport.ep_init() */
	_Alignas(max_align_t) unsigned char part[DOFI_EP_PART];
	unsigned attempt;		/* which of the qualifier's ports is being tried */
	void *accepting;		/* the transport's part of the request being accepted */
	/* of the attempt; later of a peer if the fabric does not report its end */
	struct dofi_timer timer;
	struct dofi_timer watch;	/* of DOFI_EP_WATCH */
	struct dofi_stall stall;	/* calls dofi_dto_submit_pending(), by a sweep of cq */
	struct dofi_linger *lingering;	/* the transport's, while it waits in finish() */
	uint32_t received;		/* rq.head when dofi_ep_last_receives() started the timer */
	DAT_EVENT_NUMBER last_event;	/* its event */
	struct sockaddr_storage local;
	DAT_PORT_QUAL local_port, remote_port;
	DAT_COUNT peer_data_size;	/* private data in the last connection event */
	unsigned char peer_data[DOFI_PRIVATE_DATA];

	/*
	 * Under the lock: a write of our own, for reads that do not end: where the fabric loses
	 * answers, a write that is acknowledged shows the loss. Its number is sq.next as it was
	 * when it was posted.
	 */
	_Alignas(DOFI_DTO_GENERATIONS) struct dofi_dto probe;
};

DOFI_OBJ_HANDLES(ep, EP, struct dofi_ep);

/* @ep as fast.to of a transport without a fabric's endpoint per EP, and back. */
static inline struct fid_ep *dofi_fast_to(struct dofi_ep *ep)
{
	return (struct fid_ep *)ep;
}

static inline struct dofi_ep *dofi_fast_ep(struct fid_ep *to)
{
	return (struct dofi_ep *)to;
}

/* DAT_INVALID_STATE with the subtype of the EP's state. EP lock held. */
static inline DAT_RETURN dofi_ep_bad_state(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	return DOFI_RET(DAT_INVALID_STATE, dofi_ep_states[ep->state].error);
}

/* dofi_ep_bad_state(), for a call that is not on the data path: the log has the reason. */
static inline DAT_RETURN dofi_ep_refuse(const struct dofi_ep *ep, const char *call)
	DOFI_NEEDS(ep->lock)
{
	return DOFI_REFUSED(dofi_ep_bad_state(ep), DOFI_EP, "%s: ep %p is in the state %s", call,
			    (const void *)ep, dofi_ep_states[ep->state].name);
}

/* Whether a connection of @ep is being made, used or ended. EP lock held. */
static inline bool dofi_ep_is_live(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	return dofi_ep_states[ep->state].may & DOFI_EP_IS_LIVE;
}

/* Whether the address and port of a peer are known. EP lock held. */
static inline bool dofi_ep_has_peer(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	return !ep->datagrams && dofi_ep_states[ep->state].may & DOFI_EP_HAS_PEER;
}

/* The fabric's key of a request. */
static inline uint64_t dofi_ep_remote_key(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	return dofi_mr_fabric_key(dto->remote_key, ep->peer_secret);
}

/*
 * From any thread: the connection ends, and @event will report that. The first cause wins. A
 * datagram EP has no connection: nothing happens. EP lock held.
 */
void dofi_ep_end(struct dofi_ep *ep, DAT_EVENT_NUMBER event) DOFI_NEEDS(ep->lock);
/*
 * Call from any thread when the fabric reports the end of the connection without the reason. The
 * event is BROKEN if the peer sends a goodbye before an orderly end and did not, else DISCONNECTED.
 * @data_lost: the fabric may not have read all that the peer sent. EP lock held.
 */
void dofi_ep_lost(struct dofi_ep *ep, bool data_lost) DOFI_NEEDS(ep->lock);
/* A request retired: a graceful disconnect may have waited for it. EP lock held. */
void dofi_ep_request_done(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Moves @ep to @next, which its table must allow. EP lock held. */
void dofi_ep_state_set(struct dofi_ep *ep, DAT_EP_STATE next) DOFI_NEEDS(ep->lock);
/* The state of @ep. Takes the EP's lock. */
DAT_EP_STATE dofi_ep_state_now(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock);

/*
 * Opens or closes the queues to the fabric, so that a post tests one flag. Call after a change of
 * the EP's state, its fabric endpoint or closing. EP lock held.
 */
void dofi_ep_open_queues(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Writes ep->fast. Call after changing anything it caches: see fast.h. EP lock held. */
void dofi_fast_renew(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Queues work for the progress thread. EP lock held. */
void dofi_ep_todo(struct dofi_ep *ep, unsigned what) DOFI_NEEDS(ep->lock);
#endif
