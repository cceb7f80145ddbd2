/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data transfer operations: what they are, and how they end. */
#ifndef DOFI_OBJ_EP_DTO_H
#define DOFI_OBJ_EP_DTO_H

#include "obj/obj.h"

#include <stdbool.h>
#include <sys/uio.h>

struct dofi_bind;
struct dofi_ep;
struct dofi_sink;
struct fi_cq_data_entry;

/* Of the data path: into each caller, where most of it falls away with what is constant there. */
#define DOFI_INTO_CALLER inline __attribute__((always_inline))

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
/* Requests that name memory of the peer. */
#define DOFI_DTO_RDMA (DOFI_DTO_READS | 1u << DOFI_DTO_WRITE | 1u << DOFI_DTO_WRITE_IMMED)
#define DOFI_DTO_RECVS                                                                      \
	(1u << DOFI_DTO_RECV | 1u << DOFI_DTO_RECV_INVALIDATE | 1u << DOFI_DTO_RECV_IMMED |   \
	 1u << DOFI_DTO_RECV_WRITE_IMMED)
/* Whose completions are events of the extension. */
#define DOFI_DTO_EXTENDED                                                                   \
	(1u << DOFI_DTO_WRITE_IMMED | DOFI_DTO_ATOMICS | 1u << DOFI_DTO_RECV_IMMED |         \
	 1u << DOFI_DTO_RECV_WRITE_IMMED)
#define DOFI_DTO_ATOMICS (1u << DOFI_DTO_FETCH_ADD | 1u << DOFI_DTO_CMP_SWAP)

/* How far the transport is with an operation that takes several steps. */
enum dofi_dto_step {
	DOFI_STEP_NONE,
	DOFI_STEP_BEGUN,	/* its first frame, or the write before its message, is at the fabric */
	DOFI_STEP_ASKED,	/* RDMA: the peer was asked to carry it out */
	DOFI_STEP_RTS,		/* send: the peer was notified of the message */
	DOFI_STEP_CTS,		/* send: the peer has a receive, and the message is to be sent */
	DOFI_STEP_CTS_DIRECT,	/* send: like CTS, through the connection's own endpoint */
	DOFI_STEP_DATA,		/* send: the message behind a CTS was handed to the fabric */
	DOFI_STEP_AWAITS_DATA,	/* receive: DATA frames bring its message */
};

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
	union {
		struct {
			uint64_t remote_addr;
			uint32_t remote_key;
		};
		struct {		/* of a plain operation: */
			void *memory;		/* where its bytes go; receives only */
			uint32_t memory_lmr;	/* the context of the LMR that its segment names */
		};
	};
	union {
		uint32_t immed;		/* data that travels beside a message */
		uint32_t local_key;	/* DOFI_DTO_GRANTED: the context of the RMR */
	};
	uint32_t number;		/* its place in the queue: tail, when it was posted */
	/* written at once; what is not 0 in a plain operation comes first, as a constant of 32 bits has room for it */
	uint8_t kind;			/* enum dofi_dto_kind */
	bool at_fabric;
	uint8_t flags;			/* DAT_COMPLETION_FLAGS of the post */
	uint8_t n_iov;			/* segments of no bytes, and what is plain, are left out */
	uint8_t parts;			/* completions to come from the fabric before the last one */
	bool done;
	uint16_t step;			/* enum dofi_dto_step; fills the 8 bytes that are written at once */
	uint8_t status;			/* DAT_DTO_COMPLETION_STATUS, once done */
	uint8_t tag;			/* in the context: the generation; and DOFI_DTO_ORDINARY */
	uint8_t marks;			/* DOFI_DTO_GRANTED, ...; undefined if plain but for RECALLED */
	union {
		struct {
			DAT_RMR_HANDLE rmr;	/* of a bind, for its event: it may be gone by then */
			struct dofi_bind *bind;	/* until its turn has come */
		};
		struct {
			uint64_t operand;	/* of an atomic: what is added, or stored, */
			uint64_t compare;	/* and what must be there for that */
		};
		struct {
			uint64_t beside;	/* of a receive SHARED or MATCHED: what came with its message */
			uint64_t got;		/* of a receive MATCHED: bytes that frames have brought */
		};
		struct {		/* of RDMA that the peer carries out in parts */
			uint64_t asked;		/* bytes that the peer was asked for */
			uint64_t got;		/* bytes that a read has returned */
		} rma;
		struct {		/* of an eager message in several frames */
			uint64_t sent;		/* bytes handed to the fabric */
		} eager;
		struct {		/* of a message sent by rendezvous, from its CTS on */
			uint64_t tag;		/* the peer's name for the receive */
			uint64_t sent;		/* bytes handed to the fabric in DATA frames */
		} rndv;
	};
	void **desc;			/* one per segment, behind the segments; behind these, dofi_dto_lmr() */
	struct iovec iov[];
};

