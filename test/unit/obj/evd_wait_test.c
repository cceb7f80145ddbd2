/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting for events: thresholds, timeouts, interruptions, one waiter at a time. */

#include "obj/fixture.h"

#include "base/clock.h"
#include "base/env.h"
#include "thread.h"

#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUICK 2000	/* microseconds */
#define LONG 60000000

static DAT_EVENT event;
static DAT_COUNT more;

static DAT_RETURN wait_for(DAT_TIMEOUT timeout, DAT_COUNT threshold)
{
	event.event_number = (DAT_EVENT_NUMBER)0;
	more = -1;
	return dofi_evd_wait(evd, timeout, threshold, &event, &more);
}

/* A thread in dat_evd_wait. */
struct waiter {
	pthread_t thread;
	DAT_COUNT threshold;
	DAT_TIMEOUT timeout;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
	_Atomic pid_t tid;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
	w->ret = dofi_evd_wait(evd, w->timeout, w->threshold, &w->event, &w->more);
	return NULL;
}

static bool is_waiting(void)
{
	return ((struct dofi_evd *)evd)->waiting;
}

static void waiter_start_for(struct waiter *w, DAT_COUNT threshold, DAT_TIMEOUT timeout)
{
	*w = (struct waiter){ .threshold = threshold, .timeout = timeout, .more = -1 };
	pthread_create(&w->thread, NULL, waiter_run, w);
	while (!is_waiting())
		usleep(200);
}

static void waiter_start(struct waiter *w, DAT_COUNT threshold)
{
	waiter_start_for(w, threshold, DAT_TIMEOUT_INFINITE);
}

static DAT_RETURN waiter_end(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	return w->ret;
}

TestSuite(evd_wait, .init = objects_init, .fini = ia_fini);

Test(evd_wait, checks_its_arguments)
{
	expect_type(dofi_evd_wait(pz, 0, 1, &event, &more), DAT_INVALID_HANDLE);
	expect_arg(wait_for(0, 0), 3);
	expect_arg(wait_for(0, -1), 3);
	expect_arg(wait_for(0, 65), 3);
	expect_arg(dofi_evd_wait(evd, 0, 1, NULL, &more), 4);
	expect_arg(dofi_evd_wait(evd, 0, 1, &event, NULL), 5);
}

Test(evd_wait, times_out_not_too_early)
{
	int64_t before = dofi_now();

	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
	cr_expect(dofi_now() - before >= QUICK * 1000LL);
	cr_expect_eq(more, 0);
}

Test(evd_wait, no_time_is_a_look)
{
	expect_type(wait_for(0, 1), DAT_TIMEOUT_EXPIRED);
	succeed(post_number(evd, 1));
	succeed(wait_for(0, 1));
}

Test(evd_wait, takes_the_oldest_and_counts_the_rest)
{
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	succeed(post_number(evd, 3));
	succeed(wait_for(LONG, 1));
	cr_expect_eq(number_of(&event), 1);
	cr_expect_eq(event.evd_handle, evd);
	cr_expect_eq(more, 2);
}

Test(evd_wait, a_threshold_that_is_there_does_not_wait)
{
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	succeed(wait_for(LONG, 2));
	cr_expect_eq(more, 1);
}

Test(evd_wait, a_threshold_not_reached_takes_nothing)
{
	succeed(post_number(evd, 1));
	expect_type(wait_for(QUICK, 2), DAT_TIMEOUT_EXPIRED);
	cr_expect_eq(more, 1);
	event_take(evd, DAT_SOFTWARE_EVENT);
}

static sem_t held, release;

static void hold_run(struct dofi_work *work)
{
	sem_post(&held);
	sem_wait(&release);
}

/* Whether a wait asks the progress thread, which works, to read the queues that it has left. */
static bool wait_has_queues_read(void)
{
	struct dofi_progress *p = &((struct dofi_evd *)evd)->obj.ia->progress;
	struct dofi_work work = { .run = hold_run };
	bool wanted;

	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	dofi_progress_post(p, &work);
	sem_wait(&held);
	atomic_store(&p->cq_away, true);
	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
	wanted = atomic_load(&p->probe_wanted);
	sem_post(&release);
	dofi_progress_withdraw(p, &work);
	return wanted;
}

