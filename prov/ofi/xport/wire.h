/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What our connection manager puts into a fabric's private data.
 *
 *	byte 0     magic
 *	byte 1     version in the high, kind in the low half
 *	byte 2     flags
 *	byte 3     length of the consumer's private data
 *	8 bytes    connection qualifier, if the flag says so
 *	16 bytes   address, key and number of the sender's mailbox, if the flag says so
 *	then       the consumer's private data
 *
 * Numbers are big-endian. A qualifier that is the port itself is not repeated: fabrics
 * carry as few as 55 bytes. The length is explicit because some of them pad.
 */
#ifndef DOFI_XPORT_WIRE_H
#define DOFI_XPORT_WIRE_H

#include "obj/xport.h"

#include <stddef.h>
#include <stdint.h>

#define DOFI_WIRE_HEADER 12		/* most bytes added to the consumer's data */
#define DOFI_WIRE_MAILBOX 16		/* of a mailbox, besides */
#define DOFI_WIRE_MAX_DATA 244
#define DOFI_WIRE_MAX (DOFI_WIRE_HEADER + DOFI_WIRE_MAILBOX + DOFI_WIRE_MAX_DATA)

enum dofi_wire_kind {
	DOFI_WIRE_REQUEST = 1,
	DOFI_WIRE_ACCEPT = 2,
	DOFI_WIRE_REJECT = 3,		/* the consumer turned the request down */
	DOFI_WIRE_REFUSE = 4,		/* the provider did: nobody listens, or no room */
};

struct dofi_wire {
	enum dofi_wire_kind kind;
	uint64_t conn_qual;		/* of a request; 0 stands for the port */
	struct dofi_mailbox mailbox;	/* of a request or an acceptance; key 0 is none */
	const void *data;
	size_t data_size;
};

/* Renders @msg, whose data_size is at most DOFI_WIRE_MAX_DATA; the bytes used. */
size_t dofi_wire_pack(unsigned char buf[DOFI_WIRE_MAX], const struct dofi_wire *msg);

/*
 * Parses @len bytes of a stranger. 0, or -EPROTO when they are not ours or not of
 * our version. @msg->data points into @buf.
 */
int dofi_wire_unpack(const void *buf, size_t len, struct dofi_wire *msg);

/*
 * What comes with a message or an RDMA write as remote CQ data, where that has 64 bits: in the
 * upper half a kind, in the lower a value. Writes complete no receive of the fabric's, so a write
 * with immediate data is followed by a message of no bytes, whose kind tells in its upper bits
 * how many were written.
 */
enum dofi_cq_data_kind {
	DOFI_CQ_NOTHING = 0,		/* a message, where each must say what it is */
	DOFI_CQ_INVALIDATE = 1,		/* a message: the context to be invalidated */
	DOFI_CQ_IMMED = 2,		/* a message: its immediate data */
	DOFI_CQ_WRITE_IMMED = 3,	/* a message of no bytes: the immediate data of a write */
};

#define DOFI_CQ_KIND_BITS 2

static inline uint64_t dofi_cq_data(enum dofi_cq_data_kind kind, uint32_t length, uint32_t value)
{
	return (uint64_t)(length << DOFI_CQ_KIND_BITS | kind) << 32 | value;
}

static inline enum dofi_cq_data_kind dofi_cq_data_kind(uint64_t data)
{
	return (enum dofi_cq_data_kind)(data >> 32 & ((1u << DOFI_CQ_KIND_BITS) - 1));
}

static inline uint32_t dofi_cq_data_length(uint64_t data)
{
	return (uint32_t)(data >> (32 + DOFI_CQ_KIND_BITS));
}

/*
 * The port on which a qualifier is listened for. A qualifier that fits a port is
 * that port. Any other, and one below 1024 that an ordinary user may not bind,
 * maps to a few ports outside the ephemeral range that both sides try in order.
 */
unsigned dofi_wire_ports(uint64_t conn_qual);	/* how many there are to try */
uint16_t dofi_wire_port(uint64_t conn_qual, unsigned attempt);

#endif
