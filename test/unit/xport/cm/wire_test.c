/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The messages of a CM socket, which peers of any release must agree on. */

#include "xport/cm/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#define FIELD_HEADER 3

static unsigned char buf[DOFI_CM_MAX];
static unsigned char payload[DOFI_CM_MAX_DATA], address[DOFI_CM_MAX_ADDR];

/* Every field has a large value, and no two are equal. */
static struct dofi_cm_msg full(enum dofi_cm_kind kind)
{
	struct dofi_cm_msg msg = {
		.kind = kind, .reason = 0xf1, .conn_qual = 0xe1e2e3e4e5e6e7e8,
		.conn_id = 0xd1d2d3d4d5d6d7d8, .secret = 0xc1c2c3c4, .window = 0xb1b2b3b4,
		.frame_size = 0xa1a2a3a4, .last_frame = 0x91929394, .srq = true,
		.alive_addr = 0x8182838485868788, .addr_format = 0x71727374,
		.number = 0x11121314, .key = 0x0102030405060708,
		.addr_len = DOFI_CM_MAX_ADDR, .addr = address,
		.host = {
			.pid_space = 0x4142434445464748, .pid = 0x21222324,
		},
		.data_size = DOFI_CM_MAX_DATA, .data = payload,
	};
	size_t i;

	for (i = 0; i < DOFI_CM_NAME - 1; i++)
		msg.fabric[i] = (char)('a' + i % 26);
	for (i = 0; i < 16; i++)
		msg.host.boot[i] = (unsigned char)(i + 1);
	return msg;
}

/* Only the mandatory fields of a kind, with the smallest values. */
static struct dofi_cm_msg least(enum dofi_cm_kind kind)
{
	return (struct dofi_cm_msg){
		.kind = kind, .reason = 1, .conn_id = 1, .frame_size = DOFI_CM_MIN_FRAME,
		.addr_len = 1, .addr = address, .fabric = "x", .number = 1, .key = 1,
	};
}

static void init(void)
{
	size_t i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (unsigned char)(i * 7 + 1);
	for (i = 0; i < sizeof(address); i++)
		address[i] = (unsigned char)(i * 5 + 3);
}

TestSuite(cm_wire, .init = init);

/* Unpacks from a block that ends with the bytes, so that tools find reads beyond it. */
static ssize_t unpack(const void *bytes, size_t len, struct dofi_cm_msg *msg)
{
	unsigned char *exact = malloc(len ? len : 1);
	ssize_t ret;

	memcpy(exact, bytes, len);
	ret = dofi_cm_unpack(exact, len, msg);
	/* pointers into the block must outlive it */
	if (ret > 0 && msg->addr) {
		cr_assert((const unsigned char *)msg->addr + msg->addr_len <= exact + ret);
		msg->addr = (const char *)bytes + ((const unsigned char *)msg->addr - exact);
	}
	if (ret > 0 && msg->data) {
		cr_assert((const unsigned char *)msg->data + msg->data_size <= exact + ret);
		msg->data = (const char *)bytes + ((const unsigned char *)msg->data - exact);
	}
	free(exact);
	return ret;
}

static void is(const void *bytes, size_t len, ssize_t expected, const char *what)
{
	struct dofi_cm_msg msg, before;
	ssize_t ret;

	memset(&msg, 0x5a, sizeof(msg));
	before = msg;
	ret = unpack(bytes, len, &msg);
	cr_expect_eq(ret, expected, "%s: %zd", what, ret);
	cr_expect(ret > 0 || !memcmp(&msg, &before, sizeof(msg)), "%s: an output", what);
}

/* Where field @tag of the message in buf begins, or NULL. */
static unsigned char *find(unsigned tag)
{
	unsigned char *end = buf + DOFI_CM_HEADER + (buf[6] << 8 | buf[7]), *p;

	for (p = buf + DOFI_CM_HEADER; p < end; p += FIELD_HEADER + (p[1] << 8 | p[2]))
		if (p[0] == tag)
			return p;
	return NULL;
}

static void set_body(size_t n)
{
	buf[6] = (unsigned char)(n >> 8);
	buf[7] = (unsigned char)n;
}

