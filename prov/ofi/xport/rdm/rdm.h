/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport, for fabrics with endpoints that do not connect.
 *
 * The EPs of a PZ share one endpoint of the fabric. They exchange frames (frame.h), which name the
 * connection that they belong to. Messages are matched with an EP's receives here and not
 * in the fabric. Requests, answers and ends of connections go over a CM connection
 * (xport/cm/conn.h).
 *
 * A peer may have as many frames in flight as this end can keep while they are pending: its
 * credits. A message that does not fit a frame is sent eagerly in several frames if it is short
 * enough. Longer messages use rendezvous: an RTS frame announces the message; the receiver reads it
 * from the sender's memory, where the host permits that, else it answers with a CTS and the message
 * follows. The fabric carries out RDMA where a request that the peer must refuse harms no other
 * connection. Elsewhere frames ask the peer to carry out RDMA.
 *
 * Each file calls files above it in this list, and none below it:
 *
 *	frame.c		frames as bytes
 *	op.c		operations at the fabric; pending frames; stalled EPs
 *	peer.c		the other end of a connection
 *	transmit.c	sending a frame; credits
 *	rndv.c		messages longer than a frame, at both ends
 *	rma.c		RDMA and atomics, by the fabric, by this end, or by the peer
 *	target.c	RDMA and atomics carried out for the peer
 *	send.c		requests of the EP
 *	recv.c		frames that arrive
 *	fast.c		the fast path of messages that fit a frame
 *	pz.c		the transport's part of a PZ; its connections by id
 *	conn.c		the life of a connection
 *	request.c	requests and answers
 *	xport.c		the transport's part of an IA; completions
 */
#ifndef DOFI_XPORT_RDM_RDM_H
#define DOFI_XPORT_RDM_RDM_H

#include "base/mutex.h"
#include "fab/endpoint.h"
#include "host/host.h"
#include "obj/ep/ep.h"
#include "rings/inbox.h"
#include "xport/ports.h"
#include "xport/rdm/frame.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/*
 * Frames that this end keeps for a peer while they are pending. A ring has room for more short ones
 * than a fabric has buffers: a sender that runs out of credits takes the slow path.
 */
#define RDM_WINDOW 32
#define RDM_RING_WINDOW 256

/* The maximum number of bytes to inject. */
#define RDM_INJECT_MAX 4096

/*
 * The longest message in several frames that a receiver need not ask for: in injected frames, in
 * rings, where frames are longer and cheaper, and in copies. A message in copies takes at most a
 * quarter of the credits.
 */
#define RDM_EAGER_MAX 8192
#define RDM_EAGER_RING_MAX 16384
#define RDM_EAGER_COPY_MAX 65536
#define RDM_PARTS_MAX (RDM_WINDOW / 4)

struct rdm_op;
struct rdm_peer;
struct rdm_pending;

/*
 * In xport.c: over endpoints of a fabric, and over rings. Rings are the IA's only fabric, or serve
 * peers on its host, with another transport for other hosts (xport/local_or_net.h).
 */
extern const struct dofi_xport dofi_rdm_xport, dofi_rings_xport;

/* The transport's part of an IA. */
struct rdm_ia {
	struct dofi_ports ports;	/* first, see xport/ports.h */
	const struct dofi_fabric_choice *fabric;
	struct dofi_host host;
	LIST_HEAD(, rdm_pz) pzs;	/* used by the progress thread alone */
	struct dofi_bell bell;	/* with rings: open from the first connection or datagram EP on */
	bool rings;			/* connections use rings, not endpoints of a fabric */
	bool second;			/* another transport of the IA reaches remote peers */
	_Atomic uint64_t strays;	/* frames that name no connection, or are malformed */
};

_Static_assert(offsetof(struct rdm_ia, ports) == 0, "dofi_ia.xport_ia is the ports");

/* The transport's part of a PZ, made with its first connection or datagram EP. */
struct rdm_pz {
	LIST_ENTRY(rdm_pz) link;
	struct dofi_pz *pz;
	struct rdm_ia *ria;
	struct dofi_domain *domain;	/* the PZ's domain, or its local domain */
	struct dofi_rings *rings;	/* NULL unless the domain's CQ is of rings */
	/* receives the datagrams in inboxes, or NULL; written under the CQ lock */
	const struct dofi_rings_user *datagrams;
	void *datagrams_owner;
	struct dofi_rdm rdm;		/* without rings: opened by the first connection */
	bool has_rdm;			/* rdm is open; written under the CQ lock */

	/* protected by the CQ lock */
	struct rdm_conn **conn;		/* indexed by the low half of the id */
	uint32_t n_conns;

	/* after a new connection, until exec closes the fabric's sockets; and when it last did */
	struct dofi_timer new_sockets;
	int64_t sockets_at;

	/* protects the fields below; no other lock is taken under it */
	struct dofi_mutex lock;
	/* free operations: without and with memory for a copy of a frame */
	SLIST_HEAD(rdm_ops, rdm_op) ops, copies;
	STAILQ_HEAD(, rdm_pending) spare;	/* free memory for pending frames */

