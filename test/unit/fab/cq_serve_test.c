/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which thread reads a completion queue, and that no completion is lost. */

#include "fab/cq_one.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

TestSuite(cq_serve, .init = init);
TestSuite(cq_serve_shards, .init = init_shards);

Test(cq_serve, is_armed_in_the_first_round)
{
	serve();
	cr_expect(armed());
	cr_expect(!epoll_fires());
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq_serve, what_came_before_arming_is_delivered)
{
	complete(3);
	serve();
	cr_expect_eq(delivered, 3);
}

Test(cq_serve, idle_and_armed_is_left_alone)
{
	serve();
	fake.cq_reads = 0;
	serve();
	serve();
	cr_expect_eq(fake.cq_reads, 0);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

Test(cq_serve, epoll_reports_once_until_armed_again)
{
	serve();
	complete(1);
	cr_expect(epoll_fires());
	cr_expect(!epoll_fires());
	serve();
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq_serve, served_at_once_when_no_thread_polls)
{
	serve();
	complete(1);
	epoll_fires();
	serve();
	cr_expect_eq(delivered, 1);
	cr_expect(armed());
}

Test(cq_serve, left_for_a_moment_when_the_program_polled)
{
	make_left();
	cr_expect_eq(delivered, 1);
	cr_expect_eq(cq.due_at, now + 100 * US);
	cr_expect_eq(dofi_cq_due(&cq), now + 100 * US);
}

Test(cq_serve, a_poll_long_ago_does_not_keep_it)
{
	make_left();
	now += 100 * US;
	serve();
	cr_expect_eq(delivered, 2);
	cr_expect(armed());
}

Test(cq_serve, left_to_the_program_waits_its_moment)
{
	make_left();
	now += 100 * US - 1;
	serve();
	cr_expect(!armed());
	cr_expect_eq(delivered, 1);
}

Test(cq_serve, owned_while_the_program_still_polls)
{
	make_owned();
	cr_expect_eq(cq.due_at, now + 125 * US);
}

Test(cq_serve, a_read_that_lasts_is_a_poll)
{
	make_left();
	now = cq.due_at;
	dofi_mutex_lock(&cq.lock);		/* another thread is in dofi_cq_poll() */
	serve();
	dofi_mutex_unlock(&cq.lock);
	cr_expect(!armed());
	cr_expect_eq(delivered, 1);
	now = cq.due_at;
	serve();
	cr_expect(armed());
	cr_expect_eq(delivered, 2);
}

/* The program takes events that the progress thread has read, so it need not poll. */
Test(cq_serve, a_program_that_takes_events_is_at_work)
{
	serve();
	cq.policy.wakeups_kept = 0;
	complete(1);
	cr_assert(epoll_fires());
	dofi_cq_took(&cq);
	serve();
	cr_expect(!armed());
	dofi_cq_took(&cq);
	now = cq.due_at;
	serve();
	cr_expect(!armed());
	cr_expect_eq(cq.due_at, now + 125 * US);
	now = cq.due_at;
	serve();
	cr_expect(armed());
}

Test(cq_serve, a_program_that_only_posts_is_read_for)
{
	make_owned();
	complete(2);
	dofi_cq_posted(&cq);
	now = cq.due_at;
	serve();
	cr_expect(!armed());
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(delivered, next_context - 1);
}

/* A peer's write arrives, after the program polled @polls times. */
static void written_to(unsigned polls)
{
	while (polls--)
		poll_once();
	dofi_cq_posted(&cq);
	suppressed = true;
	complete(1);
	cr_assert(epoll_fires());
	serve();
}

Test(cq_serve, a_program_that_reads_memory_is_served_from_the_first_wakeup)
{
	unsigned i;

	serve();
	for (i = 0; i < 100; i++) {
		written_to(i % 4);
		cr_assert(armed(), "%u", i);
		cr_assert_eq(fake_unread(), 0);
	}
}

Test(cq_serve, wakeups_for_its_events_do_not_prove_that_it_reads_memory)
{
	int i;

	serve();
	for (i = 0; armed() && i < 100; i++) {
		complete(1);
		cr_assert(epoll_fires());
		dofi_cq_took(&cq);
		serve();
	}
	cr_expect(!armed());
	cr_expect(i < 4);
}

Test(cq_serve, a_few_polls_do_not_keep_it)
{
	make_owned();
	poll_once();
	complete(1);
	now = cq.due_at;
	serve();
	cr_expect(armed());
	cr_expect_eq(fake_unread(), 0);
}

Test(cq_serve, owned_costs_no_read)
{
	int i;

	make_owned();
	fake.cq_reads = 0;
	for (i = 0; i < 10; i++) {
		poll_in_loop();
		now = cq.due_at;
		serve();
		cr_assert(!armed());
	}
	cr_expect_eq(fake.cq_reads, 10);	/* all of them are the program's */
}

/* Otherwise every packet would wake epoll, only to be ignored. */
Test(cq_serve, what_the_program_owns_epoll_does_not_know)
{
	struct epoll_event ev = { .events = 0 };

	serve();
	cr_expect_eq(epoll_ctl(progress.epfd, EPOLL_CTL_ADD, cq.fd, &ev), -1);
	cr_expect_eq(errno, EEXIST);
	make_owned();
	cr_expect_eq(epoll_ctl(progress.epfd, EPOLL_CTL_DEL, cq.fd, NULL), -1);
	cr_expect_eq(errno, ENOENT);
	dofi_cq_close(&cq);
}

Test(cq_serve, without_memory_to_watch_with_it_is_checked_again)
{
	struct epoll_event ev = { .events = 0 };

	make_owned();
	complete(1);
	/* Makes the next ADD fail. */
	cr_assert_eq(epoll_ctl(progress.epfd, EPOLL_CTL_ADD, cq.fd, &ev), 0);
	now = cq.due_at;
	serve();
	cr_expect(!armed());
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(cq.due_at, now + 1000 * US);
	cr_assert_eq(epoll_ctl(progress.epfd, EPOLL_CTL_DEL, cq.fd, NULL), 0);
	now = cq.due_at;
	serve();
	cr_expect(armed());
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq_serve, comes_back_when_the_program_stops_polling)
{
	make_owned();
	complete(5);
	now = cq.due_at;
	serve();
	cr_expect(armed());
	cr_expect_eq(fake_unread(), 0);
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq_serve, a_sleeper_takes_it_from_a_poller)
{
	make_owned();
	complete(1);
	poll_once();
	complete(1);
	dofi_cq_sleep_begin(&cq);
	cr_expect(was_woken());
	serve();	/* long before look_at */
	cr_expect(armed());
	cr_expect_eq(fake_unread(), 0);
}

Test(cq_serve, a_sleeper_takes_it_from_a_probe)
{
	make_left();
	dofi_cq_sleep_begin(&cq);
	cr_expect(was_woken());
	serve();
	cr_expect(armed());
	cr_expect_eq(delivered, 2);
}

Test(cq_serve, an_armed_queue_needs_no_wakeup)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	cr_expect(!was_woken());
}