/* Makes a message of a header and the @n bytes at @body. */
static size_t raw(enum dofi_cm_kind kind, const void *body, size_t n)
{
	memcpy(buf, "DATS\x30", 5);
	buf[5] = (unsigned char)kind;
	set_body(n);
	if (n)
		memcpy(buf + DOFI_CM_HEADER, body, n);
	return DOFI_CM_HEADER + n;
}

static const enum dofi_cm_kind kinds[] = {
	DOFI_CM_REQUEST, DOFI_CM_ACCEPT, DOFI_CM_REJECT, DOFI_CM_REFUSE,
	DOFI_CM_READY, DOFI_CM_BYE, DOFI_CM_DATAGRAM_REQUEST, DOFI_CM_DATAGRAM_ACCEPT,
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

Test(cm_wire, every_truncation_needs_more)
{
	size_t i, n, len;

	for (i = 0; i < KINDS; i++) {
		const struct dofi_cm_msg msg = full(kinds[i]);

		len = dofi_cm_pack(buf, &msg);
		for (n = 0; n < len; n++)
			is(buf, n, 0, "a truncation");
		is(buf, len, (ssize_t)len, "all of it");
	}
}

static bool of_datagrams(enum dofi_cm_kind kind)
{
	return kind == DOFI_CM_DATAGRAM_REQUEST || kind == DOFI_CM_DATAGRAM_ACCEPT;
}

static void same_sender(const struct dofi_cm_msg *got, const struct dofi_cm_msg *msg)
{
	const bool connects = !of_datagrams(msg->kind);

	cr_expect_eq(got->conn_id, connects ? msg->conn_id : 0);
	cr_expect_eq(got->secret, connects ? msg->secret : 0);
	cr_expect_eq(got->window, connects ? msg->window : 0);
	cr_expect_eq(got->srq, connects && msg->srq);
	cr_expect_eq(got->alive_addr, connects ? msg->alive_addr : 0);
	cr_expect_eq(got->number, connects ? 0 : msg->number);
	cr_expect_eq(got->key, connects ? 0 : msg->key);
	cr_expect_eq(got->frame_size, msg->frame_size);
	cr_expect_eq(got->addr_format, msg->addr_format);
	cr_expect_eq(got->addr_len, msg->addr_len);
	cr_expect(!memcmp(got->addr, msg->addr, msg->addr_len));
	cr_expect_str_eq(got->fabric, msg->fabric);
	cr_expect(!memcmp(got->host.boot, msg->host.boot, sizeof(msg->host.boot)));
	cr_expect_eq(got->host.pid_space, msg->host.pid_space);
	cr_expect_eq(got->host.pid, msg->host.pid);
}

static void same_data(const struct dofi_cm_msg *got, const struct dofi_cm_msg *msg)
{
	cr_assert_eq(got->data_size, msg->data_size);
	cr_expect(!msg->data_size || !memcmp(got->data, msg->data, msg->data_size));
}

/*
 * The fields of a kind arrive. All other fields are not sent, whatever the sender's struct
 * contains.
 */
static void arrives(const struct dofi_cm_msg *msg)
{
	bool bears_sender = msg->kind == DOFI_CM_REQUEST || msg->kind == DOFI_CM_ACCEPT ||
			    of_datagrams(msg->kind);
	size_t len = dofi_cm_pack(buf, msg);
	struct dofi_cm_msg got;

	cr_assert(len <= DOFI_CM_MAX);
	cr_assert_eq(unpack(buf, len, &got), (ssize_t)len);
	cr_expect_eq(got.kind, msg->kind);
	cr_expect_eq(got.conn_qual, dofi_cm_is_request(msg->kind) ? msg->conn_qual : 0);
	cr_expect_eq(got.reason, msg->kind == DOFI_CM_REFUSE || msg->kind == DOFI_CM_BYE ?
				 msg->reason : 0);
	cr_expect_eq(got.last_frame, msg->kind == DOFI_CM_BYE ? msg->last_frame : 0);
	if (bears_sender)
		same_sender(&got, msg);
	else
		cr_expect(!got.conn_id && !got.addr && !got.addr_len && !got.fabric[0] &&
			  !got.number && !got.key);
	if (bears_sender || msg->kind == DOFI_CM_REJECT)
		same_data(&got, msg);
	else
		cr_expect(!got.data && !got.data_size);
}

Test(cm_wire, everything_arrives)
{
	size_t i;

	for (i = 0; i < KINDS; i++) {
		const struct dofi_cm_msg most = full(kinds[i]), few = least(kinds[i]);

		arrives(&most);
		arrives(&few);
	}
}

Test(cm_wire, any_amount_of_data_arrives)
{
	struct dofi_cm_msg msg = full(DOFI_CM_REQUEST);

	for (msg.data_size = 0; msg.data_size <= DOFI_CM_MAX_DATA; msg.data_size++)
		arrives(&msg);
}

/* Peers of other releases, on hosts of other byte orders, rely on each of these bytes. */
Test(cm_wire, bytes_stay_what_they_are)
{
	static const unsigned char ready[] = { 'D', 'A', 'T', 'S', 0x30, 5, 0, 0 };
	static const unsigned char bye[] = {
		'D', 'A', 'T', 'S', 0x30, 7, 0, 7, 6, 0, 4, 0x01, 0x02, 0x03, 0x04,
	};
	static const unsigned char broken[] = {
		'D', 'A', 'T', 'S', 0x30, 7, 0, 11, 6, 0, 4, 0x01, 0x02, 0x03, 0x04, 8, 0, 1, 1,
	};
	static const unsigned char refuse[] = { 'D', 'A', 'T', 'S', 0x30, 4, 0, 4, 8, 0, 1, 3 };
	static const unsigned char accept[] = {
		'D', 'A', 'T', 'S', 0x30, 2, 0, 81,
		2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1,
		4, 0, 4, 0, 0, 0, 0,
		5, 0, 4, 0, 0, 0, DOFI_CM_MIN_FRAME,
		10, 0, 4, 0, 0, 0, 0,
		11, 0, 1, 3,
		12, 0, 1, 'x',
		13, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0,
		15, 0, 4, 0, 0, 0, 0,
		16, 0, 1, 9,
	};
	static const unsigned char datagram[] = {
		'D', 'A', 'T', 'S', 0x30, 8, 0, 88,
		1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7,
		5, 0, 4, 0, 0, 0, DOFI_CM_MIN_FRAME,
		10, 0, 4, 0, 0, 0, 0,
		11, 0, 1, 3,
		12, 0, 1, 'x',
		13, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0,
		15, 0, 4, 0, 0, 0, 0,
		17, 0, 4, 0x11, 0x12, 0x13, 0x14,
		18, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8,
	};
	struct dofi_cm_msg msg = { .kind = DOFI_CM_READY };

	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(ready));
	cr_expect(!memcmp(buf, ready, sizeof(ready)));
	msg = (struct dofi_cm_msg){ .kind = DOFI_CM_BYE, .last_frame = 0x01020304 };
	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(bye));
	cr_expect(!memcmp(buf, bye, sizeof(bye)));
	msg.reason = 1;
	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(broken));
	cr_expect(!memcmp(buf, broken, sizeof(broken)));
	msg = (struct dofi_cm_msg){ .kind = DOFI_CM_REFUSE, .reason = DOFI_CM_NO_PATH };
	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(refuse));
	cr_expect(!memcmp(buf, refuse, sizeof(refuse)));
	msg = least(DOFI_CM_ACCEPT);
	msg.data = "\t";
	msg.data_size = 1;
	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(accept));
	cr_expect(!memcmp(buf, accept, sizeof(accept)));
	msg = least(DOFI_CM_DATAGRAM_REQUEST);
	msg.conn_qual = 7;
	msg.number = 0x11121314;
	msg.key = 0x0102030405060708;
	cr_assert_eq(dofi_cm_pack(buf, &msg), sizeof(datagram));
	cr_expect(!memcmp(buf, datagram, sizeof(datagram)));
}

