/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread: work, calls, timers, events, the doorbell, starting and stopping. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/env.h"
#include "fab/cq.h"
#include "fab/fake.h"
#include "fab/start.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dofi_progress progress;

/* What ran, in order: appended to on the progress thread. */
static char trace[4096];
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t traced;

static void trace_add(char c)
{
	pthread_mutex_lock(&trace_lock);
	trace[strlen(trace)] = c;
	pthread_mutex_unlock(&trace_lock);
	sem_post(&traced);
}

static void await(unsigned n)
{
	while (n)
		if (!sem_wait(&traced))
			n--;
}

static struct fi_eq_cm_entry last_entry;
static char last_data[64];
static size_t last_len;

static void cm_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry, size_t len)
{
	cr_expect(dofi_progress_on_thread(p));
	last_entry = *entry;
	last_len = len;
	memcpy(last_data, entry->data, len - sizeof(*entry));
	trace_add('a' + event);
}

static void cm_error(struct dofi_progress *p, const struct fi_eq_err_entry *entry)
{
	cr_expect(dofi_progress_on_thread(p));
	last_entry.fid = entry->fid;
	last_len = entry->err_data_size;
	memcpy(last_data, entry->err_data, last_len);
	cr_expect_eq(entry->err, FI_ECONNREFUSED);
	trace_add('!');
}

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	(void)err;
	(void)sink;
	trace_add((char)(uintptr_t)entry->op_context);
}

static int failure;

static void failed(struct dofi_progress *p, int err)
{
	cr_expect(dofi_progress_on_thread(p));
	failure = err;
	trace_add('X');
}

static const struct dofi_progress_ops ops = {
	.completed = completed, .cm_event = cm_event, .cm_error = cm_error, .failed = failed,
};

static int start_as(const char *provider)
{
	struct fi_info *info = fake_info(provider, "");
	int ret = dofi_fabric_start(&progress, &ops, info);

	fi_freeinfo(info);
	return ret;
}

static int start(void)
{
	return start_as("fake");
}

static void init_as(const char *provider)
{
	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	sem_init(&traced, 0, 0);
	cr_assert_eq(start_as(provider), 0);
}

static void init(void)
{
	init_as("fake");
}

static void init_net(void)
{
	init_as("net");
}

static void init_verbs(void)
{
	init_as("verbs");
}

