/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames, which endpoints of a connectionless fabric exchange.
 *
 *	byte 0-7   the receiver's connection id, from the CM connection
 *	byte 8     version in the high, kind in the low half
 *	byte 9     flags
 *	byte 10-11 credits: frames processed by the sender since it last returned credits
 *	byte 12-15 number of the frame in the connection, from 1
 *	byte 16-23 remote CQ data of a message (obj/cq_data.h)
 *
 * SEND and MORE continue with bytes of a message. All other frames continue with
 *
 *	byte 24-27 number of the request that the frame is, or is about
 *	byte 28-31 key, or result
 *	byte 32-39 address
 *	byte 40-47 length
 *	byte 48-63 two values
 *
 * and then with data, or segments of the sender's memory (address and length of each), or nothing.
 * Numbers are big-endian.
 */
#ifndef DOFI_XPORT_RDM_FRAME_H
#define DOFI_XPORT_RDM_FRAME_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define RDM_FRAME_VERSION 2
#define RDM_FRAME_HEADER 24
#define RDM_FRAME_FULL 64		/* of all kinds but SEND and MORE */
#define RDM_FRAME_SEGMENT 16
#define RDM_FRAME_SEGMENTS 8		/* most segments in a frame */
#define RDM_FRAME_LEAST 256		/* a peer that takes no frame of this size is refused */

enum rdm_frame_kind {
	/* the first frame of the active side; value 0: it can read the receiver's memory */
	RDM_FRAME_HELLO = 1,
	RDM_FRAME_HELLO_BACK,		/* the answer to HELLO, with the values of a HELLO */
	RDM_FRAME_CREDIT,		/* returns credits */
	RDM_FRAME_SEND,			/* a message */
	/*
	 * Announces a message of that length. With segments, the receiver reads it there and
	 * answers with an ACK; without, it answers with a CTS. Older versions set value 0 to 1,
	 * which is ignored.
	 */
	RDM_FRAME_RTS,
	/*
	 * The receiver has a receive for the message. Value 0 is a tag: of the message, or its low
	 * half is the number in each of its DATA frames.
	 */
	RDM_FRAME_CTS,
	/* the low half of the CTS's value 0 as the number; address is the offset of the data */
	RDM_FRAME_DATA,
	/*
	 * Key, address, length; data, or segments to read. Value 1: bytes of the operation in other
	 * frames; it is refused as a whole.
	 */
	RDM_FRAME_WRITE,
	/* Key, address, length. Values: bytes that earlier frames requested, bytes that follow. */
	RDM_FRAME_READ,
	RDM_FRAME_FETCH_ADD,		/* key, address; value 0 is added */
	RDM_FRAME_CMP_SWAP,		/* key, address; value 0 is stored if value 1 is there */
	/*
	 * Ends a request, with its result. For a read: data, with its offset as the address; or
	 * address and length of memory that may be read while the word at value 0 is value 1. For
	 * an atomic: the former value in value 0.
	 */
	RDM_FRAME_ACK,
	/* The length and the first bytes of a message. Only its MORE frames may follow. */
	RDM_FRAME_FIRST,
	RDM_FRAME_MORE,			/* the next bytes of the message that a FIRST began */
	RDM_FRAME_KINDS,
};

/* Kinds with a header of RDM_FRAME_HEADER bytes. */
#define RDM_FRAME_SHORT (1u << RDM_FRAME_SEND | 1u << RDM_FRAME_MORE)

/* Kinds that need a credit, as the receiver keeps them while they are pending. */
#define RDM_FRAME_CREDITED                                                                 \
	(RDM_FRAME_SHORT | 1u << RDM_FRAME_FIRST | 1u << RDM_FRAME_RTS |                \
	 1u << RDM_FRAME_DATA | 1u << RDM_FRAME_WRITE | 1u << RDM_FRAME_READ |                \
	 1u << RDM_FRAME_FETCH_ADD | 1u << RDM_FRAME_CMP_SWAP)

