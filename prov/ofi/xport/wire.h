/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What our connection manager puts into a fabric's private data.
 *
 *	byte 0     magic
 *	byte 1     version in the high, kind in the low half
 *	byte 2     flags, below; 8, what is sent to me is to be framed
 *	byte 3     length of the consumer's private data
 *	8 bytes    connection qualifier, if flag 1 says so
 *	2 bytes    connection qualifier, if flag 16 does; not both
 *	4 bytes    the sender's secret, if flag 2 does
 *	16 bytes   address, key and number of the sender's mailbox, if flag 4 does
 *	then       the consumer's private data
 *
 * Numbers are big-endian. A qualifier that is the port itself is not repeated: fabrics
 * carry as few as 55 bytes, of which programs expect 48. So verbs adds 4 bytes to a request for a
 * port. The length is explicit because some of them pad. The secret is a
 * part of the sender's keys of EP scope, where the fabric has room for it: dofi_mr_fabric_key().
 */
#ifndef DOFI_XPORT_WIRE_H
#define DOFI_XPORT_WIRE_H

#include "obj/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOFI_WIRE_FIXED 4		/* bytes that are always added to the consumer's data, */
#define DOFI_WIRE_QUAL 8		/* with a qualifier up to so many more, */
#define DOFI_WIRE_SECRET 4		/* with a secret, */
#define DOFI_WIRE_MAILBOX 16		/* and with a mailbox */
#define DOFI_WIRE_MAX_DATA 240
#define DOFI_WIRE_MAX                                                                      \
	(DOFI_WIRE_FIXED + DOFI_WIRE_QUAL + DOFI_WIRE_SECRET + DOFI_WIRE_MAILBOX +         \
	 DOFI_WIRE_MAX_DATA)

enum dofi_wire_kind {
	DOFI_WIRE_REQUEST = 1,
	DOFI_WIRE_ACCEPT = 2,
	DOFI_WIRE_REJECT = 3,		/* the consumer turned the request down */
	DOFI_WIRE_REFUSE = 4,		/* the provider did: nobody listens, or no room */
};

struct dofi_wire {
	enum dofi_wire_kind kind;
	uint64_t conn_qual;		/* of a request; 0 stands for the port */
	uint32_t secret;		/* of a request or an acceptance; 0 is none */
	struct dofi_mailbox mailbox;	/* of a request or an acceptance; key 0 is none */
	bool framed;			/* who sends it receives from an SRQ: see xport/msg/frame.h */
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
 * The port on which a qualifier is listened for. A qualifier that fits a port is
 * that port. Any other, and one below 1024 that an ordinary user may not bind,
 * maps to a few ports outside the ephemeral range that both sides try in order.
 */
unsigned dofi_wire_ports(uint64_t conn_qual);	/* how many there are to try */
uint16_t dofi_wire_port(uint64_t conn_qual, unsigned attempt);

/* What a request for @conn_qual needs of DOFI_WIRE_QUAL, at whichever of these ports. */
size_t dofi_wire_qual_size(uint64_t conn_qual);

#endif
