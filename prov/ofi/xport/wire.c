/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages in a fabric's private data, and the mapping of qualifiers to ports. Pure functions.
 */

#include "xport/wire.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0xda
#define VERSION 2
#define FLAG_QUAL 0x01
#define FLAG_SECRET 0x02
#define FLAG_MAILBOX 0x04
#define FLAG_PREAMBLES 0x08
#define FLAG_SHORT_QUAL 0x10
#define FLAGS (FLAG_QUAL | FLAG_SECRET | FLAG_MAILBOX | FLAG_PREAMBLES | FLAG_SHORT_QUAL)
#define EITHER_QUAL (FLAG_QUAL | FLAG_SHORT_QUAL)

#define SHORT_QUAL 2

/* Writes the low @n bytes of @v, and returns the address behind them. */
static unsigned char *put(unsigned char *p, int n, uint64_t v)
{
	int i;

	for (i = n - 1; i >= 0; i--, v >>= 8)
		p[i] = (unsigned char)v;
	return p + n;
}

static uint64_t get(const unsigned char **p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *(*p)++;
	return v;
}

static uint8_t qual_flag(uint64_t conn_qual)
{
	if (!conn_qual)
		return 0;
	return conn_qual > UINT16_MAX ? FLAG_QUAL : FLAG_SHORT_QUAL;
}

static size_t qual_size(uint8_t flags)
{
	return (flags & FLAG_QUAL ? DOFI_WIRE_QUAL : 0) +
	       (flags & FLAG_SHORT_QUAL ? SHORT_QUAL : 0);
}

size_t dofi_wire_pack(unsigned char buf[DOFI_WIRE_MAX], const struct dofi_wire *msg)
{
	unsigned char *p = buf + DOFI_WIRE_FIXED;

	buf[0] = MAGIC;
	buf[1] = VERSION << 4 | msg->kind;
	buf[2] = qual_flag(msg->conn_qual) | (msg->secret ? FLAG_SECRET : 0) |
		 (msg->mailbox.key ? FLAG_MAILBOX : 0) | (msg->preambles ? FLAG_PREAMBLES : 0);
	buf[3] = (unsigned char)msg->data_size;
	p = put(p, (int)qual_size(buf[2]), msg->conn_qual);
	if (msg->secret)
		p = put(p, DOFI_WIRE_SECRET, msg->secret);
	if (msg->mailbox.key) {
		p = put(p, 8, msg->mailbox.addr);
		p = put(p, 4, msg->mailbox.key);
		p = put(p, 4, msg->mailbox.id);
	}
	if (msg->data_size)
		memcpy(p, msg->data, msg->data_size);
	return p - buf + msg->data_size;
}

/* The flags announce numbers, of which none is 0. */
int dofi_wire_unpack(const void *buf, size_t len, struct dofi_wire *msg)
{
	const unsigned char *p = buf;
	struct dofi_wire m;
	size_t size = DOFI_WIRE_FIXED;
	uint8_t flags;

	if (len < DOFI_WIRE_FIXED || p[0] != MAGIC || p[1] >> 4 != VERSION || (p[2] & ~FLAGS))
		return -EPROTO;
	flags = p[2];
	m = (struct dofi_wire){
		.kind = (enum dofi_wire_kind)(p[1] & 0xf), .preambles = flags & FLAG_PREAMBLES,
		.data_size = p[3],
	};
	if (m.kind < DOFI_WIRE_REQUEST || m.kind > DOFI_WIRE_REFUSE ||
	    (flags & EITHER_QUAL) == EITHER_QUAL || m.data_size > DOFI_WIRE_MAX_DATA)
		return -EPROTO;
	size += qual_size(flags) + (flags & FLAG_SECRET ? DOFI_WIRE_SECRET : 0) +
		(flags & FLAG_MAILBOX ? DOFI_WIRE_MAILBOX : 0);
	if (len < size + m.data_size)
		return -EPROTO;
	p += DOFI_WIRE_FIXED;
	m.conn_qual = get(&p, (int)qual_size(flags));
	if (flags & FLAG_SECRET)
		m.secret = (uint32_t)get(&p, DOFI_WIRE_SECRET);
	if (flags & FLAG_MAILBOX) {
		m.mailbox.addr = get(&p, 8);
		m.mailbox.key = (uint32_t)get(&p, 4);
		m.mailbox.id = (uint32_t)get(&p, 4);
	}
	if ((flags & EITHER_QUAL && !m.conn_qual) || (flags & FLAG_SECRET && !m.secret) ||
	    (flags & FLAG_MAILBOX && !m.mailbox.key))
		return -EPROTO;
	m.data = p;
	*msg = m;
	return 0;
}

#define MAPPED_FIRST 10000
#define MAPPED_COUNT 22768		/* up to the ephemeral ports of Linux */
#define MAPPED_TRIES 4
#define FIRST_FREE_PORT 1024

unsigned dofi_wire_ports(uint64_t conn_qual)
{
	if (conn_qual > UINT16_MAX)
		return MAPPED_TRIES;
	return conn_qual < FIRST_FREE_PORT ? 1 + MAPPED_TRIES : 1;
}

size_t dofi_wire_qual_size(uint64_t conn_qual)
{
	/* a single port identifies the qualifier */
	return dofi_wire_ports(conn_qual) > 1 ? qual_size(qual_flag(conn_qual)) : 0;
}

/* The finaliser of splitmix64 maps neighbouring qualifiers to distant ports. */
uint16_t dofi_wire_port(uint64_t conn_qual, unsigned attempt)
{
	uint64_t x = conn_qual + attempt * 0x9e3779b97f4a7c15ULL;

	if (conn_qual <= UINT16_MAX && !attempt)
		return (uint16_t)conn_qual;
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return MAPPED_FIRST + x % MAPPED_COUNT;
}

/* Continues the series of dofi_wire_port(), behind its last attempt, and skips its ports. */
uint16_t dofi_wire_datagram_port(uint64_t conn_qual, unsigned attempt)
{
	const unsigned others = dofi_wire_ports(conn_qual);
	unsigned i, n, step = MAPPED_TRIES + 1;
	uint16_t port;

	for (n = 0;; step++) {
		port = dofi_wire_port(conn_qual, step);
		for (i = 0; i < others && dofi_wire_port(conn_qual, i) != port; i++)
			;
		if (i == others && n++ == attempt)
			return port;
	}
}
