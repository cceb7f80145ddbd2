/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer Notification Object: waits for many EVDs at once. */

#include "obj/evd/cno.h"

#include "base/clock.h"
#include "base/layout.h"
#include "obj/obj.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static void cno_ctor(void *obj)
{
	struct dofi_cno *cno = obj;

	dofi_cond_init(&cno->wakeup);
}

struct dofi_pool dofi_cno_pool = DOFI_POOL_INIT("cno", struct dofi_cno, cno_ctor);

/*
 * Sets the recipients that have not taken the trigger; the descriptor follows the waiter's bit. A
 * trigger that a waiter took while no agent was set is over: a later agent is not called for it.
 */
static void triggered_set(struct dofi_cno *cno, unsigned triggered) DOFI_NEEDS(cno->lock)
{
	const bool changed = (cno->triggered ^ triggered) & DOFI_CNO_WAITER;
	uint64_t n = 1;

	if (!cno->agent_armed && !(triggered & DOFI_CNO_WAITER))
		triggered = 0;
	cno->triggered = triggered;
	cno->again &= triggered;
	if (!changed || cno->fd < 0)
		return;
	/* not write(), a cancellation point; never full, and empty if the program has read it */
	syscall(triggered ? SYS_write : SYS_read, cno->fd, &n, sizeof(n));
}

/* Calls the agent. Progress thread; no lock held. */
static void agent_run(struct dofi_work *work)
{
	struct dofi_cno *cno = DOFI_CONTAINER_OF(work, struct dofi_cno, agent_work);
	DAT_OS_WAIT_PROXY_AGENT agent;
	struct dofi_evd *evd;
	bool call;

	dofi_mutex_lock(&cno->lock);
	call = cno->agent_armed && (cno->triggered & DOFI_CNO_AGENT);
	agent = cno->agent;
	evd = cno->evd;
	if (call) {
		/* an agent is called once, then the CNO has none; the trigger stays for a waiter */
		cno->agent = (DAT_OS_WAIT_PROXY_AGENT){ .instance_data = NULL };
		cno->agent_armed = false;
		triggered_set(cno, cno->triggered & ~DOFI_CNO_AGENT);
	}
	dofi_mutex_unlock(&cno->lock);
	if (call)
		agent.proxy_agent_func(agent.instance_data, evd);
}

void dofi_cno_attach(struct dofi_cno *cno, struct dofi_cno_source *source)
{
	dofi_mutex_lock(&cno->lock);
	source->owed = false;
	TAILQ_INSERT_TAIL(&cno->sources, source, link);
	dofi_mutex_unlock(&cno->lock);
}

/* Triggers @recipients for @evd, which may be NULL. */
static void trigger_and_unlock(struct dofi_cno *cno, unsigned recipients, struct dofi_evd *evd)
	DOFI_DROPS(cno->lock)
{
	bool agent;

	triggered_set(cno, cno->triggered | recipients);
	cno->evd = evd;
	agent = cno->agent_armed && !cno->dying;
	dofi_cond_signal(&cno->wakeup);
	dofi_mutex_unlock(&cno->lock);
	if (agent)
		dofi_progress_post(&cno->obj.ia->progress, &cno->agent_work);
}

static void waiters_release(struct dofi_cno *cno) DOFI_NEEDS(cno->lock)
{
	cno->released++;
	dofi_cond_broadcast(&cno->wakeup);
}

void dofi_cno_detach(struct dofi_cno *cno, struct dofi_cno_source *source, bool freed)
{
	dofi_mutex_lock(&cno->lock);
	TAILQ_REMOVE(&cno->sources, source, link);
	if (cno->evd == source->evd)
		cno->evd = NULL;
	if (!freed || !TAILQ_EMPTY(&cno->sources)) {
		dofi_mutex_unlock(&cno->lock);
		return;
	}
	waiters_release(cno);
	if (cno->agent_armed || cno->fd >= 0)
		trigger_and_unlock(cno, cno->fd >= 0 ? DOFI_CNO_WAITER : DOFI_CNO_AGENT, NULL);
	else
		dofi_mutex_unlock(&cno->lock);
}

void dofi_cno_raise(struct dofi_cno *cno, struct dofi_cno_source *source)
{
	dofi_mutex_lock(&cno->lock);
	source->owed = true;
	cno->again = 0;
	trigger_and_unlock(cno, DOFI_CNO_BOTH, source->evd);
}

