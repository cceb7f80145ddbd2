/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer notification objects: triggers, waiters, agents, and freeing. */

#include "obj/fixture.h"

#include "base/clock.h"
#include "thread.h"

#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUICK 2000	/* a timeout in microseconds */

static DAT_CNO_HANDLE cno;
static const DAT_OS_WAIT_PROXY_AGENT no_agent;

static void init(void)
{
	objects_init();
	succeed(dofi_cno_create(ia, no_agent, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
}

static DAT_RETURN wait_for(DAT_TIMEOUT timeout, DAT_EVD_HANDLE *which)
{
	return dofi_cno_wait(cno, timeout, which);
}

static bool triggered(void)
{
	DAT_EVD_HANDLE which;

	return wait_for(0, &which) == DAT_SUCCESS;
}

TestSuite(cno, .init = init, .fini = ia_fini);

Test(cno, create_checks_its_arguments)
{
	const DAT_OS_WAIT_PROXY_AGENT headless = { .instance_data = memory };
	DAT_CNO_HANDLE h;

	expect_handle(dofi_cno_create(NULL, no_agent, &h), IA);
	expect_arg(dofi_cno_create(ia, headless, &h), 2);
	expect_arg(dofi_cno_create(ia, no_agent, NULL), 3);
}

Test(cno, wait_checks_its_arguments)
{
	DAT_EVD_HANDLE which;

	expect_handle(dofi_cno_wait(NULL, 0, &which), CNO);
	expect_handle(dofi_cno_wait(evd, 0, &which), CNO);
	expect_arg(dofi_cno_wait(cno, 0, NULL), 3);
}

/* Programs compare with the bare code, so the return has no error bit. */
Test(cno, a_wait_that_times_out_finds_the_queue_empty)
{
	DAT_EVD_HANDLE which = NOWHERE;
	int64_t before = dofi_now();

	cr_expect_eq(wait_for(QUICK, &which), (DAT_RETURN)DAT_QUEUE_EMPTY);
	cr_expect_eq(which, DAT_HANDLE_NULL);
	cr_expect(dofi_now() - before >= QUICK * 1000LL);
}

Test(cno, a_wait_of_no_time_does_not_wait)
{
	DAT_EVD_HANDLE which;

	cr_expect_eq(wait_for(0, &which), (DAT_RETURN)DAT_QUEUE_EMPTY);
}

Test(cno, an_event_triggers_and_returns_its_evd)
{
	DAT_EVD_HANDLE which = NULL;

	succeed(post_number(evd, 1));
	succeed(wait_for(0, &which));
	cr_expect_eq(which, evd);
}

Test(cno, a_trigger_ends_one_wait)
{
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	cr_expect(triggered());
	cr_expect(!triggered());
}

Test(cno, a_wait_leaves_the_event_in_its_evd)
{
	succeed(post_number(evd, 1));
	cr_expect(triggered());
	event_take(evd, DAT_SOFTWARE_EVENT);
}

Test(cno, a_disabled_evd_does_not_trigger)
{
	succeed(dofi_evd_disable(evd));
	succeed(post_number(evd, 1));
	cr_expect(!triggered());
}

Test(cno, enabling_an_evd_notifies_of_queued_events)
{
	succeed(dofi_evd_disable(evd));
	succeed(post_number(evd, 1));
	succeed(dofi_evd_enable(evd));
	cr_expect(triggered());
	succeed(dofi_evd_enable(evd));
	cr_expect(!triggered(), "it was enabled already");
}

Test(cno, enabling_an_empty_evd_does_not_notify)
{
	succeed(dofi_evd_disable(evd));
	succeed(dofi_evd_enable(evd));
	cr_expect(!triggered());
}

Test(cno, attaching_notifies_of_queued_events)
{
	DAT_EVD_HANDLE other = evd_make(4, DAT_EVD_SOFTWARE_FLAG);

	succeed(post_number(other, 1));
	cr_expect(!triggered());
	succeed(dofi_evd_modify_cno(other, cno));
	cr_expect(triggered());
}

Test(cno, detached_evds_do_not_trigger)
{
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(post_number(evd, 1));
	cr_expect(!triggered());
}

Test(cno, a_detached_evd_is_not_reported)
{
	DAT_EVD_HANDLE which = NOWHERE;

	succeed(post_number(evd, 1));
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(wait_for(0, &which));
	cr_expect_eq(which, DAT_HANDLE_NULL);
}

Test(cno, a_freed_evd_is_not_reported)
{
	DAT_EVD_HANDLE other = evd_make(4, DAT_EVD_SOFTWARE_FLAG), which = NOWHERE;

	succeed(dofi_evd_modify_cno(other, cno));
	succeed(post_number(other, 1));
	succeed(dofi_evd_free(other));
	succeed(wait_for(0, &which));
	cr_expect_eq(which, DAT_HANDLE_NULL);
}

/* Waiters */

struct waiter {
	pthread_t thread;
	DAT_RETURN ret;
	DAT_EVD_HANDLE which;
	_Atomic pid_t tid;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	w->which = NOWHERE;
	atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
	w->ret = dofi_cno_wait(cno, DAT_TIMEOUT_INFINITE, &w->which);
	return NULL;
}

static int waiters(void)
{
	struct dofi_cno *c = cno;
	int n;

	dofi_mutex_lock(&c->lock);
	n = c->waiters;
	dofi_mutex_unlock(&c->lock);
	return n;
}

static void waiters_start(struct waiter *w, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		atomic_init(&w[i].tid, 0);
		pthread_create(&w[i].thread, NULL, waiter_run, &w[i]);
	}
	while (waiters() < n)
		usleep(500);
}

Test(cno, a_sleeping_waiter_is_woken)
{
	struct waiter w;

	waiters_start(&w, 1);
	succeed(post_number(evd, 1));
	pthread_join(w.thread, NULL);
	succeed(w.ret);
	cr_expect_eq(w.which, evd);
}

Test(cno, each_trigger_wakes_one_of_many)
{
	struct waiter w[3];
	int left;

	waiters_start(w, 3);
	for (left = 2; left >= 0; left--) {
		succeed(post_number(evd, 1));
		while (waiters() > left)
			usleep(500);
	}
	for (left = 0; left < 3; left++) {
		pthread_join(w[left].thread, NULL);
		succeed(w[left].ret);
	}
}

Test(cno, with_a_waiter_it_is_not_freed)
{
	struct waiter w;

	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	waiters_start(&w, 1);
	expect_state(dofi_cno_free(cno), CNO_IN_USE);
	succeed(dofi_evd_modify_cno(evd, cno));
	succeed(post_number(evd, 1));
	pthread_join(w.thread, NULL);
}

Test(cno, closing_the_ia_wakes_all_waiters)
{
	struct waiter w[3];
	int i;

	waiters_start(w, 3);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		succeed(w[i].ret);
		cr_expect_eq(w[i].which, DAT_HANDLE_NULL);
	}
}

