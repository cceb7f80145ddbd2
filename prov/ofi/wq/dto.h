/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A data transfer operation, in the slot that it has from its post to its end. */
#ifndef DOFI_WQ_DTO_H
#define DOFI_WQ_DTO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct dofi_bind;
struct dofi_ep;

/* On the data path: inlined into each caller, where constant arguments vanish. */
#define DOFI_INTO_CALLER inline __attribute__((always_inline))

enum dofi_dto_kind {
	DOFI_DTO_SEND,
	DOFI_DTO_WRITE,
	DOFI_DTO_READ,
	DOFI_DTO_RECV,
	/* the slow path only, and some do not go to the fabric */
	DOFI_DTO_BIND,			/* of an RMR */
	/* becomes a read when it is next in the queue and local_key is in force */
	DOFI_DTO_READ_TO_RMR,
	DOFI_DTO_PREAMBLE,	/* a receive of the transport's: dofi_xport_srq.arrived() */
	DOFI_DTO_PROBE,			/* dofi_ep.probe, in no queue */
	DOFI_DTO_SEND_INVALIDATE,	/* immed is the context that the receiver will invalidate */
	/* of the extension, see obj/ep/ep_post.h */
	DOFI_DTO_SEND_IMMED,
	DOFI_DTO_WRITE_IMMED,
	DOFI_DTO_FETCH_ADD,
	DOFI_DTO_CMP_SWAP,
	/* remote_addr is the address handle, remote_key the number of the peer's EP */
	DOFI_DTO_SEND_UD,
	DOFI_DTO_SEND_UD_IMMED,
	/* the kind of a receive if the message, or write, that ends it has such data */
	DOFI_DTO_RECV_INVALIDATE,
	DOFI_DTO_RECV_IMMED,
	DOFI_DTO_RECV_WRITE_IMMED,
	DOFI_DTO_RECV_UD,
	DOFI_DTO_RECV_UD_IMMED,
	DOFI_DTO_KINDS,
};

/* Requests that return data: at most the agreed number is in flight, and a fence waits for them. */
#define DOFI_DTO_READS \
	(1u << DOFI_DTO_READ | 1u << DOFI_DTO_FETCH_ADD | 1u << DOFI_DTO_CMP_SWAP)
/* Requests that name memory of the peer. */
#define DOFI_DTO_RDMA (DOFI_DTO_READS | 1u << DOFI_DTO_WRITE | 1u << DOFI_DTO_WRITE_IMMED)
#define DOFI_DTO_SENDS \
	(1u << DOFI_DTO_SEND | 1u << DOFI_DTO_SEND_INVALIDATE | 1u << DOFI_DTO_SEND_IMMED)
#define DOFI_DTO_RECVS                                                                      \
	(1u << DOFI_DTO_RECV | 1u << DOFI_DTO_RECV_INVALIDATE | 1u << DOFI_DTO_RECV_IMMED |   \
	 1u << DOFI_DTO_RECV_WRITE_IMMED | 1u << DOFI_DTO_RECV_UD |                          \
	 1u << DOFI_DTO_RECV_UD_IMMED)
/* Sends of datagrams. */
#define DOFI_DTO_DATAGRAMS (1u << DOFI_DTO_SEND_UD | 1u << DOFI_DTO_SEND_UD_IMMED)
/* Kinds that complete with an event of the extension. */
#define DOFI_DTO_EXTENDED                                                                   \
	(1u << DOFI_DTO_WRITE_IMMED | DOFI_DTO_ATOMICS | 1u << DOFI_DTO_RECV_IMMED |         \
	 1u << DOFI_DTO_RECV_WRITE_IMMED | DOFI_DTO_DATAGRAMS | 1u << DOFI_DTO_RECV_UD |      \
	 1u << DOFI_DTO_RECV_UD_IMMED)
#define DOFI_DTO_ATOMICS (1u << DOFI_DTO_FETCH_ADD | 1u << DOFI_DTO_CMP_SWAP)

/* A description of an operation for the log. */
#define DOFI_DTO_TEXT 120

/* How far the transport is with an operation that takes several steps. */
enum dofi_dto_step {
	DOFI_STEP_NONE,
	/* its first frame, or the write before its message, is at the fabric */
	DOFI_STEP_BEGUN,
	DOFI_STEP_ASKED,	/* RDMA: the request was sent to the peer */
	DOFI_STEP_RTS,		/* send: the peer was notified of the message */
	DOFI_STEP_CTS,		/* send: the peer has a receive, and the message is to be sent */
	DOFI_STEP_DATA,		/* send: the message behind a CTS was handed to the fabric */
	DOFI_STEP_AWAITS_DATA,	/* receive: DATA frames carry its message */
};

static inline bool dofi_dto_is(uint8_t kind, unsigned kinds)
{
	return kinds >> kind & 1;
}

