/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which thread reads a completion queue, and that no completion is lost. No progress thread: the
 * test passes the time.
 */

#include "fab/cq.h"

#include "base/clock.h"
#include "base/env.h"
#include "fab/cq_serve.h"
#include "fab/fake.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define US 1000LL

static struct dofi_progress progress;
static struct dofi_cq cq;
static int64_t now = 1000000000;

static unsigned delivered, out_of_order;
static uintptr_t next_context = 1;
static int last_err;
static struct dofi_sink *last_sink;

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if ((uintptr_t)entry->op_context != ++delivered)
		out_of_order++;
	last_err = err;
	last_sink = sink;
}

static unsigned sweeps, idle_sweeps;

/* The sweep callback: the fabric still takes nothing for the first idle_sweeps sweeps. */
static void swept(struct dofi_cq *q)
{
	cr_assert(q == &cq && !dofi_mutex_try(&q->lock));
	cr_expect_eq(fake_unread(), 0);
	sweeps++;
	if (idle_sweeps) {
		idle_sweeps--;
		dofi_cq_want_sweep(q);
	}
}

static const struct dofi_progress_ops ops = { .completed = completed, .swept = swept };

static void init(void)
{
	fake_init();
	dofi_settings_read();
	dofi_settings.probe_us = 100;
	dofi_settings.tick_us = 1000;
	progress.ops = &ops;
	progress.fabric = &fake.fabric;
	progress.owner = getpid();
	progress.doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.pollers);
	STAILQ_INIT(&progress.work);
	dofi_cq_init(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
}

static void complete(unsigned n)
{
	while (n--)
		fake_complete((void *)next_context++, 0);
}

static enum dofi_cq_mode mode(void)
{
	return (enum dofi_cq_mode)cq.mode;
}

/* Runs the handler of a source that epoll reports. Returns whether epoll reported one. */
static bool epoll_fires(void)
{
	struct epoll_event ev;

	if (epoll_wait(progress.epfd, &ev, 1, 0) != 1)
		return false;
	((struct dofi_source *)ev.data.ptr)->ready(ev.data.ptr);
	return true;
}

/* One round of the progress thread at the time now. */
static void serve(void)
{
	dofi_cq_serve(&cq, now);
}

static void poll_once(void)
{
	dofi_cq_poll(&cq, NULL);
}

/* Like a caller that polls again while more than one completion is outstanding. */
static void poll_next(void)
{
	dofi_cq_poll_next(&cq);
	dofi_mutex_lock(&cq.lock);
	dofi_cq_expect(&cq);
	dofi_mutex_unlock(&cq.lock);
}

static bool doorbell_rang(void)
{
	uint64_t n;

	return read(progress.doorbell, &n, sizeof(n)) == sizeof(n);
}

/* The CQ was ARMED after the first round, and epoll fired while the program polled. */
static void make_probed(void)
{
	serve();
	complete(1);
	poll_once();
	complete(1);
	cr_assert(epoll_fires());
	serve();
	cr_assert_eq(mode(), DOFI_CQ_PROBED);
}

static void make_owned(void)
{
	make_probed();
	poll_once();
	now = cq.due_at;
	serve();
	cr_assert_eq(mode(), DOFI_CQ_OWNED);
}

TestSuite(cq, .init = init);

Test(cq, is_armed_in_the_first_round)
{
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect(!epoll_fires());
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq, what_came_before_arming_is_delivered)
{
	complete(3);
	serve();
	cr_expect_eq(delivered, 3);
}

Test(cq, idle_and_armed_is_left_alone)
{
	serve();
	fake.cq_reads = 0;
	serve();
	serve();
	cr_expect_eq(fake.cq_reads, 0);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

Test(cq, epoll_reports_once_until_armed_again)
{
	serve();
	complete(1);
	cr_expect(epoll_fires());
	cr_expect(!epoll_fires());
	serve();
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq, served_at_once_when_no_thread_polls)
{
	serve();
	complete(1);
	epoll_fires();
	serve();
	cr_expect_eq(delivered, 1);
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, left_for_a_moment_when_the_program_polled)
{
	make_probed();
	cr_expect_eq(delivered, 1);
	cr_expect_eq(cq.due_at, now + 100 * US);
	cr_expect_eq(dofi_cq_due(&cq), now + 100 * US);
}

Test(cq, a_poll_long_ago_does_not_keep_it)
{
	make_probed();
	now += 100 * US;
	serve();
	cr_expect_eq(delivered, 2);
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, probed_waits_its_moment)
{
	make_probed();
	now += 100 * US - 1;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_PROBED);
	cr_expect_eq(delivered, 1);
}

Test(cq, owned_while_the_program_still_polls)
{
	make_owned();
	cr_expect_eq(cq.due_at, now + 125 * US);
}

