/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connection manager's messages, and the mapping of qualifiers to ports. Pure functions. */

#include "xport/wire.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0xda
#define VERSION 1
#define FLAG_QUAL 0x01
#define FLAG_FRAMED 0x02

#define FIXED 4
#define QUAL 8

static void put_be64(unsigned char *p, uint64_t v)
{
	int i;

	for (i = 7; i >= 0; i--, v >>= 8)
		p[i] = (unsigned char)v;
}

static uint64_t get_be64(const unsigned char *p)
{
	uint64_t v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

size_t dofi_wire_pack(unsigned char buf[DOFI_WIRE_MAX], const struct dofi_wire *msg)
{
	size_t at = FIXED;

	buf[0] = MAGIC;
	buf[1] = VERSION << 4 | msg->kind;
	buf[2] = (msg->conn_qual ? FLAG_QUAL : 0) | (msg->framed ? FLAG_FRAMED : 0);
	buf[3] = (unsigned char)msg->data_size;
	if (msg->conn_qual) {
		put_be64(buf + at, msg->conn_qual);
		at += QUAL;
	}
	if (msg->data_size)
		memcpy(buf + at, msg->data, msg->data_size);
	return at + msg->data_size;
}

int dofi_wire_unpack(const void *buf, size_t len, struct dofi_wire *msg)
{
	const unsigned char *p = buf;
	size_t at = FIXED;

	if (len < FIXED || p[0] != MAGIC || p[1] >> 4 != VERSION || (p[2] & ~(FLAG_QUAL | FLAG_FRAMED)))
		return -EPROTO;
	if ((p[1] & 0xf) < DOFI_WIRE_REQUEST || (p[1] & 0xf) > DOFI_WIRE_REFUSE)
		return -EPROTO;
	*msg = (struct dofi_wire){ .kind = (enum dofi_wire_kind)(p[1] & 0xf),
				   .framed = p[2] & FLAG_FRAMED };
	if (p[2] & FLAG_QUAL) {
		if (len < at + QUAL)
			return -EPROTO;
		msg->conn_qual = get_be64(p + at);
		at += QUAL;
		if (!msg->conn_qual)
			return -EPROTO;
	}
	msg->data_size = p[3];
	if (msg->data_size > DOFI_WIRE_MAX_DATA || len < at + msg->data_size)
		return -EPROTO;
	msg->data = p + at;
	return 0;
}

#define MAPPED_FIRST 10000
#define MAPPED_COUNT 22768		/* up to where Linux begins its ephemeral ports */
#define MAPPED_TRIES 4
#define FIRST_FREE_PORT 1024

/* splitmix64's finaliser: neighbouring qualifiers land far apart. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

unsigned dofi_wire_ports(uint64_t conn_qual)
{
	if (conn_qual > UINT16_MAX)
		return MAPPED_TRIES;
	return conn_qual < FIRST_FREE_PORT ? 1 + MAPPED_TRIES : 1;
}

uint16_t dofi_wire_port(uint64_t conn_qual, unsigned attempt)
{
	if (conn_qual <= UINT16_MAX && !attempt)
		return (uint16_t)conn_qual;
	return MAPPED_FIRST + mix(conn_qual + attempt * 0x9e3779b97f4a7c15ULL) % MAPPED_COUNT;
}