void dofi_cno_update(struct dofi_cno *cno, struct dofi_cno_source *source, bool more)
{
	struct dofi_cno_source *s;
	unsigned idle;

	dofi_mutex_lock(&cno->lock);
	source->owed = more;
	TAILQ_FOREACH(s, &cno->sources, link)
		if (s->owed)
			break;
	idle = DOFI_CNO_BOTH & ~cno->triggered;
	if (s && idle) {
		cno->again |= idle;
		trigger_and_unlock(cno, idle, s->evd);
		return;
	}
	/* a program that has taken all events needs no reminder */
	if (!s && cno->again)
		triggered_set(cno, cno->triggered & ~cno->again);
	dofi_mutex_unlock(&cno->lock);
}

static void last_run(void *arg)
{
	struct dofi_cno *cno = arg;

	agent_run(&cno->agent_work);
}

/*
 * Wakes the waiters and calls the agent, because the IA closes. Returns when the last waiter has
 * left and no agent runs.
 */
static void cno_destroy(struct dofi_obj *obj)
{
	struct dofi_cno *cno = (struct dofi_cno *)obj;

	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_CNO);
	dofi_mutex_lock(&cno->lock);
	cno->dying = true;
	waiters_release(cno);
	while (cno->waiters)
		dofi_cond_wait(&cno->wakeup, &cno->lock, DOFI_NEVER);
	/* wakes a program that polls the descriptor */
	triggered_set(cno, DOFI_CNO_BOTH);
	if (cno->fd >= 0)
		close(cno->fd);
	dofi_mutex_unlock(&cno->lock);
	dofi_progress_withdraw(&obj->ia->progress, &cno->agent_work);
	dofi_progress_call(&obj->ia->progress, last_run, cno);
	dofi_obj_free(&dofi_cno_pool, DAT_HANDLE_TYPE_CNO, obj);
}

/* Makes a CNO with an agent, or with the descriptor @fd, which the CNO will close. */
static struct dofi_cno *cno_new(struct dofi_ia *ia, const DAT_OS_WAIT_PROXY_AGENT *agent, int fd)
{
	struct dofi_cno *cno = dofi_obj_new(&dofi_cno_pool, DAT_HANDLE_TYPE_CNO, ia, cno_destroy);

	if (!cno)
		return NULL;
	cno->triggered = cno->again = 0;
	cno->dying = false;
	cno->released = 0;
	cno->fd = fd;
	cno->evd = NULL;
	TAILQ_INIT(&cno->sources);
	cno->agent = *agent;
	cno->agent_armed = agent->proxy_agent_func != NULL;
	cno->agent_work = (struct dofi_work){ .run = agent_run };
	dofi_obj_publish(&cno->obj, DAT_HANDLE_TYPE_CNO);
	return cno;
}

DAT_RETURN dofi_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *cno_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_cno *cno;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (agent.instance_data && !agent.proxy_agent_func)
		return DOFI_BAD_ARG(2);
	if (!cno_handle)
		return DOFI_BAD_ARG(3);
	cno = cno_new(ia, &agent, -1);
	if (!cno)
		return DOFI_NO_RESOURCE(MEMORY);
	*cno_handle = cno;
	return DAT_SUCCESS;
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno_handle)
{
	static const DAT_OS_WAIT_PROXY_AGENT no_agent;
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_cno *cno;
	int event_fd;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!fd)
		return DOFI_BAD_ARG(2);
	if (!cno_handle)
		return DOFI_BAD_ARG(3);
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return dofi_ret(-errno);
	cno = cno_new(ia, &no_agent, event_fd);
	if (!cno) {
		close(event_fd);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	*fd = event_fd;
	*cno_handle = cno;
	return DAT_SUCCESS;
}
#endif

DAT_RETURN dofi_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct dofi_cno *cno DOFI_CALL = dofi_cno_enter(cno_handle);
	bool call;

	if (!cno)
		return DOFI_BAD_HANDLE(CNO);
	/* a CNO with a descriptor has no agent */
	if (cno->fd >= 0)
		return DOFI_BAD_ARG(1);
	if (agent.instance_data && !agent.proxy_agent_func)
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&cno->lock);
	cno->agent = agent;
	cno->agent_armed = agent.proxy_agent_func != NULL;
	triggered_set(cno, cno->triggered);
	call = cno->agent_armed && (cno->triggered & DOFI_CNO_AGENT);
	dofi_mutex_unlock(&cno->lock);
	if (call)
		dofi_progress_post(&cno->obj.ia->progress, &cno->agent_work);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	struct dofi_cno *cno DOFI_CALL = dofi_cno_enter(cno_handle);

	if (!cno)
		return DOFI_BAD_HANDLE(CNO);
	/* 2.0 numbers its mask bits oddly (FIELD_ALL is 4), so all three low bits are legal */
	if (mask & ~7)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	param->ia_handle = dofi_ia_export(cno->obj.ia);
	dofi_mutex_lock(&cno->lock);