Test(cq, a_read_that_lasts_is_a_poll)
{
	make_probed();
	now = cq.due_at;
	dofi_mutex_lock(&cq.lock);		/* another thread is in dofi_cq_poll() */
	serve();
	dofi_mutex_unlock(&cq.lock);
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(delivered, 1);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, 2);
}

/* The program takes events that the progress thread has read, so it need not poll. */
Test(cq, a_program_that_takes_events_is_at_work)
{
	serve();
	complete(1);
	cr_assert(epoll_fires());
	dofi_cq_taken(&cq);
	serve();
	cr_expect_eq(mode(), DOFI_CQ_PROBED);
	dofi_cq_taken(&cq);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(cq.due_at, now + 125 * US);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, a_program_that_only_posts_is_read_for)
{
	make_owned();
	complete(2);
	dofi_cq_posted(&cq);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(delivered, next_context - 1);
}

/* One look after a poll. Returns the next pause in us. */
static long pause_after_poll(void)
{
	poll_once();
	now = cq.due_at;
	serve();
	return (cq.due_at - now) / US;
}

Test(cq, checks_become_rarer_while_the_program_polls)
{
	long pause, last = 125;
	int i;

	make_owned();
	for (i = 0; (pause = pause_after_poll()) < 4000; i++) {
		cr_assert(pause > last && pause <= last * 5 / 4 + 1, "%ld after %ld", pause, last);
		last = pause;
	}
	cr_expect(i > 10);
	cr_expect_eq(pause_after_poll(), 4000);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	complete(1);
	poll_once();
	complete(1);
	epoll_fires();
	serve();
	cr_expect_eq(cq.due_at, now + 2000 * US);	/* half of the last pause */
	cr_expect_eq(pause_after_poll(), 2500);
}

Test(cq, and_are_rare_from_the_beginning_where_no_peer_depends_on_them)
{
	cq.offloaded = true;
	make_owned();
	cr_expect_eq(pause_after_poll(), 64000);
	cr_expect_eq(pause_after_poll(), 64000);
}

/* A look that finds posts, but no poll since the previous look. */
static void check_after_post(void)
{
	dofi_cq_posted(&cq);
	now = cq.due_at;
	serve();
}

/* Looks until the CQ is served as for a program that sleeps. Returns the number of looks. */
static int checks_until_armed(void)
{
	int looks = 0;

	while (mode() != DOFI_CQ_ARMED && looks < 20) {
		check_after_post();
		looks++;
	}
	return looks;
}

/* The program waits for its peer by reading memory. */
Test(cq, a_program_that_posts_and_never_polls_is_served_at_once)
{
	make_owned();
	cr_expect_eq(checks_until_armed(), 4);
	complete(1);
	cr_assert(epoll_fires());
	dofi_cq_posted(&cq);
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(fake_unread(), 0);
}

Test(cq, while_it_may_poll_again_checks_after_posts_come_soon)
{
	make_owned();
	while (pause_after_poll() < 1000)
		;
	check_after_post();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(cq.due_at, now + 100 * US);
}

Test(cq, a_poll_now_and_then_does_not_change_that_it_is_served)
{
	int i;

	make_owned();
	checks_until_armed();
	for (i = 0; i < 20; i++) {
		complete(1);
		cr_assert(epoll_fires());
		dofi_cq_posted(&cq);
		if (i > 3 && i % 4 == 0)
			poll_once();
		serve();
		cr_assert_eq(mode(), DOFI_CQ_ARMED, "%d", i);
	}
}

Test(cq, a_program_that_polls_again_gets_it_back)
{
	int i;

	make_owned();
	checks_until_armed();
	for (i = 0; i < 20 && mode() == DOFI_CQ_ARMED; i++) {
		complete(1);
		cr_assert(epoll_fires());
		poll_once();
		serve();
	}
	cr_expect_eq(mode(), DOFI_CQ_PROBED);
	cr_expect(i < 8);
}

/* The leader reads what arrives next, so the CQ is not armed at once. */
Test(cq, a_cq_that_had_a_leader_is_left_for_a_tick)
{
	serve();
	complete(1);
	cr_assert(epoll_fires());
	cq.led = true;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_PROBED);
	cr_expect_eq(cq.due_at, now + 1000 * US);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, where_hardware_moves_the_data_posts_alone_need_no_checks)
{
	cq.offloaded = true;
	make_owned();
	check_after_post();
	cr_expect_eq(cq.due_at, now + 64000 * US);
	check_after_post();
	check_after_post();
	check_after_post();
	check_after_post();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
}

Test(cq, with_a_sleeper_uses_do_not_count)
{
	make_owned();
	dofi_cq_sleep_begin(&cq);
	dofi_cq_posted(&cq);
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, owned_costs_no_read)
{
	int i;

	make_owned();
	fake.cq_reads = 0;
	for (i = 0; i < 10; i++) {
		poll_once();
		now = cq.due_at;
		serve();
		cr_assert_eq(mode(), DOFI_CQ_OWNED);
	}
	cr_expect_eq(fake.cq_reads, 10);	/* all of them are the program's */
}

