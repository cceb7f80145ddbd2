/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport, for fabrics whose endpoints do not connect.
 *
 * The EPs of a zone share an endpoint of the fabric, or a few. What they send each other is frames
 * (rdm_frame.h), which name the connection they are for; messages meet the EP's receives here and
 * not at the fabric. Requests, answers and ends of connections go by a side connection (side.h).
 *
 * A peer may have so many frames under way as we have room to keep if they must wait: its credits.
 * Messages that a frame has no room for go in several, if they are short enough; longer ones are
 * announced. These are sent when a receive was found for them; or the receiver reads them from the
 * sender's memory, where both are on one host. RDMA is the fabric's, where a request that the peer
 * must refuse hurts nobody else; elsewhere it is asked of the peer by frames, too.
 *
 *	rdm.c		the IA's and the zones' part; the way in of what the fabric brings
 *	rdm_endpoint.c	the fabric's endpoints of a zone; their replacement
 *	rdm_link.c	rings in place of the fabric, where an IA has another for distant peers
 *	rdm_op.c	operations that the fabric carries out; what waits, or stalls, for it
 *	rdm_request.c	requests and answers
 *	rdm_peer.c	what the two ends tell each other of themselves
 *	rdm_conn.c	the life of a connection
 *	rdm_send.c	frames and messages that are handed to the fabric
 *	rdm_eager.c	messages in several frames, at either end
 *	rdm_direct.c	a connection's own endpoint, for long messages
 *	rdm_rma.c	RDMA and atomics that are asked of it, or of the peer
 *	rdm_recv.c	what arrives from it
 *	rdm_target.c	RDMA and atomics that it does not do, carried out for the peer
 */
#ifndef DOFI_XPORT_RDM_RDM_H
#define DOFI_XPORT_RDM_RDM_H

#include "base/mutex.h"
#include "xport/rdm/shm/host.h"
#include "xport/rdm/shm/peer_mem.h"
#include "xport/rdm/shm/reserve.h"
#include "fab/endpoint.h"
#include "rings/rings.h"
#include "xport/rdm/shm/page.h"
#include "obj/ep.h"
#include "xport/ports.h"
#include "xport/rdm/frame.h"

#include <rdma/fi_domain.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* Frames of a peer that we have room for. */
#define RDM_WINDOW 32

/* No fabric is asked to inject more bytes. */
#define RDM_INJECT_MAX 4096

/* The longest message, write or read in several frames, where the peer's memory could be read instead. */
#define RDM_EAGER_MAX 8192

/* The longest message, write or read in several frames over rings, where a frame is longer and costs less. */
#define RDM_EAGER_RING_MAX 16384

struct dofi_side_msg;
struct rdm_peer;

extern const struct dofi_xport dofi_rdm_xport;

/* An IA's part. */
struct rdm_ia {
	struct dofi_ports ports;
	struct dofi_shm shm;		/* where the fabric is shared memory */
	struct dofi_host host;
	LIST_HEAD(, rdm_zone) zones;	/* progress thread */
	struct dofi_progress *progress;
	struct dofi_work renewal;	/* see rdm_endpoints_damaged() */
	_Atomic uint64_t strays;	/* frames for no connection, and what is no frame */
};

/*
 * An endpoint of the fabric. A connection uses one for life. New connections use the zone's newest;
 * an older one is closed with its last connection.
 */
struct rdm_endpoint {
	LIST_ENTRY(rdm_endpoint) link;
	struct rdm_zone *zone;
	struct dofi_rdm rdm;
	/* progress thread only */
	struct dofi_reservations reservations;	/* for peers of unanswered requests */
	unsigned conns;
	unsigned repairs;		/* of the IA's gate when the endpoint was opened */
};

/* A zone's part, made with its first connection. */
struct rdm_zone {
	LIST_ENTRY(rdm_zone) link;
	struct dofi_pz *pz;
	struct dofi_domain *domain;	/* its own, or its local one */
	struct dofi_rings *rings;	/* of the local one's CQ; NULL where that is libfabric's */

	/* under the CQ's lock; written by the progress thread */
	LIST_HEAD(, rdm_endpoint) endpoints;	/* newest first */

	/* under the CQ's lock */
	struct rdm_conn **conn;		/* by the lower half of their ids */
	uint32_t n_conns;