#if DAT_VERSION_MAJOR >= 2
	param->proxy.agent = cno->agent;
	if (cno->fd >= 0) {
		param->proxy_type = DAT_PROXY_TYPE_FD;
		param->proxy.fd = cno->fd;
	} else {
		param->proxy_type = cno->agent.proxy_agent_func ? DAT_PROXY_TYPE_AGENT :
								  DAT_PROXY_TYPE_NONE;
	}
#else
	param->agent = cno->agent;
#endif
	dofi_mutex_unlock(&cno->lock);
	return DAT_SUCCESS;
}

/* Consumes the trigger, if there is one, and returns its EVD. */
static DAT_RETURN trigger_take(struct dofi_cno *cno, DAT_EVD_HANDLE *evd_handle)
	DOFI_NEEDS(cno->lock)
{
	const bool triggered = cno->triggered & DOFI_CNO_WAITER;

	*evd_handle = triggered ? (DAT_EVD_HANDLE)cno->evd : DAT_HANDLE_NULL;
	triggered_set(cno, cno->triggered & ~DOFI_CNO_WAITER);
	/* no error bit: programs compare with == */
	return triggered ? DAT_SUCCESS : DAT_QUEUE_EMPTY;
}

DAT_RETURN dofi_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	struct dofi_cno *cno = dofi_cno_check(cno_handle);
	const int64_t deadline = dofi_deadline(timeout);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned before;
	int err = 0;

	if (!cno)
		return DOFI_BAD_HANDLE(CNO);
	if (!evd_handle)
		return DOFI_BAD_ARG(3);
	dofi_mutex_lock(&cno->lock);
	if (!dofi_obj_is_live(&cno->obj, DAT_HANDLE_TYPE_CNO)) {
		dofi_mutex_unlock(&cno->lock);
		return DOFI_BAD_HANDLE(CNO);
	}
	before = cno->released;
	cno->waiters++;
	while (!(cno->triggered & DOFI_CNO_WAITER) && cno->released == before && !err)
		err = dofi_cond_wait(&cno->wakeup, &cno->lock, deadline);
	cno->waiters--;
	/* a released waiter returns no error, and no EVD */
	if ((cno->triggered & DOFI_CNO_WAITER) || cno->released == before)
		ret = trigger_take(cno, evd_handle);
	else
		*evd_handle = DAT_HANDLE_NULL;
	if (ret == DAT_QUEUE_EMPTY && err == -EINTR)
		ret = DOFI_RET(DAT_INTERRUPTED_CALL, 0);
	if (cno->dying)
		dofi_cond_broadcast(&cno->wakeup);
	dofi_mutex_unlock(&cno->lock);
	return ret;
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE *evd_handle)
{
	struct dofi_cno *cno DOFI_CALL = dofi_cno_enter(cno_handle);
	DAT_RETURN ret;

	if (!cno)
		return DOFI_BAD_HANDLE(CNO);
	if (!evd_handle)
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&cno->lock);
	ret = trigger_take(cno, evd_handle);
	dofi_mutex_unlock(&cno->lock);
	return ret;
}
#endif

DAT_RETURN dofi_cno_free(DAT_CNO_HANDLE cno_handle)
{
	struct dofi_cno *cno = dofi_cno_enter(cno_handle);
	int err;

	if (!cno)
		return DOFI_BAD_HANDLE(CNO);
	dofi_mutex_lock(&cno->lock);
	err = cno->waiters ? -EBUSY : dofi_obj_claim_unused(&cno->obj);
	if (!err)
		/* DAT calls the agent at the end of the IA, but not here */
		cno->agent_armed = false;
	dofi_mutex_unlock(&cno->lock);
	if (err) {
		dofi_obj_leave(&cno->obj);
		return err == -EBUSY ? DOFI_BAD_STATE(CNO_IN_USE) : DOFI_BAD_HANDLE(CNO);
	}
	dofi_obj_end(&cno->obj);
	return DAT_SUCCESS;
}
