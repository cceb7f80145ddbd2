/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer operations: their slots and queues, posting and completing. */
#ifndef DOFI_OBJ_EP_DTO_H
#define DOFI_OBJ_EP_DTO_H

#include "obj/obj.h"

#include <stdbool.h>
#include <sys/uio.h>

struct dofi_bind;
struct dofi_ep;
struct dofi_pz;
struct dofi_sink;
struct fi_cq_data_entry;

enum dofi_dto_kind {
	DOFI_DTO_SEND,
	DOFI_DTO_WRITE,
	DOFI_DTO_READ,
	DOFI_DTO_RECV,
	/* from here on: less usual, and some of them not the fabric's */
	DOFI_DTO_BIND,			/* of an RMR */
	DOFI_DTO_READ_TO_RMR,		/* a read once its turn has come and local_key is in force */
	DOFI_DTO_FRAME,			/* the provider's own receive, see frame.h */
	DOFI_DTO_SEND_INVALIDATE,	/* immed is the context that the receiver is to end */
	/* of the extension, see ep_ext.h */
	DOFI_DTO_SEND_IMMED,
	DOFI_DTO_WRITE_IMMED,
	DOFI_DTO_FETCH_ADD,
	DOFI_DTO_CMP_SWAP,
	/* what a receive becomes when a peer's message, or write, with such data ends it */
	DOFI_DTO_RECV_INVALIDATE,
	DOFI_DTO_RECV_IMMED,
	DOFI_DTO_RECV_WRITE_IMMED,
	DOFI_DTO_KINDS,
};

/* Requests that bring something back: they wait for each other, and a fence for them. */
#define DOFI_DTO_READS \
	(1u << DOFI_DTO_READ | 1u << DOFI_DTO_FETCH_ADD | 1u << DOFI_DTO_CMP_SWAP)
#define DOFI_DTO_RECVS                                                                      \
	(1u << DOFI_DTO_RECV | 1u << DOFI_DTO_RECV_INVALIDATE | 1u << DOFI_DTO_RECV_IMMED |   \
	 1u << DOFI_DTO_RECV_WRITE_IMMED)
/* Whose completions are events of the extension. */
#define DOFI_DTO_EXTENDED                                                                   \
	(1u << DOFI_DTO_WRITE_IMMED | DOFI_DTO_ATOMICS | 1u << DOFI_DTO_RECV_IMMED |         \
	 1u << DOFI_DTO_RECV_WRITE_IMMED)
#define DOFI_DTO_ATOMICS (1u << DOFI_DTO_FETCH_ADD | 1u << DOFI_DTO_CMP_SWAP)

static inline bool dofi_dto_is(uint8_t kind, unsigned kinds)
{
	return kinds >> kind & 1;
}

/*
 * A posted operation. Its address, with the generation in the low bits, is the
 * context that the fabric returns: a completion that comes twice finds another
 * generation, or nothing at the fabric, and is dropped. None comes after the transport
 * has closed the endpoint.
 */
struct dofi_dto {
	struct dofi_ep *ep;
	uint64_t cookie;
	uint64_t length;		/* fabrics do not report it for requests */
	uint64_t remote_addr;
	uint32_t remote_key;
	uint8_t kind;			/* enum dofi_dto_kind */
	uint8_t flags;			/* DAT_COMPLETION_FLAGS of the post */
	uint8_t status;			/* DAT_DTO_COMPLETION_STATUS, once done */
	uint8_t n_iov;			/* segments of no bytes are left out */
	uint8_t generation;
	bool at_fabric;
	bool done;
	uint8_t parts;			/* completions to come from the fabric before the last one */
	bool submitted;			/* the first part of several is at the fabric, or was */
	bool announced;			/* of a send: the peer knows that it comes */
	uint32_t immed;			/* data that travels beside a message */
	union {
		struct {
			DAT_RMR_HANDLE rmr;	/* of a bind, for its event: it may be gone by then */
			struct dofi_bind *bind;	/* until its turn has come */
		};
		struct {
			uint64_t operand;	/* of an atomic: what is added, or stored, */
			uint64_t compare;	/* and what must be there for that */
		};
		uint64_t beside;	/* of an SRQ's receive: what came with its message */
		uint32_t local_key;	/* of a read to an RMR */
	};
	void **desc;			/* one per segment, behind the segments */
	struct iovec iov[];
};

/*
 * In flags: a receive of another zone than the EP's. The fabric gets it without its segments:
 * a message that needs them finds no room, and fails as the protection error that it is. Until
 * the EP is of that zone again, remote_addr is the zone's id and remote_key what n_iov was.
 */
#define DOFI_DTO_BARRED 0x80

/* In flags: a receive that was posted to an SRQ. */
#define DOFI_DTO_SHARED 0x40

#define DOFI_DTO_GENERATIONS 64		/* slots are aligned to as many bytes */

static inline void *dofi_dto_context(const struct dofi_dto *dto)
{
	return (void *)((uintptr_t)dto | (dto->generation & (DOFI_DTO_GENERATIONS - 1)));
}

/*
 * A ring of slots. Operations enter at tail, go to the fabric at next, leave at
 * head: head <= next <= tail, as counters that wrap.
 */
