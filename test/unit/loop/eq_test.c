/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event queues: the events they bring, and when they are read and watched. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture.h"
#include "loop/one.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

TestSuite(eq, .init = init, .fini = fini);

Test(eq, an_event_arrives_with_its_data)
{
	event_add(2, 0);
	await(1);
	cr_expect_str_eq(trace, "c");
	cr_expect_eq(last_len, sizeof(struct fi_eq_cm_entry) + 5);
	cr_expect_str_eq(last_data, "data");
	cr_expect_eq(last_entry.fid, &fake.eq.fid);
}

Test(eq, a_failed_attempt_arrives_with_its_data)
{
	event_add(2, FI_ECONNREFUSED);
	await(1);
	cr_expect_str_eq(trace, "!");
	cr_expect_eq(last_len, 5);
	cr_expect_str_eq(last_data, "data");
}

Test(eq, events_and_errors_keep_their_order)
{
	hold_thread();
	event_add(0, 0);
	event_add(1, FI_ECONNREFUSED);
	event_add(2, 0);
	sem_post(&release);
	await(3);
	cr_expect_str_eq(trace, "a!c");
}

static void event_run(struct dofi_work *work)
{
	letter_run(work);
	event_add(1, 0);
}

Test(eq, events_are_read_between_two_works)
{
	struct letter one = { { .run = event_run }, '1' }, two = { { .run = letter_run }, '2' };

	hold_thread();
	dofi_progress_post(&progress, &one.work);
	dofi_progress_post(&progress, &two.work);
	sem_post(&release);
	await(3);
	cr_expect_str_eq(trace, "1b2");
}

static struct dofi_timer timer[2];

static void event_fire(struct dofi_timer *fired)
{
	trace_add('1');
	event_add(1, 0);
}

static void plain_fire(struct dofi_timer *fired)
{
	trace_add('2');
}

static void timers_start(void *arg)
{
	timer[0].fire = event_fire;
	timer[1].fire = plain_fire;
	dofi_timer_start(&progress, &timer[0], 1);
	dofi_timer_start(&progress, &timer[1], 2);
}

Test(eq, events_are_read_between_two_timers)
{
	dofi_progress_call(&progress, timers_start, NULL);
	await(3);
	cr_expect_str_eq(trace, "1b2");
}

static void events_run(struct dofi_work *work)
{
	event_add(1, 0);
	dofi_progress_events(&progress);
	letter_run(work);
}

Test(eq, events_are_read_when_asked_for)
{
	struct letter one = { { .run = events_run }, '1' };

	dofi_progress_post(&progress, &one.work);
	await(2);
	cr_expect_str_eq(trace, "b1");
}

static void errno_run(struct dofi_work *work)
{
	errno = EAGAIN;
}

Test(eq, events_are_read_without_an_old_error)
{
	struct dofi_work work = { .run = errno_run };

	dofi_progress_post(&progress, &work);
	settle();
	cr_expect_eq(fake.eq_errno, 0);
}

/* Event queues that are readable without an event */

/* Wakeups without an event after which the progress thread checks for free descriptors. */
#define CHECKED_AFTER 16

static _Atomic unsigned arrivals, wakeups_left;
static unsigned lacked_at;		/* arrivals, at the first lack of descriptors */
static int64_t last_ns;			/* the time of the last arrival */
static int64_t rest_ends;		/* after the first lack */
static int64_t rested_ns;		/* at least, when the second lack came */

/* Follows a wakeup without an event. The queue stays readable until the last one. */
static void arrived(struct dofi_progress *p, bool lack)
{
	uint64_t n;

	cr_expect(dofi_progress_on_thread(p));
	arrivals++;
	/* the rest began between the last arrival and now */
	if (lack && lacked_at && !rested_ns && dofi_now() >= rest_ends)
		rested_ns = rest_ends - last_ns;
	if (lack && !lacked_at) {
		lacked_at = arrivals;
		rest_ends = p->eq.paused_until;
	}
	if (!lacked_at)
		last_ns = dofi_now();
	if (lack)
		trace_add('L');
	if (wakeups_left && !--wakeups_left) {
		cr_expect_eq(read(fake.eq_fd, &n, sizeof(n)), sizeof(n));
		trace_add('E');
	}
}