Test(cm_wire, embryos_are_known_by_their_first_byte_that_is_wrong)
{
	static const char *const words[] = {
		"GET / HTTP/1.1\r\n", "\x16\x03\x01", "", "DATX", "DAT ",
	};
	size_t i, n, len = raw(DOFI_CM_READY, NULL, 0);

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (n = 0; n < 4 && words[i][n] == "DATS"[n]; n++)
			is(words[i], n, 0, words[i]);
		is(words[i], n + 1, -EPROTO, "the byte");
	}
	for (i = 0; i < 4; i++) {
		buf[i] ^= 0x20;
		is(buf, len, -EPROTO, "magic");
		is(buf, i + 1, -EPROTO, "magic");
		buf[i] ^= 0x20;
	}
}

Test(cm_wire, other_versions_are_distinguished)
{
	unsigned v;

	raw(DOFI_CM_READY, NULL, 0);
	for (v = 0; v < 256; v++) {
		buf[4] = (unsigned char)v;
		is(buf, 5, v >> 4 == 3 ? 0 : -EPROTONOSUPPORT, "a version");
		is(buf, 8, v >> 4 == 3 ? 8 : -EPROTONOSUPPORT, "a version");
	}
	/* whatever the rest is, because another version may define it */
	memset(buf + 4, 0xff, sizeof(buf) - 4);
	is(buf, sizeof(buf), -EPROTONOSUPPORT, "another version's message");
}

