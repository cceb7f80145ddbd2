/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer notification objects. */

#include "conform.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

CHAPTER("cno");

#define NO_AGENT DAT_OS_WAIT_PROXY_AGENT_NULL
#define BRIEF 2000	/* microseconds */

static DAT_EVD_HANDLE evd_at(struct node *n, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(n->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	return evd;
}

static void expect_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE wanted)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	OK(dat_cno_wait(cno, pair_scaled(PAIR_LIMIT) * 1000, &evd));
	CHECK(evd == wanted, "wrong EVD");
}

static void expect_none(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd = cno;

	FAILS(dat_cno_wait(cno, 0, &evd), DAT_QUEUE_EMPTY);
	CHECK(!evd, "an EVD was returned");
}

/* dat_cno_create, query, free */

CLAUSE("dat_cno_create/SUCCESS/untriggered")
{
	DAT_CNO_HANDLE cno;

	OK(dat_cno_create(n->ia, NO_AGENT, &cno));
	expect_none(cno);
	OK(dat_cno_free(cno));
}

CLAUSE("dat_cno_create/INVALID_PARAMETER/cno_handle NULL")
{
	FAILS(dat_cno_create(n->ia, NO_AGENT, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_create/INVALID_PARAMETER/agent with data and no function")
{
	DAT_OS_WAIT_PROXY_AGENT agent = { .instance_data = n };
	DAT_CNO_HANDLE cno;

	FAILS(dat_cno_create(n->ia, agent, &cno), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_query/SUCCESS/ia_handle")
{
	DAT_CNO_PARAM param;

	OK(dat_cno_query(object(n, DAT_HANDLE_TYPE_CNO), DAT_CNO_FIELD_IA_HANDLE, &param));
	CHECK(param.ia_handle == n->ia, "wrong IA");
}

CLAUSE("dat_cno_free/SUCCESS")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);

	OK(dat_cno_free(cno));
	FAILS(dat_cno_free(cno), DAT_INVALID_HANDLE);
}

CLAUSE("dat_cno_free/INVALID_STATE/an EVD is attached")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	FAILS(dat_cno_free(cno), DAT_INVALID_STATE);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
}

CLAUSE("dat_cno_free/INVALID_STATE/a thread is waiting")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd;
	struct waiter w;

	cno_waiter_start(&w, cno);
	FAILS(dat_cno_free(cno), DAT_INVALID_STATE);
	evd = evd_at(n, cno);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
}

/* dat_cno_wait */

CLAUSE("dat_cno_wait/SUCCESS/already triggered")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	put_se(evd, 1);
	expect_trigger(cno, evd);
	expect_none(cno);	/* once per trigger, though the event is still queued */
	expect_software(evd, 1);
	expect_none(cno);
}

CLAUSE("dat_cno_wait/SUCCESS/triggered during the wait")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w;

	cno_waiter_start(&w, cno);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
	CHECK(w.evd == evd, "wrong EVD");
}

CLAUSE("dat_cno_wait/SUCCESS/several EVDs")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE a = evd_at(n, cno), b = evd_at(n, cno);

	put_se(b, 1);
	expect_trigger(cno, b);
	expect_software(b, 1);
	put_se(a, 2);
	expect_trigger(cno, a);
	expect_software(a, 2);
	expect_none(cno);
}

static unsigned count_done(const struct waiter *w, size_t count)
{
	unsigned done = 0;

	while (count--)
		done += __atomic_load_n(&w[count].done, __ATOMIC_ACQUIRE);
	return done;
}

CLAUSE("dat_cno_wait/SUCCESS/a trigger wakes one of several waiters")
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w[3];
	size_t k;

	for (k = 0; k < COUNT(w); k++)
		cno_waiter_start(&w[k], cno);
	for (k = 1; k <= COUNT(w); k++) {
		put_se(evd, k);
		while (count_done(w, COUNT(w)) < k) {
			CHECK(pair_now() < deadline, "trigger %zu wakes no thread", k);
			sched_yield();
		}
		expect_software(evd, k);
	}
	for (k = 0; k < COUNT(w); k++)
		waiter_expect(&w[k], DAT_SUCCESS);
}

CLAUSE("dat_cno_wait/QUEUE_EMPTY/timeout 0")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = cno;

	/* programs compare the whole code */
	SAME(dat_cno_wait(cno, 0, &evd), DAT_QUEUE_EMPTY);
	CHECK(!evd, "an EVD was returned");
}

CLAUSE("dat_cno_wait/QUEUE_EMPTY/microseconds")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	int64_t start = pair_now();
	DAT_EVD_HANDLE evd;

	FAILS(dat_cno_wait(cno, BRIEF, &evd), DAT_QUEUE_EMPTY);
	CHECK(pair_now() - start >= BRIEF, "the wait ended too early");
}