/* Otherwise every packet would wake epoll, only to be ignored. */
Test(cq, what_the_program_owns_epoll_does_not_know)
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

Test(cq, without_memory_to_watch_with_it_is_checked_again)
{
	struct epoll_event ev = { .events = 0 };

	make_owned();
	complete(1);
	/* Makes the next ADD fail. */
	cr_assert_eq(epoll_ctl(progress.epfd, EPOLL_CTL_ADD, cq.fd, &ev), 0);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(cq.due_at, now + 1000 * US);
	cr_assert_eq(epoll_ctl(progress.epfd, EPOLL_CTL_DEL, cq.fd, NULL), 0);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq, comes_back_when_the_program_stops_polling)
{
	make_owned();
	complete(5);
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(fake_unread(), 0);
	complete(1);
	cr_expect(epoll_fires());
}

Test(cq, a_sleeper_takes_it_from_a_poller)
{
	make_owned();
	complete(1);
	poll_once();
	complete(1);
	dofi_cq_sleep_begin(&cq);
	cr_expect(doorbell_rang());
	serve();	/* long before look_at */
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(fake_unread(), 0);
}

Test(cq, a_sleeper_takes_it_from_a_probe)
{
	make_probed();
	dofi_cq_sleep_begin(&cq);
	cr_expect(doorbell_rang());
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, 2);
}

Test(cq, an_armed_queue_needs_no_wakeup)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	cr_expect(!doorbell_rang());
}

Test(cq, with_a_sleeper_polls_do_not_count)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	complete(1);
	poll_once();
	complete(1);
	epoll_fires();
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, 2);
}

Test(cq, polls_count_again_after_the_last_sleeper)
{
	serve();
	dofi_cq_sleep_begin(&cq);
	dofi_cq_sleep_begin(&cq);
	dofi_cq_sleep_end(&cq);
	dofi_cq_sleep_end(&cq);
	make_probed();
}

Test(cq, does_not_sleep_on_what_it_did_not_see)
{
	complete(3);
	fake.fault.trywait = 2;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, 3);
	cr_expect_eq(fake.trywaits, 3);
}

Test(cq, traffic_that_outruns_it_is_read_again_at_once)
{
	fake.fault.trywait = 1000;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect(dofi_cq_due(&cq) <= now);
	cr_expect(fake.trywaits < 100);
	fake.fault.trywait = 0;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
}

Test(cq, batches_of_every_size_are_delivered_in_order)
{
	unsigned n, all = 0;

	serve();
	for (n = 0; n < 70; n++) {
		complete(n);
		all += n;
		dofi_cq_drain(&cq);
		cr_assert_eq(delivered, all);
	}
	cr_expect_eq(out_of_order, 0);
}

/* No event would report a completion that the poll leaves in the queue. */
Test(cq, one_poll_reads_all)
{
	complete(40);
	poll_once();
	cr_expect_eq(delivered, 40);
}

Test(cq, poll_next_reads_one)
{
	make_owned();
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(fake_unread(), 2);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(out_of_order, 0);
}

/* The last poll has delivered one completion and has read @n more. */
static void read_ahead(unsigned n)
{
	make_owned();
	poll_next();
	complete(n + 1);
	delivered = next_context - n - 2;
	poll_next();
	cr_assert_eq(fake_unread(), 0);
	cr_assert_eq(cq.left, n);
	cr_assert_eq(delivered, next_context - n - 1);
}

Test(cq, after_expect_poll_next_reads_several_and_delivers_one)
{
	unsigned reads;

	read_ahead(3);
	reads = fake.cq_reads;
	complete(1);
	poll_next();
	poll_next();
	poll_next();
	cr_expect_eq(fake.cq_reads, reads);
	poll_next();
	cr_expect_eq(fake.cq_reads, reads + 1);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, after_an_empty_read_poll_next_reads_one)
{
	make_owned();
	poll_next();
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(cq.left, 2);
	while (cq.left)
		dofi_cq_poll_next(&cq);
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(cq.left, 0);
	cr_expect_eq(fake_unread(), 2);
}

Test(cq, what_was_left_comes_before_what_is_there)
{
	read_ahead(3);
	complete(4);
	poll_once();
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, what_was_left_is_something)
{
	read_ahead(1);
	cr_expect(dofi_cq_drain(&cq));
	cr_expect(!dofi_cq_drain(&cq));
	cr_expect_eq(delivered, next_context - 1);
}

Test(cq, with_what_was_left_a_read_brings_a_batch)
{
	read_ahead(DOFI_CQ_BATCH - 1);
	complete(40);
	poll_once();
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, what_was_left_is_drained_with_the_rest)
{
	read_ahead(3);
	complete(2);
	cr_expect(dofi_cq_drain(&cq));
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, what_was_left_is_not_forgotten_when_the_program_stops_polling)
{
	read_ahead(3);
	now = cq.due_at;
	serve();
	now = cq.due_at;
	serve();
	cr_assert_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, nor_when_a_thread_sleeps)
{
	read_ahead(3);
	dofi_cq_sleep_begin(&cq);
	cr_expect(doorbell_rang());
	serve();
	cr_expect_eq(delivered, next_context - 1);
	dofi_cq_sleep_end(&cq);
}