/*
 * A posted operation. Its address, with the generation in the low bits, is the context that the
 * fabric returns. A completion that comes twice finds another generation, or an operation that is
 * not at the fabric, and is dropped. None comes after the transport has closed the endpoint.
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
			union {
				void *memory;		/* of a receive: the destination */
				uint64_t plain_addr;	/* of RDMA: in the peer, for the log */
			};
			uint32_t memory_lmr;	/* the LMR context of its segment */
			uint32_t plain_key;	/* of RDMA: the peer's context, for the log */
		};
		struct {		/* of a receive with DOFI_DTO_EXCLUDED */
			uint64_t pz_id;		/* the PZ; 0 after the LMR was freed */
			uint32_t n_iov_before;
		} excluded;
	};
	union {
		uint32_t immed;		/* immediate data of a message */
		uint32_t local_key;	/* DOFI_DTO_GRANTED: the context of the RMR */
	};
	uint32_t number;		/* its index in the queue: tail, when it was posted */
	/* Written by one store: a constant has the fields that are not 0 in a plain operation. */
	uint8_t kind;			/* enum dofi_dto_kind */
	bool at_fabric;
	uint8_t flags;			/* DAT_COMPLETION_FLAGS of the post */
	uint8_t n_iov;			/* without empty segments; 0 in a plain operation */
	uint8_t parts;		/* completions that will come from the fabric before the last one */
	bool done;
	uint16_t step;		/* enum dofi_dto_step; fills the 8 bytes that are written at once */
	uint8_t status;			/* DAT_DTO_COMPLETION_STATUS, once done */
	uint8_t tag;			/* the generation in the context; and DOFI_DTO_SLOW */
	uint8_t marks;	/* DOFI_DTO_GRANTED, ...; of a plain operation RECALLED alone is defined */
	union {
		struct {
			void *rmr;	/* of a bind, for its event; may be freed by then */
			struct dofi_bind *bind;	/* of a bind, until it is carried out */
		};
		struct {
			uint64_t operand;	/* of an atomic: the number to add, or to store */
			uint64_t compare;	/* of an atomic: the number that must be there */
		};
		struct {
			/* of a receive SHARED or MATCHED: remote CQ data of its message */
			uint64_t cq_data;
			/* of a receive MATCHED: bytes that arrived in frames */
			uint64_t got;
		};
		struct {		/* of RDMA that the peer carries out in parts */
			uint64_t asked;		/* bytes requested from the peer */
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
	/* one per segment, behind iov; dofi_dto_contexts() is behind these */
	void **desc;
	struct iovec iov[];
};

/* In marks: an RMR's context names the memory. */
#define DOFI_DTO_GRANTED 0x01
/* In marks: the LMR or RMR of a pending request was freed. It fails when it is the next one. */
#define DOFI_DTO_REVOKED 0x02
/* In marks: a receive that was cancelled at the fabric; see obj/ep/ep_revoke.c. */
#define DOFI_DTO_RECALLED 0x04
/*
 * In marks: RDMA to addresses that no peer has. Fabrics whose check of bounds wraps would kill the
 * peer, so it fails here, after all requests before it have ended.
 */
#define DOFI_DTO_NOWHERE 0x08

/* The LMR contexts of the segments: as many as the slot holds. Undefined for a plain operation. */
static inline uint32_t *dofi_dto_contexts(const struct dofi_dto *dto)
{
	return (uint32_t *)(dto->desc + ((const struct iovec *)dto->desc - dto->iov));
}

/*
 * In flags: a receive that may not use its memory: it is of another PZ than the EP's, or its LMR
 * was freed. The fabric gets the receive without segments: a message that needs them does not fit,
 * and the receive fails with the protection error. The receive gets its segments back when the EP
 * gets that PZ back.
 */
#define DOFI_DTO_EXCLUDED 0x80

/* In flags: a receive that was posted to an SRQ. */
#define DOFI_DTO_SHARED 0x40

/*
 * In flags: a receive to which the transport itself matched a message; it has set cq_data. No post
 * has this bit, which is DAT_COMPLETION_EVD_THRESHOLD_FLAG.
 */
#define DOFI_DTO_MATCHED 0x10

#define DOFI_DTO_GENERATIONS 64		/* slots are aligned to as many bytes */

static inline void *dofi_dto_context(const struct dofi_dto *dto)
{
	return (void *)((uintptr_t)dto | (dto->tag & (DOFI_DTO_GENERATIONS - 1)));
}

static inline struct dofi_dto *dofi_dto_of(const void *context)
{
	return (struct dofi_dto *)((uintptr_t)context & ~(uintptr_t)(DOFI_DTO_GENERATIONS - 1));
}

/* In the tag: the slow path. Clear in a plain operation, of one segment: obj/ep/fast.h. */
#define DOFI_DTO_SLOW 0x80

static inline bool dofi_dto_is_plain(const struct dofi_dto *dto)
{
	return !(dto->tag & DOFI_DTO_SLOW);
}

/* Begins the next generation of the slot. */
static inline void dofi_dto_renew(struct dofi_dto *dto)
{
	dto->tag = ((dto->tag + 1) & (DOFI_DTO_GENERATIONS - 1)) | DOFI_DTO_SLOW;
}

/* Whether @context belongs to @dto, which is at the fabric. */
static inline bool dofi_dto_awaits(const struct dofi_dto *dto, const void *context)
{
	return dto->at_fabric && dofi_dto_context(dto) == context;
}

/* Initialises the slot of operation @number, except its tag. */
static inline void dofi_dto_begin(struct dofi_dto *dto, uint32_t number)
{
	dto->number = number;
	dto->parts = 0;
	dto->at_fabric = dto->done = false;
	dto->step = DOFI_STEP_NONE;
}

/* The operation has ended, with @status: it is not at the fabric any more. */
static inline void dofi_dto_set_done(struct dofi_dto *dto, uint8_t status)
{
	dto->done = true;
	dto->at_fabric = false;
	dto->status = status;
}

/* Begins the next generation, for a plain operation. Returns the context. */
static inline void *dofi_dto_renew_plain(struct dofi_dto *dto)
{
	const unsigned tag = (dto->tag + 1u) & (DOFI_DTO_GENERATIONS - 1);

	dto->tag = (uint8_t)tag;
	return (void *)((uintptr_t)dto | tag);
}

#endif
