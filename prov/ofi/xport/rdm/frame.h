/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What endpoints of a connectionless fabric send each other.
 *
 *	byte 0-7   the receiver's connection, as it told in the CM connection
 *	byte 8     version in the high, kind in the low half
 *	byte 9     flags
 *	byte 10-11 credits: so many of the receiver's frames were dealt with since the last one
 *	byte 12-15 number of the frame among those of the connection, from 1
 *	byte 16-23 what goes with a message (obj/beside.h)
 *
 * The bytes of a message that is SENT whole, or MORE of one, follow. Every other frame goes on with
 *
 *	byte 24-27 number of the request that it is, or is about
 *	byte 28-31 key, or result
 *	byte 32-39 address
 *	byte 40-47 length
 *	byte 48-63 two values
 *
 * and behind that may be data, or segments of the sender's memory (address and length of each).
 * Numbers are big-endian.
 */
#ifndef DOFI_XPORT_RDM_FRAME_H
#define DOFI_XPORT_RDM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RDM_FRAME_HEADER 24
#define RDM_FRAME_FULL 64		/* of all kinds but SEND and MORE */
#define RDM_FRAME_SEGMENT 16
#define RDM_FRAME_SEGMENTS 8		/* most in a frame */
#define RDM_FRAME_LEAST 256		/* who takes no frame of this size takes none */

enum rdm_frame_kind {
	/*
	 * The fabric carries frames in this direction. Value 0 is 1: the sender can read our memory. Value 1 is 1: the
	 * sender takes bare frames.
	 */
	RDM_FRAME_HELLO = 1,
	RDM_FRAME_HELLO_BACK,		/* and in that; likewise */
	RDM_FRAME_CREDIT,		/* nothing but credits */
	RDM_FRAME_SEND,			/* a message */
	/*
	 * Length; with segments: where it is; else it waits for a CTS. Value 0 is 1 if the sender has a direct
	 * endpoint (direct.c).
	 */
	RDM_FRAME_RTS,
	/*
	 * Value 0: the tag under which to send the message, or the number of its DATA frames. Data: the address of the
	 * receiver's direct endpoint, to which the message is to be sent from the sender's.
	 */
	RDM_FRAME_CTS,
	RDM_FRAME_DATA,			/* number; data that is at address of the message */
	/*
	 * Key, address, length; data, or segments where it is. Value 1 is how much of the operation
	 * follows in other frames: it is refused as a whole.
	 */
	RDM_FRAME_WRITE,
	/* Key, address, length. Value 0 is how much was asked for before, value 1 how much follows. */
	RDM_FRAME_READ,
	RDM_FRAME_FETCH_ADD,		/* key, address; value 0 is added */
	RDM_FRAME_CMP_SWAP,		/* key, address; value 0 is stored if value 1 is there */
	/*
	 * The end of a request. Result; of a read data, and in its address what the READ had in value
	 * 0; or address and length where it is, as long as the word at value 0 is value 1; of an
	 * atomic the former value in value 0.
	 */
	RDM_FRAME_ACK,
	/*
	 * Length; data, the first bytes of a message of that length. No other message, and no request, comes
	 * before the frames with the other bytes.
	 */
	RDM_FRAME_FIRST,
	RDM_FRAME_MORE,			/* the next bytes of the message that a FIRST began */
	RDM_FRAME_KINDS,
};

/* Frames with a header of RDM_FRAME_HEADER bytes. */
#define RDM_FRAME_SHORT (1u << RDM_FRAME_SEND | 1u << RDM_FRAME_MORE)

/* Frames that take of the receiver's room until it has dealt with them. */
#define RDM_FRAME_CREDITED                                                                 \
	(RDM_FRAME_SHORT | 1u << RDM_FRAME_FIRST | 1u << RDM_FRAME_RTS |                \
	 1u << RDM_FRAME_DATA | 1u << RDM_FRAME_WRITE | 1u << RDM_FRAME_READ |                \
	 1u << RDM_FRAME_FETCH_ADD | 1u << RDM_FRAME_CMP_SWAP)

enum rdm_result {
	RDM_OK,
	RDM_NO_ACCESS,			/* key, bounds, right or PZ */
	RDM_TOO_LONG,			/* for the receive that it met */
	RDM_NO_MEMORY,			/* the sender's own memory could not be read */
	RDM_RESULTS,
};