Test(cq_serve, with_a_sleeper_polls_do_not_count)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	complete(1);
	poll_once();
	complete(1);
	epoll_fires();
	serve();
	cr_expect(armed());
	cr_expect_eq(delivered, 2);
}

Test(cq_serve, polls_count_again_after_the_last_sleeper)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	dofi_cq_sleep_begin(&cq);
	dofi_cq_sleep_end(&cq);
	dofi_cq_sleep_end(&cq);
	make_left();
}

Test(cq_serve, does_not_sleep_on_what_it_did_not_see)
{
	complete(3);
	fake.fault.trywait = 2;
	serve();
	cr_expect(armed());
	cr_expect_eq(delivered, 3);
	cr_expect_eq(fake.trywaits, 3);
}

Test(cq_serve, traffic_that_outruns_it_is_read_again_at_once)
{
	fake.fault.trywait = 1000;
	endless = true;
	complete(1);
	serve();
	cr_expect(!armed());
	cr_expect(dofi_cq_due(&cq) <= now);
	cr_expect(fake.trywaits < 100);
	fake.fault.trywait = 0;
	endless = false;
	serve();
	cr_expect(armed());
}

/* A descriptor that is readable with nothing to read */

/* Serves the CQ while epoll reports it, and returns how often it did. */
static int wakeups(void)
{
	int n;

	for (n = 0; epoll_fires(); n++)
		serve();
	return n;
}

/* The time until the next check, in us. */
static int64_t pause_us(void)
{
	return (dofi_cq_due(&cq) - now) / US;
}

Test(cq_serve, a_descriptor_that_stays_readable_does_not_keep_it_awake)
{
	int64_t pause, last;

	fake_set_fd(FAKE_FD_ALWAYS);
	serve();
	cr_expect(wakeups() < 16);
	cr_expect(armed(), "a thread that posts a receive drains it");
	cr_expect(pause_us() <= 4000);
	for (last = pause_us(); last < 4000; last = pause) {
		now = dofi_cq_due(&cq);
		serve();
		cr_assert_eq(wakeups(), 0);
		pause = pause_us();
		cr_assert(pause > last && pause <= 2 * last, "%lld", (long long)pause);
	}
	now = dofi_cq_due(&cq);
	serve();
	cr_expect_eq(pause_us(), 4000);
}

