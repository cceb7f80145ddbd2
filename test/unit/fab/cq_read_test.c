/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a completion queue: delivered and remaining completions, errors, sweeps, and guards. */

#include "fab/cq_one.h"

#include "base/clock.h"
#include "fab/cq.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

TestSuite(cq_read, .init = init);
TestSuite(cq_read_shards, .init = init_shards);

Test(cq_read, batches_of_every_size_are_delivered_in_order)
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
Test(cq_read, one_poll_reads_all)
{
	complete(40);
	poll_once();
	cr_expect_eq(delivered, 40);
}

Test(cq_read, poll_next_reads_one)
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
	complete(1);
	dofi_cq_poll_next(&cq);
	complete(n + 1);
	delivered = next_context - n - 2;
	dofi_cq_poll_next(&cq);
	cr_assert_eq(fake_unread(), 0);
	cr_assert_eq(cq.left, n);
	cr_assert_eq(delivered, next_context - n - 1);
}

Test(cq_read, after_a_find_poll_next_reads_several_and_delivers_one)
{
	unsigned reads;

	read_ahead(3);
	reads = fake.cq_reads;
	complete(1);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(fake.cq_reads, reads);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(fake.cq_reads, reads + 1);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, after_an_empty_read_poll_next_reads_one)
{
	make_owned();
	dofi_cq_poll_next(&cq);
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(cq.left, 0);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(cq.left, 1);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	complete(3);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(cq.left, 0);
	cr_expect_eq(fake_unread(), 2);
}

Test(cq_read, what_was_left_comes_before_what_is_there)
{
	read_ahead(3);
	complete(4);
	poll_once();
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, what_was_left_is_something)
{
	read_ahead(1);
	cr_expect(dofi_cq_drain(&cq));
	cr_expect(!dofi_cq_drain(&cq));
	cr_expect_eq(delivered, next_context - 1);
}

Test(cq_read, with_what_was_left_a_read_brings_a_batch)
{
	read_ahead(DOFI_CQ_BATCH - 1);
	complete(40);
	poll_once();
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, what_was_left_is_drained_with_the_rest)
{
	read_ahead(3);
	complete(2);
	cr_expect(dofi_cq_drain(&cq));
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, what_was_left_is_not_forgotten_when_the_program_stops_polling)
{
	read_ahead(3);
	now = cq.due_at;
	serve();
	now = cq.due_at;
	serve();
	cr_assert(armed());
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, what_was_left_is_not_forgotten_when_a_thread_sleeps)
{
	read_ahead(3);
	dofi_cq_sleep_begin(&cq);
	cr_expect(was_woken());
	serve();
	cr_expect_eq(delivered, next_context - 1);
	dofi_cq_sleep_end(&cq);
}

Test(cq_read, an_error_stays_behind_what_was_left)
{
	read_ahead(1);
	fake_complete((void *)next_context++, FI_ECANCELED);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(last_err, 0);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(last_err, FI_ECANCELED);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, a_poll_passes_what_was_left_before_an_error)
{
	read_ahead(2);
	fake_complete((void *)next_context++, FI_ECANCELED);
	poll_once();
	poll_once();
	cr_expect_eq(last_err, FI_ECANCELED);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, what_was_left_ends_with_the_queue)
{
	unsigned before;

	read_ahead(3);
	before = delivered;
	dofi_cq_close(&cq);
	poll_once();
	dofi_cq_poll_next(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, before);
}

Test(cq_read, all_where_no_signal_would_follow)
{
	serve();
	cr_assert(armed());
	complete(40);
	dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 40);
}