static void fini(void)
{
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Returns when all work posted before has run. */
static void settle(void)
{
	dofi_progress_call(&progress, nothing, NULL);
}

struct letter {
	struct dofi_work work;
	char c;
};

/* How often the thread was woken since the last call. */
static uint64_t rung(void)
{
	uint64_t n;

	return read(progress.doorbell, &n, sizeof(n)) < 0 ? 0 : n;
}

static void letter_run(struct dofi_work *work)
{
	trace_add(((struct letter *)work)->c);
}

/* Work that keeps the thread until the gate is opened. */
static sem_t gate_reached, gate;

static void gate_run(struct dofi_work *work)
{
	(void)work;
	sem_post(&gate_reached);
	sem_wait(&gate);
}

static struct dofi_work gate_work = { .run = gate_run };

static void shut_gate(void)
{
	sem_init(&gate_reached, 0, 0);
	sem_init(&gate, 0, 0);
	dofi_progress_post(&progress, &gate_work);
	sem_wait(&gate_reached);
}

TestSuite(progress, .init = init, .fini = fini);

/* Sources */

struct tray {
	struct dofi_source source;
	int fd;
};

/* Empties it, so that it is told of once for each time that it is filled. */
static void tray_ready(struct dofi_source *source)
{
	uint64_t n;
	char c = read(((struct tray *)source)->fd, &n, sizeof(n)) > 0 ? 'r' : 'w';

	cr_expect(dofi_progress_on_thread(&progress));
	if (c == 'w')
		dofi_source_change(&progress, source, ((struct tray *)source)->fd, EPOLLIN);
	trace_add(c);
}

static void tray_fill(struct tray *t)
{
	uint64_t one = 1;

	cr_expect_eq(write(t->fd, &one, sizeof(one)), sizeof(one));
}

/* By the thread: ThreadSanitizer does not know that epoll hands @t over. */
static void tray_add(void *t)
{
	cr_expect_eq(dofi_source_add(&progress, t, ((struct tray *)t)->fd, EPOLLIN), 0);
}

Test(progress, a_source_is_told_of_what_it_asks_for)
{
	struct tray t = { { tray_ready }, eventfd(0, EFD_NONBLOCK) };

	dofi_progress_call(&progress, tray_add, &t);
	tray_fill(&t);
	await(1);
	cr_expect_str_eq(trace, "r");
	cr_expect_eq(dofi_source_change(&progress, &t.source, t.fd, EPOLLOUT), 0);
	await(1);
	cr_expect_str_eq(trace, "rw");
	dofi_source_remove(&progress, t.fd);
	settle();
	tray_fill(&t);
	settle();
	settle();
	cr_expect_str_eq(trace, "rw");
	close(t.fd);
}

Test(progress, a_source_that_cannot_be_waited_for_is_refused)
{
	struct tray t = { { tray_ready }, eventfd(0, EFD_NONBLOCK) };

	cr_expect_eq(dofi_source_add(&progress, &t.source, -1, EPOLLIN), -EBADF);
	cr_expect_eq(dofi_source_change(&progress, &t.source, t.fd, EPOLLIN), -ENOENT);
	dofi_source_remove(&progress, t.fd);
	close(t.fd);
}

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

	shut_gate();
	dofi_progress_post(&progress, &a.work);
	dofi_progress_post(&progress, &b.work);
	dofi_progress_post(&progress, &a.work);
	dofi_progress_post(&progress, &a.work);
	sem_post(&gate);
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

/* As the thread does all that is queued before it sleeps. */
Test(progress, several_works_wake_it_once)
{
	struct letter l[] = {
		{ { .run = letter_run }, 'a' }, { { .run = letter_run }, 'b' }, { { .run = letter_run }, 'c' },
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
	(void)sig;
}

static void *interrupt(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(100);
	}
	sem_post(&gate);
	return NULL;
}

Test(progress, a_call_outlives_signals, .timeout = 20)
{
	pthread_t self = pthread_self(), thread;
	bool on = false;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	shut_gate();
	pthread_create(&thread, NULL, interrupt, &self);
	dofi_progress_call(&progress, on_thread, &on);
	cr_expect(on);
	pthread_join(thread, NULL);
}

Test(progress, nothing_runs_in_a_forked_child)
{
	bool on = false;
	int status;
	pid_t pid;

	cr_expect(!dofi_progress_orphaned(&progress));
	pid = fork();
	if (!pid) {
		alarm(60);
		dofi_progress_call(&progress, on_thread, &on);
		dofi_progress_stop(&progress);
		_exit(on || !dofi_progress_orphaned(&progress));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
	dofi_progress_call(&progress, on_thread, &on);
	cr_expect(on, "the parent's thread goes on");
}

/* Timers: those of a test sit in an array; letter and time are its members. */

struct ticker {
	struct dofi_timer timer;
	char c;
	int64_t at;
};

static void ticker_fire(struct dofi_timer *timer)
{
	trace_add(((struct ticker *)timer)->c);
}

static struct ticker ticker[8];
static int64_t base;

static void ticker_set(int i, int64_t at)
{
	ticker[i].timer.fire = ticker_fire;
	ticker[i].c = 'a' + i;
	dofi_timer_start(&progress, &ticker[i].timer, at);
}

static void start_in_disorder(void *arg)
{
	static const int ms[] = { 4, 1, 3, 0, 2 };
	int i;

	(void)arg;
	base = dofi_now();
	for (i = 0; i < 5; i++)
		ticker_set(i, base + ms[i] * 1000000);
}

Test(progress, timers_fire_soonest_first)
{
	dofi_progress_call(&progress, start_in_disorder, NULL);
	await(5);
	cr_expect_str_eq(trace, "dbeca");
	cr_expect(dofi_now() >= base + 4000000);
}

static void start_equal(void *arg)
{
	int i;

	(void)arg;
	base = dofi_now() + 2000000;
	for (i = 0; i < 5; i++)
		ticker_set(i, base);
}

Test(progress, equal_timers_fire_as_started)
{
	dofi_progress_call(&progress, start_equal, NULL);
	await(5);
	cr_expect_str_eq(trace, "abcde");
}

static void stop_some(void *arg)
{
	start_in_disorder(arg);
	dofi_timer_stop(&progress, &ticker[3].timer);	/* the first */
	dofi_timer_stop(&progress, &ticker[4].timer);	/* a middle one */
	dofi_timer_stop(&progress, &ticker[4].timer);	/* twice */
}

Test(progress, stopped_timers_do_not_fire)
{
	dofi_progress_call(&progress, stop_some, NULL);
	await(3);
	cr_expect_str_eq(trace, "bca");
}

static void restart(void *arg)
{
	start_in_disorder(arg);
	ticker_set(3, base + 9000000);
	ticker_set(0, base);
}

Test(progress, a_restarted_timer_fires_once_at_its_new_time)
{
	dofi_progress_call(&progress, restart, NULL);
	await(5);
	cr_expect_str_eq(trace, "abecd");
}

static void start_never(void *arg)
{
	(void)arg;
	ticker_set(0, DOFI_NEVER);
	cr_expect_eq(ticker[0].timer.at, 0);
	ticker_set(1, dofi_now());
	ticker_set(1, DOFI_NEVER);
	ticker_set(2, dofi_now() + 1000000);
}

Test(progress, never_starts_nothing_and_stops)
{
	dofi_progress_call(&progress, start_never, NULL);
	await(1);
	cr_expect_str_eq(trace, "c");
}

static void fire_again(struct dofi_timer *timer)
{
	struct ticker *t = (struct ticker *)timer;

	cr_expect_eq(timer->at, 0);
	trace_add(t->c++);
	if (t->c <= 'c')
		dofi_timer_start(&progress, timer, dofi_now() + 1000);
}

static void start_again(void *arg)
{
	(void)arg;
	ticker[0] = (struct ticker){ .timer.fire = fire_again, .c = 'a' };
	dofi_timer_start(&progress, &ticker[0].timer, dofi_now());
}

Test(progress, a_timer_may_start_itself_again)
{
	dofi_progress_call(&progress, start_again, NULL);
	await(3);
	cr_expect_str_eq(trace, "abc");
}

static void fire_and_stop_next(struct dofi_timer *timer)
{
	ticker_fire(timer);
	dofi_timer_stop(&progress, &ticker[1].timer);
}

static void start_to_stop(void *arg)
{
	start_equal(arg);
	ticker[0].timer.fire = fire_and_stop_next;
}

Test(progress, a_timer_may_stop_another_that_is_due)
{
	dofi_progress_call(&progress, start_to_stop, NULL);
	await(4);
	cr_expect_str_eq(trace, "acde");
}

static void start_past(void *arg)
{
	(void)arg;
	ticker_set(0, 1);
}

Test(progress, a_time_in_the_past_fires_at_once)
{
	dofi_progress_call(&progress, start_past, NULL);
	await(1);
	cr_expect_str_eq(trace, "a");
}

/* Events */

static void event_add(uint32_t number, int err)
{
	struct fake_event e = { .event = number, .err = err, .len = 5, .data = "data" };

	e.entry.fid = &fake.eq.fid;
	fake_event_add(&e);
}

Test(progress, an_event_arrives_with_its_data)
{
	event_add(2, 0);
	await(1);
	cr_expect_str_eq(trace, "c");
	cr_expect_eq(last_len, sizeof(struct fi_eq_cm_entry) + 5);
	cr_expect_str_eq(last_data, "data");
	cr_expect_eq(last_entry.fid, &fake.eq.fid);
}

Test(progress, a_failed_attempt_arrives_with_its_data)
{
	event_add(2, FI_ECONNREFUSED);
	await(1);
	cr_expect_str_eq(trace, "!");
	cr_expect_eq(last_len, 5);
	cr_expect_str_eq(last_data, "data");
}

Test(progress, events_and_errors_keep_their_order)
{
	shut_gate();
	event_add(0, 0);
	event_add(1, FI_ECONNREFUSED);
	event_add(2, 0);
	sem_post(&gate);
	await(3);
	cr_expect_str_eq(trace, "a!c");
}

static void event_run(struct dofi_work *work)
{
	letter_run(work);
	event_add(1, 0);
}

Test(progress, events_are_read_between_two_works)
{
	struct letter one = { { .run = event_run }, '1' }, two = { { .run = letter_run }, '2' };

	shut_gate();
	dofi_progress_post(&progress, &one.work);
	dofi_progress_post(&progress, &two.work);
	sem_post(&gate);
	await(3);
	cr_expect_str_eq(trace, "1b2");
}

static void events_run(struct dofi_work *work)
{
	event_add(1, 0);
	dofi_progress_events(&progress);
	letter_run(work);
}

Test(progress, events_are_read_when_asked_for)
{
	struct letter one = { { .run = events_run }, '1' };

	dofi_progress_post(&progress, &one.work);
	await(2);
	cr_expect_str_eq(trace, "b1");
}

static void errno_run(struct dofi_work *work)
{
	(void)work;
	errno = EAGAIN;
}

Test(progress, events_are_read_without_an_old_error)
{
	struct dofi_work work = { .run = errno_run };

	dofi_progress_post(&progress, &work);
	settle();
	cr_expect_eq(fake.eq_errno, 0);
}

static struct dofi_cq cq;

static void cq_open_call(void *arg)
{
	*(int *)arg = dofi_cq_open(&cq, &progress, &fake.domain);
}

static void cq_close_call(void *arg)
{
	(void)arg;
	dofi_cq_close(&cq);
}

Test(progress, completions_are_served_while_nobody_polls)
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

/* Returns when the thread has stopped making rounds; a test's time limit is for one that never does. */
static void wait_until_idle(void)
{
	struct timespec before, now;
	clockid_t cpu;

	cr_assert_eq(pthread_getcpuclockid(progress.thread, &cpu), 0);
	clock_gettime(cpu, &now);
	do {
		before = now;
		usleep(50000);
		clock_gettime(cpu, &now);
	} while (now.tv_nsec != before.tv_nsec || now.tv_sec != before.tv_sec);
}

Test(progress, an_idle_thread_makes_no_rounds, .timeout = 20)
{
	settle();
	wait_until_idle();
}

Test(progress, a_stale_signal_is_cleared_and_then_it_idles, .init = init_net, .timeout = 20)
{
	fake.fault.stale_signal = true;
	event_add(2, 0);
	await(1);
	while (!fake.eq_sreads)
		usleep(1000);
	wait_until_idle();
	cr_expect_str_eq(trace, "c");
}

Test(progress, other_fabrics_never_wait_for_an_event)
{
	event_add(2, 0);
	await(1);
	settle();
	dofi_progress_ring(&progress);
	settle();
	cr_expect_eq(fake.eq_sreads, 0);
}

Test(progress, the_doorbell_makes_a_round, .timeout = 20)
{
	unsigned before;

	settle();
	wait_until_idle();
	before = fake.eq_reads;
	dofi_progress_ring(&progress);
	while (fake.eq_reads == before)
		usleep(1000);
}

/* Uses the CQ until the progress thread leaves it alone: not at once where this one is held up. */
static void own_cq(void)
{
	while (cq.mode != DOFI_CQ_OWNED) {
		dofi_cq_taken(&cq);
		fake_complete((void *)(uintptr_t)'a', 0);
		await(1);
		while (cq.mode == DOFI_CQ_PROBED)
			dofi_cq_taken(&cq);
	}
}

/* Uses it until the progress thread has looked; false if it gave up on us. */
static bool be_looked_at(void)
{
	unsigned reads = fake.cq_reads;

	while (fake.cq_reads == reads && cq.mode == DOFI_CQ_OWNED)
		dofi_cq_taken(&cq);
	return cq.mode == DOFI_CQ_OWNED;
}

/* A look at a CQ that the program polls is all that such a round does. */
Test(progress, a_look_reads_no_events, .timeout = 20)
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
		/* the round that made it so is over with the next look */
		looks = be_looked_at();
		before = fake.eq_reads;
		while (looks && looks < 20 && be_looked_at())
			looks++;
		if (looks == 20)
			cr_expect_eq(fake.eq_reads, before);
	}
	dofi_progress_call(&progress, cq_close_call, NULL);
}

