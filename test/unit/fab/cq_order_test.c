/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* No completion is lost or out of order, whichever threads read a completion queue. */

#include "fab/cq_one.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/*
 * For any order of completions, polls, sleepers and rounds: after the rounds that dofi_cq_due()
 * and epoll request, all completions have been delivered in order.
 */
static void settle(int sleepers)
{
	int rounds;

	for (rounds = 0; rounds < 4; rounds++) {
		bool fired = epoll_fires();

		if (!fired && dofi_cq_due(&cq) == DOFI_NEVER)
			break;
		if (!fired && !sleepers && dofi_cq_due(&cq) > now)
			now = dofi_cq_due(&cq);
		serve();
	}
}

static void nothing_is_lost(void)
{
	unsigned seed = 1, round, step;

	for (round = 0; round < 3000; round++) {
		int sleepers = 0;

		for (step = rand_r(&seed) % 24; step; step--) {
			switch (rand_r(&seed) % 8) {
			case 0:
				complete(1 + rand_r(&seed) % 20);
				break;
			case 1:
				poll_once();
				break;
			case 7:
				dofi_cq_poll_next(&cq);
				break;
			case 2:
				if (epoll_fires())
					serve();
				break;
			case 3:
				now += rand_r(&seed) % 2000 * US;
				serve();
				break;
			case 4:
				sleepers++;
				dofi_cq_sleep_begin(&cq);
				break;
			case 5:
				if (sleepers) {
					sleepers--;
					dofi_cq_sleep_end(&cq);
				}
				break;
			default:
				fake.fault.trywait = rand_r(&seed) % 3;
			}
		}
		settle(sleepers);
		cr_assert_eq(fake_unread() + cq.left, 0, "round %u, armed %d", round, armed());
		cr_assert_eq(out_of_order, 0);
		while (sleepers--)
			dofi_cq_sleep_end(&cq);
	}
	cr_expect_eq(delivered, next_context - 1);
}

Test(cq_order, nothing_is_lost_in_any_order)
{
	nothing_is_lost();
}

/* A serial CQ never calls the fabric without the access lock. */

static void init_serial(void)
{
	init();
	dofi_cq_close(&cq);
	cq.serial = true;
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	fake.guard = &cq.access;
}

static void fini_serial(void)
{
	cr_expect(fake.cq_reads > 0);
	cr_expect_eq(fake.unguarded, 0);
	cr_expect(dofi_mutex_try(&cq.access), "and is left unlocked");
}

TestSuite(cq_order, .init = init);
TestSuite(cq_serial, .init = init_serial, .fini = fini_serial);

Test(cq_serial, nothing_is_lost_in_any_order)
{
	nothing_is_lost();
	cr_expect(fake.trywaits > 0);
}

Test(cq_serial, an_error_is_read)
{
	fake_complete((void *)next_context++, FI_ECANCELED);
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(last_err, FI_ECANCELED);
}

/*
 * Several threads poll while the progress thread serves the queue: each completion is delivered
 * once and in order.
 */

enum { MANY = 3000 };

static _Atomic bool all_done;

static void *poll_until_done(void *arg)
{
	while (!all_done) {
		if (arg)
			dofi_cq_poll_next(&cq);
		else
			poll_once();
		sched_yield();
	}
	return NULL;
}

Test(cq_order, threads_that_poll_and_serve_share_it)
{
	pthread_t thread[2];
	int i;

	serve();
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, poll_until_done, i ? &all_done : NULL);
	for (i = 0; i < MANY; i++) {
		complete(1);
		if (i % 50 == 0)
			epoll_fires();
		now += 10 * US;
		serve();
	}
	all_done = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, MANY);
	cr_expect_eq(out_of_order, 0);
}