	unsigned n_directs;		/* direct endpoints of its connections; progress thread */

	struct dofi_mutex lock;		/* a leaf, for the fields below */
	TAILQ_HEAD(rdm_conns, rdm_conn) stalled;	/* the fabric did not take something of theirs */
	SLIST_HEAD(rdm_ops, rdm_op) ops, copies; /* free ones; and those that have a copy */
	STAILQ_HEAD(, rdm_waiting) spare;	/* for frames that have to wait */

	/* all of them, and copies, in memory that is registered where need be */
	struct rdm_op *op;
	unsigned char *copy;
	struct fid_mr *ops_mr, *copies_mr;
	unsigned char *spares;
};

/*
 * What the fabric carries out by itself, as it knows it: as long as the zone, for a completion
 * may come when the connection is gone.
 */
struct rdm_op {
	struct rdm_zone *zone;
	struct rdm_conn *conn;		/* NULL when it is of no interest any more; CQ lock */
	uint32_t number;		/* of the operation in its queue */
	bool receives;			/* it is in the queue of receives */
	bool blocks;			/* what is behind it waits for it */
	unsigned char *copy;		/* of the frame that it sends, or NULL */
	bool ends;			/* with it the operation of that number does */
	bool direct;			/* at the direct endpoint of the connection */
	unsigned char header[RDM_FRAME_HEADER];	/* of a message sent from the program's memory */
	SLIST_ENTRY(rdm_op) free;
	LIST_ENTRY(rdm_op) link;	/* of the connection's */
};

/* A frame that asks for something, and what was done of it. */
struct rdm_task {
	struct rdm_frame frame;
	bool matched;			/* a receive has been found, */
	uint32_t receive;		/* of this number */
	bool direct;			/* the receive is at the direct endpoint */
	bool carried_out;		/* all is done but the answer: */
	enum rdm_result result;
	uint64_t old;			/* of an atomic */
};

/* One that waits for its turn. */
struct rdm_waiting {
	STAILQ_ENTRY(rdm_waiting) link;
	bool is_spare;			/* one of the zone's own */
	struct rdm_task task;
	unsigned char data[];
};

/* What the progress thread is to do for a connection. */
enum {
	RDM_ESTABLISHED = 1 << 0,
	RDM_OVER = 1 << 1,		/* all that the peer sent before it left was dealt with */
	RDM_FREE = 1 << 2,
	RDM_DIRECT = 1 << 3,		/* open the direct endpoint */
	RDM_DIRECT_LOST = 1 << 4,	/* an operation failed there */
};

/* A connection's own endpoint for long messages: rdm_direct.c. */
struct rdm_direct {
	struct dofi_rdm rdm;
	uint64_t tags;			/* the tag of receive n is tags + n; only the peer knows them */
	bool reached;			/* the peer's direct endpoint is known, */
	fi_addr_t to;			/* by this address */
	struct rdm_conn *conn;
	struct dofi_timer lost;		/* after a failure; progress thread */
};

/* In memory that is never unmapped. */
struct rdm_conn {
	_Atomic uint64_t id;		/* peers read it behind what they read of our memory */
	struct dofi_ep *ep;
	struct rdm_zone *zone;
	struct rdm_endpoint *endpoint;	/* of the zone's; NULL where there is */
	struct dofi_link *link;		/* in place of the fabric, the peer's; frames fit it */
	struct rdm_peer *peer;
	struct dofi_work work;
	struct dofi_shm_peer *page;	/* the peer's, to wake it by, or NULL */
	struct dofi_robust *robust;		/* to its endpoint, or NULL; what goes there is injected */
	fi_addr_t to;			/* the peer's endpoint */
	bool reached;			/* it is known to ours */
	LIST_ENTRY(rdm_conn) here;	/* in this process; lock in rdm.c */
	const _Atomic uint64_t *peer_here; /* the peer's id if that is in this process, or NULL */