/* Event queues that are readable while data comes for their endpoints */

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

/* Whether begin_to_poll()'s thread polls. */
static _Atomic bool polls;

/* Where that thread was held up the progress thread took the CQ, and gives it back when it wakes. */
static void give_back(void)
{
	if (cq.mode == DOFI_CQ_ARMED && !fake_unread() && strlen(trace) < sizeof(trace) / 2)
		fake_complete((void *)(uintptr_t)'a', 0);
}

/* Uses the CQ, or not, until the event queue is watched as @watched says. */
static void until_watched(bool watched, bool use)
{
	while (is_watched(fake.eq_fd) != watched)
		if (polls)
			give_back();
		else if (use)
			own_cq();
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
	while (cq.mode != DOFI_CQ_OWNED)
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
		pthread_mutex_lock(&trace_lock);
		memset(trace, 0, sizeof(trace));
		pthread_mutex_unlock(&trace_lock);
	}
	end_polling(thread);
}

/* The look at a millisecond reads nothing of a fabric whose lock the polling thread wants. */
Test(shared_eq, is_not_read_while_it_is_empty)
{
	pthread_t thread = begin_to_poll();
	unsigned reads, trywaits;

	do {
		until_watched(false, false);
		reads = fake.eq_reads;
		trywaits = fake.trywaits;
		while (fake.trywaits < trywaits + 10 && cq.mode == DOFI_CQ_OWNED)
			;
	} while (cq.mode != DOFI_CQ_OWNED);
	cr_expect(fake.eq_reads - reads <= 1, "%u", fake.eq_reads - reads);
	end_polling(thread);
}