Test(cq, an_error_stays_behind_what_was_left)
{
	read_ahead(1);
	fake_complete((void *)next_context++, FI_ECANCELED);
	poll_next();
	cr_expect_eq(last_err, 0);
	poll_next();
	cr_expect_eq(last_err, FI_ECANCELED);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, a_poll_passes_what_was_left_before_an_error)
{
	read_ahead(2);
	fake_complete((void *)next_context++, FI_ECANCELED);
	poll_once();
	poll_once();
	cr_expect_eq(last_err, FI_ECANCELED);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, what_was_left_ends_with_the_queue)
{
	unsigned before;

	read_ahead(3);
	before = delivered;
	dofi_cq_close(&cq);
	poll_once();
	dofi_cq_poll_next(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, before);
}

Test(cq, all_where_no_signal_would_follow)
{
	serve();
	cr_assert_eq(mode(), DOFI_CQ_ARMED);
	complete(40);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 40);
}

Test(cq, one_poll_reads_all_behind_an_error)
{
	complete(5);
	fake_complete((void *)next_context++, FI_ECANCELED);
	complete(20);
	poll_once();
	cr_expect_eq(delivered, 26);
	cr_expect_eq(out_of_order, 0);
}

/*
 * While the progress thread is due to look again, a poll does one read and may leave completions
 * behind an error.
 */
Test(cq, completions_after_an_error_come_with_the_next_read)
{
	poll_once();
	cq.poller.fired = true;
	serve();
	cr_assert_eq(mode(), DOFI_CQ_PROBED);
	complete(5);
	fake_complete((void *)next_context++, FI_ECANCELED);
	poll_once();
	cr_expect_eq(delivered, 5);
	now += dofi_settings.probe_us * US;
	serve();	/* the program polled since the last look */
	now += dofi_settings.tick_us * US;
	serve();
	cr_expect_eq(delivered, 6);
	cr_expect_eq(last_err, FI_ECANCELED);
}

/* With net of libfabric 1.17 the progress thread would spin forever if the signal stayed. */
Test(cq, a_stale_signal_is_cleared)
{
	fake.fault.stale_signal = true;
	progress.traits.stale_signal = true;
	serve();
	complete(3);
	cr_assert(epoll_fires());
	serve();
	cr_expect_eq(delivered, 3);
	cr_assert(epoll_fires());	/* with nothing to read */
	serve();
	cr_expect(!epoll_fires());
	complete(1);
	cr_assert(epoll_fires());
	serve();
	cr_expect_eq(delivered, 4);
}

/* The operation may have failed because its connection ended, which the event queue reports. */
Test(cq, a_failed_completion_makes_the_event_queue_due)
{
	serve();
	fake_complete((void *)1, -FI_ECANCELED);
	poll_once();
	cr_expect(!progress.eq_wanted, "it is watched");
	doorbell_rang();
	progress.eq_away = true;
	fake_complete((void *)2, -FI_ECANCELED);
	poll_once();
	cr_expect(progress.eq_wanted);
	cr_expect(doorbell_rang());
	fake_complete((void *)3, -FI_ECANCELED);
	poll_once();
	cr_expect(!doorbell_rang(), "once is enough");
}

Test(cq, a_probe_ends_the_programs_time_early)
{
	serve();
	dofi_settings.tick_us = 1000000;
	make_owned();
	cr_assert_eq(mode(), DOFI_CQ_OWNED);
	cr_assert(dofi_cq_due(&cq) > now + 100 * US);
	dofi_cq_probe(&cq, now);
	cr_expect_eq(dofi_cq_due(&cq), now + 100 * US);
	now += 100 * US;
	poll_once();
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED, "it still polls");
	dofi_cq_probe(&cq, now);
	now += 100 * US;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	dofi_cq_probe(&cq, now);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

/* epoll is not used because it would not report the error. */
Test(cq, silent_errors_reach_sleepers)
{
	cq.silent_errors = true;
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

Test(cq, a_signal_of_a_completion_costs_no_wait)
{
	progress.traits.stale_signal = true;
	serve();
	complete(1);
	fake.cq_sreads = 0;
	serve();
	cr_expect_eq(fake.cq_sreads, 0);	/* armed, and nothing fired */
	cr_assert(epoll_fires());
	serve();
	cr_expect_eq(delivered, 1);
	cr_expect_eq(fake.cq_sreads, 0);	/* found a completion, so no wait is needed */
}

Test(cq, other_fabrics_never_wait_in_a_read)
{
	serve();
	complete(1);
	cr_assert(epoll_fires());
	serve();
	cr_expect_eq(fake.cq_sreads, 0);
}

Test(cq, a_poller_gives_its_sink)
{
	struct dofi_sink *mine = (struct dofi_sink *)&cq;

	complete(1);
	dofi_cq_poll(&cq, mine);
	cr_expect_eq(last_sink, mine);
	complete(1);
	dofi_cq_drain(&cq);
	cr_expect(!last_sink);
}

Test(cq, errors_have_their_place_among_the_rest)
{
	int i;

	for (i = 0; i < 60; i++)
		fake_complete((void *)next_context++, i % 7 ? 0 : FI_ECANCELED);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 60);
	cr_expect_eq(out_of_order, 0);
}