static void listen_call(void *arg)
{
	progress.listeners.arrived = arrived;
	progress.listeners.n = 1;
}

/* Causes about @n wakeups: E in the trace is the last one, L is a lack of descriptors. */
static void wake_without_events(unsigned n)
{
	const uint64_t one = 1;

	dofi_progress_call(&progress, listen_call, NULL);
	wakeups_left = n;
	cr_expect_eq(write(fake.eq_fd, &one, sizeof(one)), sizeof(one));
}

/* No descriptor is free. Returns the old limit. */
static struct rlimit descriptors_end(void)
{
	struct rlimit limit, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	return limit;
}

static bool rests;

static void rests_call(void *arg)
{
	rests = progress.eq.paused_until && !progress.eq.watched;
}

/* A passive endpoint that cannot accept leaves its queue readable. */
Test(eq, a_readable_queue_without_events_rests_if_no_descriptor_is_free, .timeout = 20)
{
	struct capture capture;
	const char *log, *first;
	struct rlimit limit;

	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	limit = descriptors_end();
	wake_without_events(UINT32_MAX);
	await(2);
	cr_expect_eq(lacked_at, CHECKED_AFTER);
	cr_expect(rested_ns >= 100000000, "%lld", (long long)rested_ns);
	cr_expect_eq(trace[1], 'L', "it rests again");
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	log = capture_end(&capture);
	first = strstr(log, "no descriptors");
	cr_expect(first && !strstr(first + 1, "no descriptors"), "once: %s", log);
}

Test(eq, a_readable_queue_without_events_stays_watched_if_descriptors_are_free)
{
	wake_without_events(2 * CHECKED_AFTER);
	await(1);
	cr_expect_str_eq(trace, "E");
	dofi_progress_call(&progress, rests_call, NULL);
	cr_expect(!rests);
}

Test(eq, an_event_ends_the_count_of_wakeups_without_events)
{
	struct rlimit limit;

	limit = descriptors_end();
	wake_without_events(CHECKED_AFTER * 2 / 3);
	await(1);
	event_add(2, 0);
	await(1);
	wake_without_events(CHECKED_AFTER * 2 / 3);
	await(1);
	cr_expect_str_eq(trace, "EcE", "%s", trace);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Event queues that are readable while data arrives for their endpoints */

static void init_tcp(void)
{
	int ret = -1;

	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	fake.version = FI_VERSION(2, 1);
	sem_init(&traced, 0, 0);
	cr_assert_eq(start_as("tcp"), 0);
	dofi_cq_init(&cq);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
}

static void fini_tcp(void)
{
	dofi_progress_call(&progress, cq_close_call, NULL);
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
}

TestSuite(shared_eq, .init = init_tcp, .fini = fini_tcp, .timeout = 20);

/* Whether the progress thread's epoll set has @fd. */
static bool is_watched(int fd)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;
	int tfd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", progress.epfd);
	f = fopen(path, "r");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		found |= sscanf(line, "tfd: %d", &tfd) == 1 && tfd == fd;
	fclose(f);
	return found;
}

/* Whether the thread of begin_to_poll() polls. */
static _Atomic bool polls;

static void trace_clear(void)
{
	pthread_mutex_lock(&trace_lock);
	memset(trace, 0, sizeof(trace));
	pthread_mutex_unlock(&trace_lock);
}

/* For loops that add to the trace until another thread does something, which has no limit. */
static void trace_keep_room(void)
{
	if (strlen(trace) > sizeof(trace) / 2)
		trace_clear();
}

/*
 * If the polling thread was delayed, the progress thread has armed the CQ. A completion makes it
 * leave the CQ to the program again.
 */
static void give_back(void)
{
	if (!cq.armed || fake_unread())
		return;
	trace_keep_room();
	fake_complete((void *)(uintptr_t)'a', 0);
}

/* Uses the CQ if @use, until the event queue is watched if @watched, else until it is not. */
static void until_watched(bool watched, bool use)
{
	while (is_watched(fake.eq_fd) != watched) {
		trace_keep_room();
		if (polls)
			give_back();
		else if (use)
			own_cq();
	}
}

Test(shared_eq, is_not_watched_while_the_program_polls)
{
	cr_expect(is_watched(fake.eq_fd));
	until_watched(false, true);
	cr_expect(is_watched(fake.second_eq_fd), "requests are no data");
	until_watched(true, false);
}

