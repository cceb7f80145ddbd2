/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connection manager's messages and ports, which peers of any release must agree on. */

#include "xport/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

static unsigned char buf[DOFI_WIRE_MAX];
static unsigned char payload[DOFI_WIRE_MAX_DATA];
static uint32_t secret;			/* packed into messages; 0: none */

/* Unpacks from a block that ends with the bytes, so that tools find reads beyond it. */
static int unpack(const void *bytes, size_t len, struct dofi_wire *msg)
{
	unsigned char *exact = malloc(len ? len : 1);
	int ret;

	memcpy(exact, bytes, len);
	ret = dofi_wire_unpack(exact, len, msg);
	if (!ret) {
		/* the data pointer must outlive the block */
		size_t at = (const unsigned char *)msg->data - exact;

		cr_assert(at + msg->data_size <= len);
		msg->data = (const unsigned char *)bytes + at;
	}
	free(exact);
	return ret;
}

static void init(void)
{
	size_t i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (unsigned char)(i * 7 + 1);
}

static size_t pack(enum dofi_wire_kind kind, uint64_t conn_qual, size_t size)
{
	const struct dofi_wire msg = {
		.kind = kind, .conn_qual = conn_qual, .secret = secret,
		.data = payload, .data_size = size,
	};

	return dofi_wire_pack(buf, &msg);
}

static size_t pack_with_mailbox(uint64_t conn_qual, size_t size)
{
	const struct dofi_wire msg = {
		.kind = DOFI_WIRE_ACCEPT, .conn_qual = conn_qual, .secret = secret,
		.data = payload, .data_size = size,
		.mailbox = { .addr = 0x1122334455667788, .key = 0x99aabbcc, .id = 0xddeeff00 },
	};

	return dofi_wire_pack(buf, &msg);
}

static void refused(const void *bytes, size_t len)
{
	struct dofi_wire msg;

	cr_expect_eq(unpack(bytes, len, &msg), -EPROTO, "%zu bytes", len);
}

TestSuite(wire, .init = init);

Test(wire, nothing_is_refused)
{
	struct dofi_wire msg;

	cr_expect_eq(dofi_wire_unpack(NULL, 0, &msg), -EPROTO);
}

Test(wire, every_truncation_is_refused)
{
	size_t size, len, n;

	for (size = 0; size <= sizeof(payload); size++) {
		n = pack(DOFI_WIRE_REQUEST, 0x123456789ULL, size);
		for (len = 0; len < n; len++)
			refused(buf, len);
	}
}

Test(wire, every_truncation_without_qualifier_is_refused)
{
	size_t len, n = pack(DOFI_WIRE_ACCEPT, 0, sizeof(payload));

	for (len = 0; len < n; len++)
		refused(buf, len);
}

Test(wire, another_magic_is_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, 0, 8);
	int i;

	for (i = 0; i < 256; i++) {
		if (i == 0xda)
			continue;
		buf[0] = (unsigned char)i;
		refused(buf, n);
	}
}

Test(wire, another_version_is_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, 0, 8);
	int version;

	for (version = 0; version < 16; version++) {
		if (version == 2)
			continue;
		buf[1] = (unsigned char)(version << 4 | DOFI_WIRE_REQUEST);
		refused(buf, n);
	}
}

Test(wire, unknown_kinds_are_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, 0, 8);
	int kind;

	for (kind = 0; kind < 16; kind++) {
		if (kind >= DOFI_WIRE_REQUEST && kind <= DOFI_WIRE_REFUSE)
			continue;
		buf[1] = (unsigned char)(0x20 | kind);
		refused(buf, n);
	}
}

Test(wire, what_an_srq_wants_survives)
{
	struct dofi_wire msg = {
		.kind = DOFI_WIRE_ACCEPT, .preambles = true, .data = payload, .data_size = 9
	};
	struct dofi_wire got;

	cr_assert_eq(unpack(buf, dofi_wire_pack(buf, &msg), &got), 0);
	cr_expect(got.preambles);
	cr_expect_eq(got.data_size, 9);
	cr_expect_eq(buf[2], 8);
	msg.preambles = false;
	cr_assert_eq(unpack(buf, dofi_wire_pack(buf, &msg), &got), 0);
	cr_expect(!got.preambles);
}

Test(wire, unknown_flags_are_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, 5, 8);
	int flags;

	for (flags = 32; flags < 256; flags++) {
		buf[2] = (unsigned char)flags;
		refused(buf, n);
	}
}