/* No EVD is left that could trigger the CNO. */
Test(cno, with_its_last_evd_freed_all_waiters_leave)
{
	DAT_EVD_HANDLE other = evd_make(4, DAT_EVD_SOFTWARE_FLAG);
	struct waiter w[3];
	int i;

	succeed(dofi_evd_modify_cno(other, cno));
	waiters_start(w, 3);
	succeed(dofi_evd_free(other));
	cr_expect_eq(waiters(), 3);
	succeed(dofi_evd_free(evd));
	for (i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		succeed(w[i].ret);
		cr_expect_eq(w[i].which, DAT_HANDLE_NULL);
	}
	cr_expect(!triggered(), "only the waiting threads return");
}

Test(cno, with_its_last_evd_detached_waiters_stay)
{
	struct waiter w;

	waiters_start(&w, 1);
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	cr_expect_eq(waiters(), 1);
	succeed(dofi_evd_modify_cno(evd, cno));
	succeed(post_number(evd, 1));
	pthread_join(w.thread, NULL);
	cr_expect_eq(w.which, evd);
}

/* Signals */

Test(cno, a_signal_ends_the_wait_of_its_thread)
{
	struct waiter w[2];

	thread_handles(0);
	waiters_start(w, 2);
	thread_pester(w[0].thread);
	expect_ret(w[0].ret, DOFI_RET(DAT_INTERRUPTED_CALL, 0));
	cr_expect_eq(w[0].which, DAT_HANDLE_NULL);
	cr_expect_eq(waiters(), 1);
	succeed(post_number(evd, 1));
	pthread_join(w[1].thread, NULL);
	succeed(w[1].ret);
}