	/* under the EP's lock */
	_Atomic unsigned todo;		/* RDM_ESTABLISHED, ... */
	uint64_t peer_id;
	size_t inject;			/* most bytes of a frame that is injected, */
	size_t room;			/* of one of which a copy may be sent, */
	size_t frame_size;		/* and of one at all */
	size_t eager;			/* most bytes of what goes by frames although memory could be read */
	pid_t pid;			/* of a peer whose memory we can read, or 0 */
	struct dofi_peer_word alive;	/* we may as long as this is so there */
	bool peer_reads;		/* it can read ours */
	bool bare;			/* the peer takes bare frames, and the fabric carries them */
	bool hello_due, hello_back_due;	/* frames to be sent */
	bool stalled;			/* it is in the zone's list; the zone's lock, as for */
	TAILQ_ENTRY(rdm_conn) stall;	/* its place there */
	bool catching_up;
	bool refused;			/* it was told so of a request: nothing behind that is done */
	bool left;			/* the peer has, after so many frames: */
	uint32_t last_frame;
	DAT_EVENT_NUMBER left_event;
	uint32_t sent;			/* frames to the peer, */
	uint32_t untaken;		/* the last of them that the fabric did not take at once, */
	uint32_t seen;			/* and frames from it */
	uint32_t window, most;		/* credited frames that it takes now, and at most */
	uint32_t owed;			/* credits that it is to get back */
	uint32_t matched;		/* the number of the next receive that a message meets */
	bool filling;			/* a message of several frames has begun to come, */
	uint32_t filled;		/* into the receive of this number */
	uint32_t n_waiting;
	STAILQ_HEAD(, rdm_waiting) waiting;
	LIST_HEAD(, rdm_op) ops;	/* at the fabric */
	uint32_t blocking;		/* of them, those that block */
	uint32_t cleared;		/* announced messages that are to be sent now */
	bool direct_wanted;		/* RDM_DIRECT was posted */
	struct rdm_direct *direct;	/* NULL unless open; the progress thread alone sets it */
};

/* An IA has this transport alone, or has it for its local fabric. */
static inline bool rdm_is_alone(const struct dofi_ia *ia)
{
	return ia->fabric.rdm;
}

static inline struct rdm_ia *rdm_ia_of(const struct dofi_ia *ia)
{
	return rdm_is_alone(ia) ? ia->xport_ia : ia->local_ia;
}

static inline const struct dofi_fabric_choice *rdm_fabric_of(const struct dofi_ia *ia)
{
	return rdm_is_alone(ia) ? &ia->fabric : &ia->local;
}

static inline struct rdm_conn *rdm_conn_of(const struct dofi_ep *ep)
{
	return ep->conn;
}

/* Both ends are on this host, and may read each other's memory. */
static inline bool rdm_is_near(const struct rdm_conn *conn)
{
	return conn->page || conn->link;
}

static inline const struct dofi_fabric_choice *rdm_fabric(const struct rdm_conn *conn)
{
	return rdm_fabric_of(conn->ep->obj.ia);
}

/* Whether the fabric brings bare frames, whose header is 64 bits of remote CQ data. */
static inline bool rdm_takes_bare(const struct rdm_conn *conn)
{
	return conn->robust && rdm_fabric(conn)->info->domain_attr->cq_data_size >= sizeof(uint64_t);
}

/* rdm.c */

/* The zone's part of @pz, made if there is none. Progress thread, as for the next two. */
int rdm_zone_open(struct dofi_pz *pz, struct rdm_zone **zone);
/* Gives @conn an id, by which frames find it. */
int rdm_zone_enter(struct rdm_zone *zone, struct rdm_conn *conn);
/* Neither a frame nor a completion finds @conn any more. */
void rdm_zone_leave(struct rdm_conn *conn);
/*
 * The id of the connection of this process that has @id, in memory that stays mapped; NULL if there
 * is none. Any thread.
 */
const _Atomic uint64_t *rdm_conn_here(uint64_t id);

/* rdm_endpoint.c; progress thread, but for the second to last */

/*
 * The endpoint for a connection, which is counted there, and a place for its peer there, which
 * @claim stands for; @key says which peer that is. Opens an endpoint if none has a place. 0 or a
 * negative errno.
 */
int rdm_endpoint_get(struct rdm_zone *zone, struct dofi_reservation *reservation, const void *key, size_t len,
		     struct rdm_endpoint **endpoint);
/* The connection is gone, and its peer was removed. */
void rdm_endpoint_put(struct rdm_endpoint *endpoint);
/* Closes all of them. The zone has no connection. */
void rdm_endpoints_close(struct rdm_zone *zone);
/* Posts again what the fabric did not take of the endpoints' buffers. CQ lock held. */
void rdm_endpoints_sweep(struct rdm_zone *zone);
/*
 * For struct dofi_robust: a process died within the memory of the IA's endpoints, which cannot be
 * repaired. Their connections end as BROKEN and all endpoints are closed. Any thread.
 */