Test(wire, a_length_beyond_the_largest_is_refused)
{
	unsigned char big[DOFI_WIRE_MAX + 16] = { 0 };
	int size;

	pack(DOFI_WIRE_REQUEST, 0, 0);
	memcpy(big, buf, 4);
	for (size = DOFI_WIRE_MAX_DATA + 1; size < 256; size++) {
		big[3] = (unsigned char)size;
		refused(big, sizeof(big));
	}
}

Test(wire, a_length_beyond_the_bytes_is_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, 0, 8);

	buf[3] = 9;
	refused(buf, n);
}

Test(wire, a_qualifier_of_zero_is_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, UINT64_MAX, 8);

	memset(buf + 4, 0, 8);
	refused(buf, n);
	n = pack(DOFI_WIRE_REQUEST, 1, 8);
	memset(buf + 4, 0, 2);
	refused(buf, n);
}

/* All headers, followed by bytes of every length: no result lies outside the bytes. */
Test(wire, hostile_headers_of_every_length_yield_nothing_outside)
{
	unsigned char bytes[DOFI_WIRE_MAX + 4];
	struct dofi_wire msg;
	unsigned kind, flags, size;
	size_t len;

	memset(bytes, 0xff, sizeof(bytes));
	bytes[0] = 0xda;
	for (len = 0; len <= sizeof(bytes); len += len < 36 ? 1 : 47)
		for (kind = 0; kind < 256; kind++)
			for (flags = 0; flags < 32; flags++)
				for (size = 0; size < 256; size += size < 20 ? 1 : 59) {
					bytes[1] = (unsigned char)kind;
					bytes[2] = (unsigned char)flags;
					bytes[3] = (unsigned char)size;
					if (!unpack(bytes, len, &msg))
						cr_assert(msg.data_size == size &&
							  (flags & 17) != 17 &&
							  msg.preambles == !!(flags & 8));
				}
}

Test(wire, the_bytes_are_as_documented)
{
	static const unsigned char want[] = {
		0xda, 0x21, 0x01, 0x03, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 8, 15,
	};

	cr_assert_eq(pack(DOFI_WIRE_REQUEST, 0x0123456789abcdefULL, 3), sizeof(want));
	cr_expect(!memcmp(buf, want, sizeof(want)));
}

Test(wire, the_bytes_of_a_short_qualifier_are_as_documented)
{
	static const unsigned char want[] = { 0xda, 0x21, 0x10, 0x01, 0x03, 0xff, 1 };

	cr_assert_eq(pack(DOFI_WIRE_REQUEST, 1023, 1), sizeof(want));
	cr_expect(!memcmp(buf, want, sizeof(want)));
}

Test(wire, both_kinds_of_qualifier_are_refused)
{
	size_t n = pack(DOFI_WIRE_REQUEST, UINT64_MAX, 8);

	buf[2] |= 0x11;
	refused(buf, n);
}

Test(wire, the_bytes_without_qualifier_are_as_documented)
{
	static const unsigned char want[] = { 0xda, 0x24, 0x00, 0x01, 1 };

	cr_assert_eq(pack(DOFI_WIRE_REFUSE, 0, 1), sizeof(want));
	cr_expect(!memcmp(buf, want, sizeof(want)));
}

Test(wire, the_bytes_of_a_secret_are_as_documented)
{
	static const unsigned char with_both[] = {
		0xda, 0x21, 0x03, 0x01, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
		0xfe, 0xdc, 0xba, 0x98, 1,
	};
	static const unsigned char alone[] = { 0xda, 0x22, 0x02, 0x01, 0xfe, 0xdc, 0xba, 0x98, 1 };

	secret = 0xfedcba98;
	cr_assert_eq(pack(DOFI_WIRE_REQUEST, 0x0123456789abcdefULL, 1), sizeof(with_both));
	cr_expect(!memcmp(buf, with_both, sizeof(with_both)));
	cr_assert_eq(pack(DOFI_WIRE_ACCEPT, 0, 1), sizeof(alone));
	cr_expect(!memcmp(buf, alone, sizeof(alone)));
}

Test(wire, a_secret_of_zero_or_cut_off_is_refused)
{
	size_t n, len;

	secret = 0x80000001;
	n = pack(DOFI_WIRE_REQUEST, UINT64_MAX, 3);
	for (len = 0; len < n; len++)
		refused(buf, len);
	memset(buf + 12, 0, 4);
	refused(buf, n);
}

static size_t added(uint64_t conn_qual)
{
	return conn_qual > UINT16_MAX ? 8 : conn_qual ? 2 : 0;
}