Test(cm_wire, unknown_kinds_are_refused)
{
	unsigned kind;

	raw(DOFI_CM_READY, NULL, 0);
	for (kind = 0; kind < 256; kind++) {
		buf[5] = (unsigned char)kind;
		if (!kind || kind == 6 || kind > DOFI_CM_DATAGRAM_ACCEPT)
			is(buf, 6, -EPROTO, "a kind");
	}
}

Test(cm_wire, a_body_is_bounded)
{
	raw(DOFI_CM_READY, NULL, 0);
	set_body(DOFI_CM_MAX - DOFI_CM_HEADER);
	is(buf, 8, 0, "the longest");
	set_body(DOFI_CM_MAX - DOFI_CM_HEADER + 1);
	is(buf, 8, -EPROTO, "a longer one");
	set_body(0xffff);
	is(buf, 8, -EPROTO, "the longest there can be");
}

/* Removes field @tag, if any, from the message of @len bytes. Returns the new length. */
static size_t cut_field(size_t len, unsigned tag)
{
	unsigned char *f = find(tag);
	size_t n;

	if (!f)
		return len;
	n = FIELD_HEADER + (f[1] << 8 | f[2]);
	memmove(f, f + n, buf + len - (f + n));
	set_body(len - n - DOFI_CM_HEADER);
	return len - n;
}

/* Appends a field. */
static size_t add_field(size_t len, unsigned tag, const void *value, size_t n)
{
	buf[len] = (unsigned char)tag;
	buf[len + 1] = (unsigned char)(n >> 8);
	buf[len + 2] = (unsigned char)n;
	if (n)
		memcpy(buf + len + FIELD_HEADER, value, n);
	len += FIELD_HEADER + n;
	set_body(len - DOFI_CM_HEADER);
	return len;
}

Test(cm_wire, what_a_kind_must_have_is_asked_for)
{
	static const unsigned must[KINDS] = { 10, 9, 0, 1, 0, 1, 10, 9 };
	size_t i, len;
	unsigned tag, n;

	for (i = 0; i < KINDS; i++) {
		struct dofi_cm_msg msg = least(kinds[i]);

		msg.reason = kinds[i] == DOFI_CM_REFUSE;
		for (tag = 1, n = 0; tag < 32; tag++) {
			len = dofi_cm_pack(buf, &msg);
			if (!find(tag))
				continue;
			n++;
			len = cut_field(len, tag);
			is(buf, len, -EPROTO, "without a field");
		}
		cr_expect_eq(n, must[i], "kind %d has %u", kinds[i], n);
	}
}

Test(cm_wire, fields_come_in_any_order)
{
	const struct dofi_cm_msg msg = full(DOFI_CM_REQUEST);
	size_t len = dofi_cm_pack(buf, &msg), n;
	unsigned char *f, value[DOFI_CM_MAX];
	struct dofi_cm_msg got;
	unsigned tag;

	for (tag = 1; tag < 32; tag++) {
		f = find(tag);
		if (!f)
			continue;
		n = f[1] << 8 | f[2];
		memcpy(value, f + FIELD_HEADER, n);
		cr_assert_eq(add_field(cut_field(len, tag), tag, value, n), len);
		cr_assert_eq(unpack(buf, len, &got), (ssize_t)len, "tag %u", tag);
		same_sender(&got, &msg);
		same_data(&got, &msg);
	}
}

