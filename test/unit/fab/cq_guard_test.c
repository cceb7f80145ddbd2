/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A guard in front of a completion queue: when a poll reads, waits for the guard, or returns. */

#include "fab/cq_one.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

TestSuite(cq_guard, .init = init);

/* A guard that the test locks as another process would. */
static _Atomic uint64_t holder;
static _Atomic uint32_t sent;

static int guard_tries;		/* calls that wait for a short time */

static bool guard_try_again(struct dofi_cq_guard *g)
{
	guard_tries++;
	return dofi_cq_guard_take(g, 0);
}

static int guard_lock(struct dofi_cq_guard *g)
{
	while (!dofi_cq_guard_take(g, 0))
		sched_yield();
	return 0;
}

static const struct dofi_cq_guard_ops guard_ops = { .try_again = guard_try_again,
						    .lock = guard_lock };
static struct dofi_cq_guard guard = {
	.ops = &guard_ops, .holder = &holder, .self = 1, .sent = &sent
};
static sem_t inside, leave;

static void *hold_guard(void *arg)
{
	(void)arg;
	guard_lock(&guard);
	sem_post(&inside);
	while (sem_wait(&leave))
		;
	dofi_cq_guard_unlock(&guard);
	return NULL;
}

Test(cq_guard, a_poll_does_not_wait_for_the_guard_but_a_drain_does)
{
	pthread_t thread;

	make_owned();
	dofi_cq_set_guard(&cq, &guard);
	cr_expect(!atomic_load(&cq.programs_fid));
	cr_assert_eq(pthread_create(&thread, NULL, hold_guard, NULL), 0);
	while (sem_wait(&inside))
		;
	complete(1);
	poll_once();
	cr_expect_eq(delivered, next_context - 2);
	sem_post(&leave);
	cr_expect(dofi_cq_drain(&cq));
	pthread_join(thread, NULL);
	cr_expect_eq(delivered, next_context - 1);
	serve();
	cr_expect(!atomic_load(&cq.programs_fid));
	dofi_cq_close(&cq);
}

/* Adds a completion. The poll delivers it only if @read. */
static void complete_guarded(bool read, const char *why)
{
	uintptr_t before = next_context - 1;

	complete(1);
	poll_once();
	cr_expect_eq(delivered, read ? before + 1 : before, "%s", why);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, before + 1, "%s", why);
}

Test(cq_guard, with_a_guard_a_poll_reads_when_there_may_be_something)
{
	make_owned();
	dofi_cq_set_guard(&cq, &guard);
	complete_guarded(true, "the first look");
	poll_once();
	complete_guarded(false, "nothing was sent");
	atomic_fetch_add(&sent, 1);
	complete_guarded(true, "something was sent");
	poll_once();
	dofi_cq_want_sweep(&cq);
	complete_guarded(true, "the fabric had no room");
	poll_once();
	dofi_cq_skip_none(&cq);
	complete_guarded(true, "a buffer was posted");
	dofi_cq_close(&cq);
}

#define SKIPS 256	/* as in cq_read.c */

Test(cq_guard, with_a_guard_a_read_that_found_some_is_repeated_later)
{
	uintptr_t before;
	int polls;

	make_owned();
	dofi_cq_set_guard(&cq, &guard);
	complete(1);
	poll_once();
	before = delivered;
	complete(1);
	for (polls = 0; polls < SKIPS; polls++)
		poll_once();
	cr_expect_eq(delivered, before, "no peer sent anything");
	poll_once();
	cr_expect_eq(delivered, before + 1, "a failed operation is reported in the end");
	complete(DOFI_CQ_BATCH + 1);
	atomic_fetch_add(&sent, 1);
	poll_once();
	cr_expect_eq(delivered, before + 2 + DOFI_CQ_BATCH,
		     "a full batch is followed by another read");
	dofi_cq_close(&cq);
}

/* A poll that found the guard locked does not ask for it again until its holder has sent. */
Test(cq_guard, with_a_guard_a_refused_poll_comes_back_later)
{
	make_owned();
	dofi_cq_set_guard(&cq, &guard);
	poll_once();
	complete(1);
	guard_lock(&guard);
	atomic_fetch_add(&sent, 1);
	poll_once();
	dofi_cq_guard_unlock(&guard);
	poll_once();
	cr_expect_eq(delivered, next_context - 2, "the holder has unlocked, and not counted yet");
	atomic_fetch_add(&sent, 1);
	poll_once();
	cr_expect_eq(delivered, next_context - 1);
	dofi_cq_close(&cq);
}

#define REFUSALS_IN_ROW 8	/* as in cq_read.c */

/* try_again() finds out whether the holder is dead. */
Test(cq_guard, with_a_guard_polls_that_are_refused_in_a_row_wait_for_it)
{
	int polls;

	make_owned();
	dofi_cq_set_guard(&cq, &guard);
	guard_lock(&guard);
	for (polls = 1; polls <= REFUSALS_IN_ROW; polls++) {
		cr_expect_eq(guard_tries, 0);
		atomic_fetch_add(&sent, 1);
		poll_once();
	}
	cr_expect_eq(guard_tries, 1);
	for (polls = 0; polls < REFUSALS_IN_ROW * (SKIPS + 1); polls++)
		poll_once();
	cr_expect_eq(guard_tries, 2, "though nothing was sent");
	dofi_cq_guard_unlock(&guard);
	dofi_cq_close(&cq);
}
