/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that sleeps on a CQ itself. There is no progress thread: the test serves the CQ and
 * passes the time.
 */

#include "fab/cq.h"

#include "base/clock.h"
#include "base/env.h"
#include "fab/fake.h"
#include "thread.h"
#include "forbid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define US 1000LL
#define BRIEF 2000		/* microseconds */
#define LONG 60000000

static struct dofi_progress progress;
static struct dofi_cq cq;
static struct dofi_quirk quirk;
static _Atomic uint32_t asleep;	/* a word that peers see */
static const struct dofi_lead_word peers_word = { .word = &asleep, .bit = 2 };
static int64_t now = 1000000000;
static _Atomic unsigned delivered;
static struct dofi_mutex lock;	/* like an EVD's lock; guards cond */
static struct dofi_cond cond;

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	delivered++;
}

static _Atomic bool refuses;		/* the fabric still does not take an operation */

static void swept(struct dofi_cq *q)
{
	if (atomic_load(&refuses))
		dofi_cq_want_sweep(q);
}

/* The transport's own poll; only programs call it. */
static bool polled(struct dofi_cq *q, struct dofi_sink *sink)
{
	return true;
}

static const struct dofi_progress_ops ops = {
	.completed = completed, .swept = swept, .poll = polled,
};

static void init(void)
{
	fake_init();
	dofi_settings_read();
	dofi_settings.probe_us = 100;
	dofi_settings.tick_us = 1000;
	dofi_longest_sleep_ns = LONG * US * 60;
	progress.ops = &ops;
	progress.fabric = &fake.fabric;
	progress.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.served);
	STAILQ_INIT(&progress.work);
	dofi_cond_init(&cond);
	dofi_cq_init(&cq);
	cq.quirk = &quirk;
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	dofi_cq_serve(&cq, now);
	cr_assert(cq.armed);
	cq.policy.wakeups_kept = 0;			/* as after the first wakeups */
}

TestSuite(lead, .init = init, .timeout = 30);

static void reopen(void)
{
	dofi_cq_close(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
}

static void complete(unsigned n)
{
	while (n--)
		fake_complete(&cq, 0);
}

static bool led(void)
{
	return dofi_has_leader(&cq.lead);
}

/* Runs the handler of the source that epoll reports, then the progress thread's round. */
static void serve_woken(void)
{
	struct epoll_event ev;

	cr_assert_eq(epoll_wait(progress.epfd, &ev, 1, 0), 1);
	((struct dofi_source *)ev.data.ptr)->ready(ev.data.ptr);
	dofi_cq_serve(&cq, now);
}

static void poll_in_loop(void)
{
	dofi_cq_poll(&cq, NULL);
	dofi_mutex_lock(&cq.lock);
	cq.polls += 1000000;
	dofi_mutex_unlock(&cq.lock);
}

/* The program polls, and the progress thread has left the CQ to the program. */
static void make_owned(void)
{
	complete(1);
	poll_in_loop();
	complete(1);
	serve_woken();
	poll_in_loop();
	now = cq.due_at;
	dofi_cq_serve(&cq, now);
	cr_assert(!cq.armed);
	delivered = 0;
}

static int sleep_for(uint32_t us)
{
	int err;

	dofi_mutex_lock(&lock);
	err = dofi_lead_sleep(&cq, &cond, &lock, dofi_deadline(us));
	dofi_mutex_unlock(&lock);
	return err;
}

Test(lead, begins_and_ends)
{
	make_owned();
	cr_expect(cq.programs_fid);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	cr_expect(led());
	cr_expect(!cq.programs_fid, "a read takes all");
	dofi_lead_end(&cq);
	cr_expect(!led());
	cr_expect(cq.programs_fid);
}

Test(lead, its_end_leaves_an_armed_queue_armed)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	dofi_lead_end(&cq);
	cr_expect(cq.armed);
	cr_expect(!cq.programs_fid);
}