Test(cno, a_trigger_that_comes_with_a_signal_is_taken)
{
	struct dofi_cno *c = cno;
	struct waiter w;

	thread_handles(0);
	waiters_start(&w, 1);
	while (!thread_rests(atomic_load(&w.tid)))
		usleep(100);
	/* the signal ends the sleep, and the waiter then waits for the lock */
	dofi_mutex_lock(&c->lock);
	thread_disturb(w.thread, atomic_load(&w.tid), 1);
	c->triggered = true;
	c->evd = evd;
	dofi_mutex_unlock(&c->lock);
	pthread_join(w.thread, NULL);
	succeed(w.ret);
	cr_expect_eq(w.which, evd);
	cr_expect(!triggered());
}

Test(cno, a_wait_goes_on_after_a_handler_that_asks_for_a_restart)
{
	struct waiter w;

	thread_handles(SA_RESTART);
	waiters_start(&w, 1);
	while (!thread_rests(atomic_load(&w.tid)))
		usleep(100);
	thread_disturb(w.thread, atomic_load(&w.tid), 10);
	succeed(post_number(evd, 1));
	pthread_join(w.thread, NULL);
	succeed(w.ret);
}

#define TRIGGERS 500

static _Atomic unsigned taken;

/* Each trigger is for one event. */
static void *take_triggered(void *arg)
{
	DAT_EVD_HANDLE which;
	DAT_RETURN ret;

	while (atomic_load(&taken) < TRIGGERS) {
		ret = dofi_cno_wait(cno, DAT_TIMEOUT_INFINITE, &which);
		if (DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL)
			continue;
		succeed(ret);
		event_take(evd, DAT_SOFTWARE_EVENT);
		atomic_fetch_add(&taken, 1);
	}
	return NULL;
}

Test(cno, no_trigger_is_lost_to_signals)
{
	pthread_t thread[2];
	unsigned i, k;

	thread_handles(0);
	for (k = 0; k < 2; k++)
		pthread_create(&thread[k], NULL, take_triggered, NULL);
	for (i = 0; i < TRIGGERS; i++) {
		succeed(post_number(evd, i));
		/* either thread may be the one that the trigger wakes */
		pthread_kill(thread[i % 2], SIGUSR1);
		while (atomic_load(&taken) <= i)
			sched_yield();
	}
	for (k = 0; k < 2; k++)
		thread_pester(thread[k]);
	cr_expect(!triggered());
}

/* Agents */

static sem_t called;
static int calls;
static DAT_EVD_HANDLE called_with;
static DAT_PVOID called_data;
static bool on_thread;

static void agent_func(DAT_PVOID data, DAT_EVD_HANDLE which)
{
	calls++;
	called_data = data;
	called_with = which;
	on_thread = dofi_progress_on_thread(&ia->progress);
	sem_post(&called);
}

static const DAT_OS_WAIT_PROXY_AGENT agent = { memory, agent_func };

Test(cno, an_agent_is_called_with_its_data)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(post_number(evd, 1));
	sem_wait(&called);
	cr_expect_eq(called_data, memory);
	cr_expect_eq(called_with, evd);
	cr_expect(on_thread, "with no lock of the poster's held");
}

Test(cno, an_agent_is_called_once_each_time_it_is_set)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(post_number(evd, 1));
	sem_wait(&called);
	succeed(post_number(evd, 2));
	settle();
	cr_expect_eq(calls, 1);
}