void rdm_endpoints_damaged(struct dofi_robust *robust);
void rdm_endpoints_renew(struct dofi_work *work);

/* rdm_link.c; progress thread */

/* The link to @peer, made if this end asks, for a connection that is not in its zone yet. */
int rdm_link_open(struct rdm_conn *conn, struct rdm_peer *peer);
/*
 * What the request or answer @msg has with it: the link, or the peer's doorbell. 0 or a
 * negative errno.
 */
int rdm_link_learn(struct rdm_peer *peer, const struct dofi_side_msg *msg);
/* Our own, for the peer. */
void rdm_link_introduce(const struct rdm_conn *conn, struct dofi_side_msg *msg);
/* As struct dofi_progress_ops has it, for all zones. */
void rdm_links_rest(struct rdm_ia *ria);
void rdm_links_rise(struct rdm_ia *ria);
/* rdm_op.c */

/*
 * What @zone has for its operations, frames that wait and connections that stall; with its domain.
 * Without an endpoint nothing of it is in use. Progress thread, as for the next.
 */
int rdm_ops_open(struct rdm_zone *zone);
void rdm_ops_close(struct rdm_zone *zone);

/* An operation for the fabric to carry out, or NULL: none is free now. EP lock held. */
struct rdm_op *rdm_op_get(struct rdm_conn *conn, const struct dofi_dto *dto, bool receives);
/* The same for a frame, which is to be put into its copy. */
struct rdm_op *rdm_op_get_copy(struct rdm_conn *conn);
/* It was not handed to the fabric. EP lock held. */
void rdm_op_put(struct rdm_op *op);
/* The fabric is done with the one that is @entry's context. CQ lock held, as for the next. */
void rdm_op_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);
/* How those of @conn end is of no interest any more, nor that it stalled. */
void rdm_ops_abandon(struct rdm_conn *conn);

/*
 * Room for a frame with @size bytes of data; allocated only if many wait. NULL without memory. EP
 * lock held, as for the next two.
 */
struct rdm_waiting *rdm_waiting_get(struct rdm_zone *zone, size_t size);
void rdm_waiting_put(struct rdm_zone *zone, struct rdm_waiting *waiting);

/* The fabric did not take something: rdm_go_on() will be called. */
void rdm_stall(struct rdm_conn *conn);
/* Calls it, once for each connection that has stalled by now. CQ lock held. */
void rdm_go_on_stalled(struct rdm_zone *zone);

/* rdm_request.c; progress thread */

extern const struct dofi_ports_ops rdm_ports_ops;

int rdm_listen(struct dofi_sp *sp);
void rdm_unlisten(struct dofi_sp *sp);
void rdm_connect(struct dofi_ep *ep);
void rdm_accept(struct dofi_ep *ep);
void rdm_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
void rdm_close(struct dofi_ep *ep);

/* rdm_conn.c; progress thread and no lock held, but for the last */

/*
 * A connection for @ep, in its zone, to the peer that @key names. Only if it is made, @peer goes
 * with it.
 */
int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer, const void *key, size_t len);
/* From here on frames go to the peer, which told where, and its own are for us. */
int rdm_conn_reach(struct rdm_conn *conn);
/*
 * The peer is gone, having sent all frames up to @last, or as many as have come if that is NULL.
 * When those were dealt with the connection ends: with @event, or as one that was never made.
 */
void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event);
/* Ends the connection at once: nothing comes or goes any more through its endpoint. */
void rdm_conn_break(struct rdm_conn *conn);
/*
 * The connection of @ep, if it has one, is gone: for the fabric, and for the peer, which may not
 * read our memory from here on.
 */
void rdm_conn_close(struct dofi_ep *ep);
/* The progress thread is to do something. Any thread, with any lock. */
void rdm_conn_todo(struct rdm_conn *conn, unsigned what);

/* rdm_send.c; EP lock held */

/* The bytes that @frame, whose kind, beside and length are set, takes before its data. */
size_t rdm_head(const struct rdm_conn *conn, const struct rdm_frame *frame);