Test(evd_wait, a_wait_for_connection_events_has_all_queues_read)
{
	cr_expect(wait_has_queues_read());
}

Test(evd_wait, a_wait_for_completions_has_only_their_queue_read)
{
	struct dofi_evd *e = (struct dofi_evd *)evd;
	struct dofi_cq cq = { .progress = &e->obj.ia->progress, .fd = -1 };

	dofi_evd_feed_get(e, &cq);
	cr_expect(!wait_has_queues_read());
	dofi_evd_feed_put(e, &cq);
}

Test(evd_wait, sleeps_until_an_event)
{
	struct waiter w;

	waiter_start(&w, 1);
	succeed(post_number(evd, 7));
	succeed(waiter_end(&w));
	cr_expect_eq(number_of(&w.event), 7);
	cr_expect_eq(w.more, 0);
}

Test(evd_wait, sleeps_until_the_threshold)
{
	struct waiter w;

	waiter_start(&w, 3);
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	cr_expect(is_waiting());
	succeed(post_number(evd, 3));
	succeed(waiter_end(&w));
	cr_expect_eq(number_of(&w.event), 1);
	cr_expect_eq(w.more, 2);
}

Test(evd_wait, is_for_one_thread)
{
	struct waiter w;

	waiter_start(&w, 1);
	expect_state(wait_for(0, 1), EVD_WAITER);
	expect_state(dofi_evd_dequeue(evd, &event), EVD_WAITER);
	succeed(post_number(evd, 1));
	succeed(waiter_end(&w));
}

static struct dofi_cq *sole_cq(void)
{
	struct dofi_evd *e = evd;
	struct dofi_cq *cq;

	dofi_mutex_lock(&e->lock);
	cq = e->sole_cq;
	dofi_mutex_unlock(&e->lock);
	return cq;
}

/* Another thread would take a completion past the check for a waiter. */
Test(evd_wait, closes_the_sole_feed)
{
	struct dofi_cq *feed;
	struct waiter w;

	make_connected(ep_make());
	feed = sole_cq();
	cr_assert(feed);
	waiter_start(&w, 1);
	cr_expect_eq(sole_cq(), NULL);
	succeed(post_number(evd, 1));
	succeed(waiter_end(&w));
	cr_expect_eq(sole_cq(), feed);
}

/* The wakeup ends the sleep, and the thread then reads the fabric. */
Test(evd_wait, is_no_cancellation_point)
{
	struct waiter w;

	make_connected(ep_make());
	waiter_start(&w, 1);
	pthread_cancel(w.thread);
	succeed(post_number(evd, 1));
	succeed(waiter_end(&w));
	cr_expect_eq(w.more, 0);
	expect_type(wait_for(0, 1), DAT_TIMEOUT_EXPIRED);
}

Test(evd_wait, can_be_done_again_after_a_time_out)
{
	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
	cr_expect(event_none(evd), "dequeue is allowed again");
	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
}

Test(evd_wait, unwaitable_wakes_the_waiter)
{
	struct waiter w;

	waiter_start(&w, 1);
	succeed(dofi_evd_set_unwaitable(evd));
	expect_state(waiter_end(&w), EVD_UNWAITABLE);
	expect_state(wait_for(0, 1), EVD_UNWAITABLE);
	succeed(dofi_evd_clear_unwaitable(evd));
	expect_type(wait_for(0, 1), DAT_TIMEOUT_EXPIRED);
}

/* Even if the EVD becomes waitable again at once. */
Test(evd_wait, a_moment_of_unwaitable_is_enough_to_wake_the_waiter)
{
	struct waiter w;
	int i;

	for (i = 0; i < 50; i++) {
		waiter_start(&w, 1);
		succeed(dofi_evd_set_unwaitable(evd));
		succeed(dofi_evd_clear_unwaitable(evd));
		expect_state(waiter_end(&w), EVD_UNWAITABLE);
	}
	expect_type(wait_for(0, 1), DAT_TIMEOUT_EXPIRED);
}