/* Marks: its memory is named by the context of an RMR. */
#define DOFI_DTO_GRANTED 0x01
/* A request whose memory has lost its LMR, or RMR, before the fabric got it: it fails when its turn comes. */
#define DOFI_DTO_REVOKED 0x02
/* A receive that the fabric was asked to give back; see ep_revoke.c. */
#define DOFI_DTO_RECALLED 0x04

/* The contexts of the LMRs of its segments: as many as the slot has room for. Not of what is plain. */
static inline uint32_t *dofi_dto_lmr(const struct dofi_dto *dto)
{
	return (uint32_t *)(dto->desc + ((const struct iovec *)dto->desc - dto->iov));
}

/*
 * In flags: a receive that may not use its memory, which is of another PZ than the EP's, or has lost its LMR.
 * The fabric gets it without its segments: a message that needs them finds no room, and the receive fails with
 * the protection error that this is. Until the EP is of that PZ again, remote_addr is the PZ's id (none, for
 * good, without an LMR) and remote_key what n_iov was.
 */
#define DOFI_DTO_BARRED 0x80

/* In flags: a receive that was posted to an SRQ. */
#define DOFI_DTO_SHARED 0x40

/*
 * In flags: a receive to which the transport itself matched a message, and set beside. Of a
 * request the bit is DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG.
 */
#define DOFI_DTO_MATCHED 0x20

#define DOFI_DTO_GENERATIONS 64		/* slots are aligned to as many bytes */

static inline void *dofi_dto_context(const struct dofi_dto *dto)
{
	return (void *)((uintptr_t)dto | (dto->tag & (DOFI_DTO_GENERATIONS - 1)));
}

static inline struct dofi_dto *dofi_dto_of(const void *context)
{
	return (struct dofi_dto *)((uintptr_t)context & ~(uintptr_t)(DOFI_DTO_GENERATIONS - 1));
}

/* In the tag, if the operation is not plain (of one segment without flags, see ep_plain.h). */
#define DOFI_DTO_ORDINARY 0x80

static inline bool dofi_dto_is_plain(const struct dofi_dto *dto)
{
	return !(dto->tag & DOFI_DTO_ORDINARY);
}

/* Whether @context is that of @dto, which is plain: in one comparison. */
static inline bool dofi_dto_is_plain_of(const struct dofi_dto *dto, const void *context)
{
	return (uintptr_t)context == (uintptr_t)dto + dto->tag;
}

/* The slot begins another life. */
static inline void dofi_dto_renew(struct dofi_dto *dto)
{
	dto->tag = ((dto->tag + 1) & (DOFI_DTO_GENERATIONS - 1)) | DOFI_DTO_ORDINARY;
}

/* As that of a plain operation, whose context is returned. */
static inline void *dofi_dto_renew_plain(struct dofi_dto *dto)
{
	const unsigned tag = (dto->tag + 1u) & (DOFI_DTO_GENERATIONS - 1);

	dto->tag = (uint8_t)tag;
	return (void *)((uintptr_t)dto | tag);
}

/* Records how @dto ended: a positive @err ends the connection, too. EP lock held. */
void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err);

/* Delivers what is complete, oldest first; @sink may be NULL. EP lock held. */
void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink);

/* Completes everything outstanding as flushed. EP lock held, fabric endpoint closed. */
void dofi_dto_flush(struct dofi_ep *ep);

/* A completion from the fabric: dofi_progress_ops.completed. */
void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

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

/*
 * A receive whose beside is valid ended well: what came beside its message is done. A positive
 * error if not so.
 */
int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto);

/* Ends a request that the transport keeps track of itself; a positive @err. EP lock held. */
void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink);

#endif