Test(lead, delivers_what_is_there_first)
{
	complete(3);
	cr_expect_eq(dofi_lead_begin(&cq), -EAGAIN);
	cr_expect(!led());
	cr_expect_eq(delivered, 3);
	cr_expect_eq(dofi_lead_begin(&cq), 0);
}

Test(lead, delivers_what_a_read_left_behind)
{
	make_owned();
	quirk.trywait_reads = true;
	cq.most = DOFI_CQ_BATCH;
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_assert_eq(cq.left, 2);
	cr_expect_eq(dofi_lead_begin(&cq), -EAGAIN);
	cr_expect_eq(delivered, 3);
}

Test(lead, a_fabric_that_has_more_is_read_again)
{
	fake.fault.trywait = 1;
	cr_expect_eq(dofi_lead_begin(&cq), -EAGAIN);
	cr_expect(!led());
	quirk.trywait_reads = true;
	complete(2);
	cr_expect_eq(dofi_lead_begin(&cq), -EAGAIN);
	cr_expect_eq(delivered, 2);
}

/* A read is a system call. Where fi_trywait() reads as well, a second read is superfluous. */
Test(lead, reads_only_where_it_has_to)
{
	unsigned before = fake.cq_reads;

	cr_assert_eq(dofi_lead_begin(&cq), 0);
	dofi_lead_end(&cq);
	cr_expect_eq(fake.cq_reads, before + 1);
	quirk.trywait_reads = true;
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	cr_expect_eq(fake.cq_reads, before + 1);
}

Test(lead, there_is_one)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	cr_expect(led());
}

Test(lead, not_where_others_sleep)
{
	dofi_cq_sleep_begin(&cq);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	dofi_cq_sleep_end(&cq);
	cr_expect_eq(dofi_lead_begin(&cq), 0);
}

Test(lead, not_where_the_fabric_is_to_be_tried_again)
{
	refuses = true;
	dofi_cq_want_sweep(&cq);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	cr_expect(!led());
	refuses = false;
	cr_expect_eq(dofi_lead_begin(&cq), 0, "the sweep before it was the last");
}

Test(lead, not_where_wakeups_cannot_be_relied_on)
{
	quirk.silent_errors = true;
	reopen();
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	quirk.silent_errors = false;
	reopen();
	cr_expect_eq(dofi_lead_begin(&cq), 0);
}

Test(lead, what_cannot_be_led_is_not_waited_for)
{
	quirk.silent_errors = true;
	reopen();
	dofi_mutex_lock(&cq.lock);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	dofi_mutex_unlock(&cq.lock);
}

Test(lead, not_when_closed)
{
	int wakeup_fd = cq.lead.wakeup_fd, signals = cq.lead.signals;

	dofi_cq_close(&cq);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	cr_expect_eq(fcntl(wakeup_fd, F_GETFD), -1);
	cr_expect_eq(fcntl(signals, F_GETFD), -1);
}

/* The CQ itself can still be opened. */
Test(lead, not_without_descriptors)
{
	struct rlimit limit, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	dofi_cq_close(&cq);
	none = limit;
	none.rlim_cur = cq.lead.wakeup_fd = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	complete(1);
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(delivered, 1);
	dofi_cq_close(&cq);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);	/* LeakSanitizer opens files */
}

Test(lead, sleeps_until_a_completion)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
	complete(1);
	cr_expect_eq(sleep_for(UINT32_MAX), 0);
	dofi_lead_end(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 1);
}

/* Leads once, as dat_evd_wait does. */
static int lead_for(uint32_t us)
{
	int err = dofi_lead_begin(&cq);

	if (err)
		return err;
	err = sleep_for(us);
	dofi_lead_end(&cq);
	dofi_cq_poll_next(&cq);
	return err;
}

/* The most sleeps on a descriptor that find nothing. */
#define MOST_EMPTY 8

static int empty_leads(void)
{
	int n = 0, err;

	while (!(err = lead_for(LONG)) || err == -EAGAIN)
		n++;
	cr_expect_eq(err, -EBUSY);
	return n;
}

