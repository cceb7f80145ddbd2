/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages that this provider puts into a fabric's private data.
 *
 *	byte 0     magic
 *	byte 1     version in the high, kind in the low half
 *	byte 2     flags: see below; 8, if the sender wants preambles (xport/msg/msg.h)
 *	byte 3     length of the consumer's private data
 *	8 bytes    connection qualifier, with flag 1
 *	2 bytes    connection qualifier, with flag 16 in place of flag 1
 *	4 bytes    the sender's secret, with flag 2
 *	16 bytes   address, key and number of the sender's mailbox, with flag 4
 *	then       the consumer's private data
 *
 * Numbers are big-endian. A qualifier that is the port itself is not repeated: fabrics carry as few
 * as 55 bytes, of which programs expect 48. So verbs adds 4 bytes to a request for a port. The
 * length is explicit because some fabrics pad private data. The secret is part of the sender's keys
 * of EP scope, where the fabric's keys are long enough: dofi_mr_fabric_key().
 */
#ifndef DOFI_XPORT_WIRE_H
#define DOFI_XPORT_WIRE_H

#include "obj/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOFI_WIRE_FIXED 4		/* bytes that are always added to the consumer's data */
#define DOFI_WIRE_QUAL 8		/* most bytes of a qualifier */
#define DOFI_WIRE_SECRET 4		/* bytes of a secret */
#define DOFI_WIRE_MAILBOX 16		/* bytes of a mailbox */
#define DOFI_WIRE_MAX_DATA 240
#define DOFI_WIRE_MAX                                                                      \
	(DOFI_WIRE_FIXED + DOFI_WIRE_QUAL + DOFI_WIRE_SECRET + DOFI_WIRE_MAILBOX +         \
	 DOFI_WIRE_MAX_DATA)

enum dofi_wire_kind {
	DOFI_WIRE_REQUEST = 1,
	DOFI_WIRE_ACCEPT = 2,
	DOFI_WIRE_REJECT = 3,		/* the consumer rejected the request */
	DOFI_WIRE_REFUSE = 4,		/* the provider refused it: no listener, or no memory */
};

struct dofi_wire {
	enum dofi_wire_kind kind;
	uint64_t conn_qual;		/* of a request; 0 stands for the port */
	uint32_t secret;		/* of a request or an acceptance; 0 is none */
	struct dofi_mailbox mailbox;	/* of a request or an acceptance; key 0 is none */
	bool preambles;			/* the sender wants one with each message */
	const void *data;
	size_t data_size;
};

/* Packs @msg. Its data_size is at most DOFI_WIRE_MAX_DATA. Returns the number of bytes. */
size_t dofi_wire_pack(unsigned char buf[DOFI_WIRE_MAX], const struct dofi_wire *msg);

/* Parses @len untrusted bytes, which @msg->data points into. 0 or -EPROTO. */
int dofi_wire_unpack(const void *buf, size_t len, struct dofi_wire *msg);

/*
 * The ports of a qualifier. A qualifier that fits a port is that port. Others, and ports below
 * 1024, which users may not bind, map to a few ports outside the ephemeral range, tried in order.
 */
unsigned dofi_wire_ports(uint64_t conn_qual);	/* number of ports */
uint16_t dofi_wire_port(uint64_t conn_qual, unsigned attempt);

/* The ports for exchanges of datagram addresses, none a dofi_wire_port(), tried in order. */
#define DOFI_WIRE_DATAGRAM_PORTS 4
uint16_t dofi_wire_datagram_port(uint64_t conn_qual, unsigned attempt);

/* The bytes of DOFI_WIRE_QUAL that a request for @conn_qual needs, at any of its ports. */
size_t dofi_wire_qual_size(uint64_t conn_qual);

#endif