static void await_call(void *arg)
{
	(void)arg;
	dofi_progress_await(&progress);
}

Test(shared_eq, stays_for_a_while_where_an_event_is_expected)
{
	pthread_t thread = begin_to_poll();

	until_watched(false, false);
	/* again, where this thread is held up for longer than that while lasts */
	do
		dofi_progress_call(&progress, await_call, NULL);
	while (!is_watched(fake.eq_fd));
	until_watched(false, false);
	end_polling(thread);
}

/* However far away the next look at the CQ is. */
Test(shared_eq, is_watched_again_when_a_thread_waits_for_events)
{
	const long tick = dofi_settings.tick_us;

	dofi_settings.tick_us = 100000000;
	cq.offloaded = true;		/* its second pause is the longest */
	own_cq();
	until_watched(false, false);
	dofi_progress_probe(&progress);
	until_watched(true, false);
	cr_expect_eq(cq.mode, DOFI_CQ_ARMED);
	dofi_settings.tick_us = tick;
}

Test(shared_eq, but_not_while_another_polls)
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
	/* where others keep the processor from that thread it may seem to have stopped */
	until_watched(false, false);
	end_polling(thread);
}

/* Then nothing asks for more than there is. */
Test(shared_eq, requests_for_a_look_cost_nothing_while_it_is_watched)
{
	settle();
	wait_until_idle();
	dofi_progress_expect(&progress);
	dofi_progress_probe(&progress);
	cr_expect(!progress.eq_wanted);
	cr_expect(!progress.probe_wanted);
}

