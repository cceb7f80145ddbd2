/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's memory layout, which must be identical in both processes. */
#include "perf.h"

#include <criterion/criterion.h>
#include <string.h>

static const size_t sizes[] = {
	1, 8, 63, 64, 65, 1000, 4096, 65536, 1 << 20, (4 << 20) + 1, 64 << 20,
};

Test(perf_layout, slots_fit_their_area_without_overlap)
{
	struct perf_layout lay;
	unsigned int window;
	size_t i, k;

	for (window = 1; window <= 4096; window *= 8) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			perf_layout_init(&lay, sizes[i], window);
			for (k = 0; k <= i; k++) {
				unsigned int n = perf_slots(&lay, sizes[k]);

				cr_assert_geq(n, window < 2 ? 1 : 2);
				cr_assert_leq(n, window);
				cr_assert_leq(n * perf_stride(sizes[k]), lay.area);
				cr_assert_geq(perf_stride(sizes[k]), sizes[k]);
			}
		}
	}
}

Test(perf_layout, parts_are_disjoint)
{
	struct perf_layout lay;

	perf_layout_init(&lay, 4096, 64);
	cr_assert_geq(lay.ctl_rx, lay.ctl_tx + PERF_CTL_LEN);
	cr_assert_geq(lay.note_tx, lay.ctl_rx + PERF_CTL_LEN);
	cr_assert_geq(lay.note_rx, lay.note_tx + 8);
	cr_assert_geq(lay.tx, lay.note_rx + 8);
	cr_assert_geq(lay.rx, lay.tx + lay.area);
	cr_assert_geq(lay.total, lay.rx + lay.area);
}

Test(perf_layout, small_messages_get_the_whole_window)
{
	struct perf_layout lay;

	perf_layout_init(&lay, 4 << 20, 64);
	cr_assert_eq(perf_slots(&lay, 0), 64);
	cr_assert_eq(perf_slots(&lay, 1), 64);
	cr_assert_eq(perf_slots(&lay, 65536), 64);
}

Test(perf_listen_text, low_ports_need_privileges)
{
	char text[PERF_LISTEN_TEXT];

	cr_expect_str_eq(perf_listen_text(0, text, sizeof(text)), "cannot listen");
	cr_expect_str_eq(perf_listen_text(1023, text, sizeof(text)),
			 "cannot listen on port 1023 (ports below 1024 need privileges)");
	cr_expect_str_eq(perf_listen_text(1024, text, sizeof(text)),
			 "cannot listen on port 1024");
}

Test(perf_fail, keeps_the_first_reason)
{
	struct perf_xport x = { .err = "" };

	cr_assert_eq(perf_fail(&x, "cause %d", 1), -1);
	cr_assert_eq(perf_fail(&x, "consequence"), -1);
	cr_assert_str_eq(x.err, "cause 1");
}

static int greet(uint32_t size_max, uint16_t window, uint8_t endpoints, uint8_t threads)
{
	struct perf_hello hello = {
		.size_max = size_max,
		.window = window,
		.endpoints = endpoints,
		.threads = threads,
	};
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_xport x = { .err = "" };

	perf_hello_encode(&hello, buf);
	cr_assert_eq(perf_hello_check(&x, buf, sizeof(buf), &hello) != 0, x.refused);
	return x.refused ? -1 : 0;
}

Test(perf_hello_check, refuses_what_would_break_the_layout)
{
	cr_assert_eq(greet(1, 2, 1, 1), 0);
	cr_assert_eq(greet(0, 2, 1, 1), -1);
	cr_assert_eq(greet(1, 1, 1, 1), 0);
	cr_assert_eq(greet(1, 0, 1, 1), -1);
	cr_assert_eq(greet((1u << 30) + 1, 2, 1, 1), -1);
	cr_assert_eq(greet(1, 4097, 1, 1), -1);
}

Test(perf_hello_check, limits_the_number_of_connections)
{
	cr_assert_eq(greet(1, 2, PERF_ENDPOINTS_MAX, PERF_THREADS_MAX), 0);
	cr_assert_eq(greet(1, 2, 0, 1), -1);
	cr_assert_eq(greet(1, 2, 1, 0), -1);
	cr_assert_eq(greet(1, 2, PERF_ENDPOINTS_MAX + 1, 1), -1);
	cr_assert_eq(greet(1, 2, 1, PERF_THREADS_MAX + 1), -1);
}