/* As tcp keeps it while a message has no receive. */
Test(lead, a_descriptor_that_stays_readable_is_left_to_the_progress_thread)
{
	fake_set_fd(FAKE_FD_ALWAYS);
	cr_expect(empty_leads() < MOST_EMPTY);
	cr_expect_eq(empty_leads(), 0);
	complete(1);
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(lead_for(LONG), 0, "it had something");
	fake_set_fd(FAKE_FD_LIES);
	cr_expect(empty_leads() < MOST_EMPTY);
	fake_set_fd(FAKE_FD_TRUE);
	cr_expect_eq(lead_for(BRIEF), -ETIMEDOUT);
}

Test(lead, a_fabric_that_never_lets_it_sleep_is_left_to_the_progress_thread)
{
	fake.fault.trywait = 1000;
	cr_expect(empty_leads() < MOST_EMPTY);
	complete(1);
	cr_expect_eq(lead_for(LONG), -EAGAIN);
	cr_expect_eq(delivered, 1);
}

Test(lead, sleeps_that_end_by_time_do_not_count)
{
	int i;

	for (i = 0; i < 3 * MOST_EMPTY; i++)
		cr_expect_eq(lead_for(1), -ETIMEDOUT);
}

Test(lead, completions_for_other_evds_end_the_count)
{
	int i;

	for (i = 0; i < 3 * MOST_EMPTY; i++) {
		cr_assert_eq(dofi_lead_begin(&cq), 0);
		complete(1);
		cr_expect_eq(sleep_for(LONG), 0);
		dofi_lead_end(&cq);
		dofi_cq_poll_next(&cq);
	}
	cr_expect_eq(delivered, 3 * MOST_EMPTY);
}

Test(lead, a_descriptor_that_reports_nothing_does_not_prolong_a_wait)
{
	fake_set_fd(FAKE_FD_NEVER);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(1);
	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
	dofi_lead_end(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 1);
}

/* A thread that leads until it is stopped or interrupted. */
struct leader {
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool stop;
	int err;
};

/* A wake() after the stop is not lost: the leader sleeps already, or does not begin to. */
static int leader_sleep(struct leader *l)
{
	int err = 0;

	dofi_mutex_lock(&lock);
	if (!atomic_load(&l->stop))
		err = dofi_lead_sleep(&cq, &cond, &lock, dofi_deadline(UINT32_MAX));
	dofi_mutex_unlock(&lock);
	return err;
}

static void *leader_run(void *arg)
{
	struct leader *l = arg;

	while (!l->err && !atomic_load(&l->stop)) {
		l->err = dofi_lead_begin(&cq);
		if (l->err == -EAGAIN)
			l->err = 0;
		else if (!l->err) {
			atomic_store(&l->tid, (pid_t)syscall(SYS_gettid));
			l->err = leader_sleep(l);
			dofi_lead_end(&cq);
			dofi_cq_poll_next(&cq);
		}
	}
	return NULL;
}

static void leader_start(struct leader *l)
{
	*l = (struct leader){ .err = 0 };
	pthread_create(&l->thread, NULL, leader_run, l);
	while (!thread_rests(atomic_load(&l->tid)) || !led())
		usleep(100);
}

static int leader_end(struct leader *l)
{
	pthread_join(l->thread, NULL);
	cr_expect(!led());
	return l->err;
}

static void wake(void)
{
	dofi_mutex_lock(&lock);
	dofi_cond_broadcast(&cond);
	dofi_mutex_unlock(&lock);
}

static void ring_and_end(struct leader *l)
{
	atomic_store(&l->stop, true);
	wake();
	cr_expect_eq(leader_end(l), 0);
}

Test(lead, a_ring_wakes_it)
{
	struct leader l;

	leader_start(&l);
	ring_and_end(&l);
}

Test(lead, closing_the_queue_waits_for_it)
{
	struct leader l;

	leader_start(&l);
	dofi_cq_close(&cq);
	cr_expect(!led());
	cr_expect_eq(leader_end(&l), -EBUSY);
}

