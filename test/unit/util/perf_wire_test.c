/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The messages between two datperf processes. */
#include "perf_wire.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct perf_hello hello = {
	.flags = PERF_HELLO_WAIT,
	.size_max = 0x01020304,
	.window = 4096,
	.endpoints = 64,
	.threads = 7,
	.addr = 0x1122334455667788,
	.key = 0x99aabbcc,
	.index = 0xff01,
	.session = 0xddee,
	.segments = 31,
};

Test(perf_hello, comes_back_as_it_was)
{
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_hello got = { 0 };

	perf_hello_encode(&hello, buf);
	cr_assert_eq(perf_hello_decode(&got, buf, sizeof(buf)), 0);
	cr_assert_eq(got.flags, hello.flags);
	cr_assert_eq(got.size_max, hello.size_max);
	cr_assert_eq(got.window, hello.window);
	cr_assert_eq(got.addr, hello.addr);
	cr_assert_eq(got.key, hello.key);
	cr_assert_eq(got.endpoints, hello.endpoints);
	cr_assert_eq(got.threads, hello.threads);
	cr_assert_eq(got.index, hello.index);
	cr_assert_eq(got.session, hello.session);
	cr_assert_eq(got.segments, hello.segments);
}

Test(perf_hello, is_in_network_byte_order)
{
	static const unsigned char size[] = { 1, 2, 3, 4 };
	static const unsigned char addr[] = {
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
	};
	unsigned char buf[PERF_HELLO_LEN];

	perf_hello_encode(&hello, buf);
	cr_assert_arr_eq(buf + 8, size, sizeof(size));
	cr_assert_arr_eq(buf + 16, addr, sizeof(addr));
}

Test(perf_hello, fits_the_smallest_private_data)
{
	/* verbs carries 55 bytes, less the provider's header */
	cr_assert_leq(PERF_HELLO_LEN, 40);
}

Test(perf_hello, padding_is_tolerated_and_shortness_is_not)
{
	unsigned char buf[PERF_HELLO_LEN + 24] = { 0 };
	struct perf_hello got;
	size_t len;

	perf_hello_encode(&hello, buf);
	cr_assert_eq(perf_hello_decode(&got, buf, sizeof(buf)), 0);
	for (len = 0; len < PERF_HELLO_LEN; len++)
		cr_assert_eq(perf_hello_decode(&got, buf, len), -1);
	cr_assert_eq(perf_hello_decode(&got, NULL, 0), -1);
}

Test(perf_hello, other_programs_and_versions_are_refused)
{
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_hello got;
	int i;

	for (i = 0; i < 6; i++) {
		perf_hello_encode(&hello, buf);
		buf[i] ^= 1;
		cr_assert_eq(perf_hello_decode(&got, buf, sizeof(buf)), -1, "byte %d", i);
	}
}

static void card_make(unsigned char *buf, uint32_t len)
{
	struct perf_card card = { .hello = hello, .len = len };

	memset(card.address, 'a', sizeof(card.address));
	perf_card_encode(&card, buf);
}

Test(perf_card, comes_back_as_it_was)
{
	unsigned char buf[PERF_CARD_LEN];
	struct perf_card got;
	uint32_t len;
	size_t i;

	for (len = 1; len <= PERF_ADDRESS_MAX; len += 51) {
		card_make(buf, len);
		memset(&got, 'x', sizeof(got));
		cr_assert_eq(perf_card_decode(&got, buf, sizeof(buf)), 0);
		cr_assert_eq(got.len, len);
		cr_assert_eq(got.hello.key, hello.key);
		for (i = 0; i < PERF_ADDRESS_MAX; i++)
			cr_assert_eq(got.address[i], i < len ? 'a' : 0);
	}
}

Test(perf_card, invalid_card_is_refused)
{
	static const uint32_t lens[] = { 0, PERF_ADDRESS_MAX + 1, UINT32_MAX };
	unsigned char buf[PERF_CARD_LEN];
	struct perf_card got;
	size_t i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		card_make(buf, lens[i]);
		cr_expect_eq(perf_card_decode(&got, buf, sizeof(buf)), -1);
	}
	card_make(buf, 16);
	cr_expect_eq(perf_card_decode(&got, buf, sizeof(buf) - 1), -1);
	buf[0] ^= 1;
	cr_expect_eq(perf_card_decode(&got, buf, sizeof(buf)), -1);
}

Test(perf_ctl, comes_back_as_it_was)
{
	const struct perf_ctl ctl = {
		.type = PERF_CTL_START,
		.kind = 5,
		.seed = 0xdeadbeef,
		.slots = 17,
		.size = 1ull << 32,
		.iters = 123456789012,
		.value = UINT64_MAX,
		.flags = 0x12345678,
		.cpu_ns = 1ull << 63,
	};
	unsigned char buf[PERF_CTL_LEN];
	struct perf_ctl got = { 0 };

	perf_ctl_encode(&ctl, buf);
	cr_assert_eq(perf_ctl_decode(&got, buf, sizeof(buf)), 0);
	cr_assert_eq(got.type, ctl.type);
	cr_assert_eq(got.kind, ctl.kind);
	cr_assert_eq(got.seed, ctl.seed);
	cr_assert_eq(got.slots, ctl.slots);
	cr_assert_eq(got.size, ctl.size);
	cr_assert_eq(got.iters, ctl.iters);
	cr_assert_eq(got.value, ctl.value);
	cr_assert_eq(got.flags, ctl.flags);
	cr_assert_eq(got.cpu_ns, ctl.cpu_ns);
}

Test(perf_ctl, data_is_not_taken_for_control)
{
	unsigned char buf[PERF_CTL_LEN];
	struct perf_ctl got;

	memset(buf, 0, sizeof(buf));
	cr_assert_eq(perf_ctl_decode(&got, buf, sizeof(buf)), -1);
	perf_ctl_encode(&(struct perf_ctl){ .type = PERF_CTL_FIN }, buf);
	cr_assert_eq(perf_ctl_decode(&got, buf, sizeof(buf) - 1), -1);
}