CLAUSE("dat_cno_wait/INTERRUPTED_CALL/a signal")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w;

	cno_waiter_start(&w, cno);
	waiter_expect_interrupt(&w);
	put_se(evd, 1);
	expect_trigger(cno, evd);
}

CLAUSE("dat_cno_wait/SUCCESS/signals with SA_RESTART")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w;

	cno_waiter_start(&w, cno);
	waiter_expect_restart(&w, evd);
}

CLAUSE("dat_cno_wait/INVALID_PARAMETER/evd_handle NULL")
{
	FAILS(dat_cno_wait(object(n, DAT_HANDLE_TYPE_CNO), 0, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_wait/SUCCESS/no EVD after all EVDs were freed")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE a = evd_at(n, cno), b = evd_at(n, cno);
	struct waiter w[3];
	size_t k;

	for (k = 0; k < COUNT(w); k++)
		cno_waiter_start(&w[k], cno);
	OK(dat_evd_free(a));
	FAILS(dat_cno_free(cno), DAT_INVALID_STATE);
	OK(dat_evd_free(b));
	for (k = 0; k < COUNT(w); k++) {
		waiter_expect(&w[k], DAT_SUCCESS);
		CHECK(!w[k].evd, "EVD %p", w[k].evd);
	}
}

/* Triggers */

CLAUSE("dat_evd_disable/SUCCESS/no trigger")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	OK(dat_evd_disable(evd));
	put_se(evd, 1);
	expect_none(cno);
	/* enabling triggers for the events that are queued */
	OK(dat_evd_enable(evd));
	expect_trigger(cno, evd);
}

CLAUSE("dat_evd_modify_cno/SUCCESS/triggers for queued events")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, DAT_HANDLE_NULL);

	put_se(evd, 1);
	OK(dat_evd_modify_cno(evd, cno));
	expect_trigger(cno, evd);
	OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	put_se(evd, 2);
	expect_none(cno);
}

CLAUSE("dat_evd_wait/SUCCESS/a waiter's event does not trigger")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w;

	evd_waiter_start(&w, evd, 1);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
	expect_none(cno);
}

CLAUSE("dat_evd_set_unwaitable/SUCCESS/still triggers")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	OK(dat_evd_set_unwaitable(evd));
	put_se(evd, 1);
	expect_trigger(cno, evd);
}

/* Agents */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned count;
	DAT_EVD_HANDLE evd;
} calls = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static void agent_function(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	pthread_mutex_lock(&calls.lock);
	calls.count += data == &calls;
	calls.evd = evd;
	pthread_cond_broadcast(&calls.cond);
	pthread_mutex_unlock(&calls.lock);
}

static const DAT_OS_WAIT_PROXY_AGENT agent = {
	.instance_data = &calls,
	.proxy_agent_func = agent_function,
};

static void expect_calls(unsigned count, DAT_EVD_HANDLE evd)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += pair_scaled(PAIR_LIMIT) / 1000;
	pthread_mutex_lock(&calls.lock);
	while (calls.count < count && !err)
		err = pthread_cond_timedwait(&calls.cond, &calls.lock, &until);
	SAME(calls.count, count);
	CHECK(calls.evd == evd, "wrong EVD");
	pthread_mutex_unlock(&calls.lock);
}

static DAT_CNO_HANDLE with_agent(struct node *n)
{
	DAT_CNO_HANDLE cno;

	calls.count = 0;
	OK(dat_cno_create(n->ia, agent, &cno));
	return cno;
}

CLAUSE("dat_cno_create/SUCCESS/agent called once")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	put_se(evd, 1);
	expect_calls(1, evd);
	drain(evd);
	put_se(evd, 2);		/* the agent is not armed: the trigger is for a waiter */
	expect_trigger(cno, evd);
	expect_calls(1, evd);
}

CLAUSE("dat_cno_modify_agent/SUCCESS/a trigger is passed to the agent and to a waiting thread")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	struct waiter w;

	cno_waiter_start(&w, cno);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
	CHECK(w.evd == evd, "wrong EVD");
	expect_calls(1, evd);
}

CLAUSE("dat_cno_modify_agent/SUCCESS/a trigger is passed to the agent and to a later wait")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	put_se(evd, 1);
	expect_calls(1, evd);
	expect_trigger(cno, evd);
	expect_none(cno);
}

CLAUSE("dat_ia_close/SUCCESS/abruptly calls the agent of a CNO without an EVD")
{
	evd_at(n, with_agent(n));
	calls.evd = n->recv;
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
	expect_calls(1, DAT_HANDLE_NULL);
}

