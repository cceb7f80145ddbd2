/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The messages of a CM connection as bytes. Pure functions. */

#include "xport/cm/wire.h"

#include <errno.h>
#include <string.h>

#define MAJOR 3
#define MINOR 0
#define VERSION (MAJOR << 4 | MINOR)
#define FIELD_HEADER 3

static const unsigned char magic[4] = { 'D', 'A', 'T', 'S' };

enum tag {
	CONN_QUAL = 1,
	CONN_ID,
	SECRET,
	WINDOW,
	FRAME_SIZE,
	LAST_FRAME,
	SRQ,
	REASON,
	ALIVE_ADDR,
	ADDR_FORMAT,
	ADDR,
	FABRIC,
	BOOT_ID,
	PID_NS,
	PID,
	DATA,
	EP_NUMBER,
	KEY,
	TAGS,
};

enum type {
	NUMBER,				/* of @size bytes, from @min to @max */
	BYTES,				/* exactly @size bytes, copied */
	/* @min to @max printable characters, copied and terminated */
	NAME,
	/* @min to @max bytes, pointed to; the count is a uint16_t */
	SPAN,
};

struct field {
	enum type type;
	uint16_t size;
	uint16_t offset;		/* in struct dofi_cm_msg */
	uint16_t size_offset;		/* of the member that has a SPAN's size */
	uint64_t min, max;
};

#define OF(member) offsetof(struct dofi_cm_msg, member)
#define SIZE(member) sizeof(((struct dofi_cm_msg *)0)->member)
#define RANGE(member, min, max) { NUMBER, SIZE(member), OF(member), 0, min, max }
#define ANY(member) RANGE(member, 0, UINT64_MAX)
#define EXACT(member) { BYTES, SIZE(member), OF(member), 0, 0, 0 }
#define LETTERS(member) { NAME, SIZE(member), OF(member), 0, 1, DOFI_CM_NAME - 1 }
#define POINTER(member, size, max) { SPAN, 0, OF(member), OF(size), 1, max }

static const struct field fields[TAGS] = {
	[CONN_QUAL] = ANY(conn_qual),
	[CONN_ID] = RANGE(conn_id, 1, UINT64_MAX),
	[SECRET] = ANY(secret),
	[WINDOW] = ANY(window),
	[FRAME_SIZE] = RANGE(frame_size, DOFI_CM_MIN_FRAME, UINT32_MAX),
	[LAST_FRAME] = ANY(last_frame),
	[SRQ] = RANGE(srq, 0, 1),
	[REASON] = RANGE(reason, 1, UINT8_MAX),
	[ALIVE_ADDR] = ANY(alive_addr),
	[ADDR_FORMAT] = ANY(addr_format),
	[ADDR] = POINTER(addr, addr_len, DOFI_CM_MAX_ADDR),
	[FABRIC] = LETTERS(fabric),
	[BOOT_ID] = EXACT(host.boot),
	[PID_NS] = ANY(host.pid_space),
	[PID] = ANY(host.pid),
	[DATA] = POINTER(data, data_size, DOFI_CM_MAX_DATA),
	[EP_NUMBER] = RANGE(number, 1, UINT32_MAX),
	[KEY] = RANGE(key, 1, UINT64_MAX),
};

#define BIT(tag) (1u << (tag))
#define HOST (BIT(BOOT_ID) | BIT(PID_NS) | BIT(PID))
#define ENDPOINT (BIT(FRAME_SIZE) | BIT(ADDR_FORMAT) | BIT(ADDR) | BIT(FABRIC) | HOST)
#define SENDER (ENDPOINT | BIT(CONN_ID) | BIT(WINDOW))
#define DATAGRAM_SENDER (ENDPOINT | BIT(EP_NUMBER) | BIT(KEY))
#define PERHAPS (BIT(DATA) | BIT(SECRET) | BIT(SRQ) | BIT(ALIVE_ADDR))