Test(cq, errors_are_positive_whatever_the_fabric_says)
{
	fake_complete((void *)next_context++, -FI_ECANCELED);
	poll_once();
	cr_expect_eq(last_err, FI_ECANCELED);
	fake_complete((void *)next_context++, FI_ETRUNC);
	poll_once();
	cr_expect_eq(last_err, FI_ETRUNC);
}

/* The fabric reports one error code for all of them: see wc.h. */
Test(cq, the_status_of_verbs_is_delivered)
{
	fake.completion[0] = (struct fake_completion){
		.entry.op_context = (void *)1, .err = FI_EIO, .prov_errno = 10,
	};
	fake.cq_tail = 1;
	cq.wc_errors = true;
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(last_err, FI_EKEYREJECTED);
}

Test(cq, an_error_that_cannot_be_read_ends_the_drain, .timeout = 20)
{
	fake_complete((void *)next_context++, FI_EIO);
	fake.fault.cq_readerr = -FI_EAGAIN;
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 0);
}

static _Atomic unsigned yields;

/* Replaces libc's sched_yield(), to count the calls. */
int sched_yield(void)
{
	yields++;
	return syscall(SYS_sched_yield);
}

static void poll_next_once(void)
{
	dofi_cq_poll_next(&cq);
}

/* A polling thread may keep the processor from the thread that has the lock. */
static void gives_way(void (*poll)(void))
{
	const unsigned polls = 6400;

	yields = 0;
	dofi_mutex_lock(&cq.lock);
	for (unsigned i = 0; i < polls; i++)
		poll();
	dofi_mutex_unlock(&cq.lock);
	cr_expect_eq(yields, polls / 64);
}

Test(cq, a_polling_thread_yields_to_the_reader)
{
	gives_way(poll_once);
	gives_way(poll_next_once);
}

Test(cq, a_reading_thread_does_not_yield)
{
	yields = 0;
	for (int i = 0; i < 200; i++) {
		complete(i % 2);
		poll_once();
		poll_next_once();
	}
	cr_expect_eq(yields, 0);
	cr_expect_eq(delivered, 100);
}

static void *poll_in_thread(void *arg)
{
	(void)arg;
	poll_once();
	return NULL;
}

Test(cq, a_poll_leaves_it_to_the_thread_that_reads, .timeout = 20)
{
	pthread_t thread;

	complete(1);
	dofi_mutex_lock(&cq.lock);
	pthread_create(&thread, NULL, poll_in_thread, NULL);
	pthread_join(thread, NULL);
	dofi_mutex_unlock(&cq.lock);
	cr_expect_eq(delivered, 0);
}

Test(cq, a_poll_after_the_close_is_harmless)
{
	dofi_cq_close(&cq);
	complete(1);
	poll_once();
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 0);
	cr_expect_eq(fake.open, 0);
}

Test(cq, can_be_opened_again)
{
	dofi_cq_close(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	complete(2);
	serve();
	cr_expect_eq(delivered, 2);
}

Test(cq, is_gone_even_if_the_fabric_refuses_to_close)
{
	fake.fault.cq_close = -FI_EBUSY;
	dofi_cq_close(&cq);
	cr_expect(!cq.fid);
	cr_expect(TAILQ_EMPTY(&progress.pollers));
}

/* Opening */

static void refuses_to_open(int expected)
{
	dofi_cq_close(&cq);
	fake.open = 0;
	if (expected)
		cr_expect_eq(dofi_cq_open(&cq, &progress, &fake.domain), expected);
	cr_expect_eq(fake.open, 0);
	cr_expect(TAILQ_EMPTY(&progress.pollers));
	cr_expect(!cq.fid);
}

Test(cq, without_a_queue_there_is_an_error)
{
	fake.fault.cq_open = -FI_ENOMEM;
	refuses_to_open(-FI_ENOMEM);
}

Test(cq, without_a_descriptor_it_is_closed_again)
{
	fake.fault.cq_control = -FI_ENOSYS;
	refuses_to_open(-FI_ENOSYS);
}

Test(cq, without_epoll_it_is_closed_again)
{
	fake.fault.cq_fd_bad = true;
	refuses_to_open(-EPERM);
}

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
				poll_next();
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
		cr_assert_eq(fake_unread() + cq.left, 0, "round %u, mode %d", round, mode());
		cr_assert_eq(out_of_order, 0);
		while (sleepers--)
			dofi_cq_sleep_end(&cq);
	}
	cr_expect_eq(delivered, next_context - 1);
}