Test(shared_eq, other_fabrics_keep_it, .init = init, .fini = fini)
{
	int ret = -1;

	dofi_cq_init(&cq);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
	own_cq();
	settle();
	cr_expect(is_watched(fake.eq_fd));
	cr_expect(!progress.listen_eq.fid);
	dofi_progress_call(&progress, cq_close_call, NULL);
}

static void *poll_on(void *arg)
{
	while (polls)
		dofi_cq_poll(&cq, NULL);
	return arg;
}

static pthread_t begin_to_poll(void)
{
	pthread_t thread;

	polls = true;
	cr_assert_eq(pthread_create(&thread, NULL, poll_on, NULL), 0);
	while (cq.armed)
		give_back();
	return thread;
}

static void end_polling(pthread_t thread)
{
	polls = false;
	pthread_join(thread, NULL);
}

Test(shared_eq, events_come_while_the_program_polls)
{
	pthread_t thread = begin_to_poll();
	int i;

	for (i = 0; i < 10; i++) {
		event_add(2, 0);
		while (!memchr(trace, 'c', sizeof(trace)))
			sem_wait(&traced);
		trace_clear();
	}
	end_polling(thread);
}

/*
 * A look each millisecond must not read the event queue, because the polling thread needs the
 * fabric's lock.
 */
Test(shared_eq, is_not_read_while_it_is_empty)
{
	pthread_t thread = begin_to_poll();
	unsigned reads, trywaits;

	do {
		until_watched(false, false);
		reads = fake.eq_reads;
		trywaits = fake.trywaits;
		while (fake.trywaits < trywaits + 10 && !cq.armed)
			;
	} while (cq.armed);
	cr_expect(fake.eq_reads - reads <= 1, "%u", fake.eq_reads - reads);
	end_polling(thread);
}

/* Serves the queues at times of the test. Tries again if the queue is watched. */
static void serve_call(void *arg)
{
	const int64_t due = progress.eq.due_at;
	unsigned trywaits = fake.trywaits;

	*(bool *)arg = !progress.eq.watched;
	if (progress.eq.watched)
		return;
	dofi_eqs_serve(&progress, due - 1);
	cr_expect_eq(fake.trywaits, trywaits, "before it is due");
	dofi_eqs_serve(&progress, due);
	cr_expect_eq(fake.trywaits, trywaits + 1);
	dofi_eqs_serve(&progress, due);
	cr_expect_eq(fake.trywaits, trywaits + 1, "it was checked");
	dofi_eqs_serve(&progress, progress.eq.due_at);
	cr_expect_eq(fake.trywaits, trywaits + 2);
}

Test(shared_eq, is_checked_by_the_clock_while_it_is_not_watched)
{
	bool served = false;

	while (!served) {
		until_watched(false, true);
		dofi_progress_call(&progress, serve_call, &served);
	}
}

static void await_call(void *arg)
{
	dofi_progress_await(&progress);
}

Test(shared_eq, stays_for_a_while_where_an_event_is_expected)
{
	pthread_t thread = begin_to_poll();

	until_watched(false, false);
	/* repeated if this thread was delayed for longer than the queue stays watched */
	do
		dofi_progress_call(&progress, await_call, NULL);
	while (!is_watched(fake.eq_fd));
	until_watched(false, false);
	end_polling(thread);
}

/* The next look at the CQ is far away: the second pause of an offloaded CQ is the longest. */
static void pause_long(void *arg)
{
	static const struct dofi_quirk offloads = { .offloaded = true };

	dofi_settings.tick_us = 100000000;
	cq.quirk = &offloads;
}

Test(shared_eq, is_watched_again_when_a_thread_waits_for_events)
{
	dofi_progress_call(&progress, pause_long, NULL);
	until_watched(false, true);
	dofi_progress_probe(&progress);
	until_watched(true, false);
	cr_expect(cq.armed);
}