Test(cno, an_agent_set_after_the_trigger_is_called)
{
	succeed(post_number(evd, 1));
	succeed(dofi_cno_modify_agent(cno, agent));
	sem_wait(&called);
	cr_expect_eq(calls, 1);
	cr_expect(triggered(), "a waiter gets it as well");
}

Test(cno, a_trigger_wakes_a_waiter_and_calls_the_agent)
{
	struct waiter w;

	succeed(dofi_cno_modify_agent(cno, agent));
	waiters_start(&w, 1);
	succeed(post_number(evd, 1));
	sem_wait(&called);
	pthread_join(w.thread, NULL);
	succeed(w.ret);
	cr_expect_eq(w.which, evd);
	cr_expect_eq(called_with, evd);
}

Test(cno, a_trigger_waits_for_a_wait_after_the_call_of_the_agent)
{
	DAT_EVD_HANDLE which = NULL;

	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(post_number(evd, 1));
	sem_wait(&called);
	succeed(wait_for(0, &which));
	cr_expect_eq(which, evd);
	cr_expect(!triggered());
}

Test(cno, an_agent_is_not_called_for_a_trigger_that_was_taken_before)
{
	succeed(post_number(evd, 1));
	cr_expect(triggered());
	succeed(dofi_cno_modify_agent(cno, agent));
	settle();
	cr_expect_eq(calls, 0);
}

Test(cno, an_agent_taken_back_is_not_called)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(dofi_cno_modify_agent(cno, no_agent));
	succeed(post_number(evd, 1));
	settle();
	cr_expect_eq(calls, 0);
	cr_expect(triggered());
}

Test(cno, an_agent_gets_no_evd_when_the_last_is_freed)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	called_with = evd;
	succeed(dofi_evd_free(evd));
	sem_wait(&called);
	cr_expect_eq(called_with, DAT_HANDLE_NULL);
	cr_expect(!triggered());
}

static void set_again(DAT_PVOID data, DAT_EVD_HANDLE which)
{
	if (++calls < 3)
		dofi_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ data, set_again });
	sem_post(&called);
}

Test(cno, an_agent_may_set_itself_again)
{
	int i;

	succeed(dofi_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ memory, set_again }));
	for (i = 0; i < 3; i++) {
		succeed(post_number(evd, 1));
		sem_wait(&called);
	}
	succeed(post_number(evd, 1));
	settle();
	cr_expect_eq(calls, 3);
}

Test(cno, an_agent_that_sets_itself_again_waits_for_the_next_trigger)
{
	succeed(dofi_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ memory, set_again }));
	succeed(post_number(evd, 1));
	settle();
	settle();
	cr_expect_eq(calls, 1);
}

static void take_one(DAT_PVOID data, DAT_EVD_HANDLE which)
{
	if (!which)	/* the IA closes */
		return;
	dofi_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ data, take_one });
	event_take(which, DAT_SOFTWARE_EVENT);
	calls++;
	sem_post(&called);
}

Test(cno, an_agent_that_takes_one_event_is_called_for_the_next)
{
	int i;

	succeed(dofi_evd_disable(evd));
	for (i = 0; i < 3; i++)
		succeed(post_number(evd, i));
	succeed(dofi_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ memory, take_one }));
	succeed(dofi_evd_enable(evd));
	for (i = 0; i < 3; i++)
		sem_wait(&called);
	settle();
	cr_expect_eq(calls, 3);
}

Test(cno, an_agent_given_at_creation_is_called)
{
	DAT_CNO_HANDLE h;

	succeed(dofi_cno_create(ia, agent, &h));
	succeed(dofi_evd_modify_cno(evd, h));
	succeed(post_number(evd, 1));
	sem_wait(&called);
}

Test(cno, no_agent_is_called_after_the_free)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(post_number(evd, 1));
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(dofi_cno_free(cno));
	cr_expect(calls <= 1);
	calls = 0;
	settle();
	cr_expect_eq(calls, 0);
}

Test(cno, its_free_calls_no_agent)
{
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(dofi_cno_free(cno));
	cr_expect_eq(calls, 0);
}