Test(cq, nothing_is_lost_in_any_order)
{
	nothing_is_lost();
}

/* A serial CQ never calls the fabric without the access lock. */

static void init_serial(void)
{
	init();
	dofi_cq_close(&cq);
	cq.serial = true;
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	fake.guard = &cq.access;
}

static void fini_serial(void)
{
	cr_expect(fake.cq_reads > 0);
	cr_expect_eq(fake.unguarded, 0);
	cr_expect(dofi_mutex_try(&cq.access), "and is left unlocked");
}

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

Test(cq_serial, a_stale_signal_is_cleared)
{
	fake.fault.stale_signal = progress.traits.stale_signal = true;
	serve();
	complete(1);
	cr_assert(epoll_fires());
	serve();
	cr_assert(epoll_fires());
	serve();
	cr_expect(fake.cq_sreads > 0);
	cr_expect_eq(delivered, 1);
}

/* Only a serial CQ needs the access lock. */
Test(cq, others_call_the_fabric_without_a_lock)
{
	fake.guard = &cq.access;
	complete(1);
	poll_once();
	cr_expect_eq(fake.unguarded, (int)fake.cq_reads);
}

/*
 * Several threads poll while the progress thread serves the queue: each completion is delivered
 * once and in order.
 */

enum { MANY = 3000 };

static _Atomic bool all_done;

static void *poll_until_done(void *arg)
{
	void (*const poll)(void) = arg ? poll_next : poll_once;

	while (!all_done) {
		poll();
		sched_yield();
	}
	return NULL;
}

Test(cq, threads_that_poll_and_serve_share_it)
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

Test(cq, a_queue_that_cannot_be_read_is_reported)
{
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(progress.failure, 0);
	fake.fault.cq_read = -FI_EIO;
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(progress.failure, -FI_EIO);
	fake.fault.cq_read = -FI_EOTHER;
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(progress.failure, -FI_EIO, "the first counts");
	cr_expect_eq(STAILQ_FIRST(&progress.work), &progress.failure_work);
	fake.fault.cq_read = 0;
}

/* Sweeps: the fabric did not take something and must be tried again */

Test(cq, any_reader_sweeps_if_wanted)
{
	serve();
	poll_once();
	dofi_cq_drain(&cq);
	cr_expect_eq(sweeps, 0);
	dofi_cq_want_sweep(&cq);
	complete(3);
	poll_once();
	cr_expect_eq(sweeps, 1);
	poll_once();
	cr_expect_eq(sweeps, 1);
	dofi_cq_want_sweep(&cq);
	dofi_cq_want_sweep(&cq);
	dofi_cq_drain(&cq);
	cr_expect_eq(sweeps, 2);
}

Test(cq, a_sweep_that_fails_is_repeated)
{
	idle_sweeps = 2;
	dofi_cq_want_sweep(&cq);
	poll_once();
	poll_once();
	poll_once();
	poll_once();
	cr_expect_eq(sweeps, 3);
}

/*
 * A wakeup is a system call, so a request for a sweep makes one only if the progress thread sleeps,
 * and not again until the sweep has succeeded.
 */
Test(cq, a_wanted_sweep_wakes_the_progress_thread)
{
	serve();
	idle_sweeps = 1;
	dofi_cq_want_sweep(&cq);
	cr_expect(doorbell_rang());
	dofi_cq_want_sweep(&cq);
	poll_once();
	cr_expect(!doorbell_rang());
	poll_once();
	cr_expect_eq(sweeps, 2);
	dofi_cq_want_sweep(&cq);
	cr_expect(doorbell_rang());
}

Test(cq, a_wanted_sweep_does_not_disturb_a_reader)
{
	make_owned();
	dofi_cq_want_sweep(&cq);
	cr_expect(!doorbell_rang());
	poll_once();
	cr_expect_eq(sweeps, 1);
}

Test(cq, a_wanted_sweep_is_made_every_tick)
{
	serve();
	idle_sweeps = 1;
	dofi_cq_want_sweep(&cq);
	cr_expect_eq(dofi_cq_due(&cq), now + 1000 * US);
	now += 1000 * US - 1;
	serve();
	cr_expect_eq(sweeps, 0);
	now++;
	serve();
	cr_expect_eq(sweeps, 1);
	cr_expect_eq(dofi_cq_due(&cq), now + 1000 * US);
	now += 1000 * US;
	serve();
	cr_expect_eq(sweeps, 2);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
}

Test(cq, what_is_closed_is_not_swept)
{
	dofi_cq_want_sweep(&cq);
	dofi_cq_close(&cq);
	poll_once();
	dofi_cq_drain(&cq);
	cr_expect_eq(sweeps, 0);
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	serve();
	cr_expect_eq(sweeps, 0);
}