Test(cq_serve, what_arrives_behind_it_is_read_at_once)
{
	fake_set_fd(FAKE_FD_ALWAYS);
	serve();
	wakeups();
	complete(1);
	cr_expect(wakeups() < 16);
	cr_expect_eq(delivered, 1);
	cr_expect(armed());
	dofi_cq_kick(&cq, NULL);
	cr_expect_eq(wakeups(), 0);
}

Test(cq_serve, once_it_is_not_readable_it_wakes_the_thread_again)
{
	fake_set_fd(FAKE_FD_ALWAYS);
	serve();
	wakeups();
	fake_set_fd(FAKE_FD_TRUE);
	now = dofi_cq_due(&cq);
	serve();
	cr_expect(armed());
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
	complete(1);
	cr_expect_eq(wakeups(), 1);
	cr_expect_eq(delivered, 1);
}

/* Epoll reports the CQ after each read, as with nested epoll sets of an old kernel. */
Test(cq_serve, a_descriptor_that_reports_each_read_is_ignored_for_growing_times)
{
	fake_set_fd(FAKE_FD_LIES);
	serve();
	cr_expect(wakeups() < 200);
	cr_expect(armed());
	cr_expect_eq(pause_us(), 100);
	complete(1);
	now = dofi_cq_due(&cq);
	serve();
	cr_expect_eq(delivered, 1);
	cr_expect(wakeups() < 200);
	while (pause_us() < 4000) {
		now = dofi_cq_due(&cq);
		serve();
		cr_assert_eq(wakeups(), 0);
	}
	cr_expect_eq(wakeups(), 0);
	fake_set_fd(FAKE_FD_TRUE);
	now = dofi_cq_due(&cq);
	serve();
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

Test(cq_serve, a_fabric_that_always_has_more_is_left_alone_too)
{
	fake.fault.trywait = 1000;
	serve();
	cr_expect(armed());
	cr_expect_eq(pause_us(), 1000);
	complete(1);
	cr_expect(wakeups() < 16);
	cr_expect_eq(delivered, 1);
	fake.fault.trywait = 0;
	now = dofi_cq_due(&cq);
	serve();
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

/* Each wakes the thread, however many there are. */
Test(cq_serve, arrivals_that_bring_completions_are_not_ignored)
{
	unsigned i;

	fake.fault.trywait = 100000;
	serve();
	for (i = 1; i <= 100; i++) {
		complete(1);
		wakeups();
		cr_assert_eq(delivered, i);
	}
}

/* rxm serves its connections in one of many reads. */
Test(cq_serve, a_queue_that_needs_many_reads_is_never_stuck)
{
	unsigned i;

	fake_set_fd(FAKE_FD_ALWAYS);
	for (i = 0; i < 100 && !dofi_cq_is_stuck(&cq, false); i++)
		;
	cr_expect(i < 100);
	quirk.many_reads = true;
	cr_expect(!dofi_cq_is_stuck(&cq, false));
	quirk.many_reads = false;
}

Test(cq_serve, a_stuck_queue_is_swept_every_tick)
{
	fake_set_fd(FAKE_FD_ALWAYS);
	serve();
	wakeups();
	now = dofi_cq_due(&cq);
	serve();
	dofi_cq_want_sweep(&cq);
	cr_expect_eq(pause_us(), 1000);
}

Test(cq_serve, a_stuck_queue_can_be_left_to_a_program_that_polls)
{
	fake_set_fd(FAKE_FD_ALWAYS);
	serve();
	wakeups();
	make_owned();
	cr_expect_eq(wakeups(), 0);
	now = cq.due_at;
	serve();
	cr_expect(armed());
	cr_expect(wakeups() < 16);
}

Test(cq_serve, a_probe_ends_the_programs_time_early)
{
	serve();
	dofi_settings.tick_us = 1000000;
	make_owned();
	cr_assert(!armed());
	cr_assert(dofi_cq_due(&cq) > now + 100 * US);
	dofi_cq_probe(&cq, now);
	cr_expect_eq(dofi_cq_due(&cq), now + 100 * US);
	now += 100 * US;
	poll_in_loop();
	serve();
	cr_expect(!armed(), "it still polls");
	dofi_cq_probe(&cq, now);
	now += 100 * US;
	serve();
	cr_expect(armed());
	dofi_cq_probe(&cq, now);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

/* epoll is not used because it would not report the error. */
Test(cq_serve, silent_errors_reach_sleepers)
{
	quirk.silent_errors = true;
	serve();
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);	/* no thread waits */
	dofi_cq_sleep_begin(&cq);
	complete(1);
	cr_assert(dofi_cq_due(&cq) != DOFI_NEVER);
	now = dofi_cq_due(&cq) - 1;
	serve();
	cr_expect_eq(delivered, 0);
	now++;
	serve();
	cr_expect_eq(delivered, 1);
	cr_expect(dofi_cq_due(&cq) > now);		/* another look is due */
	dofi_cq_sleep_end(&cq);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

/* Without a descriptor */

static void open_without_fd(void)
{
	dofi_cq_close(&cq);
	fake.fault.no_cq_fd = true;
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	cr_expect_eq(cq.fd, -1);
}

Test(cq_serve, without_a_descriptor_it_is_armed_all_the_same)
{
	open_without_fd();
	complete(3);
	serve();
	cr_expect_eq(delivered, 3);
	cr_expect(armed());
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
	cr_expect_eq(fake.trywaits, 0);
	cr_expect(dofi_served_relies_on_peer(&cq.served));
	dofi_cq_close(&cq);
	cr_expect_eq(fake.open, 0);
}

Test(cq_serve, without_a_descriptor_the_program_owns_it_when_it_polls)
{
	open_without_fd();
	serve();
	cq.policy.wakeups_kept = 0;
	poll_in_loop();
	cq.served.fired = true;	/* as after the progress thread slept */
	serve();
	cr_expect(!armed());
	cr_expect(!dofi_served_relies_on_peer(&cq.served));
	now = cq.due_at;
	complete(2);
	dofi_cq_sleep_begin(&cq);
	cr_expect(was_woken());
	serve();
	cr_expect(armed());
	cr_expect_eq(delivered, 2);
}

/* A thread that polls once, and then spins or sleeps until the test ends it. */
static sem_t has_polled;
static _Atomic bool poller_may_end;
static sem_t poller_may_wake;

static void *poll_and_run(void *unused)
{
	poll_in_loop();
	sem_post(&has_polled);
	while (!atomic_load(&poller_may_end))
		;
	return unused;
}

static void *poll_and_sleep(void *unused)
{
	poll_in_loop();
	sem_post(&has_polled);
	sem_wait(&poller_may_wake);
	return unused;
}

/*
 * The program has the CQ, and the next look is due, after a look that found a poll of the thread
 * that runs @run.
 */
static pthread_t polled_by(void *(*run)(void *))
{
	pthread_t thread;

	make_owned();
	sem_init(&has_polled, 0, 0);
	sem_init(&poller_may_wake, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
	sem_wait(&has_polled);
	now = cq.due_at;
	serve();
	cr_assert(!armed());
	now = cq.due_at;
	return thread;
}

static void poller_end(pthread_t thread)
{
	atomic_store(&poller_may_end, true);
	sem_post(&poller_may_wake);
	pthread_join(thread, NULL);
}

Test(cq_serve, a_poller_that_lacks_a_processor_is_waited_for)
{
	pthread_t thread = polled_by(poll_and_run);

	dofi_settings.probe_us = 1000000;	/* the thread has had less */
	complete(1);
	serve();
	cr_expect(!armed());
	cr_expect_eq(fake_unread(), 0, "the look reads for peers that may wait");
	poller_end(thread);
}

Test(cq_serve, a_poller_that_does_something_else_is_not_waited_for)
{
	pthread_t thread = polled_by(poll_and_run);
	const int64_t before = cq.last_reader.ran;

	dofi_settings.probe_us = 100;
	while (dofi_polling_thread_ran(&cq.last_reader) < 100 * US)
		cq.last_reader.ran = before;
	cq.last_reader.ran = before;
	serve();
	cr_expect(armed());
	poller_end(thread);
}

static bool poller_sleeps(void)
{
	return !dofi_polling_thread_is_runnable(&cq.last_reader);
}

Test(cq_serve, a_poller_that_sleeps_is_not_waited_for)
{
	pthread_t thread = polled_by(poll_and_sleep);

	dofi_settings.probe_us = 1000000;
	while (!poller_sleeps())
		sched_yield();
	serve();
	cr_expect(armed());
	poller_end(thread);
}

/* A CQ of several shards. The first is the fake queue that tests fill. */

Test(cq_serve_shards, epoll_reports_the_next_completion_of_any)
{
	serve();
	dofi_cq_enter_shard(&cq);
	cr_expect(dofi_cq_due(&cq) <= now, "it is armed anew at once");
	serve();
	cr_expect(armed());
	cr_expect(!epoll_fires());
	complete(1);
	cr_expect(epoll_fires());
	serve();
	cr_expect_eq(delivered, 1);
}

Test(cq_serve_shards, epoll_reports_nothing_while_the_program_polls)
{
	dofi_cq_enter_shard(&cq);
	make_owned();
	complete(1);
	cr_expect(!epoll_fires());
	now = cq.due_at;
	serve();
	cr_expect(armed());
	cr_expect_eq(fake_unread(), 0);
}