/*
 * Messages of every kind and size, with and without a qualifier, are unpacked as they were packed.
 */
Test(wire, messages_survive)
{
	static const uint64_t quals[] = { 0, 1, UINT16_MAX, UINT16_MAX + 1, UINT64_MAX };
	struct dofi_wire msg;
	size_t size, i;
	int kind;

	for (kind = DOFI_WIRE_REQUEST; kind <= DOFI_WIRE_REFUSE; kind++)
		for (i = 0; i < sizeof(quals) / sizeof(quals[0]); i++)
			for (size = 0; size <= sizeof(payload); size++) {
				size_t n;

				secret = size & 1 ? 0xdeadbeef : 0;
				n = pack((enum dofi_wire_kind)kind, quals[i], size);
				cr_assert_eq(n, 4 + added(quals[i]) + (secret ? 4 : 0) + size);
				cr_assert_eq(unpack(buf, n, &msg), 0);
				cr_assert_eq((int)msg.kind, kind);
				cr_assert_eq(msg.conn_qual, quals[i]);
				cr_assert_eq(msg.secret, secret);
				cr_assert_eq(msg.data_size, size);
				cr_assert(!memcmp(msg.data, payload, size));
			}
}

Test(wire, the_largest_message_fills_the_buffer)
{
	secret = 1;
	cr_expect_eq(pack_with_mailbox(UINT64_MAX, DOFI_WIRE_MAX_DATA), DOFI_WIRE_MAX);
}

Test(wire, the_bytes_of_a_mailbox_are_as_documented)
{
	static const unsigned char want[] = {
		0xda, 0x22, 0x04, 0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 1,
	};

	cr_assert_eq(pack_with_mailbox(0, 1), sizeof(want));
	cr_expect(!memcmp(buf, want, sizeof(want)));
}

Test(wire, a_mailbox_survives_at_every_size)
{
	struct dofi_wire msg;
	size_t size, n, len;

	for (size = 0; size <= sizeof(payload); size += 61) {
		n = pack_with_mailbox(7, size);
		for (len = 0; len < n; len++)
			refused(buf, len);
		cr_assert_eq(unpack(buf, n, &msg), 0);
		cr_expect_eq(msg.conn_qual, 7);
		cr_expect_eq(msg.mailbox.addr, 0x1122334455667788);
		cr_expect_eq(msg.mailbox.key, 0x99aabbcc);
		cr_expect_eq(msg.mailbox.id, 0xddeeff00);
		cr_expect_eq(msg.data_size, size);
	}
}

Test(wire, a_mailbox_without_key_is_refused)
{
	size_t n = pack_with_mailbox(0, 3);

	memset(buf + 12, 0, 4);
	refused(buf, n);
}

Test(wire, without_data_none_is_looked_at)
{
	const struct dofi_wire msg = { .kind = DOFI_WIRE_ACCEPT, .data = NULL };

	cr_expect_eq(dofi_wire_pack(buf, &msg), 4);
}

/* Some fabrics deliver more bytes than were sent. */
Test(wire, padding_is_ignored)
{
	struct dofi_wire msg;
	size_t n = pack(DOFI_WIRE_REQUEST, 9, 5);

	memset(buf + n, 0xee, sizeof(buf) - n);
	cr_assert_eq(unpack(buf, sizeof(buf), &msg), 0);
	cr_expect_eq(msg.data_size, 5);
	cr_expect_eq(msg.conn_qual, 9);
}

/* Ports */

Test(ports, a_qualifier_that_is_a_users_port_is_that_port_alone)
{
	static const uint64_t quals[] = { 1024, 4711, 32768, UINT16_MAX };
	size_t i;

	for (i = 0; i < sizeof(quals) / sizeof(quals[0]); i++) {
		cr_expect_eq(dofi_wire_ports(quals[i]), 1);
		cr_expect_eq(dofi_wire_port(quals[i], 0), quals[i]);
	}
}

Test(ports, a_privileged_port_is_tried_first)
{
	cr_expect_eq(dofi_wire_ports(1), 5);
	cr_expect_eq(dofi_wire_ports(1023), 5);
	cr_expect_eq(dofi_wire_port(1, 0), 1);
	cr_expect_eq(dofi_wire_port(1023, 0), 1023);
}

Test(ports, a_larger_qualifier_has_four)
{
	cr_expect_eq(dofi_wire_ports(UINT16_MAX + 1ULL), 4);
	cr_expect_eq(dofi_wire_ports(UINT64_MAX), 4);
}