/* Without a descriptor */

static void open_without_fd(void)
{
	dofi_cq_close(&cq);
	fake.fault.no_cq_fd = true;
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	cr_expect_eq(cq.fd, -1);
}

Test(cq, without_a_descriptor_it_is_armed_all_the_same)
{
	open_without_fd();
	complete(3);
	serve();
	cr_expect_eq(delivered, 3);
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
	cr_expect_eq(fake.trywaits, 0);
	cr_expect(dofi_poller_relies_on_peer(&cq.poller));
	dofi_cq_close(&cq);
	cr_expect_eq(fake.open, 0);
}

Test(cq, without_a_descriptor_the_program_owns_it_when_it_polls)
{
	open_without_fd();
	serve();
	poll_once();
	cq.poller.fired = true;	/* as after the progress thread slept */
	serve();
	cr_expect_eq(mode(), DOFI_CQ_PROBED);
	cr_expect(!dofi_poller_relies_on_peer(&cq.poller));
	now = cq.due_at;
	complete(2);
	dofi_cq_sleep_begin(&cq);
	cr_expect(doorbell_rang());
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(delivered, 2);
}

/* A thread that polls once, and then spins or sleeps until the test ends it. */
static sem_t has_polled;
static _Atomic bool poller_may_end;
static sem_t poller_may_wake;

static void *poll_and_run(void *unused)
{
	poll_once();
	sem_post(&has_polled);
	while (!atomic_load(&poller_may_end))
		;
	return unused;
}

static void *poll_and_sleep(void *unused)
{
	poll_once();
	sem_post(&has_polled);
	sem_wait(&poller_may_wake);
	return unused;
}

/* The CQ is OWNED and the next look is due, after a look that found a poll of the thread that runs @run. */
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
	cr_assert_eq(mode(), DOFI_CQ_OWNED);
	now = cq.due_at;
	return thread;
}

static void poller_end(pthread_t thread)
{
	atomic_store(&poller_may_end, true);
	sem_post(&poller_may_wake);
	pthread_join(thread, NULL);
}

Test(cq, a_poller_that_lacks_a_processor_is_waited_for)
{
	pthread_t thread = polled_by(poll_and_run);

	dofi_settings.probe_us = 1000000;	/* the thread has had less */
	complete(1);
	serve();
	cr_expect_eq(mode(), DOFI_CQ_OWNED);
	cr_expect_eq(fake_unread(), 0, "the look reads for peers that may wait");
	poller_end(thread);
}

Test(cq, a_poller_that_does_something_else_is_not_waited_for)
{
	pthread_t thread = polled_by(poll_and_run);
	const int64_t before = cq.runner.ran;

	dofi_settings.probe_us = 100;
	while (dofi_runner_ran(&cq.runner) < 100 * US)
		cq.runner.ran = before;
	cq.runner.ran = before;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	poller_end(thread);
}

static bool poller_sleeps(void)
{
	return !dofi_runner_is_runnable(&cq.runner);
}

Test(cq, a_poller_that_sleeps_is_not_waited_for)
{
	pthread_t thread = polled_by(poll_and_sleep);

	dofi_settings.probe_us = 1000000;
	while (!poller_sleeps())
		sched_yield();
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	poller_end(thread);
}

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

static const struct dofi_cq_guard_ops guard_ops = { .try_again = guard_try_again, .lock = guard_lock };
static struct dofi_cq_guard guard = { .ops = &guard_ops, .holder = &holder, .self = 1, .sent = &sent };
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

Test(cq, a_poll_does_not_wait_for_the_guard_but_a_drain_does)
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

Test(cq, with_a_guard_a_poll_reads_when_there_may_be_something)
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

Test(cq, with_a_guard_a_read_that_found_some_is_repeated_later)
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
	cr_expect_eq(delivered, before + 2 + DOFI_CQ_BATCH, "a full batch is followed by another read");
	dofi_cq_close(&cq);
}

/* A poll that found the guard locked does not ask for it again until its holder has sent. */
Test(cq, with_a_guard_a_refused_poll_comes_back_later)
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
Test(cq, with_a_guard_polls_that_are_refused_in_a_row_wait_for_it)
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

Test(cq, without_any_queue_there_is_an_error)
{
	fake.fault.no_cq_fd = true;
	fake.fault.cq_open = -FI_ENOMEM;
	refuses_to_open(-FI_ENOMEM);
}

/* A CQ of several shards. The first is the fake queue that tests fill. */

static void init_shards(void)
{
	unsigned i;

	init();
	cq.reads_each = true;
	for (i = 0; i < DOFI_SHARD_ENDPOINTS; i++)
		cr_assert(dofi_cq_enter_shard(&cq) == &cq.first);
}

TestSuite(cq_shards, .init = init_shards);