Test(evd_wait, an_unwaitable_queue_can_still_be_polled)
{
	succeed(dofi_evd_set_unwaitable(evd));
	succeed(post_number(evd, 1));
	event_take(evd, DAT_SOFTWARE_EVENT);
}

Test(evd_wait, closing_the_ia_wakes_the_waiter)
{
	struct waiter w;

	waiter_start(&w, 1);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	expect_type(waiter_end(&w), DAT_ABORT);
}

Test(evd_wait, a_resize_below_the_waiters_threshold_is_refused)
{
	struct waiter w;

	waiter_start(&w, 3);
	expect_state(dofi_evd_resize(evd, 2), EVD_WAITER);
	succeed(dofi_evd_resize(evd, 3));
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	succeed(post_number(evd, 3));
	succeed(waiter_end(&w));
}

/* Events that do not notify */

static void push(DAT_EVENT_NUMBER number, bool notify)
{
	struct dofi_evd *e = evd;
	struct dofi_event *slot;

	dofi_mutex_lock(&e->lock);
	slot = dofi_evd_reserve(e);
	cr_assert(slot);
	*slot = (struct dofi_event){ .number = number };
	dofi_evd_append(e, notify);
	dofi_mutex_unlock(&e->lock);
}

Test(evd_wait, an_unsignalled_event_wakes_no_thread)
{
	struct waiter w;

	waiter_start(&w, 1);
	push(DAT_DTO_COMPLETION_EVENT, false);
	cr_expect(is_waiting());
	push(DAT_SOFTWARE_EVENT, true);
	succeed(waiter_end(&w));
	cr_expect_eq(w.event.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(w.more, 1);
}

Test(evd_wait, an_unsignalled_event_that_is_there_is_taken)
{
	push(DAT_DTO_COMPLETION_EVENT, false);
	succeed(wait_for(LONG, 1));
}

/* The event ended no wait, but is delivered at the timeout. */
Test(evd_wait, a_time_out_takes_events_that_did_not_notify)
{
	struct waiter w;

	waiter_start_for(&w, 1, 200000);
	push(DAT_DTO_COMPLETION_EVENT, false);
	succeed(waiter_end(&w));
	cr_expect_eq(w.event.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(w.more, 0);
}

/* If only some events notify, a thread cannot wait for a number of events. */
Test(evd_wait, the_only_threshold_of_chosen_notices_is_one)
{
	const struct dofi_stream none = { 0 };
	struct dofi_stream s = { .evd = evd_make(8, DAT_EVD_DTO_FLAG) };

	ia->strict = true;
	s.notice = DAT_COMPLETION_UNSIGNALLED_FLAG;
	cr_assert(dofi_evd_streams_swap(&none, &s, 1));
	expect_state(dofi_evd_wait(s.evd, 0, 2, &event, &more), EVD_CONFIG_NOTIFY);
	expect_arg(dofi_evd_wait(s.evd, 0, 9, &event, &more), 3);
	expect_type(dofi_evd_wait(s.evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	cr_assert(dofi_evd_streams_swap(&s, &none, 1));
	expect_type(dofi_evd_wait(s.evd, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	s.notice = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	cr_assert(dofi_evd_streams_swap(&none, &s, 1));
	expect_state(dofi_evd_wait(s.evd, 0, 2, &event, &more), EVD_CONFIG_SOLICITED);
	cr_assert(dofi_evd_streams_swap(&s, &none, 1));
}

/* As with OFED's provider: the waiter would sleep forever if the last event did not notify. */
Test(evd_wait, every_event_counts_for_a_threshold_unless_strict)
{
	const struct dofi_stream none = { 0 };
	struct dofi_stream s = { .evd = evd, .notice = DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct waiter w;

	ia->strict = false;
	cr_assert(dofi_evd_streams_swap(&none, &s, 1));
	waiter_start(&w, 2);
	push(DAT_DTO_COMPLETION_EVENT, false);
	push(DAT_DTO_COMPLETION_EVENT, false);
	succeed(waiter_end(&w));
	cr_expect_eq(w.more, 1);
	cr_assert(dofi_evd_streams_swap(&s, &none, 1));
}

/* Signals */

static void waiter_sleeps(const struct waiter *w)
{
	while (!thread_rests(atomic_load(&w->tid)))
		usleep(100);
}

Test(evd_wait, a_signal_ends_it)
{
	struct waiter w;

	thread_handles(0);
	waiter_start(&w, 1);
	thread_pester(w.thread);
	expect_ret(w.ret, DOFI_RET(DAT_INTERRUPTED_CALL, 0));
	cr_expect_eq(w.more, -1, "nmore is not written");
	cr_expect(event_none(evd), "dequeue is allowed again");
	succeed(post_number(evd, 1));
	succeed(wait_for(0, 1));
}

Test(evd_wait, a_signal_before_the_threshold_takes_nothing)
{
	struct waiter w;

	thread_handles(0);
	waiter_start(&w, 2);
	succeed(post_number(evd, 1));
	thread_pester(w.thread);
	expect_type(w.ret, DAT_INTERRUPTED_CALL);
	succeed(wait_for(0, 1));
	cr_expect_eq(number_of(&event), 1);
}

Test(evd_wait, a_signal_leaves_events_that_did_not_notify)
{
	struct waiter w;

	thread_handles(0);
	waiter_start(&w, 1);
	push(DAT_DTO_COMPLETION_EVENT, false);
	thread_pester(w.thread);
	expect_type(w.ret, DAT_INTERRUPTED_CALL);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
}

/* Returns when a signal has ended the sleep and the waiter has not checked the cause yet. */
static struct dofi_evd *waiter_stopped(struct waiter *w)
{
	struct dofi_evd *e = evd;

	thread_handles(0);
	waiter_start(w, 1);
	waiter_sleeps(w);
	dofi_mutex_lock(&e->lock);
	thread_disturb(w->thread, atomic_load(&w->tid), 1);
	return e;
}

Test(evd_wait, an_event_that_comes_with_a_signal_is_taken)
{
	struct waiter w;
	struct dofi_evd *e = waiter_stopped(&w);

	/* like dofi_evd_push(), which takes the lock itself */
	e->ring[0].number = DAT_SOFTWARE_EVENT;
	e->ring[0].data.software_event_data.pointer = memory;
	atomic_store(&e->count, 1);
	e->notified = true;
	dofi_mutex_unlock(&e->lock);
	succeed(waiter_end(&w));
	cr_expect_eq(w.event.event_data.software_event_data.pointer, memory);
	cr_expect_eq(w.more, 0);
}

Test(evd_wait, what_else_ends_it_comes_before_a_signal)
{
	struct waiter w;
	struct dofi_evd *e = waiter_stopped(&w);

	e->evicted = true;
	dofi_mutex_unlock(&e->lock);
	expect_state(waiter_end(&w), EVD_UNWAITABLE);
}

Test(evd_wait, a_wait_goes_on_after_a_handler_with_restart)
{
	static const DAT_TIMEOUT timeout[] = { DAT_TIMEOUT_INFINITE, LONG };
	struct waiter w;
	int i;

	thread_handles(SA_RESTART);
	for (i = 0; i < 2; i++) {
		waiter_start_for(&w, 1, timeout[i]);
		waiter_sleeps(&w);
		thread_disturb(w.thread, atomic_load(&w.tid), 10);
		succeed(post_number(evd, i));
		succeed(waiter_end(&w));
		cr_expect_eq(number_of(&w.event), (uintptr_t)i);
	}
}

#define NUMBERS 1000

static void *take_numbers(void *arg)
{
	DAT_EVENT e;
	DAT_RETURN ret;
	DAT_COUNT left;
	uintptr_t i;

	for (i = 0; i < NUMBERS; i++) {
		do
			ret = dofi_evd_wait(evd, i % 2 ? DAT_TIMEOUT_INFINITE : LONG, 1, &e, &left);
		while (DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL);
		succeed(ret);
		cr_assert_eq(number_of(&e), i);
	}
	return NULL;
}

Test(evd_wait, no_event_is_lost_to_signals)
{
	pthread_t thread;
	uintptr_t i;

	thread_handles(0);
	dofi_settings.spin_us = 0;
	pthread_create(&thread, NULL, take_numbers, NULL);
	for (i = 0; i < NUMBERS; i++) {
		while (post_number(evd, i))
			sched_yield();
		pthread_kill(thread, SIGUSR1);
	}
	pthread_join(thread, NULL);
	cr_expect(event_none(evd));
}

/* With the fabric */

static bool nobody_sleeps(void)
{
	return !((struct dofi_pz *)pz)->domain.cq.sleepers;
}

Test(evd_wait, completions_of_the_fabric_end_it)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_HANDLE ep = ep_make();
	struct waiter w;

	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(5), DAT_COMPLETION_DEFAULT_FLAG));
	dofi_settings.spin_us = 0;
	waiter_start(&w, 1);
	fake_complete(transport.context[0], 0);
	succeed(waiter_end(&w));
	cr_expect_eq(w.event.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(w.event.event_data.dto_completion_event_data.user_cookie.as_64, 5);
	cr_expect(nobody_sleeps());
}

/* A thread that waits on an EVD fed by an EP sleeps on the CQ itself. */

static struct dofi_cq *feed(void)
{
	return &((struct dofi_pz *)pz)->domain.cq;
}

static void leader_start(struct waiter *w, DAT_COUNT threshold, DAT_TIMEOUT timeout)
{
	dofi_settings.spin_us = 0;
	waiter_start_for(w, threshold, timeout);
	while (!dofi_has_leader(&feed()->lead) || !thread_rests(atomic_load(&w->tid)))
		usleep(100);
}

static bool nobody_leads(void)
{
	return !dofi_has_leader(&feed()->lead) && nobody_sleeps();
}

/* A connected EP with @n receives. Their cookies are their numbers. */
static DAT_EP_HANDLE ep_receiving(unsigned n)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_HANDLE ep = ep_make();
	unsigned i;

	make_connected(ep);
	for (i = 0; i < n; i++)
		succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(i), DAT_COMPLETION_DEFAULT_FLAG));
	return ep;
}

static uint64_t cookie_in(const DAT_EVENT *e)
{
	return e->event_data.dto_completion_event_data.user_cookie.as_64;
}

Test(evd_wait, a_wait_sleeps_on_the_queue_that_feeds_the_evd)
{
	struct waiter w;

	ep_receiving(1);
	leader_start(&w, 1, DAT_TIMEOUT_INFINITE);
	cr_expect(nobody_sleeps(), "that the progress thread would have to serve");
	fake_complete(transport.context[0], 0);
	succeed(waiter_end(&w));
	cr_expect_eq(w.event.event_number, DAT_DTO_COMPLETION_EVENT);
	cr_expect(nobody_leads());
}

/* A thread waits before its EP connects, and while a second CQ comes and goes. */
Test(evd_wait, a_wait_follows_its_feeds)
{
	DAT_EVD_HANDLE of = evd, conn = evd_make(8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE first, second;
	DAT_PZ_HANDLE zone;
	struct waiter w;

	succeed(dofi_pz_create(dofi_ia_export(ia), &zone));
	succeed(dofi_ep_create(ia, pz, of, of, conn, NULL, &first));
	succeed(dofi_ep_create(ia, zone, of, of, conn, NULL, &second));
	dofi_settings.spin_us = 0;
	waiter_start_for(&w, 1, LONG);
	cr_expect(nobody_leads());
	make_connected(first);
	while (!dofi_has_leader(&feed()->lead))
		usleep(100);
	make_connected(second);
	while (dofi_has_leader(&feed()->lead) || nobody_sleeps() ||
	       !((struct dofi_pz *)zone)->domain.cq.sleepers)
		usleep(100);
	succeed(dofi_ep_free(second));
	while (!dofi_has_leader(&feed()->lead))
		usleep(100);
	cr_expect_eq(((struct dofi_pz *)zone)->domain.cq.sleepers, 0);
	succeed(post_number(of, 1));
	succeed(waiter_end(&w));
	cr_expect(nobody_leads());
}

Test(evd_wait, a_wait_sleeps_on_the_feeding_queue_until_the_threshold)
{
	struct waiter w;

	ep_receiving(3);
	leader_start(&w, 3, LONG);
	fake_complete(transport.context[0], 0);
	fake_complete(transport.context[1], 0);
	while (fake_unread())
		usleep(100);
	cr_expect(is_waiting());
	fake_complete(transport.context[2], 0);
	succeed(waiter_end(&w));
	cr_expect_eq(cookie_in(&w.event), 0);
	cr_expect_eq(w.more, 2);
}

Test(evd_wait, there_too_it_is_ended_by_all_that_ends_it)
{
	struct dofi_evd *e = evd;
	struct waiter w;

	ep_receiving(1);
	leader_start(&w, 1, DAT_TIMEOUT_INFINITE);
	succeed(post_number(evd, 7));
	succeed(waiter_end(&w));
	cr_expect_eq(number_of(&w.event), 7);

	leader_start(&w, 1, LONG);
	succeed(dofi_evd_set_unwaitable(evd));
	expect_state(waiter_end(&w), EVD_UNWAITABLE);
	succeed(dofi_evd_clear_unwaitable(evd));

	thread_handles(0);
	leader_start(&w, 1, LONG);
	thread_pester(w.thread);
	expect_type(w.ret, DAT_INTERRUPTED_CALL);

	leader_start(&w, 1, LONG);
	dofi_mutex_lock(&e->lock);
	e->dying = true;
	dofi_cond_broadcast(&e->wakeup);
	dofi_mutex_unlock(&e->lock);
	expect_type(waiter_end(&w), DAT_ABORT);
	e->dying = false;
	cr_expect(nobody_leads());
}

Test(evd_wait, there_too_it_times_out_not_too_early)
{
	int64_t before = dofi_now();

	ep_receiving(1);
	dofi_settings.spin_us = 0;
	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
	cr_expect(dofi_now() - before >= QUICK * 1000LL);
	cr_expect_eq(more, 0);
	expect_type(wait_for(0, 1), DAT_TIMEOUT_EXPIRED);
	fake_complete(transport.context[0], 0);
	succeed(wait_for(0, 1));
	cr_expect(nobody_leads());
}

Test(evd_wait, there_too_it_goes_on_after_a_restart)
{
	struct waiter w;

	ep_receiving(1);
	thread_handles(SA_RESTART);
	leader_start(&w, 1, LONG);
	thread_disturb(w.thread, atomic_load(&w.tid), 10);
	fake_complete(transport.context[0], 0);
	succeed(waiter_end(&w));
	cr_expect_eq(cookie_in(&w.event), 0);
}

/* Whatever the descriptor of the CQ reports, a wait ends in time, and it does not spin. */
Test(evd_wait, there_too_no_descriptor_prolongs_it_or_makes_it_spin)
{
	static const enum fake_fd kinds[] = { FAKE_FD_ALWAYS, FAKE_FD_NEVER, FAKE_FD_LIES };
	int64_t before;
	unsigned i, reads;

	ep_receiving(1);
	dofi_settings.spin_us = 0;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fake_set_fd(kinds[i]);
		before = dofi_now();
		reads = fake.cq_reads;
		expect_type(wait_for(100 * QUICK, 1), DAT_TIMEOUT_EXPIRED);
		cr_expect(dofi_now() - before >= 100 * QUICK * 1000LL);
		cr_expect(fake.cq_reads - reads < 1000, "%u", fake.cq_reads - reads);
	}
	cr_expect(nobody_leads());
}

Test(evd_wait, there_too_an_event_ends_it_that_comes_behind_a_readable_descriptor)
{
	struct waiter w;
	unsigned i;

	ep_receiving(2);
	dofi_settings.spin_us = 0;
	fake_set_fd(FAKE_FD_ALWAYS);
	for (i = 0; i < 2; i++) {
		waiter_start(&w, 1);
		while (nobody_sleeps())
			usleep(100);
		fake_complete(transport.context[i], 0);
		succeed(waiter_end(&w));
		cr_expect_eq(cookie_in(&w.event), i);
	}
}

/*
 * Two EVDs of one CQ: the leader delivers the other's event, and wakes the other waiter when it
 * leaves.
 */
Test(evd_wait, one_of_two_waiters_leads)
{
	DAT_EVD_HANDLE both = evd, other = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_LMR_TRIPLET s = segment(0, 8);
	struct waiter leader, follower;
	DAT_EP_HANDLE ep;

	succeed(dofi_ep_create(ia, pz, evd, other, evd, NULL, &ep));
	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(3), DAT_COMPLETION_DEFAULT_FLAG));
	leader_start(&leader, 1, LONG);
	evd = other;
	waiter_start_for(&follower, 1, LONG);
	while (nobody_sleeps())
		usleep(100);
	fake_complete(transport.context[1], 0);
	succeed(waiter_end(&follower));
	cr_expect_eq(cookie_in(&follower.event), 2);
	waiter_start_for(&follower, 1, LONG);
	evd = both;
	fake_complete(transport.context[0], 0);
	succeed(waiter_end(&leader));
	cr_expect_eq(cookie_in(&leader.event), 1);
	fake_complete(transport.context[2], 0);
	succeed(waiter_end(&follower));
	cr_expect_eq(cookie_in(&follower.event), 3);
	cr_expect(nobody_leads());
}