/* Makes the smallest message of @kind with one more field of @n bytes. */
static size_t with_field(enum dofi_cm_kind kind, unsigned tag, const void *value, size_t n)
{
	const struct dofi_cm_msg msg = least(kind);

	return add_field(dofi_cm_pack(buf, &msg), tag, value, n);
}

Test(cm_wire, a_field_that_is_there_twice_is_refused)
{
	unsigned char copy[DOFI_CM_MAX];
	unsigned tag;

	for (tag = 1; tag < 32; tag++) {
		const struct dofi_cm_msg msg = least(DOFI_CM_REQUEST);
		unsigned char *f;
		size_t n, len;

		dofi_cm_pack(buf, &msg);
		f = find(tag);
		if (!f)
			continue;
		n = f[1] << 8 | f[2];
		memcpy(copy, f + FIELD_HEADER, n);
		len = with_field(DOFI_CM_REQUEST, tag, copy, n);
		is(buf, len, -EPROTO, "twice");
	}
}

Test(cm_wire, a_field_of_another_kind_is_refused)
{
	static const unsigned char number[8] = { 0, 0, 0, 0, 0, 0, 0, 100 };

	is(buf, with_field(DOFI_CM_READY, 4, number, 4), -EPROTO, "a window in a READY");
	is(buf, with_field(DOFI_CM_READY, 16, number, 4), -EPROTO, "data when ready");
	is(buf, with_field(DOFI_CM_ACCEPT, 1, number, 8), -EPROTO, "an acceptance's qualifier");
	is(buf, with_field(DOFI_CM_REJECT, 8, number + 7, 1), -EPROTO, "a consumer's reason");
	is(buf, with_field(DOFI_CM_REQUEST, 17, number + 4, 4), -EPROTO, "an EP's number");
	is(buf, with_field(DOFI_CM_ACCEPT, 18, number, 8), -EPROTO, "a PZ's key");
	is(buf, with_field(DOFI_CM_DATAGRAM_REQUEST, 2, number, 8), -EPROTO, "a connection's id");
	is(buf, with_field(DOFI_CM_DATAGRAM_ACCEPT, 1, number, 8), -EPROTO, "a qualifier");
}

Test(cm_wire, fields_that_are_not_known_are_a_newer_peers)
{
	unsigned tag;
	size_t len;

	for (tag = 20; tag < 256; tag++) {
		len = with_field(DOFI_CM_REQUEST, tag, address, tag);
		is(buf, len, -EPROTO, "an unknown field");
		buf[4] = 0x31;
		is(buf, len, (ssize_t)len, "a newer field");
	}
	len = with_field(DOFI_CM_REQUEST, 0, payload, 4);
	buf[4] = 0x31;
	is(buf, len, -EPROTO, "no field at all");
}

Test(cm_wire, a_newer_peers_fields_are_within_its_message)
{
	size_t len = with_field(DOFI_CM_READY, 40, payload, 5), cut;

	buf[4] = 0x31;
	for (cut = 1; cut < FIELD_HEADER + 5; cut++) {
		set_body(len - DOFI_CM_HEADER - cut);
		is(buf, len, -EPROTO, "beyond the end");
	}
	set_body(len - DOFI_CM_HEADER);
	buf[len - 5 - 2] = 0xff;
	is(buf, len, -EPROTO, "far beyond the end");
}