Test(cno, closing_the_ia_calls_the_agent_without_an_evd)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	called_with = evd;
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(calls, 1);
	cr_expect_eq(called_with, DAT_HANDLE_NULL);
}

/* The end of the last EVD calls the agent, and so does the end of the CNO. */
Test(cno, closing_the_ia_calls_the_agent_once)
{
	succeed(dofi_cno_modify_agent(cno, agent));
	called_with = evd;
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(calls, 1);
	cr_expect_eq(called_with, DAT_HANDLE_NULL);
}

Test(cno, modify_checks_its_arguments)
{
	const DAT_OS_WAIT_PROXY_AGENT headless = { .instance_data = memory };

	expect_handle(dofi_cno_modify_agent(evd, agent), CNO);
	expect_arg(dofi_cno_modify_agent(cno, headless), 2);
}

Test(cno, query_returns_ia_and_agent)
{
	DAT_CNO_PARAM p;

	succeed(dofi_cno_modify_agent(cno, agent));
	succeed(dofi_cno_query(cno, DAT_CNO_FIELD_ALL, &p));
	cr_expect_eq(p.ia_handle, ia);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(p.proxy_type, DAT_PROXY_TYPE_AGENT);
	cr_expect_eq(p.proxy.agent.proxy_agent_func, agent_func);
#else
	cr_expect_eq(p.agent.proxy_agent_func, agent_func);
#endif
}

#if DAT_VERSION_MAJOR >= 2
/* A file descriptor */

static DAT_FD fd;