/* Peers of other releases use these ports. */
Test(ports, the_mapping_stays_as_it_was)
{
	static const struct {
		uint64_t qual;
		uint16_t port[5];
	} rows[] = {
		{ 1, { 1, 24209, 27847, 31982, 26971 } },
		{ 1023, { 1023, 12255, 24641, 10768, 32454 } },
		{ 65536, { 31733, 28083, 23276, 30458 } },
		{ 70000, { 20516, 27052, 19188, 15149 } },
		{ 1ULL << 32, { 23247, 23960, 30189, 15413 } },
		{ UINT64_MAX, { 22811, 21248, 11065, 23001 } },
	};
	unsigned i, n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (n = 0; n < dofi_wire_ports(rows[i].qual); n++)
			cr_expect_eq(dofi_wire_port(rows[i].qual, n), rows[i].port[n]);
}

Test(ports, a_qualifier_needs_room_unless_its_port_says_it)
{
	cr_expect_eq(dofi_wire_qual_size(1024), 0);
	cr_expect_eq(dofi_wire_qual_size(UINT16_MAX), 0);
	cr_expect_eq(dofi_wire_qual_size(1), 2);
	cr_expect_eq(dofi_wire_qual_size(1023), 2);
	cr_expect_eq(dofi_wire_qual_size(UINT16_MAX + 1ULL), 8);
	cr_expect_eq(dofi_wire_qual_size(UINT64_MAX), 8);
}

Test(ports, mapped_ones_are_neither_privileged_nor_ephemeral)
{
	uint64_t qual;
	unsigned n;

	for (qual = UINT16_MAX + 1ULL; qual < UINT16_MAX + 20000ULL; qual++)
		for (n = 0; n < dofi_wire_ports(qual); n++)
			cr_assert(dofi_wire_port(qual, n) >= 10000 &&
				  dofi_wire_port(qual, n) < 32768);
}

/* Peers of other releases use these ports, too. */
Test(ports, the_mapping_of_datagrams_stays_as_it_was)
{
	static const struct {
		uint64_t qual;
		uint16_t port[DOFI_WIRE_DATAGRAM_PORTS];
	} rows[] = {
		{ 1, { 28201, 32400, 23701, 11733 } },
		{ 1023, { 23474, 26807, 15719, 23493 } },
		{ 19374, { 32480, 27784, 19070, 18779 } },
		{ 45248, { 18990, 24673, 27963, 15728 } },
		{ 70000, { 11661, 27118, 14126, 21356 } },
		{ UINT64_MAX, { 11966, 20243, 25077, 23172 } },
	};
	unsigned i, n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (n = 0; n < DOFI_WIRE_DATAGRAM_PORTS; n++)
			cr_expect_eq(dofi_wire_datagram_port(rows[i].qual, n), rows[i].port[n]);
}

static void expect_apart(uint64_t qual)
{
	unsigned n, i;

	for (n = 0; n < DOFI_WIRE_DATAGRAM_PORTS; n++) {
		const uint16_t port = dofi_wire_datagram_port(qual, n);

		cr_assert(port >= 10000 && port < 32768);
		for (i = 0; i < dofi_wire_ports(qual); i++)
			cr_assert(port != dofi_wire_port(qual, i));
	}
}

/* A service point listens at both. A qualifier of 10000 to 32767 is one of the mapped ports. */
Test(ports, those_of_datagrams_are_others)
{
	uint64_t qual;

	for (qual = 1; qual < 40000; qual++)
		expect_apart(qual);
	for (qual = 1ULL << 20; qual < (1ULL << 20) + 20000; qual++)
		expect_apart(qual);
}

/* By chance 5 of 20,000 consecutive qualifiers have a port twice. */
Test(ports, the_tries_differ)
{
	uint64_t qual;
	unsigned a, b, same = 0;

	for (qual = 1ULL << 20; qual < (1ULL << 20) + 20000; qual++)
		for (a = 0; a < 4; a++)
			for (b = 0; b < a; b++)
				same += dofi_wire_port(qual, a) == dofi_wire_port(qual, b);
	cr_expect(same < 40, "%u", same);
}

Test(ports, neighbours_land_apart)
{
	static unsigned char used[65536];
	unsigned i, distinct = 0;

	for (i = 0; i < 1000; i++) {
		uint16_t port = dofi_wire_port((1ULL << 33) + i, 0);

		distinct += !used[port];
		used[port] = 1;
	}
	cr_expect(distinct > 950, "%u", distinct);
}
