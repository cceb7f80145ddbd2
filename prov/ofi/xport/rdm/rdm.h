/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport, for fabrics whose endpoints do not connect.
 *
 * The EPs of a PZ share an endpoint of the fabric, or a few. What they send each other is frames
 * (rdm_frame.h), which name the connection they are for; messages meet the EP's receives here and
 * not at the fabric. Requests, answers and ends of connections go by a CM connection (xport/cm/conn.h).
 *
 * A peer may have so many frames under way as we have room to keep if they must wait: its credits.
 * Messages that a frame has no room for go in several, if they are short enough; longer ones are
 * announced. These are sent when a receive was found for them; or the receiver reads them from the
 * sender's memory, where both are on one host. RDMA is the fabric's, where a request that the peer
 * must refuse hurts nobody else; elsewhere it is asked of the peer by frames, too.
 *
 * Below, each file uses those above it, never those that follow.
 *
 *	frame.c		frames as bytes
 *	op.c		operations that the fabric carries out; what waits, or stalls, for it
 *	link.c		frames that are handed to the fabric, and credits
 *	eager.c		messages in several frames, at either end
 *	direct.c	a connection's own endpoint, for long messages
 *	rndv.c		messages that are announced, at either end
 *	rma.c		RDMA and atomics that are asked of the fabric, or of the peer
 *	target.c	RDMA and atomics that it does not do, carried out for the peer
 *	send.c		requests that are handed to the fabric
 *	recv.c		what arrives from it
 *	endpoint.c	the fabric's endpoints of a PZ; their replacement
 *	pz.c		PZs, and the connections by their ids
 *	rings.c		rings in place of the fabric, where an IA has another for distant peers
 *	peer.c		what the two ends tell each other of themselves
 *	conn.c		the life of a connection
 *	request.c	requests and answers
 *	xport.c		the IA's part; the way in of what the fabric brings
 */
#ifndef DOFI_XPORT_RDM_RDM_H
#define DOFI_XPORT_RDM_RDM_H

#include "base/mutex.h"
#include "fab/host.h"
#include "fab/peer_mem.h"
#include "fab/shm.h"
#include "obj/ep.h"
#include "rings/rings.h"
#include "xport/ports.h"
#include "xport/rdm/frame.h"

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

struct rdm_direct;
struct rdm_endpoint;
struct rdm_op;
struct rdm_peer;
struct rdm_waiting;

/* An IA's part. */
struct rdm_ia {
	struct dofi_ports ports;
	struct dofi_shm shm;		/* where the fabric is shared memory */
	struct dofi_host host;
	LIST_HEAD(, rdm_pz) pzs;	/* progress thread */
	struct dofi_progress *progress;
	const struct dofi_progress_ops *ring_ops; /* of the CQs of rings */
	struct dofi_work renewal;	/* see rdm_endpoints_damaged() */
	_Atomic uint64_t strays;	/* frames for no connection, and what is no frame */
};

/* A PZ's part, made with its first connection. */
struct rdm_pz {
	LIST_ENTRY(rdm_pz) link;
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

/* What the progress thread is to do for a connection. */
enum {
	RDM_ESTABLISHED = 1 << 0,
	RDM_OVER = 1 << 1,		/* all that the peer sent before it left was dealt with */
	RDM_FREE = 1 << 2,
	RDM_DIRECT = 1 << 3,		/* open the direct endpoint */
	RDM_DIRECT_LOST = 1 << 4,	/* an operation failed there */
};

/* In memory that is never unmapped. */
struct rdm_conn {
	_Atomic uint64_t id;		/* peers read it behind what they read of our memory */
	struct dofi_ep *ep;
	struct rdm_pz *rpz;
	struct rdm_endpoint *endpoint;	/* of the PZ's; NULL where there is */
	struct dofi_link *link;		/* in place of the fabric, the peer's; frames fit it */
	struct rdm_peer *peer;
	struct dofi_work work;
	struct dofi_shm_peer *page;	/* the peer's, to wake it by, or NULL */
	struct dofi_gate *gate;		/* to its endpoint, or NULL; what goes there is injected */
	fi_addr_t to;			/* the peer's endpoint */
	bool reached;			/* it is known to ours */
	LIST_ENTRY(rdm_conn) here;	/* in this process; lock in rdm.c */
	const _Atomic uint64_t *peer_here; /* the peer's id if that is in this process, or NULL */

	/* under the EP's lock */
	_Atomic unsigned todo;		/* RDM_ESTABLISHED, ... */
	uint64_t peer_id;
	size_t inject;			/* most bytes of a frame that is injected, */
	size_t max_copy;			/* of one of which a copy may be sent, */
	size_t frame_size;		/* and of one at all */
	size_t eager;			/* most bytes of what goes by frames although memory could be read */
	pid_t pid;			/* of a peer whose memory we can read, or 0 */
	struct dofi_peer_word alive;	/* we may as long as this is so there */
	bool peer_reads;		/* it can read ours */
	bool bare;			/* the peer takes bare frames, and the fabric carries them */
	bool hello_due, hello_back_due;	/* frames to be sent */
	bool stalled;			/* it is in the PZ's list; the PZ's lock, as for */
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
	uint32_t n_cts;		/* announced messages that are to be sent now */
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

/* The progress thread is to do something. Any thread, with any lock. */
static inline void rdm_conn_todo(struct rdm_conn *conn, unsigned what)
{
	/* it may be freed as soon as that is known */
	struct dofi_progress *p = &conn->rpz->pz->obj.ia->progress;

	atomic_fetch_or(&conn->todo, what);
	dofi_progress_post(p, &conn->work);
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
	return conn->gate && rdm_fabric(conn)->info->domain_attr->cq_data_size >= sizeof(uint64_t);
}

#endif