Test(evd_wait, what_it_spins_on_it_reads_itself)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_HANDLE ep = ep_make();
	int i;

	make_connected(ep);
	dofi_settings.spin_us = 1000000;
	for (i = 0; i < 20; i++) {
		succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(i), DAT_COMPLETION_DEFAULT_FLAG));
		fake_complete(transport.context[i], 0);
		succeed(wait_for(LONG, 1));
		cr_assert_eq(event.event_data.dto_completion_event_data.user_cookie.as_64,
			     (DAT_UINT64)i);
	}
}

/*
 * Runs @body on the progress thread, so that no other thread reads completions. Its argument is the
 * context of a send that it completes, and evd is an EVD for that send. Its events notify as
 * @stream sets.
 */
static void with_a_send(DAT_COMPLETION_FLAGS stream, void (*body)(void *))
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC,
			     .request_completion_flags = stream };
	DAT_EVD_HANDLE requests = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_HANDLE ep;

	attr.max_recv_dtos = attr.max_request_dtos = 1;
	succeed(dofi_ep_create(ia, pz, evd, requests, evd, &attr, &ep));
	make_connected(ep);
	succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(5), DAT_COMPLETION_DEFAULT_FLAG));
	evd = requests;
	dofi_progress_call(&ia->progress, body, transport.context[0]);
}