static const struct kind {
	bool known;
	uint32_t must, may;		/* bit masks of tags */
} kinds[] = {
	[DOFI_CM_REQUEST] = { true, BIT(CONN_QUAL) | SENDER, PERHAPS },
	[DOFI_CM_ACCEPT] = { true, SENDER, PERHAPS },
	[DOFI_CM_REJECT] = { true, 0, BIT(DATA) },
	[DOFI_CM_REFUSE] = { true, BIT(REASON), 0 },
	[DOFI_CM_READY] = { true, 0, 0 },
	[DOFI_CM_BYE] = { true, BIT(LAST_FRAME), BIT(REASON) },
	[DOFI_CM_DATAGRAM_REQUEST] = { true, BIT(CONN_QUAL) | DATAGRAM_SENDER, BIT(DATA) },
	[DOFI_CM_DATAGRAM_ACCEPT] = { true, DATAGRAM_SENDER, BIT(DATA) },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

_Static_assert(TAGS <= 32, "a bit for each tag");
/* The fields of a message are at most as long as the struct and its data. */
_Static_assert(DOFI_CM_HEADER + FIELD_HEADER * (TAGS - 1) + sizeof(struct dofi_cm_msg) +
	       DOFI_CM_MAX_ADDR + DOFI_CM_MAX_DATA <= DOFI_CM_MAX, "a message fits");

static void put(unsigned char *p, size_t n, uint64_t v)
{
	while (n--) {
		p[n] = (unsigned char)v;
		v >>= 8;
	}
}

static uint64_t get(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* Members of the struct, in the host's byte order. */
static uint64_t load(const void *member, size_t size)
{
	switch (size) {
	case 1: return *(const uint8_t *)member;
	case 2: return *(const uint16_t *)member;
	case 4: return *(const uint32_t *)member;
	default: return *(const uint64_t *)member;
	}
}

static void store(void *member, size_t size, uint64_t v)
{
	switch (size) {
	case 1: *(uint8_t *)member = (uint8_t)v; break;
	case 2: *(uint16_t *)member = (uint16_t)v; break;
	case 4: *(uint32_t *)member = (uint32_t)v; break;
	default: *(uint64_t *)member = v;
	}
}

static size_t value_size(const struct field *f, const struct dofi_cm_msg *msg)
{
	const char *member = (const char *)msg + f->offset;

	switch (f->type) {
	case NAME: return strlen(member);
	case SPAN: return load((const char *)msg + f->size_offset, sizeof(uint16_t));
	default: return f->size;
	}
}

/* Whether an optional field has its default, the value of a missing field. */
static bool is_void(const struct field *f, const struct dofi_cm_msg *msg)
{
	static const unsigned char zero[16];

	if (f->type == NAME || f->type == SPAN)
		return !value_size(f, msg);
	return f->size <= sizeof(zero) && !memcmp((const char *)msg + f->offset, zero, f->size);
}

size_t dofi_cm_pack(unsigned char buf[DOFI_CM_MAX], const struct dofi_cm_msg *msg)
{
	const struct kind *kind = &kinds[msg->kind];
	unsigned char *p = buf + DOFI_CM_HEADER;
	unsigned tag;

	for (tag = 1; tag < TAGS; tag++) {
		const struct field *f = &fields[tag];
		const char *member = (const char *)msg + f->offset;
		size_t n;

		if (!(kind->must & BIT(tag)) && (!(kind->may & BIT(tag)) || is_void(f, msg)))
			continue;
		n = value_size(f, msg);
		put(p, 1, tag);
		put(p + 1, 2, n);
		p += FIELD_HEADER;
		if (f->type == NUMBER)
			put(p, n, load(member, n));
		else if (n)
			memcpy(p, f->type == SPAN ? *(const void *const *)member : member, n);
		p += n;
	}
	memcpy(buf, magic, sizeof(magic));
	buf[4] = VERSION;
	buf[5] = (unsigned char)msg->kind;
	put(buf + 6, 2, p - buf - DOFI_CM_HEADER);
	return p - buf;
}

/* Whether the name is safe as a component of a path. */
static bool is_name(const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] > '~' || p[i] == '/')
			return false;
	return p[0] != '.';
}

/* Parses the value of a field: the @n bytes at @p. 0 or -EPROTO. */
static int value_unpack(const unsigned char *p, size_t n, const struct field *f,
			struct dofi_cm_msg *msg)
{
	const bool in_range = n >= f->min && n <= f->max;
	char *member = (char *)msg + f->offset;
	uint64_t v;

	switch (f->type) {
	case NUMBER:
		v = n == f->size ? get(p, n) : 0;
		if (n != f->size || v < f->min || v > f->max)
			return -EPROTO;
		store(member, n, v);
		return 0;
	case SPAN:
		if (!in_range)
			return -EPROTO;
		*(const void **)member = p;
		store((char *)msg + f->size_offset, sizeof(uint16_t), n);
		return 0;
	default:
		if (f->type == NAME ? !in_range || !is_name(p, n) : n != f->size)
			return -EPROTO;
		memcpy(member, p, n);
		return 0;
	}
}

/* Parses the fields between @p and @end. A @newer peer may have unknown fields. */
static int fields_unpack(const unsigned char *p, const unsigned char *end, bool newer,
			 struct dofi_cm_msg *msg)
{
	const struct kind *kind = &kinds[msg->kind];
	uint32_t seen = 0;

	for (; p < end; p += FIELD_HEADER + get(p + 1, 2)) {
		unsigned tag = p[0];
		size_t n;

		if (end - p < FIELD_HEADER)
			return -EPROTO;
		n = get(p + 1, 2);
		if ((size_t)(end - p) - FIELD_HEADER < n)
			return -EPROTO;
		if (newer && tag >= TAGS)
			continue;
		if (tag >= TAGS || !((kind->must | kind->may) & ~seen & BIT(tag)) ||
		    value_unpack(p + FIELD_HEADER, n, &fields[tag], msg))
			return -EPROTO;
		seen |= BIT(tag);
	}
	return kind->must & ~seen ? -EPROTO : 0;
}

/* Checks the part of the header that has arrived. */
ssize_t dofi_cm_unpack(const void *buf, size_t len, struct dofi_cm_msg *msg)
{
	const unsigned char *p = buf;
	struct dofi_cm_msg m = { 0 };
	size_t size;
	int ret;

	if (len && memcmp(p, magic, len < sizeof(magic) ? len : sizeof(magic)))
		return -EPROTO;
	if (len > 4 && p[4] >> 4 != MAJOR)
		return -EPROTONOSUPPORT;
	if (len > 5 && (p[5] >= KINDS || !kinds[p[5]].known))
		return -EPROTO;
	if (len < DOFI_CM_HEADER)
		return 0;
	size = DOFI_CM_HEADER + get(p + 6, 2);
	if (size > DOFI_CM_MAX)
		return -EPROTO;
	if (len < size)
		return 0;
	m.kind = (enum dofi_cm_kind)p[5];
	ret = fields_unpack(p + DOFI_CM_HEADER, p + size, (p[4] & 0xf) > MINOR, &m);
	if (ret)
		return ret;
	*msg = m;
	return (ssize_t)size;
}