/* Every wrong length, of every field. */
Test(cm_wire, a_field_has_its_length)
{
	static const struct {
		unsigned tag;
		size_t from, to;
	} sizes[] = {
		{ 1, 8, 8 }, { 2, 8, 8 }, { 3, 4, 4 }, { 4, 4, 4 }, { 5, 4, 4 }, { 7, 1, 1 },
		{ 9, 8, 8 }, { 10, 4, 4 }, { 11, 1, DOFI_CM_MAX_ADDR },
		{ 12, 1, DOFI_CM_NAME - 1 }, { 13, 16, 16 }, { 14, 8, 8 }, { 15, 4, 4 },
		{ 16, 1, DOFI_CM_MAX_DATA }, { 17, 4, 4 }, { 18, 8, 8 },
	};
	size_t i, n;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (n = 0; n <= 300; n++) {
			const struct dofi_cm_msg msg = least(sizes[i].tag < 17 ? DOFI_CM_REQUEST :
								 DOFI_CM_DATAGRAM_ACCEPT);
			bool good = n >= sizes[i].from && n <= sizes[i].to;
			size_t len = cut_field(dofi_cm_pack(buf, &msg), sizes[i].tag);
			unsigned char value[300];

			memset(value, sizes[i].tag == 7 ? 1 : 'a', sizeof(value));
			len = add_field(len, sizes[i].tag, value, n);
			is(buf, len, good ? (ssize_t)len : -EPROTO, "a length");
		}
}

/* Packs the message with the last byte of @tag's value replaced. */
static void value_is(const struct dofi_cm_msg *msg, unsigned tag, unsigned last, bool good)
{
	size_t len = dofi_cm_pack(buf, msg);
	unsigned char *f = find(tag);

	cr_assert(f);
	f[FIELD_HEADER + (f[1] << 8 | f[2]) - 1] = (unsigned char)last;
	is(buf, len, good ? (ssize_t)len : -EPROTO, "a value");
}

Test(cm_wire, values_are_within_their_limits)
{
	const struct dofi_cm_msg few = least(DOFI_CM_REQUEST), most = full(DOFI_CM_REQUEST);
	const struct dofi_cm_msg refuse = least(DOFI_CM_REFUSE);
	const struct dofi_cm_msg datagram = least(DOFI_CM_DATAGRAM_REQUEST);

	value_is(&few, 2, 1, true);
	value_is(&few, 2, 0, false);
	value_is(&few, 5, DOFI_CM_MIN_FRAME, true);
	value_is(&few, 5, DOFI_CM_MIN_FRAME - 1, false);
	value_is(&most, 7, 0, true);
	value_is(&most, 7, 2, false);
	value_is(&refuse, 8, 255, true);
	value_is(&refuse, 8, 0, false);
	value_is(&datagram, 5, DOFI_CM_MIN_FRAME - 1, false);
	value_is(&datagram, 17, 1, true);
	value_is(&datagram, 17, 0, false);
	value_is(&datagram, 18, 1, true);
	value_is(&datagram, 18, 0, false);
}

/* The name of a fabric is logged. */
Test(cm_wire, names_are_harmless)
{
	const struct dofi_cm_msg msg = full(DOFI_CM_REQUEST);
	unsigned c;

	for (c = 0; c < 256; c++) {
		bool good = c > ' ' && c <= '~' && c != '/';
		unsigned char *f;
		size_t len;

		value_is(&msg, 12, c, good);
		len = dofi_cm_pack(buf, &msg);
		f = find(12);
		f[FIELD_HEADER] = (unsigned char)c;
		is(buf, len, good && c != '.' ? (ssize_t)len : -EPROTO, "a first letter");
	}
}

Test(cm_wire, what_follows_a_message_is_left)
{
	struct dofi_cm_msg msg = full(DOFI_CM_REJECT);
	size_t len = dofi_cm_pack(buf, &msg);

	memset(buf + len, 'x', sizeof(buf) - len);
	is(buf, sizeof(buf), (ssize_t)len, "a message and more");
}

/* Flips each bit. Tools find a read beyond the message. */
Test(cm_wire, any_byte_may_be_wrong)
{
	const struct dofi_cm_msg msg = full(DOFI_CM_REQUEST);
	size_t len = dofi_cm_pack(buf, &msg), i;
	struct dofi_cm_msg got;
	unsigned bit;

	for (i = 0; i < len; i++)
		for (bit = 1; bit < 256; bit <<= 1) {
			buf[i] ^= bit;
			cr_expect(unpack(buf, len, &got) <= (ssize_t)len);
			buf[i] ^= bit;
		}
	is(buf, len, (ssize_t)len, "as it was");
}