Test(cq_shards, one_more_endpoint_makes_another)
{
	struct dofi_shard *second;

	cr_expect(!cq.several);
	second = dofi_cq_enter_shard(&cq);
	cr_expect(second != &cq.first && second->fid != cq.fid && second->endpoints == 1);
	cr_expect(cq.several);
	cr_expect(dofi_cq_enter_shard(&cq) == second);
}

Test(cq_shards, without_reads_each_there_is_one)
{
	cq.reads_each = false;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect(!cq.several);
}

Test(cq_shards, what_an_endpoint_leaves_needs_no_other)
{
	dofi_cq_leave_shard(&cq, &cq.first);
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect(!cq.several);
}

Test(cq_shards, without_another_they_share)
{
	fake.fault.cq_open = -FI_EMFILE;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	complete(1);
	poll_once();
	cr_expect_eq(delivered, 1);
	fake.fault.cq_open = 0;
	cr_expect(dofi_cq_enter_shard(&cq) != &cq.first, "now there is one");
}

Test(cq_shards, one_without_a_usable_descriptor_is_closed_again)
{
	const int before = fake.open;

	fake.fault.cq_fd_bad = true;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect_eq(fake.open, before);
}

Test(cq_shards, polls_find_what_came_in_order)
{
	complete(2);
	dofi_cq_enter_shard(&cq);
	complete(40);
	poll_once();
	while (fake_unread())
		poll_next();
	cr_expect_eq(delivered, 42);
	cr_expect_eq(out_of_order, 0);
}

/* Completions that a poll read and did not deliver come before those in the shards. */
Test(cq_shards, what_was_left_comes_first)
{
	make_owned();
	poll_next();
	complete(5);
	poll_next();
	cr_assert(cq.left);
	dofi_cq_enter_shard(&cq);
	complete(3);
	while (fake_unread() || cq.left)
		poll_next();
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

/* A further shard with one failed completion. */
static bool has_failed = true;

static ssize_t failed_read(struct fid_cq *fid, void *buf, size_t count)
{
	(void)fid;
	(void)buf;
	(void)count;
	return has_failed ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t failed_readerr(struct fid_cq *fid, struct fi_cq_err_entry *e, uint64_t flags)
{
	(void)fid;
	(void)flags;
	has_failed = false;
	e->op_context = (void *)next_context++;
	e->err = FI_EIO;
	return 1;
}

Test(cq_shards, an_error_is_read_where_it_is)
{
	static struct fi_ops_cq failed_ops = {
		.size = sizeof(failed_ops), .read = failed_read, .readerr = failed_readerr,
	};
	static struct fid_cq failed = { .ops = &failed_ops };

	dofi_cq_enter_shard(&cq);
	cr_assert_eq(dofi_shards_add(cq.shards, &failed, eventfd(0, EFD_NONBLOCK)), 0);
	poll_once();
	cr_expect_eq(delivered, 1);
	cr_expect_eq(last_err, FI_EIO);
}

Test(cq_shards, a_poll_that_finds_nothing_reads_none)
{
	dofi_cq_enter_shard(&cq);
	poll_once();
	fake.cq_reads = 0;
	poll_once();
	poll_next();
	cr_expect_eq(fake.cq_reads, 0);
}

Test(cq_shards, epoll_reports_the_next_completion_of_any)
{
	serve();
	dofi_cq_enter_shard(&cq);
	cr_expect(dofi_cq_due(&cq) <= now, "it is armed anew at once");
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect(!epoll_fires());
	complete(1);
	cr_expect(epoll_fires());
	serve();
	cr_expect_eq(delivered, 1);
}

Test(cq_shards, epoll_reports_nothing_while_the_program_polls)
{
	dofi_cq_enter_shard(&cq);
	make_owned();
	complete(1);
	cr_expect(!epoll_fires());
	now = cq.due_at;
	serve();
	cr_expect_eq(mode(), DOFI_CQ_ARMED);
	cr_expect_eq(fake_unread(), 0);
}

Test(cq_shards, a_kick_reads_the_shard_whatever_its_descriptor_reports)
{
	uint64_t n;

	dofi_cq_enter_shard(&cq);
	serve();
	fake_complete((void *)next_context++, 0);
	cr_assert_eq(read(fake.cq_fd, &n, sizeof(n)), sizeof(n));
	dofi_cq_kick(&cq, NULL);
	cr_expect_eq(delivered, 0);
	dofi_cq_kick(&cq, &cq.first);
	cr_expect_eq(delivered, 1);
}

Test(cq_shards, closing_closes_all_and_it_opens_as_one)
{
	dofi_cq_enter_shard(&cq);
	dofi_cq_close(&cq);
	cr_expect_eq(fake.open, 0);
	poll_once();
	cr_assert_eq(dofi_cq_open(&cq, &progress, &fake.domain), 0);
	cr_expect(!cq.several);
	cr_expect_eq(cq.fd, fake.cq_fd);
	complete(1);
	poll_once();
	cr_expect_eq(delivered, 1);
}
