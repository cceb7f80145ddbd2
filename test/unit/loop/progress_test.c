/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread: work, calls, wakeups, starting and stopping. */

#include "loop/progress.h"

#include "loop/one.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

TestSuite(progress, .init = init, .fini = fini);

/* Work */

Test(progress, work_runs_in_order)
{
	struct letter l[20];
	int i;

	for (i = 0; i < 20; i++) {
		l[i] = (struct letter){ { .run = letter_run }, 'a' + i };
		dofi_progress_post(&progress, &l[i].work);
	}
	settle();
	cr_expect_str_eq(trace, "abcdefghijklmnopqrst");
}

Test(progress, work_that_is_queued_is_not_queued_again)
{
	struct letter a = { { .run = letter_run }, 'a' }, b = { { .run = letter_run }, 'b' };

	hold_thread();
	dofi_progress_post(&progress, &a.work);
	dofi_progress_post(&progress, &b.work);
	dofi_progress_post(&progress, &a.work);
	dofi_progress_post(&progress, &a.work);
	sem_post(&release);
	settle();
	cr_expect_str_eq(trace, "ab");
}

Test(progress, work_may_be_queued_again_after_it_ran)
{
	struct letter a = { { .run = letter_run }, 'a' };

	dofi_progress_post(&progress, &a.work);
	settle();
	dofi_progress_post(&progress, &a.work);
	settle();
	cr_expect_str_eq(trace, "aa");
}

static void post_three(void *arg)
{
	struct letter *l = arg;
	int i;

	rung();
	for (i = 0; i < 3; i++)
		dofi_progress_post(&progress, &l[i].work);
	cr_expect_eq(rung(), 1);
}

/* The thread runs all queued work before it sleeps. */
Test(progress, several_works_wake_it_once)
{
	struct letter l[] = {
		{ { .run = letter_run }, 'a' },
		{ { .run = letter_run }, 'b' },
		{ { .run = letter_run }, 'c' },
	};

	dofi_progress_call(&progress, post_three, l);
	await(3);
	cr_expect_str_eq(trace, "abc");
	settle();
	dofi_progress_post(&progress, &l[0].work);
	await(1);
}

static void again_run(struct dofi_work *work)
{
	struct letter *l = (struct letter *)work;

	trace_add(l->c++);
	if (l->c <= 'e')
		dofi_progress_post(&progress, work);
}

Test(progress, work_may_queue_itself)
{
	struct letter a = { { .run = again_run }, 'a' };

	dofi_progress_post(&progress, &a.work);
	await(5);
	settle();
	cr_expect_str_eq(trace, "abcde");
}

static void *post_many(void *arg)
{
	struct letter l = { { .run = letter_run }, (char)(uintptr_t)arg };
	int i;

	for (i = 0; i < 500; i++) {
		dofi_progress_post(&progress, &l.work);
		settle();
	}
	return NULL;
}

Test(progress, threads_post_at_once)
{
	pthread_t thread[4];
	uintptr_t i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, post_many, (void *)('a' + i));
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(strlen(trace), 2000);
}

/* Calls */

static void on_thread(void *arg)
{
	*(bool *)arg = dofi_progress_on_thread(&progress);
}

Test(progress, a_call_runs_on_the_thread)
{
	bool on = false;

	dofi_progress_call(&progress, on_thread, &on);
	cr_expect(on);
	cr_expect(!dofi_progress_on_thread(&progress));
}

static void nested(void *arg)
{
	dofi_progress_call(&progress, on_thread, arg);
}

Test(progress, a_call_from_the_thread_runs_at_once, .timeout = 20)
{
	bool on = false;

	dofi_progress_call(&progress, nested, &on);
	cr_expect(on);
}

Test(progress, a_call_comes_after_what_was_posted)
{
	struct letter a = { { .run = letter_run }, 'a' };

	dofi_progress_post(&progress, &a.work);
	settle();
	cr_expect_str_eq(trace, "a");
}

static void count_up(void *arg)
{
	++*(int *)arg;
}

static void *call_many(void *arg)
{
	int i;

	for (i = 0; i < 500; i++)
		dofi_progress_call(&progress, count_up, arg);
	return NULL;
}

Test(progress, threads_call_at_once)
{
	pthread_t thread[4];
	int count = 0, i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, call_many, &count);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(count, 2000);
}

static void on_signal(int sig)
{
}

static void *interrupt(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(100);
	}
	sem_post(&release);
	return NULL;
}

Test(progress, a_call_outlives_signals, .timeout = 20)
{
	pthread_t self = pthread_self(), thread;
	bool on = false;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	hold_thread();
	pthread_create(&thread, NULL, interrupt, &self);
	dofi_progress_call(&progress, on_thread, &on);
	cr_expect(on);
	pthread_join(thread, NULL);
}

Test(progress, completions_are_served_while_no_thread_polls)
{
	int ret = -1, i;

	dofi_cq_init(&cq);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
	for (i = 0; i < 5; i++) {
		fake_complete((void *)(uintptr_t)('a' + i), 0);
		await(1);
	}
	cr_expect_str_eq(trace, "abcde");
	dofi_progress_call(&progress, cq_close_call, NULL);
}