struct rdm_frame {
	uint64_t conn;
	uint64_t cq_data;
	uint32_t sequence;
	uint16_t credits;
	uint8_t kind;			/* enum rdm_frame_kind */
	uint32_t number;
	uint32_t key;			/* or enum rdm_result */
	uint64_t addr;
	uint64_t length;
	uint64_t value[2];
	const unsigned char *data;	/* what follows, where that is no segments */
	size_t data_size;
	uint32_t n_segments;
	struct iovec segment[RDM_FRAME_SEGMENTS]; /* addresses in the sender's memory */
};

/*
 * For frames that are many: clears all but the segments, of which there are none. One by one,
 * for compilers fill what is long by an instruction that is slow to begin.
 */
static inline void rdm_frame_clear(struct rdm_frame *frame)
{
	frame->conn = frame->cq_data = 0;
	frame->sequence = 0;
	frame->credits = 0;
	frame->kind = 0;
	frame->number = frame->key = 0;
	frame->addr = frame->length = 0;
	frame->value[0] = frame->value[1] = 0;
	frame->data = NULL;
	frame->data_size = 0;
	frame->n_segments = 0;
}

/* The bytes before a frame's data. */
static inline size_t rdm_frame_head(const struct rdm_frame *frame)
{
	return 1u << frame->kind & RDM_FRAME_SHORT ? RDM_FRAME_HEADER :
						     RDM_FRAME_FULL + frame->n_segments * RDM_FRAME_SEGMENT;
}

/* Renders all but the data; how long that is. */
size_t rdm_frame_pack(unsigned char *buf, const struct rdm_frame *frame);

/* Parses @len bytes of anybody: 0, or -EPROTO. @frame->data points into @buf. */
int rdm_frame_unpack(const void *buf, size_t len, struct rdm_frame *frame);

/*
 * A bare frame is nothing but data: its header is the 64 bits of remote CQ data that the fabric carries with it, so
 * that 4 KiB of data fit what libfabric's shm injects, and go straight from the program's memory.
 *
 *	bit 0-1    SEND, MORE, FIRST, or an ACK with data
 *	bit 2-7    credits
 *	bit 8-17   the low bits of the frame's number
 *	bit 18-31  length of a FIRST, or the low bits of the number of the request that an ACK is for
 *	bit 32-43  the low bits of the connection's number, the high half of its id
 *	bit 44-63  the connection's place, the low half of its id
 */
#define RDM_BARE_KINDS (1u << RDM_FRAME_SEND | 1u << RDM_FRAME_MORE | 1u << RDM_FRAME_FIRST | 1u << RDM_FRAME_ACK)
#define RDM_BARE_CREDITS 63		/* the largest value of each, as of RDM_BARE_LENGTH */
#define RDM_BARE_SEQUENCE 1023
#define RDM_BARE_LENGTH 16383
#define RDM_BARE_REQUEST RDM_BARE_LENGTH
#define RDM_BARE_NUMBER 4095
#define RDM_BARE_SLOT 0xfffff

/* Whether @frame has nothing that a bare frame has no bits for. An ACK is to be bare if its length is that of its data. */
static inline bool rdm_bare_fits(const struct rdm_frame *frame)
{
	return 1u << frame->kind & RDM_BARE_KINDS && !frame->cq_data && frame->credits <= RDM_BARE_CREDITS &&
	       (frame->kind != RDM_FRAME_FIRST || frame->length <= RDM_BARE_LENGTH) &&
	       (frame->kind != RDM_FRAME_ACK || (frame->length && !frame->value[0] && !frame->key)) &&
	       (uint32_t)frame->conn <= RDM_BARE_SLOT;
}

static inline uint32_t rdm_bare_slot(uint64_t bits)
{
	return bits >> 44;
}

static inline bool rdm_bare_is_for(uint64_t bits, uint64_t conn)
{
	return rdm_bare_slot(bits) == (uint32_t)conn && (bits >> 32 & RDM_BARE_NUMBER) == (conn >> 32 & RDM_BARE_NUMBER);
}

uint64_t rdm_bare_pack(const struct rdm_frame *frame);

/*
 * Parses the bits of anybody, and @len bytes at @data that came with them, of the connection @conn whose last frame had
 * the number @seen: 0, or -EPROTO. A number whose low bits are not the next one's becomes another one than that. Of
 * an ACK @frame->number is the low bits, and there is no address.
 */
int rdm_bare_unpack(uint64_t bits, const void *data, size_t len, uint64_t conn, uint32_t seen,
		    struct rdm_frame *frame);

#endif