Test(shared_eq, an_idle_thread_makes_no_rounds)
{
	until_watched(false, true);
	until_watched(true, false);
	settle();
	wait_until_idle();
}

/* A read after the last fi_trywait() finds what that took the signal of. */
static void take_signal(void *arg)
{
	uint64_t n;

	(void)arg;
	event_add(2, 0);
	cr_expect_eq(read(fake.eq_fd, &n, sizeof(n)), sizeof(n));
}

Test(shared_eq, an_event_without_a_signal_is_found_when_it_is_watched_again)
{
	until_watched(false, true);
	dofi_progress_call(&progress, take_signal, NULL);
	while (!memchr(trace, 'c', sizeof(trace)))
		sem_wait(&traced);
}

Test(shared_eq, of_the_preview_leaves_too, .init = init_net, .fini = fini)
{
	int ret = -1;

	dofi_cq_init(&cq);
	dofi_progress_call(&progress, cq_open_call, &ret);
	cr_assert_eq(ret, 0);
	until_watched(false, true);
	cr_expect(!progress.listen_eq.fid, "it would not help");
	event_add(2, 0);
	while (!memchr(trace, 'c', sizeof(trace)))
		sem_wait(&traced);
	until_watched(true, false);
	dofi_progress_call(&progress, cq_close_call, NULL);
}

