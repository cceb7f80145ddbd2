/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue of an EVD: bounds, order, overflow, resizing, purging. */

#include "obj/evd_one.h"

#include "base/log.h"
#include "capture.h"

#include <pthread.h>
#include <sched.h>

static DAT_EVD_HANDLE h;

TestSuite(evd_queue, .init = objects_init, .fini = ia_fini);

/* The next @n events of @from carry the numbers from @first on. */
static void expect_numbers(DAT_EVD_HANDLE from, uintptr_t first, unsigned n)
{
	DAT_EVENT event;

	for (; n--; first++) {
		event = event_take(from, DAT_SOFTWARE_EVENT);
		cr_assert_eq(number_of(&event), first);
	}
	cr_expect(event_none(from));
}

/* The queue */

Test(evd_queue, is_first_in_first_out)
{
	post_numbers(evd, 1, 64);
	expect_numbers(evd, 1, 64);
}

Test(evd_queue, holds_exactly_its_length)
{
	static const DAT_COUNT lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100 };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		h = evd_make(lengths[i], DAT_EVD_SOFTWARE_FLAG);
		post_numbers(h, 1, lengths[i]);
		expect_type(post_number(h, 0), DAT_QUEUE_FULL);
		expect_numbers(h, 1, lengths[i]);
	}
}

Test(evd_queue, wraps_around_its_ring)
{
	uintptr_t in = 1, out = 1;
	DAT_EVENT event;
	unsigned i;

	h = evd_make(5, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < 1000; i++) {
		while (in - out < 1 + i % 5)
			succeed(post_number(h, in++));
		while (in - out > i % 3) {
			event = event_take(h, DAT_SOFTWARE_EVENT);
			cr_assert_eq(number_of(&event), out++);
		}
	}
}

Test(evd_queue, survives_the_wrap_of_its_counter)
{
	h = evd_make(6, DAT_EVD_SOFTWARE_FLAG);
	((struct dofi_evd *)h)->head = UINT32_MAX - 2;
	post_numbers(h, 1, 6);
	expect_numbers(h, 1, 6);
}

Test(evd_queue, an_empty_one_uses_its_first_slot_again)
{
	const struct dofi_evd *e = evd;
	int i;

	for (i = 0; i < 3; i++) {
		post_numbers(evd, 1, 2);
		expect_numbers(evd, 1, 2);
		cr_expect_eq(e->head, 0);
	}
}

/* The memory of a freed EVD is used again. */
Test(evd_queue, a_new_evd_has_no_event_of_a_freed_one)
{
	const struct dofi_evd *former;
	unsigned i;

	h = evd_make(4, DAT_EVD_SOFTWARE_FLAG);
	former = h;
	post_numbers(h, 1, 3);
	event_take(h, DAT_SOFTWARE_EVENT);
	for (i = 0; i < 1000; i++) {
		succeed(dofi_evd_free(h));
		h = evd_make(4, DAT_EVD_SOFTWARE_FLAG);
		if (h == (DAT_EVD_HANDLE)former)
			break;
	}
	cr_assert_eq((const struct dofi_evd *)h, former);
	cr_expect_eq(former->head, 0);
	cr_expect(event_none(h));
}

/* Software events */

Test(evd_queue, software_events_need_their_flag)
{
	h = evd_make(4, DAT_EVD_DTO_FLAG);
	expect_arg(post_number(h, 1), 1);
}

Test(evd_queue, only_software_events_are_posted)
{
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };

	expect_arg(dofi_evd_post_se(evd, NULL), 2);
	expect_arg(dofi_evd_post_se(evd, &event), 2);
	cr_expect(event_none(evd));
}

/* Overflow */

static int push(DAT_EVD_HANDLE to)
{
	const struct dofi_event event = { .number = DAT_SOFTWARE_EVENT };

	return dofi_evd_push(to, &event);
}

static void fill(DAT_EVD_HANDLE to, unsigned n)
{
	while (n--)
		cr_assert_eq(push(to), 0);
}

static DAT_EVD_HANDLE async_make(DAT_COUNT qlen)
{
	async_set(evd_make(qlen, DAT_EVD_ASYNC_FLAG));
	return ia->async_evd;
}

Test(evd_queue, overflow_raises_one_asynchronous_event)
{
	DAT_EVD_HANDLE async = async_make(8);
	DAT_EVENT event;

	h = evd_make(2, DAT_EVD_DTO_FLAG);
	fill(h, 2);
	cr_expect_eq(push(h), -ENOSPC);
	cr_expect_eq(push(h), -ENOSPC);
	event = event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	cr_expect_eq(event.event_data.asynch_error_event_data.dat_handle, h);
	cr_expect(event_none(async));
}