/* The loop */

Test(progress, an_idle_thread_makes_no_rounds, .timeout = 20)
{
	settle();
	wait_until_idle();
}

Test(progress, a_wakeup_makes_a_round, .timeout = 20)
{
	unsigned before;

	settle();
	wait_until_idle();
	before = fake.eq_reads;
	dofi_progress_wake(&progress);
	while (fake.eq_reads == before)
		usleep(1000);
}

/*
 * Uses the CQ until the progress thread has looked. Returns false if the CQ was armed meanwhile.
 */
static bool be_looked_at(void)
{
	unsigned reads = fake.cq_reads;

	while (fake.cq_reads == reads && !cq.armed)
		dofi_cq_took(&cq);
	return !cq.armed;
}

/* Such a round looks at the CQ that the program polls, and does nothing else. */
Test(progress, a_check_reads_no_events, .timeout = 20)
{
	int ret = -1, looks = 0;

	dofi_settings.tick_us = 2000;
	dofi_settings.probe_us = 2000;
	dofi_cq_init(&cq);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
	wait_until_idle();
	while (looks < 20) {
		unsigned before;

		own_cq();
		/* the round that left the CQ ends before the next look */
		looks = be_looked_at();
		before = fake.eq_reads;
		while (looks && looks < 20 && be_looked_at())
			looks++;
		if (looks == 20)
			cr_expect_eq(fake.eq_reads, before);
	}
	dofi_progress_call(&progress, cq_close_call, NULL);
}

static void look_at_thread(void *arg)
{
	char name[16] = "";
	sigset_t set;

	pthread_getname_np(pthread_self(), name, sizeof(name));
	cr_expect_str_eq(name, "dat-ofi");
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	cr_expect(sigismember(&set, SIGUSR1) && sigismember(&set, SIGINT));
}

Test(progress, the_thread_has_a_name_and_no_signals)
{
	sigset_t set;

	dofi_progress_call(&progress, look_at_thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	cr_expect(!sigismember(&set, SIGUSR1), "the program's mask is as before");
}

static void slack_get(void *arg)
{
	*(int *)arg = prctl(PR_GET_TIMERSLACK);
}

Test(progress, the_thread_wakes_without_timer_slack)
{
	int slack = -1;

	dofi_progress_call(&progress, slack_get, &slack);
	cr_expect_eq(slack, 1);
}

/* Stopping and starting */

static void *stop(void *arg)
{
	dofi_progress_stop(&progress);
	return NULL;
}

static bool stop_is_asked(void)
{
	bool asked;

	dofi_mutex_lock(&progress.lock);
	asked = progress.stop;
	dofi_mutex_unlock(&progress.lock);
	return asked;
}

Test(progress, after_a_stop_nothing_runs, .fini = NULL)
{
	struct letter a = { { .run = letter_run }, 'a' };
	pthread_t thread;
	size_t ran;

	hold_thread();
	dofi_progress_post(&progress, &a.work);
	pthread_create(&thread, NULL, stop, NULL);
	while (!stop_is_asked())
		usleep(1000);
	sem_post(&release);
	pthread_join(thread, NULL);
	cr_expect_eq(fake.open, 0);
	ran = strlen(trace);
	cr_expect(ran <= 1);
	init();
	settle();
	cr_expect_eq(strlen(trace), ran, "a new thread inherits no work");
	fini();
	init();		/* for the suite's fini */
}

Test(progress, work_that_was_withdrawn_can_be_posted_again)
{
	struct letter a = { { .run = letter_run }, 'a' };

	hold_thread();
	dofi_progress_post(&progress, &a.work);
	dofi_progress_withdraw(&progress, &a.work);
	sem_post(&release);
	settle();
	cr_expect_str_eq(trace, "");
	dofi_progress_post(&progress, &a.work);
	settle();
	cr_expect_str_eq(trace, "a");
}

/* The fabric fails */

/* The thread continues its work and does not spin. */
Test(progress, without_its_descriptors_it_reports_once)
{
	close(progress.epfd);
	dofi_progress_wake(&progress);
	reported_once(-EBADF);
}

TestSuite(start);

Test(start, leaves_no_descriptor_behind, .init = start_init)
{
	int fds = count_fds(), i;

	for (i = 0; i < 10; i++) {
		cr_assert_eq(start(), 0);
		dofi_progress_stop(&progress);
	}
	cr_expect_eq(count_fds(), fds);
	cr_expect_eq(fake.open, 0);
}

Test(start, without_a_fabric, .init = start_init)
{
	fake.fault.fabric = -FI_ENODATA;
	fails_to_start(-FI_ENODATA);
}

Test(start, without_epoll, .init = start_init)
{
	int fds = count_fds();

	fake.fault.eq_fd_bad = true;
	cr_expect_eq(start(), -EPERM);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds + 1, "the fake's own descriptor, and no more");
}