/* A thread may still poll a CQ that fed its EVD. */
Test(lead, nobody_polls_a_queue_that_its_leader_left_as_it_closed)
{
	struct leader l;

	make_owned();
	cr_expect_eq(cq.programs_poll, polled);
	leader_start(&l);
	dofi_cq_close(&cq);
	cr_expect_eq(leader_end(&l), -EBUSY);
	cr_expect_eq(cq.programs_poll, NULL);
	cr_expect_eq(cq.programs_fid, NULL);
	dofi_cq_poll_next(&cq);
}

/* From the second shard on, the CQ's descriptor is the epoll set's. */
Test(lead, another_shard_waits_until_it_has_left)
{
	struct leader l;
	unsigned i;
	int fd;

	quirk.reads_each = true;
	for (i = 0; i < DOFI_SHARD_ENDPOINTS; i++)
		dofi_cq_enter_shard(&cq);
	fd = cq.fd;
	leader_start(&l);
	dofi_cq_enter_shard(&cq);
	cr_assert(cq.several && cq.fd != fd);
	atomic_store(&l.stop, true);
	wake();
	leader_end(&l);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(1);
	cr_expect_eq(sleep_for(UINT32_MAX), 0);
	dofi_lead_end(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 1);
}

Test(lead, a_wanted_sweep_interrupts_it)
{
	struct leader l;

	make_owned();
	leader_start(&l);
	refuses = true;
	dofi_cq_want_sweep(&cq);
	cr_expect_eq(leader_end(&l), -EBUSY);
}

/*
 * A completion that a poll leaves in the queue would stay there until the leader's next completion.
 */
Test(lead, a_poll_meanwhile_takes_all)
{
	make_owned();
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 3);
	complete(2);
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(fake_unread(), 0);
}

Test(lead, a_kick_drains)
{
	make_owned();
	complete(1);
	dofi_cq_kick(&cq, NULL);
	cr_expect_eq(delivered, 0);
	dofi_cq_poll(&cq, NULL);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(1);
	dofi_cq_kick(&cq, NULL);
	cr_expect_eq(delivered, 2);
}

/* With the progress thread */

Test(lead, the_progress_thread_leaves_it_what_woke_both)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(1);
	serve_woken();
	cr_expect(!cq.armed);
	cr_expect_eq(delivered, 0);
	cr_expect(!cq.programs_fid);
	cr_expect_eq(sleep_for(LONG), 0);
	dofi_lead_end(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 1);
	cr_assert_eq(dofi_lead_begin(&cq), 0);	/* it waits for the next event */
	now = cq.due_at;
	dofi_cq_serve(&cq, now);
	cr_expect(!cq.armed);
}

Test(lead, the_progress_thread_reads_what_woke_it_if_no_leader_did)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	complete(1);
	serve_woken();
	dofi_lead_end(&cq);
	now = cq.due_at;
	dofi_cq_serve(&cq, now);
	cr_expect_eq(delivered, 1);
	cr_expect(cq.armed);
}

Test(lead, the_progress_thread_reads_at_once_while_others_sleep)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	dofi_cq_sleep_begin(&cq);
	complete(1);
	serve_woken();
	cr_expect_eq(delivered, 1);
	cr_expect(cq.armed);
	dofi_cq_sleep_end(&cq);
}

Test(lead, the_progress_thread_reads_at_once_if_a_retry_is_due)
{
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	dofi_cq_want_sweep(&cq);
	complete(1);
	serve_woken();
	cr_expect_eq(delivered, 1);
	cr_expect(!dofi_cq_wants_sweep(&cq));
	cr_expect(dofi_cq_due(&cq) <= now + 1000 * US, "it looks again after a tick");
}