	/* memory of operations, copies and pending frames, registered where the fabric needs it */
	struct rdm_op *op;
	unsigned char *copy;
	struct fid_mr *ops_mr, *copies_mr;
	unsigned char *spares;
};

/* Work of the progress thread for a connection. */
enum {
	RDM_ESTABLISHED = 1 << 0,
	/* the peer has left, and all its frames have been processed */
	RDM_OVER = 1 << 1,
	RDM_FREE = 1 << 2,
	RDM_LOST = 1 << 3,		/* the fabric lost a frame or a long message */
};

/* A connection, in memory that is never unmapped. */
struct rdm_conn {
	/* a peer that reads our memory reads the id behind it, in one call */
	_Atomic uint64_t id;
	struct dofi_ep *ep;
	struct rdm_pz *rpz;
	struct rdm_peer *peer;
	struct dofi_work work;
	/* awaits HELLO_BACK, or the end behind a loss; progress thread */
	struct dofi_timer lost;
	fi_addr_t to;			/* the address of the peer's endpoint */
	bool reached;			/* the peer is in the address vector, or out is set */

	/*
	 * EP lock. same_host, pid and alive are written before ep->fid is set. The progress thread
	 * alone writes left and last_frame, and reads them without the lock.
	 */
	/*
	 * The outbox to the peer, from rdm_conn_reach() on; NULL without rings. Every frame is
	 * short enough for it.
	 */
	struct dofi_outbox *out;
	_Atomic unsigned todo;		/* RDM_ESTABLISHED, ... */
	uint64_t peer_id;

	size_t inject;			/* most bytes of a frame that is injected */
	size_t max_copy;		/* most bytes of a frame that is sent from a copy */
	size_t frame_size;		/* most bytes of any frame */
	size_t eager;			/* most bytes of a message that is sent eagerly */

	bool same_host;			/* reached over rings or libfabric's shm; see pid */
	pid_t pid;			/* the peer's process if its memory can be read, else 0 */
	/* the peer's memory may be read while this word has its value */
	struct dofi_peer_word alive;
	bool peer_reads;		/* the peer can read our memory */
	uint32_t n_asked;		/* RDMA in flight that the peer carries out */
	/* the peer is to carry out the next RDMA, or all that comes: rma.c */
	bool by_target_next, by_target_always;

	bool hello_due, hello_back_due;	/* the frame is still to be sent */
	struct dofi_stall stall;	/* calls rdm_go_on() */
	bool processing;
	bool logged_refusal;		/* of the peer's RDMA: a peer may repeat it endlessly */
	/* the peer was notified of a failed request: nothing behind that is processed */
	bool refused;
	bool left;			/* the peer has left, after frame last_frame */
	uint32_t last_frame;
	DAT_EVENT_NUMBER left_event;

	uint32_t sent;			/* frames sent */
	uint32_t seen;			/* frames received */
	uint32_t credits, max_credits;	/* available credits, and their maximum */
	uint32_t credits_owed;		/* credits to return to the peer */
	uint32_t window;		/* credits that the peer got at first */

	uint32_t matched;		/* number of the next receive to be matched */
	bool filling;			/* an eager message in several frames has begun to arrive */
	uint32_t filled;		/* number of the receive that the eager message fills */
	uint32_t n_pending;
	STAILQ_HEAD(, rdm_pending) pending;

	LIST_HEAD(, rdm_op) ops;	/* operations at the fabric */
	uint32_t blocking;		/* RDMA at the fabric that messages wait for */
	uint32_t n_cts;		/* messages that are to be sent, after their CTS arrived */
};

/* Returns the member with this transport's part of @ia: xport_ia, unless it is the second one. */
static inline void **rdm_ia_at(struct dofi_ia *ia)
{
	return ia->fabric.rdm ? &ia->xport_ia : &ia->local_ia;
}

static inline struct rdm_ia *rdm_ia_of(struct dofi_ia *ia)
{
	return *rdm_ia_at(ia);
}

static inline struct rdm_conn *rdm_conn_of(const struct dofi_ep *ep)
{
	return ep->conn;
}

/* Schedules work for the progress thread. Call from any thread, with any lock. */
static inline void rdm_conn_todo(struct rdm_conn *conn, unsigned what)
{
	/* the progress thread may free @conn as soon as the work is visible */
	struct dofi_progress *p = &conn->rpz->pz->obj.ia->progress;

	atomic_fetch_or(&conn->todo, what);
	dofi_progress_post(p, &conn->work);
}

/* Returns the connection with @id, any value, or NULL. CQ lock held. */
static inline struct rdm_conn *rdm_conn_find(const struct rdm_pz *rpz, uint64_t id)
{
	const uint32_t slot = (uint32_t)id;
	struct rdm_conn *conn = slot < rpz->n_conns ? rpz->conn[slot] : NULL;

	return conn && atomic_load_explicit(&conn->id, memory_order_relaxed) == id ? conn : NULL;
}

static inline const struct dofi_fabric_choice *rdm_fabric(const struct rdm_conn *conn)
{
	return conn->rpz->ria->fabric;
}

#endif