enum rdm_result {
	RDM_OK,
	RDM_NO_ACCESS,			/* wrong key, bounds, right or PZ */
	RDM_TOO_LONG,			/* longer than the receive */
	RDM_NO_MEMORY,			/* the sender's memory could not be read */
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
	const unsigned char *data;	/* NULL if there are segments */
	size_t data_size;
	uint32_t n_segments;
	struct iovec segment[RDM_FRAME_SEGMENTS]; /* addresses in the sender's memory */
};

/*
 * Sets the kind, and clears the other fields but the segments one by one, because compilers clear a
 * struct by a slow instruction.
 */
static inline void rdm_frame_begin(struct rdm_frame *frame, uint8_t kind)
{
	frame->conn = frame->cq_data = 0;
	frame->sequence = 0;
	frame->credits = 0;
	frame->kind = kind;
	frame->number = frame->key = 0;
	frame->addr = frame->length = 0;
	frame->value[0] = frame->value[1] = 0;
	frame->data = NULL;
	frame->data_size = 0;
	frame->n_segments = 0;
}

/*
 * The first byte of each id is at least this, and so the first byte of each frame: datagrams, which
 * arrive in the same rings, have a smaller one.
 */
#define RDM_ID_FIRST 0xe0u

/* The connection that the untrusted @buf, of at least RDM_FRAME_HEADER bytes, names. */
static inline uint64_t rdm_frame_conn(const unsigned char *buf)
{
	uint64_t conn;

	memcpy(&conn, buf, sizeof(conn));
	return be64toh(conn);
}

/* The bytes before a frame's data. */
static inline size_t rdm_frame_head(const struct rdm_frame *frame)
{
	return 1u << frame->kind & RDM_FRAME_SHORT ?
		       RDM_FRAME_HEADER :
		       RDM_FRAME_FULL + frame->n_segments * RDM_FRAME_SEGMENT;
}

/* Bytes 8 to 15 of the header of a message, as a number. */
static inline uint64_t rdm_frame_send_word(uint16_t credits, uint32_t sequence)
{
	return (RDM_FRAME_VERSION << 4 | (uint64_t)RDM_FRAME_SEND) << 56 |
	       (uint64_t)credits << 32 | sequence;
}

/* Packs the header of a message without remote CQ data: RDM_FRAME_HEADER bytes. */
static inline void rdm_frame_pack_send(unsigned char *buf, uint64_t conn, uint16_t credits,
				       uint32_t sequence)
{
	const uint64_t to = htobe64(conn), word = htobe64(rdm_frame_send_word(credits, sequence));

	/* one by one: from an array, compilers load two words at once, which stalls */
	memcpy(buf, &to, sizeof(to));
	memcpy(buf + 8, &word, sizeof(word));
	memset(buf + 16, 0, 8);
}

/* Whether the untrusted @buf is a message without CQ data of @conn and @sequence; sets @credits. */
static inline bool rdm_frame_is_send(const unsigned char *buf, uint64_t conn, uint32_t sequence,
				     uint16_t *credits)
{
	uint64_t to, word, cq_data;

	memcpy(&to, buf, sizeof(to));
	memcpy(&word, buf + 8, sizeof(word));
	memcpy(&cq_data, buf + 16, sizeof(cq_data));
	word = be64toh(word);
	*credits = (uint16_t)(word >> 32);
	return to == htobe64(conn) && word == rdm_frame_send_word(*credits, sequence) && !cq_data;
}

/* Packs all but the data. Returns the size of the header. */
size_t rdm_frame_pack(unsigned char *buf, const struct rdm_frame *frame);

/*
 * Parses @len bytes from an untrusted peer into @frame, which has begun or is clear. Returns 0 or
 * -EPROTO. @frame->data points into @buf.
 */
int rdm_frame_unpack(const void *buf, size_t len, struct rdm_frame *frame);

#endif
