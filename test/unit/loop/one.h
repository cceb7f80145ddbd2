/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One progress thread over the fake fabric, with a trace of the work on it. */
#ifndef TEST_LOOP_ONE_H
#define TEST_LOOP_ONE_H

#include "base/env.h"
#include "fab/cq.h"
#include "fab/fake.h"
#include "fab/info.h"
#include "loop/progress.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct dofi_progress progress;

/* The work, in order. The progress thread appends to it. */
static char trace[4096];
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t traced;

static inline void trace_add(char c)
{
	pthread_mutex_lock(&trace_lock);
	/* a full trace begins again: a CQ may take any number of completions to be left alone */
	if (strlen(trace) == sizeof(trace) - 1)
		memset(trace, 0, sizeof(trace));
	trace[strlen(trace)] = c;
	pthread_mutex_unlock(&trace_lock);
	sem_post(&traced);
}

static inline void await(unsigned n)
{
	while (n)
		if (!sem_wait(&traced))
			n--;
}

static struct fi_eq_cm_entry last_entry;
static char last_data[64];
static size_t last_len;

static inline void cm_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry,
			    size_t len)
{
	cr_expect(dofi_progress_on_thread(p));
	last_entry = *entry;
	last_len = len;
	memcpy(last_data, entry->data, len - sizeof(*entry));
	trace_add('a' + event);
}

static inline void cm_error(struct dofi_progress *p, const struct fi_eq_err_entry *entry)
{
	cr_expect(dofi_progress_on_thread(p));
	last_entry.fid = entry->fid;
	last_len = entry->err_data_size;
	memcpy(last_data, entry->err_data, last_len);
	cr_expect_eq(entry->err, FI_ECONNREFUSED);
	trace_add('!');
}

static struct dofi_cq cq;

static inline void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	trace_add((char)(uintptr_t)entry->op_context);
	dofi_cq_delivered(&cq);
}

static int failure;

static inline void failed(struct dofi_progress *p, int err)
{
	cr_expect(dofi_progress_on_thread(p));
	failure = err;
	trace_add('X');
}

static const struct dofi_progress_ops ops = {
	.completed = completed, .cm_event = cm_event, .cm_error = cm_error, .failed = failed,
};

static inline int start_as(const char *provider)
{
	struct fi_info *info = fake_info(provider, "");
	int ret = dofi_fabric_start(&progress, &ops, info);

	fi_freeinfo(info);
	return ret;
}

static inline int start(void)
{
	return start_as("fake");
}

static inline void init_as(const char *provider)
{
	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	sem_init(&traced, 0, 0);
	cr_assert_eq(start_as(provider), 0);
}

static inline void init(void)
{
	init_as("fake");
}

static inline void init_verbs(void)
{
	init_as("verbs");
}

static inline void fini(void)
{
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
}

static inline void nothing(void *arg)
{
}

/* Returns when all work posted before has run. */
static inline void settle(void)
{
	dofi_progress_call(&progress, nothing, NULL);
}

struct letter {
	struct dofi_work work;
	char c;
};

/* Returns how often the thread was woken since the last call. */
static inline uint64_t rung(void)
{
	uint64_t n;

	return read(progress.wake_fd, &n, sizeof(n)) < 0 ? 0 : n;
}

static inline void letter_run(struct dofi_work *work)
{
	trace_add(((struct letter *)work)->c);
}

/* Work that blocks the thread until the test posts release. */
static sem_t held, release;

static inline void hold_run(struct dofi_work *work)
{
	sem_post(&held);
	sem_wait(&release);
}

static struct dofi_work hold_work = { .run = hold_run };

static inline void hold_thread(void)
{
	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	dofi_progress_post(&progress, &hold_work);
	sem_wait(&held);
}

static inline void cq_open_call(void *arg)
{
	*(int *)arg = dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops);
}

static inline void cq_close_call(void *arg)
{
	dofi_cq_close(&cq);
}

static inline void event_add(uint32_t number, int err)
{
	struct fake_event e = { .event = number, .err = err, .len = 5, .data = "data" };

	e.entry.fid = &fake.eq.fid;
	fake_event_add(&e);
}

/* Returns when the thread makes no more rounds. If it never stops, the test times out. */
static inline void wait_until_idle(void)
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

/* Whether the progress thread has left the CQ to the program for more than the first pause. */
static inline void is_owned_call(void *arg)
{
	*(bool *)arg = !cq.armed && cq.policy.pause_us > dofi_settings.probe_us;
}

/*
 * Uses the CQ until the progress thread leaves it to the program, which takes longer if this thread
 * is delayed.
 */
static inline void own_cq(void)
{
	bool owned = false;

	while (!owned) {
		dofi_cq_took(&cq);
		if (cq.armed) {
			fake_complete((void *)(uintptr_t)'a', 0);
			await(1);
		}
		dofi_progress_call(&progress, is_owned_call, &owned);
	}
}

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline void reported_once(int err)
{
	await(1);
	cr_expect_eq(failure, err);
	dofi_progress_wake(&progress);
	dofi_progress_call(&progress, nothing, NULL);
	cr_expect_str_eq(trace, "X");
}

static inline void fails_to_start(int expected)
{
	int fds = count_fds();

	cr_expect_eq(start(), expected);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(count_fds(), fds);
}

static inline void start_init(void)
{
	fake_init();
	fake.replace_fabric = true;
}

#endif