static void look_at_thread(void *arg)
{
	char name[16] = "";
	sigset_t set;

	(void)arg;
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

/* Stopping and starting */

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void *stop(void *arg)
{
	(void)arg;
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

	shut_gate();
	dofi_progress_post(&progress, &a.work);
	pthread_create(&thread, NULL, stop, NULL);
	while (!stop_is_asked())
		usleep(1000);
	sem_post(&gate);
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

/* The fabric fails */

static void told_once(int err)
{
	await(1);
	cr_expect_eq(failure, err);
	dofi_progress_ring(&progress);
	dofi_progress_call(&progress, nothing, NULL);
	cr_expect_str_eq(trace, "X");
}

Test(progress, an_event_queue_that_cannot_be_read_is_told_once)
{
	fake.fault.eq_read = -FI_EIO;
	dofi_progress_ring(&progress);
	told_once(-FI_EIO);
}

Test(progress, where_that_may_be_one_connections_fault_it_goes_on, .init = init_verbs)
{
	fake.fault.eq_read = -FI_EIO;
	dofi_progress_ring(&progress);
	settle();
	fake.fault.eq_read = 0;
	event_add(2, 0);
	await(1);
	cr_expect_str_eq(trace, "c");
}

Test(progress, but_not_without_the_event_queues_descriptor, .init = init_verbs)
{
	fake.fault.eq_read = -EBADF;
	dofi_progress_ring(&progress);
	told_once(-EBADF);
}

/* The thread goes on with its work, and does not spin meanwhile. */
Test(progress, without_its_descriptors_it_tells_once)
{
	close(progress.epfd);
	dofi_progress_ring(&progress);
	told_once(-EBADF);
}

TestSuite(start);

static void fails_to_start(int expected)
{
	int fds = count_fds();

	cr_expect_eq(start(), expected);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds);
}

static void start_init(void)
{
	fake_init();
	fake.replace_fabric = true;
}

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

Test(start, without_an_event_queue, .init = start_init)
{
	fake.fault.eq_open = -FI_ENOMEM;
	fails_to_start(-FI_ENOMEM);
}

Test(start, without_the_event_queue_of_passive_endpoints, .init = start_init)
{
	int fds = count_fds();

	fake.version = FI_VERSION(2, 1);
	fake.fault.second_eq_open = -FI_ENOMEM;
	cr_expect_eq(start_as("tcp"), -FI_ENOMEM);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds);
}