/*
 * Sends a frame, behind which are @size bytes of @iov from @offset on. 0, -FI_EAGAIN when it is to
 * be tried again, or another negative errno.
 */
int rdm_transmit(struct rdm_conn *conn, struct rdm_frame *frame, const struct iovec *iov,
		 size_t n, size_t offset, size_t size);
/*
 * Several frames at once, all short enough to be injected. rdm_frames_begin() returns false if nothing can be sent now,
 * and what waits will be tried again. rdm_frames_add() sends a frame with @size bytes of @dto from dto->asked on, and
 * returns what rdm_transmit() does.
 */
bool rdm_frames_begin(struct rdm_conn *conn);
int rdm_frames_add(struct rdm_conn *conn, struct rdm_frame *frame, const struct dofi_dto *dto, size_t size);
void rdm_frames_end(struct rdm_conn *conn);
/* Names the memory of @dto, for the peer to read it. */
void rdm_tell_segments(struct rdm_frame *frame, const struct dofi_dto *dto);
int rdm_submit(struct dofi_ep *ep, struct dofi_dto *dto);
/* A message of no bytes that only @beside tells something; as rdm_submit(). */
int rdm_send_empty(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside);
dofi_send rdm_send;
/* The peer has a receive for the message that @dto announced. */
void rdm_clear(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag, bool direct);
/* Does what the fabric did not take before. */
void rdm_go_on(struct rdm_conn *conn);

/* dofi_xport.holds: frames, and what has been copied into them, need no memory of the program's. */
bool rdm_holds(const struct dofi_ep *ep, const struct dofi_dto *dto);

/* rdm_direct.c */

/* Asks the progress thread for the direct endpoint, once, where the fabric is one that needs it. EP lock held. */
void rdm_direct_want(struct rdm_conn *conn);
/* Opens it; if that fails long messages continue to go in frames. Progress thread, no lock held, as for the next. */
void rdm_direct_open(struct rdm_conn *conn);
/* An operation failed there: ends the connection soon, unless the side connection reports an end first. */
void rdm_direct_lost(struct rdm_conn *conn);
/* Closes it. When this returns the fabric has no memory of the connection's long messages. */
void rdm_direct_close(struct rdm_conn *conn);
/* Learns the address of the peer's direct endpoint. Returns false if there is no way there. EP lock held. */
bool rdm_direct_reach(struct rdm_conn *conn, const void *address, size_t len);

/* rdm_eager.c; EP lock held */

/* Sends @dto in several frames; as rdm_submit(). When it is done no memory of the program's is in use. */
int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside);
/* A message whose first frame is @f has met the receive @dto, which has room for it. */
void rdm_eager_begin(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f);
/* Takes the next bytes of the message that has begun. */
void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink);

/* rdm_rma.c; EP lock held */

/* RDMA or an atomic; as rdm_submit(). */
int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto);
/*
 * The peer answers that the read @dto, or its next part, is done: @frame has the bytes, or tells
 * where they are. 0 when they have been stored, or a positive error.
 */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *frame);

/* rdm_recv.c; EP lock held */

void rdm_arrived(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink);
/* Adds to the bare DONE @frame what its bits leave out: which request it answers, and where in it the data goes. */
void rdm_complete_bare(const struct rdm_conn *conn, struct rdm_frame *frame);
/* Deals with frames that wait, as far as that is possible now. */
void rdm_catch_up(struct rdm_conn *conn, struct dofi_sink *sink);
/* What the peer asked for first is done, and may be seen to be, but it was not told. */
bool rdm_owes_answer(const struct rdm_conn *conn);
/* Ends the connection with a peer that is not what it says. */
void rdm_offend(struct rdm_conn *conn, const char *how);
/* How what @task asked for has ended. False if the peer cannot be told yet. */
bool rdm_answer(struct rdm_conn *conn, const struct rdm_task *task);
/* The peer's memory that @frame names, as long as the peer lets us read. 0 or a negative errno. */
int rdm_pull(struct rdm_conn *conn, const struct iovec *to, size_t n,
	     const struct rdm_frame *frame);

/* rdm_target.c; EP lock held */

/*
 * Does what @task asks for, once, and answers. False if that is to be tried again. When it has
 * become a message, which tells of a write, it is to be taken as that.
 */
bool rdm_carry_out(struct rdm_conn *conn, struct rdm_task *task);

#endif