CLAUSE("dat_cno_modify_agent/SUCCESS/armed again")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	put_se(evd, 1);
	expect_calls(1, evd);
	drain(evd);
	OK(dat_cno_modify_agent(cno, agent));
	put_se(evd, 2);
	expect_calls(2, evd);
}

CLAUSE("dat_cno_modify_agent/SUCCESS/no agent")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);

	OK(dat_cno_modify_agent(cno, NO_AGENT));
	put_se(evd, 1);
	expect_trigger(cno, evd);
	SAME(calls.count, 0);
	put_se(evd, 2);			/* this trigger stays for the next agent */
	OK(dat_cno_modify_agent(cno, agent));
	expect_calls(1, evd);
}

CLAUSE("dat_cno_modify_agent/INVALID_PARAMETER/agent with data and no function")
{
	DAT_OS_WAIT_PROXY_AGENT bad = { .instance_data = n };

	FAILS(dat_cno_modify_agent(object(n, DAT_HANDLE_TYPE_CNO), bad), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_query/SUCCESS/agent")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_CNO_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
#if DAT_VERSION_MAJOR >= 2
	SAME(param.proxy_type, DAT_PROXY_TYPE_AGENT);
	CHECK(param.proxy.agent.proxy_agent_func == agent_function, "wrong agent");
#else
	CHECK(param.agent.proxy_agent_func == agent_function, "wrong agent");
#endif
}

CLAUSE("dat_cno_query/SUCCESS/an agent after its call")
{
	DAT_CNO_HANDLE cno = with_agent(n);
	DAT_EVD_HANDLE evd = evd_at(n, cno);
	DAT_CNO_PARAM param;

	put_se(evd, 1);
	expect_calls(1, evd);
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
#if DAT_VERSION_MAJOR >= 2
	SAME(param.proxy_type, DAT_PROXY_TYPE_NONE);
#else
	CHECK(!param.agent.proxy_agent_func, "the agent is still set");
#endif
}

#if DAT_VERSION_MAJOR >= 2
/* File descriptors and triggers */

static bool readable(DAT_FD fd)
{
	struct pollfd pfd = { .fd = (int)(intptr_t)fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

CLAUSE("dat_cno_fd_create/SUCCESS/readable while triggered")
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, reported;
	DAT_FD fd;

	OK(dat_cno_fd_create(n->ia, &fd, &cno));
	evd = evd_at(n, cno);
	CHECK(!readable(fd), "readable without a trigger");
	put_se(evd, 1);
	CHECK(readable(fd), "not readable after a trigger");
	OK(dat_cno_trigger(cno, &reported));
	CHECK(reported == evd, "wrong EVD");
	drain(evd);
	CHECK(!readable(fd), "still readable after the wait");
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
}

CLAUSE("dat_cno_fd_create/SUCCESS/readable when the last EVD is freed")
{
	DAT_EVD_HANDLE first, last, reported;
	DAT_CNO_HANDLE cno;
	DAT_FD fd;

	OK(dat_cno_fd_create(n->ia, &fd, &cno));
	first = evd_at(n, cno);
	last = evd_at(n, cno);
	OK(dat_evd_free(first));
	CHECK(!readable(fd), "readable while an EVD remains");
	OK(dat_evd_free(last));
	CHECK(readable(fd), "not readable after the last EVD was freed");
	OK(dat_cno_trigger(cno, &reported));
	CHECK(!reported, "an EVD was returned");
	CHECK(!readable(fd), "still readable after the wait");
	OK(dat_cno_free(cno));
}

CLAUSE("dat_cno_fd_create/INVALID_PARAMETER/NULL")
{
	DAT_CNO_HANDLE cno;
	DAT_FD fd;

	FAILS(dat_cno_fd_create(n->ia, NULL, &cno), DAT_INVALID_PARAMETER);
	FAILS(dat_cno_fd_create(n->ia, &fd, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_modify_agent/INVALID_PARAMETER/a CNO with a file descriptor")
{
	DAT_CNO_HANDLE cno;
	DAT_FD fd;

	OK(dat_cno_fd_create(n->ia, &fd, &cno));
	FAILS(dat_cno_modify_agent(cno, agent), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_cno_trigger/QUEUE_EMPTY")
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_cno_trigger(object(n, DAT_HANDLE_TYPE_CNO), &evd), DAT_QUEUE_EMPTY);
}

CLAUSE("dat_cno_trigger/SUCCESS")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd = evd_at(n, cno), reported;

	put_se(evd, 1);
	OK(dat_cno_trigger(cno, &reported));
	CHECK(reported == evd, "wrong EVD");
}

CLAUSE("dat_cno_trigger/INVALID_PARAMETER/evd_handle NULL")
{
	FAILS(dat_cno_trigger(object(n, DAT_HANDLE_TYPE_CNO), NULL), DAT_INVALID_PARAMETER);
}
#endif