Test(start, without_the_event_queues_descriptor, .init = start_init)
{
	fake.fault.eq_control = -FI_ENOSYS;
	fails_to_start(-FI_ENOSYS);
}

Test(start, without_epoll, .init = start_init)
{
	int fds = count_fds();

	fake.fault.eq_fd_bad = true;
	cr_expect_eq(start(), -EPERM);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds + 1, "the fake's own descriptor, and no more");
}

/* Connectionless fabrics: no events, and completion queues may have no descriptor */

static _Atomic bool asleep;		/* as peers see it: whoever clears it rings */
static _Atomic unsigned rests, arrived;
static bool nobody_rings;
static _Atomic unsigned comes_late;	/* so many come just after peers were asked to ring */
static struct dofi_cq cq, polled_cq;

static bool rest(struct dofi_progress *p)
{
	cr_expect(dofi_progress_on_thread(p));
	cr_expect(!asleep && dofi_poller_relies_on_peer(&cq.poller));
	cr_expect(!polled_cq.fid || dofi_poller_relies_on_peer(&polled_cq.poller), "the program reads it");
	rests++;
	if (nobody_rings)
		return false;
	if (comes_late) {
		comes_late--;
		fake_complete((void *)'l', 0);
	}
	asleep = true;
	return true;
}

static void rise(struct dofi_progress *p)
{
	cr_expect(dofi_progress_on_thread(p));
	cr_expect(!nobody_rings);
	asleep = false;
}

static void arrives(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	(void)err;
	(void)sink;
	(void)entry;
	arrived++;
	sem_post(&traced);
}

static const struct dofi_progress_ops rdm_ops = {
	.completed = arrives, .failed = failed, .rest = rest, .rise = rise,
};

static void open_cq(void *arg)
{
	dofi_cq_init(arg);
	cr_assert_eq(dofi_cq_open(arg, &progress, &fake.domain), 0);
}

static void close_cqs(void *arg)
{
	(void)arg;
	dofi_cq_close(&cq);
	if (polled_cq.fid)
		dofi_cq_close(&polled_cq);
}

static int start_rdm(const struct dofi_progress_ops *with)
{
	struct fi_info *info = fake_info("shm", "");
	int ret;

	info->ep_attr->type = FI_EP_RDM;
	ret = dofi_fabric_start(&progress, with, info);
	fi_freeinfo(info);
	return ret;
}

static void init_rdm_with(const struct dofi_progress_ops *with)
{
	dofi_settings_read();
	dofi_settings.tick_us = 10;	/* so that who ticks is seen */
	fake_init();
	fake.replace_fabric = true;
	fake.fault.eq_open = -FI_ENOSYS;
	fake.fault.no_cq_fd = true;
	sem_init(&traced, 0, 0);
	cr_assert_eq(start_rdm(with), 0);
	dofi_progress_call(&progress, open_cq, &cq);
}

static void init_rdm(void)
{
	init_rdm_with(&rdm_ops);
}

static void fini_rdm(void)
{
	dofi_progress_call(&progress, close_cqs, NULL);
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
	cr_expect(!asleep);
	cr_expect_eq(fake.trywaits, 0);
}

TestSuite(rest, .init = init_rdm, .fini = fini_rdm);

/* Sends as a peer does. */
static void peer_sends(void)
{
	fake_complete((void *)'p', 0);
	if (atomic_exchange(&asleep, false))
		dofi_progress_ring(&progress);
}

/* Whether the thread does something by itself. It may still be on its way to sleep. */
static bool is_busy(void)
{
	unsigned reads;

	settle();
	reads = fake.cq_reads;
	usleep(20000);		/* 2000 ticks */
	return fake.cq_reads - reads > 20;
}