static uint64_t completions_queued(void)
{
	return ((struct dofi_evd *)evd)->count_of.completion;
}

static void find_it(void *context)
{
	fake_complete(context, 0);
	succeed(wait_for(LONG, 1));
	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, 5);
	cr_expect_eq(more, 0);
	cr_expect_eq(((struct dofi_evd *)evd)->count_of.wait, 1);
	cr_expect_eq(((struct dofi_evd *)evd)->count_of.straight, 0, "it was no dequeue");
}

static void find_it_at_once(void *context)
{
	find_it(context);
	cr_expect_eq(completions_queued(), 0);
}

Test(evd_wait, what_the_fabric_has_is_taken_without_the_queue)
{
	with_a_send(DAT_COMPLETION_DEFAULT_FLAG, find_it_at_once);
}

static void find_it_queued(void *context)
{
	find_it(context);
	cr_expect_eq(completions_queued(), 1);
}

/* If some events do not notify, the mere presence of an event does not end the wait. */
Test(evd_wait, an_unsignalled_completion_does_not_end_a_wait_at_the_fabric)
{
	with_a_send(DAT_COMPLETION_UNSIGNALLED_FLAG, find_it_queued);
}

static void not_to_be_waited_for(void *context)
{
	fake_complete(context, 0);
	succeed(dofi_evd_set_unwaitable(evd));
	expect_state(wait_for(LONG, 1), EVD_UNWAITABLE);
	succeed(dofi_evd_dequeue(evd, &event));
}

Test(evd_wait, an_unwaitable_evd_takes_completions_from_its_queue)
{
	with_a_send(DAT_COMPLETION_DEFAULT_FLAG, not_to_be_waited_for);
}

Test(evd_wait, leaves_no_sleeper_behind)
{
	ep_make();
	expect_type(wait_for(QUICK, 1), DAT_TIMEOUT_EXPIRED);
	cr_expect(nobody_sleeps());
}