Test(cq_read, one_poll_reads_all_behind_an_error)
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
Test(cq_read, completions_after_an_error_come_with_the_next_read)
{
	cq.policy.wakeups_kept = 0;
	poll_in_loop();
	cq.served.fired = true;
	serve();
	cr_assert(!armed());
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

/* The operation may have failed because its connection ended, which the event queue reports. */
Test(cq_read, a_failed_completion_makes_the_event_queue_due)
{
	serve();
	fake_complete((void *)1, -FI_ECANCELED);
	poll_once();
	cr_expect(!progress.eq_wanted, "it is watched");
	was_woken();
	progress.eq_away = true;
	fake_complete((void *)2, -FI_ECANCELED);
	poll_once();
	cr_expect(progress.eq_wanted);
	cr_expect(was_woken());
	fake_complete((void *)3, -FI_ECANCELED);
	poll_once();
	cr_expect(!was_woken(), "once is enough");
}

Test(cq_read, a_poller_gives_its_sink)
{
	struct dofi_sink *mine = (struct dofi_sink *)&cq;

	complete(1);
	dofi_cq_poll(&cq, mine);
	cr_expect_eq(last_sink, mine);
	complete(1);
	dofi_cq_drain(&cq);
	cr_expect(!last_sink);
}

Test(cq_read, errors_have_their_place_among_the_rest)
{
	int i;

	for (i = 0; i < 60; i++)
		fake_complete((void *)next_context++, i % 7 ? 0 : FI_ECANCELED);
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 60);
	cr_expect_eq(out_of_order, 0);
}

Test(cq_read, errors_are_positive_whatever_the_fabric_says)
{
	fake_complete((void *)next_context++, -FI_ECANCELED);
	poll_once();
	cr_expect_eq(last_err, FI_ECANCELED);
	fake_complete((void *)next_context++, FI_ETRUNC);
	poll_once();
	cr_expect_eq(last_err, FI_ETRUNC);
}

/* The fabric reports one error code for all of them: see dofi_wc_errno(). */
Test(cq_read, the_status_of_verbs_is_delivered)
{
	fake.completion[0] = (struct fake_completion){
		.entry.op_context = (void *)1, .err = FI_EIO, .prov_errno = 10,
	};
	fake.cq_tail = 1;
	quirk.wc_errors = true;
	dofi_cq_poll(&cq, NULL);
	cr_expect_eq(last_err, FI_EKEYREJECTED);
}

Test(cq_read, an_error_that_cannot_be_read_ends_the_drain, .timeout = 20)
{
	fake_complete((void *)next_context++, FI_EIO);
	fake.fault.cq_readerr = -FI_EAGAIN;
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 0);
}

static bool progress_thread_is_woken(void)
{
	uint64_t rung;

	return read(progress.wake_fd, &rung, sizeof(rung)) == sizeof(rung);
}

Test(cq_read, a_flood_leaves_the_lock_to_others, .timeout = 20)
{
	endless = true;
	complete(40);
	cr_expect(!progress_thread_is_woken());
	cr_expect(dofi_cq_drain(&cq));
	cr_expect(progress_thread_is_woken());
	dofi_cq_poll(&cq, NULL);
	cr_expect(progress_thread_is_woken());
	cr_expect_eq(out_of_order, 0);
	endless = false;
	dofi_cq_drain(&cq);
	cr_expect_eq(fake_unread(), 0);
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

Test(cq_read, a_polling_thread_yields_to_the_reader)
{
	gives_way(poll_once);
	gives_way(poll_next_once);
}

Test(cq_read, a_reading_thread_does_not_yield)
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
	poll_once();
	return NULL;
}

Test(cq_read, a_poll_leaves_it_to_the_thread_that_reads, .timeout = 20)
{
	pthread_t thread;

	complete(1);
	dofi_mutex_lock(&cq.lock);
	pthread_create(&thread, NULL, poll_in_thread, NULL);
	pthread_join(thread, NULL);
	dofi_mutex_unlock(&cq.lock);
	cr_expect_eq(delivered, 0);
}

/* Only a serial CQ needs the access lock. */
Test(cq_read, a_cq_that_is_not_serial_calls_the_fabric_without_a_lock)
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

Test(cq_read, a_queue_that_cannot_be_read_is_reported)
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

Test(cq_read, any_reader_sweeps_if_wanted)
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