/* The event that a thread waits for may come of a completion. */
Test(shared_eq, a_thread_that_waits_for_events_ends_the_pause_of_a_cq, .init = init, .fini = fini)
{
	int ret = -1;

	dofi_cq_init(&cq);
	dofi_progress_call(&progress, pause_long, NULL);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
	own_cq();
	settle();
	cr_expect(is_watched(fake.eq_fd));
	dofi_progress_probe(&progress);
	while (!cq.armed)
		settle();
	dofi_progress_call(&progress, cq_close_call, NULL);
}

Test(shared_eq, the_pause_of_a_cq_stays_while_another_thread_polls)
{
	pthread_t thread = begin_to_poll();
	int i;

	until_watched(false, false);
	for (i = 0; i < 10; i++) {
		dofi_progress_probe(&progress);
		while (progress.probe_wanted)
			;
		settle();
	}
	/* without a processor the polling thread may seem to have stopped */
	until_watched(false, false);
	end_polling(thread);
}

Test(shared_eq, a_request_to_read_it_wakes_the_thread)
{
	pthread_t thread = begin_to_poll();

	/* repeated if the polling thread was delayed, and the queue is watched again */
	for (;;) {
		until_watched(false, false);
		hold_thread();
		if (progress.eq_away)
			break;
		sem_post(&release);
	}
	rung();
	dofi_progress_expect(&progress);
	cr_expect_eq(rung(), 1);
	dofi_progress_expect(&progress);
	cr_expect_eq(rung(), 0, "the thread has been woken");
	sem_post(&release);
	end_polling(thread);
}

/* Watched queues need no further look. */
Test(shared_eq, requests_to_read_cost_nothing_while_it_is_watched)
{
	settle();
	wait_until_idle();
	hold_thread();
	rung();
	dofi_progress_expect(&progress);
	dofi_progress_probe(&progress);
	cr_expect_eq(rung(), 0);
	cr_expect(!progress.eq_wanted);
	cr_expect(!progress.probe_wanted);
	sem_post(&release);
}

Test(shared_eq, an_idle_thread_makes_no_rounds)
{
	until_watched(false, true);
	until_watched(true, false);
	settle();
	wait_until_idle();
}

/*
 * Adds an event and takes its signal, as fi_trywait() may. A read after the last fi_trywait() finds
 * the event.
 */
static void take_signal(void *arg)
{
	bool *taken = arg;
	uint64_t n;

	/* without a processor this test may come too late */
	*taken = !progress.eq.watched;
	if (!*taken)
		return;
	event_add(2, 0);
	cr_expect_eq(read(fake.eq_fd, &n, sizeof(n)), sizeof(n));
}

Test(shared_eq, an_event_without_a_signal_is_found_when_it_is_watched_again)
{
	bool taken = false;

	while (!taken) {
		until_watched(false, true);
		dofi_progress_call(&progress, take_signal, &taken);
	}
	while (!memchr(trace, 'c', sizeof(trace)))
		sem_wait(&traced);
}

/* Errors */

Test(eq, an_event_queue_that_cannot_be_read_is_reported_once)
{
	fake.fault.eq_read = -FI_EIO;
	dofi_progress_wake(&progress);
	reported_once(-FI_EIO);
}

Test(eq, where_that_may_be_one_connections_fault_it_goes_on, .init = init_verbs)
{
	fake.fault.eq_read = -FI_EIO;
	dofi_progress_wake(&progress);
	settle();
	fake.fault.eq_read = 0;
	event_add(2, 0);
	await(1);
	cr_expect_str_eq(trace, "c");
}

Test(eq, an_unusable_event_queue_descriptor_is_reported_once, .init = init_verbs)
{
	fake.fault.eq_read = -EBADF;
	dofi_progress_wake(&progress);
	reported_once(-EBADF);
}

TestSuite(eq_open, .init = start_init);

/* Opening */

Test(eq_open, without_an_event_queue)
{
	fake.fault.eq_open = -FI_ENOMEM;
	fails_to_start(-FI_ENOMEM);
}

Test(eq_open, without_the_event_queue_of_passive_endpoints)
{
	int fds = count_fds();

	fake.version = FI_VERSION(2, 1);
	fake.fault.second_eq_open = -FI_ENOMEM;
	cr_expect_eq(start_as("tcp"), -FI_ENOMEM);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds);
}

Test(eq_open, without_the_event_queues_descriptor)
{
	fake.fault.eq_control = -FI_ENOSYS;
	fails_to_start(-FI_ENOSYS);
}