static void fd_cno_init(void)
{
	objects_init();
	succeed(dofi_cno_fd_create(ia, &fd, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
}

static bool readable(void)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

TestSuite(cno_fd, .init = fd_cno_init, .fini = ia_fini);

Test(cno_fd, create_checks_its_arguments)
{
	DAT_CNO_HANDLE h;

	expect_handle(dofi_cno_fd_create(evd, &fd, &h), IA);
	expect_arg(dofi_cno_fd_create(ia, NULL, &h), 2);
	expect_arg(dofi_cno_fd_create(ia, &fd, NULL), 3);
}

Test(cno_fd, without_a_descriptor_left_there_is_none)
{
	struct rlimit limit, none;
	DAT_CNO_HANDLE h = NOWHERE;
	DAT_FD other = -7;

	cr_assert(!getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	cr_assert(!setrlimit(RLIMIT_NOFILE, &none));
	expect_type(dofi_cno_fd_create(ia, &other, &h), DAT_INSUFFICIENT_RESOURCES);
	cr_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	cr_expect_eq(other, -7);
	cr_expect_eq(h, NOWHERE);
}

Test(cno_fd, is_readable_while_triggered)
{
	DAT_EVD_HANDLE which = NULL;

	cr_expect(!readable());
	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	cr_expect(readable());
	cr_expect(readable(), "a look takes nothing");
	succeed(dofi_cno_trigger(cno, &which));
	cr_expect_eq(which, evd);
	cr_expect(!readable());
	cr_expect_eq(dofi_cno_trigger(cno, &which), (DAT_RETURN)DAT_QUEUE_EMPTY);
	cr_expect_eq(which, DAT_HANDLE_NULL);
}

Test(cno_fd, a_wait_uses_the_trigger_up_too)
{
	succeed(post_number(evd, 1));
	cr_expect(triggered());
	cr_expect(!readable());
}

static void *take_cancelled(void *arg)
{
	DAT_EVD_HANDLE which;

	pthread_cancel(pthread_self());
	*(DAT_RETURN *)arg = dofi_cno_wait(cno, 0, &which);
	return NULL;
}

Test(cno_fd, a_wait_is_no_cancellation_point)
{
	DAT_RETURN ret = DAT_QUEUE_EMPTY;
	pthread_t thread;

	succeed(post_number(evd, 1));
	pthread_create(&thread, NULL, take_cancelled, &ret);
	pthread_join(thread, NULL);
	succeed(ret);
	cr_expect(!triggered());
}

Test(cno_fd, notifies_again_of_remaining_events)
{
	DAT_EVD_HANDLE which;
	DAT_EVENT event;

	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	succeed(dofi_cno_trigger(cno, &which));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(readable());
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(!readable(), "no event is left to report");
}

/* The program must not read the descriptor, but doing so causes no harm. */
Test(cno_fd, survives_a_program_that_reads_it)
{
	DAT_EVD_HANDLE which;
	uint64_t n;

	succeed(post_number(evd, 1));
	cr_assert_eq(read(fd, &n, sizeof(n)), (ssize_t)sizeof(n));
	cr_expect(!readable());
	succeed(dofi_cno_trigger(cno, &which));
	succeed(post_number(evd, 2));
	cr_expect(readable());
}

Test(cno_fd, query_returns_the_descriptor)
{
	DAT_CNO_PARAM p;

	succeed(dofi_cno_query(cno, DAT_CNO_FIELD_ALL, &p));
	cr_expect_eq(p.proxy_type, DAT_PROXY_TYPE_FD);
	cr_expect_eq(p.proxy.fd, fd);
}

Test(cno_fd, has_no_agent)
{
	expect_arg(dofi_cno_modify_agent(cno, agent), 1);
	expect_arg(dofi_cno_modify_agent(cno, no_agent), 1);
}

Test(cno_fd, takes_its_descriptor_with_it)
{
	int still = dup(fd);
	struct pollfd p = { .fd = still, .events = POLLIN };

	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(dofi_cno_free(cno));
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	cr_expect_eq(poll(&p, 1, 0), 1, "a waiting poll() returns");
	close(still);
}

Test(cno_fd, goes_with_the_ia)
{
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

Test(cno, trigger_checks_its_arguments)
{
	DAT_EVD_HANDLE which;

	expect_handle(dofi_cno_trigger(evd, &which), CNO);
	expect_arg(dofi_cno_trigger(cno, NULL), 2);
}

Test(cno, its_trigger_is_taken_without_a_wait)
{
	DAT_EVD_HANDLE which = NOWHERE;

	cr_expect_eq(dofi_cno_trigger(cno, &which), (DAT_RETURN)DAT_QUEUE_EMPTY);
	cr_expect_eq(which, DAT_HANDLE_NULL);
	succeed(post_number(evd, 1));
	succeed(dofi_cno_trigger(cno, &which));
	cr_expect_eq(which, evd);
	cr_expect(!triggered());
}
#endif

Test(cno, query_checks_its_arguments)
{
	DAT_CNO_PARAM p;

	expect_handle(dofi_cno_query(evd, DAT_CNO_FIELD_ALL, &p), CNO);
	expect_arg(dofi_cno_query(cno, (DAT_CNO_PARAM_MASK)8, &p), 2);
	expect_arg(dofi_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), 3);
}

Test(cno, in_use_by_an_evd_is_not_freed)
{
	expect_state(dofi_cno_free(cno), CNO_IN_USE);
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	succeed(dofi_cno_free(cno));
	expect_handle(dofi_cno_free(cno), CNO);
}

Test(cno, a_new_one_has_no_old_trigger)
{
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2 * DOFI_POOL_FIRST; i++) {
		succeed(post_number(evd, 1));
		succeed(dofi_evd_dequeue(evd, &event));
		succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
		succeed(dofi_cno_free(cno));
		succeed(dofi_cno_create(ia, no_agent, &cno));
		succeed(dofi_evd_modify_cno(evd, cno));
		cr_assert(!triggered());
	}
}

/* One trigger for several events: dtest -c waits once for each event that it takes. */

static bool triggered_by(DAT_EVD_HANDLE e)
{
	DAT_EVD_HANDLE which;

	return wait_for(0, &which) == DAT_SUCCESS && which == e;
}

static DAT_EVD_HANDLE second_evd(void)
{
	DAT_EVD_HANDLE other = evd_make(4, EVD_ALL_FLAGS);

	succeed(dofi_evd_modify_cno(other, cno));
	return other;
}

Test(cno, notifies_of_events_that_remain_after_a_dequeue)
{
	DAT_EVENT event;

	succeed(post_number(evd, 1));
	succeed(post_number(evd, 2));
	cr_expect(triggered_by(evd));
	cr_expect(!triggered());
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(triggered_by(evd));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(!triggered());
}

Test(cno, notifies_of_another_evd_after_its_trigger_was_used)
{
	DAT_EVD_HANDLE other = second_evd();
	DAT_EVENT event;

	succeed(post_number(other, 1));
	cr_expect(triggered_by(other));		/* but the program waits for an event of evd */
	succeed(post_number(evd, 2));
	cr_expect(triggered_by(evd));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(triggered_by(other));
	succeed(dofi_evd_dequeue(other, &event));
	cr_expect(!triggered());
}

static sem_t hold;

static void thread_stands_still(struct dofi_work *work)
{
	while (sem_wait(&hold))
		;
}

/* The program's own poll reads the completion, so the event bypasses the EVD's queue. */
Test(cno, notifies_of_another_evd_after_an_event_that_was_never_queued)
{
	struct dofi_work hold_work = { .run = thread_stands_still };
	DAT_EVD_HANDLE other = second_evd();
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_HANDLE ep = ep_make();
	DAT_EVENT event;

	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(5), DAT_COMPLETION_DEFAULT_FLAG));
	while (triggered())
		;
	succeed(post_number(other, 1));
	cr_expect(triggered_by(other));
	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &hold_work);
	fake_complete(transport.context[0], 0);
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(triggered_by(other));
	sem_post(&hold);
	settle();
}