Test(cq_read, a_sweep_that_fails_is_repeated)
{
	idle_sweeps = 2;
	dofi_cq_want_sweep(&cq);
	poll_once();
	poll_once();
	poll_once();
	poll_once();
	cr_expect_eq(sweeps, 3);
}

/* A further user of the CQ, which removes itself if it wants no more sweeps. */
struct user {
	struct dofi_sweeper sweeper;
	unsigned sweeps, wanted;
};

static void user_swept(struct dofi_sweeper *s)
{
	struct user *u = (struct user *)s;

	cr_assert(!dofi_mutex_try(&cq.lock));
	if (++u->sweeps < u->wanted)
		dofi_cq_want_sweep(&cq);
	else
		dofi_cq_remove_sweeper(&cq, s);
}

static void user_add(struct user *u)
{
	dofi_mutex_lock(&cq.lock);
	dofi_cq_add_sweeper(&cq, &u->sweeper);
	dofi_mutex_unlock(&cq.lock);
}

Test(cq_read, each_sweeper_is_called)
{
	struct user one = { .sweeper.swept = user_swept, .wanted = 1 };
	struct user three = { .sweeper.swept = user_swept, .wanted = 3 };

	user_add(&one);
	user_add(&three);
	poll_once();
	cr_expect_eq(three.sweeps, 0, "no sweep was wanted");
	dofi_cq_want_sweep(&cq);
	poll_once();
	cr_expect(one.sweeps == 1 && three.sweeps == 1 && sweeps == 1);
	dofi_cq_drain(&cq);
	poll_once();
	poll_once();
	cr_expect(one.sweeps == 1 && three.sweeps == 3 && sweeps == 3);
	cr_expect(LIST_EMPTY(&cq.sweepers));
}

/* An EP with an operation that the fabric refused, and refuses again until @calls is @wanted. */
struct stalled {
	struct dofi_stall stall;
	unsigned calls, wanted;
};

static void stalled_go_on(struct dofi_stall *s)
{
	struct stalled *of = (struct stalled *)s;

	if (++of->calls < of->wanted)
		dofi_cq_stall(&cq, s);
}

Test(cq_read, a_stalled_endpoint_goes_on_at_the_next_sweep)
{
	struct stalled once = { .stall.go_on = stalled_go_on, .wanted = 1 };
	struct stalled thrice = { .stall.go_on = stalled_go_on, .wanted = 3 };

	dofi_cq_stall(&cq, &once.stall);
	dofi_cq_stall(&cq, &thrice.stall);
	dofi_cq_stall(&cq, &thrice.stall);
	poll_once();
	cr_expect(once.calls == 1 && thrice.calls == 1);
	poll_once();
	poll_once();
	cr_expect(once.calls == 1 && thrice.calls == 3);
	cr_expect(!dofi_cq_wants_sweep(&cq));
}

Test(cq_read, a_closed_endpoint_is_stalled_no_more)
{
	struct stalled gone = { .stall.go_on = stalled_go_on };

	dofi_cq_stall(&cq, &gone.stall);
	dofi_mutex_lock(&cq.lock);
	dofi_cq_stall_end(&cq, &gone.stall);
	dofi_cq_stall_end(&cq, &gone.stall);
	dofi_mutex_unlock(&cq.lock);
	poll_once();
	cr_expect_eq(gone.calls, 0);
}

/* The transport of datagrams has nothing to sweep but its endpoints. */
Test(cq_read, a_queue_without_a_sweep_of_its_own_has_sweepers)
{
	static const struct dofi_progress_ops none = { .completed = completed };
	struct user one = { .sweeper.swept = user_swept, .wanted = 1 };

	dofi_mutex_lock(&cq.lock);
	cq.ops = &none;
	dofi_mutex_unlock(&cq.lock);
	dofi_cq_want_sweep(&cq);
	poll_once();
	cr_expect(!dofi_cq_wants_sweep(&cq));
	user_add(&one);
	dofi_cq_want_sweep(&cq);
	dofi_cq_drain(&cq);
	cr_expect_eq(one.sweeps, 1);
	cr_expect_eq(sweeps, 0);
}