Test(rest, an_idle_thread_sleeps)
{
	cr_expect(!is_busy());
	cr_expect(rests > 0);
	cr_expect(asleep);
}

/* It would hang where one is lost: nothing else wakes the thread. */
Test(rest, nothing_is_lost_between_the_last_look_and_sleep, .timeout = 20)
{
	unsigned i;

	for (i = 0; i < 2000; i++) {
		peer_sends();
		await(1);
	}
	cr_expect_eq(arrived, 2000);
}

Test(rest, what_comes_when_peers_are_asked_to_ring_is_found, .timeout = 20)
{
	comes_late = 5;
	dofi_progress_ring(&progress);
	await(5);
	cr_expect_eq(arrived, 5);
	cr_expect(!is_busy());
}

Test(rest, a_flood_keeps_nobody_waiting, .timeout = 20)
{
	comes_late = 1000000;
	dofi_progress_ring(&progress);
	await(10);
	settle();	/* work is done meanwhile */
	dofi_progress_call(&progress, close_cqs, NULL);
	dofi_progress_call(&progress, open_cq, &cq);
}

Test(rest, who_sleeps_for_an_event_is_served, .timeout = 20)
{
	dofi_cq_sleep_begin(&cq);
	cr_expect(!is_busy());
	peer_sends();
	await(1);
	dofi_cq_sleep_end(&cq);
}

/* rest() checks that the program has none of them. */
Test(rest, nobody_rings_for_what_the_program_reads, .timeout = 20)
{
	unsigned i;

	settle();
	for (i = 0; i < 2000; i++) {
		peer_sends();
		while (arrived <= i)
			dofi_cq_poll(&cq, NULL);
	}
	cr_expect_eq(arrived, 2000);
	peer_sends();
	while (arrived < 2001)
		usleep(10);	/* the program has stopped: a tick or a bell */
}

static _Atomic bool found;

static void *poll_the_other(void *arg)
{
	(void)arg;
	while (!found)
		dofi_cq_poll(&polled_cq, NULL);
	return NULL;
}

static void is_owned(void *arg)
{
	*(bool *)arg = atomic_load(&polled_cq.mode) == DOFI_CQ_OWNED;
}

Test(rest, one_that_nobody_reads_is_served_beside_one_that_is_read, .timeout = 20)
{
	bool owned = false;
	pthread_t thread;

	dofi_progress_call(&progress, open_cq, &polled_cq);
	pthread_create(&thread, NULL, poll_the_other, NULL);
	while (!owned)
		dofi_progress_call(&progress, is_owned, &owned);
	peer_sends();	/* and rings only if it was asked to, as nobody is while the other is read */
	await(1);
	found = true;
	pthread_join(thread, NULL);
}

static void init_deaf(void)
{
	nobody_rings = true;
	init_rdm();
}

Test(rest, where_nobody_rings_it_is_looked_at, .init = init_deaf, .timeout = 20)
{
	fake_complete((void *)'p', 0);
	await(1);
	fake_complete((void *)'p', 0);
	await(1);
}

static const struct dofi_progress_ops bare_ops = { .completed = arrives, .failed = failed };

static void init_bare(void)
{
	init_rdm_with(&bare_ops);
}

Test(rest, where_nobody_is_asked_it_is_looked_at, .init = init_bare, .timeout = 20)
{
	fake_complete((void *)'p', 0);
	await(1);
}

Test(rest, queues_with_descriptors_need_no_bell, .timeout = 20)
{
	dofi_progress_call(&progress, close_cqs, NULL);
	fake.fault.no_cq_fd = false;
	dofi_progress_call(&progress, open_cq, &cq);
	settle();
	rests = 0;
	fake_complete((void *)'p', 0);
	await(1);
	settle();
	cr_expect_eq(rests, 0);
	fake.trywaits = 0;
}