Test(lead, while_it_sleeps_long_the_progress_thread_does)
{
	make_owned();
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	now = cq.due_at;
	dofi_cq_serve(&cq, now);
	now = cq.due_at;
	dofi_cq_serve(&cq, now);
	cr_expect(cq.armed);
	cr_expect_eq(dofi_cq_due(&cq), DOFI_NEVER);
	cr_expect(!cq.programs_fid);
}

/* Without a descriptor */

static bool waits_for_futexes(void)
{
	_Atomic uint32_t word = 0;
	int err;

	dofi_mutex_lock(&lock);
	err = dofi_cond_wait_word(&cond, &lock, DOFI_NEVER, &word, 1);
	dofi_mutex_unlock(&lock);
	return !err;
}

static void make_shared(void)
{
	fake.fault.no_cq_fd = true;
	dofi_cq_close(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	dofi_cq_serve(&cq, now);
}

Test(lead, without_a_descriptor_peers_have_to_know_where_to_ring)
{
	dofi_lead_set_word(&cq, &peers_word);
	cr_expect(!cq.lead.word, "it has a descriptor");
	fake.fault.no_cq_fd = true;
	reopen();
	if (cq.fd >= 0)
		return;
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	dofi_lead_set_word(&cq, &peers_word);
	cr_expect_eq(dofi_lead_begin(&cq), 0);
	cr_expect_eq(asleep, peers_word.bit);
	dofi_lead_end(&cq);
	dofi_cq_close(&cq);
	cr_expect(!cq.lead.word);
}

/* As a peer does that has sent something. */
static void peer_wakes(void)
{
	if (atomic_fetch_and(&asleep, ~peers_word.bit) & peers_word.bit)
		dofi_word_wake(&asleep);
}

/* Returns whether the kernel lets the leader sleep on the word. */
static bool lead_by_word(void)
{
	make_shared();
	dofi_lead_set_word(&cq, &peers_word);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	return waits_for_futexes();
}

Test(lead, a_leader_sleeps_on_a_shared_word)
{
	if (!lead_by_word())
		return;
	cr_expect_eq(sleep_for(BRIEF), -ETIMEDOUT);
	peer_wakes();
	cr_expect_eq(sleep_for(UINT32_MAX), 0, "woken before it slept");
	cr_expect_eq(sleep_for(0), -ETIMEDOUT);
}

/* After a faulty peer has withdrawn the request, other peers do not wake the leader. */
Test(lead, on_a_shared_word_it_does_not_sleep_for_ever)
{
	if (!lead_by_word())
		return;
	dofi_longest_sleep_ns = BRIEF * US;
	cr_expect_eq(sleep_for(UINT32_MAX), 0);
	cr_expect_eq(sleep_for(LONG), 0);
	cr_expect_eq(sleep_for(BRIEF / 2), -ETIMEDOUT);
}

#ifdef SYS_futex_waitv
/* A wait that cannot sleep on the word costs a read, and the next peer a system call. */
Test(lead, without_futex_waitv_one_thread_tries_to_lead)
{
	if (!forbid_call(SYS_futex_waitv, ENOSYS))
		return;
	make_shared();
	dofi_lead_set_word(&cq, &peers_word);
	cr_assert_eq(dofi_lead_begin(&cq), 0);
	cr_expect_eq(sleep_for(LONG), -EBUSY);
	cr_expect_eq(asleep, 0, "no thread sleeps on the word");
	dofi_lead_end(&cq);
	cr_expect(!dofi_lead_is_able(&cq.lead));
	cr_expect_eq(dofi_lead_begin(&cq), -EBUSY);
	cr_expect_eq(asleep, 0);
}
#endif

Test(lead, on_a_shared_word_it_is_woken_by_all_that_wakes_it)
{
	struct leader l;

	make_shared();
	dofi_lead_set_word(&cq, &peers_word);
	if (!waits_for_futexes())
		return;
	leader_start(&l);
	complete(1);
	peer_wakes();
	while (!delivered)
		usleep(100);
	ring_and_end(&l);
	leader_start(&l);
	dofi_cq_close(&cq);
	cr_expect_eq(leader_end(&l), -EBUSY);
}