/*
 * A wakeup is a system call, so a request for a sweep makes one only if the progress thread sleeps,
 * and not again until the sweep has succeeded.
 */
Test(cq_read, a_wanted_sweep_wakes_the_progress_thread)
{
	serve();
	idle_sweeps = 1;
	dofi_cq_want_sweep(&cq);
	cr_expect(was_woken());
	dofi_cq_want_sweep(&cq);
	poll_once();
	cr_expect(!was_woken());
	poll_once();
	cr_expect_eq(sweeps, 2);
	dofi_cq_want_sweep(&cq);
	cr_expect(was_woken());
}

Test(cq_read, a_wanted_sweep_does_not_disturb_a_reader)
{
	make_owned();
	dofi_cq_want_sweep(&cq);
	cr_expect(!was_woken());
	poll_once();
	cr_expect_eq(sweeps, 1);
}

Test(cq_read, a_wanted_sweep_is_made_every_tick)
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

Test(cq_read, what_is_closed_is_not_swept)
{
	dofi_cq_want_sweep(&cq);
	dofi_cq_close(&cq);
	poll_once();
	dofi_cq_drain(&cq);
	cr_expect_eq(sweeps, 0);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	serve();
	cr_expect_eq(sweeps, 0);
}

/* A CQ of several shards */

Test(cq_read_shards, polls_find_what_came_in_order)
{
	complete(2);
	dofi_cq_enter_shard(&cq);
	complete(40);
	poll_once();
	while (fake_unread())
		dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, 42);
	cr_expect_eq(out_of_order, 0);
}

/* Completions that a poll read and did not deliver come before completions in the shards. */
Test(cq_read_shards, what_was_left_comes_first)
{
	make_owned();
	complete(5);
	dofi_cq_poll_next(&cq);
	dofi_cq_poll_next(&cq);
	cr_assert(cq.left);
	dofi_cq_enter_shard(&cq);
	complete(3);
	while (fake_unread() || cq.left)
		dofi_cq_poll_next(&cq);
	cr_expect_eq(delivered, next_context - 1);
	cr_expect_eq(out_of_order, 0);
}

/* A further shard with one failed completion. */
static bool has_failed = true;

static ssize_t failed_read(struct fid_cq *fid, void *buf, size_t count)
{
	return has_failed ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t failed_readerr(struct fid_cq *fid, struct fi_cq_err_entry *e, uint64_t flags)
{
	has_failed = false;
	e->op_context = (void *)next_context++;
	e->err = FI_EIO;
	return 1;
}

Test(cq_read_shards, an_error_is_read_where_it_is)
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

Test(cq_read_shards, a_poll_that_finds_nothing_reads_none)
{
	dofi_cq_enter_shard(&cq);
	poll_once();
	fake.cq_reads = 0;
	poll_once();
	dofi_cq_poll_next(&cq);
	cr_expect_eq(fake.cq_reads, 0);
}

Test(cq_read_shards, a_kick_reads_the_shard_whatever_its_descriptor_reports)
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

/* Which errno a work completion status of verbs stands for. */

Test(wc, what_verbs_say_is_taken_apart)
{
	cr_expect_eq(dofi_wc_errno(1, EIO), EMSGSIZE);
	cr_expect_eq(dofi_wc_errno(4, EIO), EFAULT);
	cr_expect_eq(dofi_wc_errno(5, EIO), ECANCELED);
	cr_expect_eq(dofi_wc_errno(9, EIO), EREMOTEIO);
	cr_expect_eq(dofi_wc_errno(10, EIO), EKEYREJECTED);
	cr_expect_eq(dofi_wc_errno(13, EIO), ETIMEDOUT);
}

Test(wc, what_says_nothing_leaves_the_fabrics_error)
{
	cr_expect_eq(dofi_wc_errno(0, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(6, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(14, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(-1, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(1 << 30, EIO), EIO);
}