static unsigned count_lines(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/*
 * An error is worth one warning. An event that InfiniBand programs wait for at the end of each
 * connection is not.
 */
Test(evd_queue, an_asynchronous_error_is_logged_once)
{
	static struct capture said;

	dofi_log_max = DOFI_WARN;
	async_make(8);
	capture_begin(&said);
	dofi_async_error(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
	cr_expect_eq(count_lines(capture_end(&said), "asynchronous error"), 1);
	capture_begin(&said);
	dofi_async_event(ia, DAT_ASYNC_ERROR_EP_BROKEN, evd, DAT_EP_TRANSFER_TO_ERROR);
	cr_expect_eq(count_lines(capture_end(&said), "asynchronous error"), 0);
}

Test(evd_queue, overflow_after_relief_is_reported_again)
{
	DAT_EVD_HANDLE async = async_make(8);

	h = evd_make(2, DAT_EVD_DTO_FLAG);
	fill(h, 2);
	push(h);
	event_take(h, DAT_SOFTWARE_EVENT);
	fill(h, 1);
	push(h);
	event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	event_take(async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	cr_expect(event_none(async));
}

Test(evd_queue, overflow_keeps_what_was_there)
{
	post_numbers(evd, 1, 64);
	cr_expect_eq(push(evd), -ENOSPC);
	expect_numbers(evd, 1, 64);
}

Test(evd_queue, overflow_of_the_asynchronous_evd_ends_there)
{
	DAT_EVD_HANDLE async = async_make(1);

	fill(async, 1);
	cr_expect_eq(push(async), -ENOSPC);
	h = evd_make(1, DAT_EVD_DTO_FLAG);
	fill(h, 1);
	cr_expect_eq(push(h), -ENOSPC);
}

Test(evd_queue, overflow_without_asynchronous_evd_is_survived)
{
	h = evd_make(1, DAT_EVD_DTO_FLAG);
	fill(h, 1);
	cr_expect_eq(push(h), -ENOSPC);
}

Test(evd_queue, a_full_post_is_returned_to_the_poster_alone)
{
	DAT_EVD_HANDLE async = async_make(4);

	h = evd_make(1, DAT_EVD_SOFTWARE_FLAG);
	succeed(post_number(h, 1));
	expect_type(post_number(h, 2), DAT_QUEUE_FULL);
	cr_expect(event_none(async));
}

/* Resizing */

Test(evd_queue, resize_keeps_events_and_order)
{
	unsigned start, n, i;
	static const DAT_COUNT to[] = { 7, 8, 9, 64, 500 };

	for (start = 0; start < 7; start++)
		for (n = 0; n < 5; n++) {
			h = evd_make(7, DAT_EVD_SOFTWARE_FLAG);
			post_numbers(h, 1, 7);
			for (i = 0; i < start; i++)
				event_take(h, DAT_SOFTWARE_EVENT);
			post_numbers(h, 8, start);
			succeed(dofi_evd_resize(h, to[n]));
			post_numbers(h, 8 + start, to[n] - 7);
			expect_type(post_number(h, 0), DAT_QUEUE_FULL);
			expect_numbers(h, 1 + start, to[n]);
			succeed(dofi_evd_free(h));
		}
}

Test(evd_queue, resize_may_shrink_to_what_is_in_it)
{
	post_numbers(evd, 1, 3);
	expect_type(dofi_evd_resize(evd, 2), DAT_INVALID_STATE);
	succeed(dofi_evd_resize(evd, 3));
	expect_type(post_number(evd, 4), DAT_QUEUE_FULL);
	expect_numbers(evd, 1, 3);
}

/* Purging */

Test(evd_queue, purging_takes_the_endpoints_connection_events_only)
{
	DAT_EP_HANDLE mine = ep_make(), other = ep_make();
	struct dofi_event dto = { .number = DAT_DTO_COMPLETION_EVENT };

	dto.data.dto_completion_event_data.ep_handle = mine;
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, other);
	cr_assert_eq(dofi_evd_push(evd, &dto), 0);
	push_connection(DAT_CONNECTION_EVENT_UNREACHABLE, mine);
	succeed(post_number(evd, 9));
	push_connection(DAT_CONNECTION_EVENT_BROKEN, other);
	dofi_evd_purge_ep(evd, mine);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	event_take(evd, DAT_SOFTWARE_EVENT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(evd_queue, purging_over_the_wrap_keeps_the_order)
{
	DAT_EP_HANDLE mine = ep_make();
	unsigned i;

	succeed(dofi_evd_resize(evd, 8));
	((struct dofi_evd *)evd)->head = 5;
	for (i = 0; i < 4; i++) {
		succeed(post_number(evd, i + 1));
		push_connection(DAT_CONNECTION_EVENT_ESTABLISHED, mine);
	}
	dofi_evd_purge_ep(evd, mine);
	expect_numbers(evd, 1, 4);
}

/* Several threads post while one takes: each event arrives once, and each thread's in order. */

enum { THREADS = 3, EVENTS = 2000 };

static void *post_all(void *arg)
{
	uintptr_t base = (uintptr_t)arg << 16, i;

	for (i = 1; i <= EVENTS; i++)
		while (post_number(evd, base | i) != DAT_SUCCESS)
			sched_yield();
	return NULL;
}

Test(evd_queue, threads_post_while_one_takes)
{
	uintptr_t last[THREADS] = { 0 }, i;
	pthread_t thread[THREADS];
	unsigned taken = 0;
	DAT_EVENT event;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, post_all, (void *)i);
	while (taken < THREADS * EVENTS) {
		if (dofi_evd_dequeue(evd, &event) != DAT_SUCCESS) {
			sched_yield();
			continue;
		}
		cr_assert_eq((number_of(&event) & 0xffff), ++last[number_of(&event) >> 16]);
		taken++;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect(event_none(evd));
}
