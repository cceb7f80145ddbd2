/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The count of events that are not dequeued, and its generations. */

#include "wq/queue.h"

#include <criterion/criterion.h>
#include <pthread.h>

TestSuite(wq_unread);

Test(wq_unread, counts_events_until_they_are_dequeued)
{
	struct dofi_unread unread = { 0 };
	const uint32_t generation = dofi_unread_generation(&unread);

	dofi_unread_add(&unread);
	dofi_unread_add(&unread);
	cr_expect_eq(dofi_unread_count(&unread), 2);
	dofi_unread_done(&unread, generation);
	cr_expect_eq(dofi_unread_count(&unread), 1);
	dofi_unread_done(&unread, generation);
	cr_expect_eq(dofi_unread_count(&unread), 0);
	cr_expect_eq(dofi_unread_generation(&unread), generation);
}

Test(wq_unread, a_new_generation_begins_with_no_event)
{
	struct dofi_unread unread = { 0 };
	const uint32_t generation = dofi_unread_generation(&unread);

	dofi_unread_add(&unread);
	dofi_unread_renew(&unread);
	cr_expect_eq(dofi_unread_count(&unread), 0);
	cr_expect_eq(dofi_unread_generation(&unread), generation + 1);
}

Test(wq_unread, an_event_of_an_earlier_generation_changes_nothing)
{
	struct dofi_unread unread = { 0 };
	const uint32_t generation = dofi_unread_generation(&unread);

	dofi_unread_add(&unread);
	dofi_unread_renew(&unread);
	dofi_unread_done(&unread, generation);
	cr_expect_eq(dofi_unread_count(&unread), 0);
	dofi_unread_add(&unread);
	dofi_unread_done(&unread, generation);
	cr_expect_eq(dofi_unread_count(&unread), 1);
}

Test(wq_unread, the_generation_wraps_without_touching_the_count)
{
	struct dofi_unread unread = { (uint64_t)UINT32_MAX << 32 | 7 };

	cr_expect_eq(dofi_unread_generation(&unread), UINT32_MAX);
	cr_expect_eq(dofi_unread_count(&unread), 7);
	dofi_unread_renew(&unread);
	cr_expect_eq(dofi_unread_generation(&unread), 0);
	cr_expect_eq(dofi_unread_count(&unread), 0);
}

/* Threads that count and dequeue while others do. */

#define THREADS 4
/* so many that the threads run at the same time, or are interrupted */
#define EVENTS 500000

static struct dofi_unread shared;
static pthread_barrier_t all_there;

static void *count_and_dequeue(void *arg)
{
	const uint32_t generation = dofi_unread_generation(&shared);
	int i;

	pthread_barrier_wait(&all_there);
	for (i = 0; i < EVENTS; i++)
		dofi_unread_add(&shared);
	/* half of the events are dequeued, by whichever thread */
	for (i = 0; i < EVENTS / 2; i++)
		dofi_unread_done(&shared, generation);
	return arg;
}

Test(wq_unread, threads_lose_no_event)
{
	pthread_t thread[THREADS];
	int i;

	dofi_unread_renew(&shared);
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, count_and_dequeue, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(dofi_unread_count(&shared), THREADS * EVENTS / 2);
	cr_expect_eq(dofi_unread_generation(&shared), 1);
}

/* Events of an earlier generation are dequeued while this one counts. */
static void *dequeue_old(void *arg)
{
	int i;

	pthread_barrier_wait(&all_there);
	for (i = 0; i < EVENTS; i++)
		dofi_unread_done(&shared, 1);
	return arg;
}

Test(wq_unread, threads_with_old_events_change_nothing)
{
	pthread_t thread[THREADS];
	int i;

	dofi_unread_renew(&shared);
	cr_assert_eq(dofi_unread_generation(&shared), 1);
	dofi_unread_renew(&shared);
	pthread_barrier_init(&all_there, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, dequeue_old, NULL), 0);
	pthread_barrier_wait(&all_there);
	for (i = 0; i < EVENTS; i++)
		dofi_unread_add(&shared);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(dofi_unread_count(&shared), EVENTS);
}