struct dofi_queue {
	char *slots;
	size_t stride;
	uint32_t mask;
	uint32_t depth;			/* most operations outstanding, or a watermark below */
	uint32_t max_iov;		/* segments that a slot has room for */
	uint32_t head, next, tail;
	bool open;			/* operations may go to the fabric: dofi_ep_gate() */
};

/*
 * Makes @next a queue of these sizes with what is outstanding in @q, of which nothing may
 * be at the fabric, and which may be all zero. @q stays as it is; the two may share their
 * slots. 0 or -ENOMEM. EP lock held, as for the next.
 */
int dofi_queue_renew(struct dofi_queue *next, const struct dofi_queue *q, struct dofi_ep *ep,
		     uint32_t depth, uint32_t max_iov);
/* Puts @next, from dofi_queue_renew(), in the place of @q. */
void dofi_queue_replace(struct dofi_queue *q, const struct dofi_queue *next);
void dofi_queue_fini(struct dofi_queue *q);
/* The EP goes from the zone of one id to that of another: what its receives may still do. */
void dofi_queue_rezone(struct dofi_queue *q, uint64_t from, uint64_t to);

/* The slot that the next operation will take, or NULL when all are in use; and the oldest. */
struct dofi_dto *dofi_queue_reserve(struct dofi_queue *q);
struct dofi_dto *dofi_queue_oldest(const struct dofi_queue *q);

/* Operations outstanding. */
static inline uint32_t dofi_queue_used(const struct dofi_queue *q)
{
	return q->tail - q->head;
}

static inline bool dofi_queue_empty(const struct dofi_queue *q)
{
	return q->head == q->tail;
}

/*
 * Compares the receives that the EP holds with its watermarks, tells of those that are passed,
 * and sets the queue's depth to where the next one is: posting up to there need not look. EP
 * lock held, and again whenever receives, watermarks or their meaning in a new state change.
 */
void dofi_dto_watermarks(struct dofi_ep *ep);

/*
 * Whether a queue's operations may go to the fabric follows from the EP's state;
 * worked out when that changes, so that a post only looks at one flag. EP lock held.
 */
void dofi_ep_gate(struct dofi_ep *ep);

/* Makes @to, of another queue, the operation @from, whose slots have room for @max_iov segments. */
void dofi_dto_copy(struct dofi_dto *to, const struct dofi_dto *from, uint32_t max_iov);

/* Fills in a receive into memory of @pz; no flags. */
DAT_RETURN dofi_dto_receive(struct dofi_dto *dto, const struct dofi_pz *pz, DAT_COUNT n,
			    const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie);

/* Shortens @dto to @length bytes; it has as many. */
void dofi_dto_trim(struct dofi_dto *dto, uint64_t length);

/* Records how @dto ended: a positive @err ends the connection, too. EP lock held. */
void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err);

/* Sends what waits in @q, of @ep, to the fabric. EP lock held. */
void dofi_queue_pump(struct dofi_ep *ep, struct dofi_queue *q);

/* Sends waiting operations to the fabric, as far as it and the rules allow. EP lock held. */
void dofi_dto_pump(struct dofi_ep *ep);

/* Delivers what is complete, oldest first; @sink may be NULL. EP lock held. */
void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink);

/* Completes everything outstanding as flushed. EP lock held, fabric endpoint closed. */
void dofi_dto_flush(struct dofi_ep *ep);

/* A completion from the fabric: dofi_progress_ops.completed. */
void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* Whether a request of @ep may be posted with these completion flags. */
bool dofi_dto_request_flags(const struct dofi_ep *ep, DAT_COMPLETION_FLAGS flags);

/* A request as the consumer posted it. */
struct dofi_post {
	DAT_COUNT n;
	const DAT_LMR_TRIPLET *iov;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;	/* NULL for sends and receives */
	const DAT_RMR_TRIPLET *local;	/* of a read to an RMR, instead of iov */
	uint32_t immed;			/* what is sent along: data, or a context to be ended */
	uint64_t operand, compare;
};

/* Posts a request of the extension, whose count of segments, pointers and flags are good. */
DAT_RETURN dofi_ep_post_ext(struct dofi_ep *ep, uint8_t kind, const struct dofi_post *p);

/* What a transport found out about a receive that ended: @kind and @immed of its slot. */
struct dofi_arrived {
	uint8_t kind;			/* enum dofi_dto_kind */
	bool solicited;			/* the sender wants its receiver to be notified */
	uint32_t immed;
	uint64_t length;
	int err;			/* positive, if what arrived is not what a peer may send */
};

/* Reads what came beside a message of @length bytes; not 0. */
void dofi_arrived_read(struct dofi_arrived *arrived, uint64_t beside, uint64_t length);

/* As dofi_dto_complete(), for a receive that @arrived tells about. */
void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, const struct dofi_arrived *arrived,
			  struct dofi_sink *sink);

/* An SRQ's receive ended well: what came beside its message is done. A positive error if not so. */
int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto);

/* Ends a request that the transport keeps track of itself; a positive @err. EP lock held. */
void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink);

/* Posts @bind as a request of @ep, and stores its context if there is a place for it. */
DAT_RETURN dofi_ep_post_bind(struct dofi_ep *ep, struct dofi_bind *bind, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);

DAT_RETURN dofi_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dofi_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context);
DAT_RETURN dofi_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags);
#endif
DAT_RETURN dofi_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);

#endif