Test(cno, an_agent_is_called_for_a_trigger_that_a_waiter_has_taken)
{
	struct dofi_work hold_work = { .run = thread_stands_still };

	succeed(dofi_cno_modify_agent(cno, agent));
	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &hold_work);
	succeed(post_number(evd, 1));
	cr_expect(triggered());
	sem_post(&hold);
	sem_wait(&called);
	cr_expect_eq(called_with, evd);
}

Test(cno, an_agent_is_not_called_for_a_trigger_of_an_agent_taken_back)
{
	struct dofi_work hold_work = { .run = thread_stands_still };

	succeed(dofi_cno_modify_agent(cno, agent));
	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &hold_work);
	succeed(post_number(evd, 1));
	cr_expect(triggered());
	succeed(dofi_cno_modify_agent(cno, no_agent));
	succeed(dofi_cno_modify_agent(cno, agent));
	sem_post(&hold);
	settle();
	cr_expect_eq(calls, 0);
}

Test(cno, does_not_notify_after_all_was_dequeued)
{
	DAT_EVD_HANDLE other = second_evd();
	DAT_EVENT event;

	succeed(post_number(evd, 1));
	succeed(post_number(other, 2));
	succeed(post_number(other, 3));
	cr_expect(triggered());
	succeed(dofi_evd_dequeue(evd, &event));
	succeed(dofi_evd_dequeue(other, &event));
	succeed(dofi_evd_dequeue(other, &event));
	cr_expect(!triggered());
}

Test(cno, a_trigger_stays_although_its_event_was_taken)
{
	DAT_EVENT event;

	succeed(post_number(evd, 1));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(triggered());
}

Test(cno, does_not_notify_of_a_disabled_evd)
{
	DAT_EVD_HANDLE other = second_evd();
	DAT_EVENT event;

	succeed(post_number(other, 1));
	cr_expect(triggered_by(other));
	succeed(dofi_evd_disable(other));
	succeed(post_number(evd, 2));
	cr_expect(triggered_by(evd));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(!triggered());
	succeed(dofi_evd_enable(other));
	cr_expect(triggered_by(other));
}

Test(cno, does_not_notify_of_a_detached_evd)
{
	DAT_EVD_HANDLE other = second_evd();
	DAT_EVENT event;

	succeed(post_number(other, 1));
	cr_expect(triggered_by(other));
	succeed(dofi_evd_modify_cno(other, DAT_HANDLE_NULL));
	succeed(post_number(evd, 2));
	cr_expect(triggered_by(evd));
	succeed(dofi_evd_dequeue(evd, &event));
	cr_expect(!triggered());
}
