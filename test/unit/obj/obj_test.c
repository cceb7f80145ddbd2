/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls on an object that another thread frees meanwhile, and references to it. */

#include "obj/fixture.h"

#include "obj/child.h"
#include "obj/cno.h"
#include "obj/evd.h"
#include "obj/fast.h"
#include "obj/srq.h"
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

TestSuite(obj, .init = objects_init, .fini = ia_fini, .timeout = 60);

/* A call that another thread makes. */
struct other {
	DAT_RETURN (*call)(DAT_HANDLE handle);
	DAT_HANDLE handle;
	pthread_t thread;
	_Atomic pid_t tid;
	DAT_RETURN ret;
};

static void *other_run(void *arg)
{
	struct other *o = arg;

	o->tid = (pid_t)syscall(SYS_gettid);
	o->ret = o->call(o->handle);
	return NULL;
}

static void other_start(struct other *o)
{
	pthread_create(&o->thread, NULL, other_run, o);
	while (!o->tid || !thread_rests(o->tid))
		sched_yield();
}

static DAT_RETURN other_end(struct other *o)
{
	pthread_join(o->thread, NULL);
	return o->ret;
}

static DAT_RETURN close_abruptly(DAT_HANDLE handle)
{
	return dofi_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
}

Test(obj, an_entered_object_is_not_freed)
{
	struct other o = { .call = dofi_pz_free };
	struct dofi_pz *held;

	succeed(dofi_pz_create(ia, &o.handle));
	held = dofi_pz_enter(o.handle);
	cr_assert(held);
	other_start(&o);
	cr_expect(!dofi_pz_check(o.handle), "the handle has ended");
	cr_expect(!dofi_pz_enter(o.handle));
	expect_handle(dofi_pz_free(o.handle), PZ);
	cr_expect_eq(dofi_pz_pool.used, 2, "the object has not");
	dofi_obj_leave(&held->obj);
	succeed(other_end(&o));
	cr_expect_eq(dofi_pz_pool.used, 1);
}

Test(obj, an_ia_waits_for_calls_on_its_objects)
{
	struct other o = { .call = close_abruptly, .handle = ia };
	struct dofi_evd *held = dofi_evd_enter(evd);

	other_start(&o);
	cr_expect(!dofi_ia_check(ia));
	cr_expect(!dofi_evd_enter(evd), "no call begins");
	cr_expect(!dofi_pz_enter(pz));
	cr_expect_eq(dofi_evd_pool.used, 1);
	dofi_obj_leave(&held->obj);
	succeed(other_end(&o));
	cr_expect_eq(dofi_evd_pool.used, 0);
}

Test(obj, a_used_object_is_not_freed)
{
	struct dofi_pz *used;
	DAT_PZ_HANDLE h;

	succeed(dofi_pz_create(ia, &h));
	used = dofi_pz_use(h, ia);
	cr_assert(used);
	expect_type(dofi_pz_free(h), DAT_INVALID_STATE);
	dofi_obj_put(&used->obj);
	succeed(dofi_pz_free(h));
	cr_expect(!dofi_pz_use(h, ia));
	cr_expect(!dofi_obj_get(&used->obj));
}

Test(obj, an_object_of_another_ia_is_not_used)
{
	cr_expect(!dofi_pz_use(pz, NULL));
	cr_expect(!dofi_pz_use(evd, ia));
}

Test(obj, an_object_that_is_being_freed_gets_no_user)
{
	struct dofi_obj *obj;
	DAT_PZ_HANDLE h;

	succeed(dofi_pz_create(ia, &h));
	obj = h;
	cr_expect_eq(dofi_obj_claim_unused(obj), 0);
	cr_expect_eq(dofi_obj_claim_unused(obj), -ENOENT);
	cr_expect(!dofi_obj_get(obj));
	obj->destroy(obj);
}

/* What @call on @h returns if the handle ends while the call waits for @lock. */
static DAT_RETURN ended_under(struct dofi_mutex *lock, DAT_HANDLE h,
			      DAT_RETURN (*call)(DAT_HANDLE handle))
{
	struct other o = { .call = call, .handle = h };
	unsigned tag;
	DAT_RETURN ret;

	dofi_mutex_lock(lock);
	other_start(&o);
	tag = dofi_pool_tag_set(h, 0);
	dofi_mutex_unlock(lock);
	ret = other_end(&o);
	dofi_pool_tag_set(h, tag);
	return ret;
}

static DAT_RETURN software_event(DAT_HANDLE h)
{
	const DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	return dofi_evd_post_se(h, &event);
}

static DAT_RETURN wait_for_event(DAT_HANDLE h)
{
	DAT_EVENT event;
	DAT_COUNT more;

	return dofi_evd_wait(h, 0, 1, &event, &more);
}

static DAT_RETURN dequeue_locked(DAT_HANDLE h)
{
	DAT_EVENT event;

	return dofi_evd_dequeue_locked(h, &event);
}

Test(obj, calls_that_wait_for_an_evd_find_that_it_ended)
{
	struct dofi_evd *e = evd_make(4, DAT_EVD_SOFTWARE_FLAG);

	expect_type(ended_under(&e->lock, e, software_event), DAT_INVALID_HANDLE);
	cr_expect_eq(dofi_evd_pending(e), 0);
	expect_type(ended_under(&e->lock, e, wait_for_event), DAT_INVALID_HANDLE);
	expect_type(ended_under(&e->lock, e, dequeue_locked), DAT_INVALID_HANDLE);
	succeed(software_event(e));
}

static DAT_RETURN wait_for_trigger(DAT_HANDLE h)
{
	DAT_EVD_HANDLE by;

	return dofi_cno_wait(h, 0, &by);
}

Test(obj, a_wait_for_a_cno_finds_that_it_ended)
{
	const DAT_OS_WAIT_PROXY_AGENT none = { 0 };
	struct dofi_cno *cno;
	DAT_CNO_HANDLE h;

	succeed(dofi_cno_create(ia, none, &h));
	cno = h;
	expect_type(ended_under(&cno->lock, h, wait_for_trigger), DAT_INVALID_HANDLE);
	cr_expect_eq(cno->waiters, 0);
}

static DAT_RETURN post_to_srq(DAT_HANDLE h)
{
	return dofi_srq_post_recv(h, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 });
}

Test(obj, a_post_finds_that_the_srq_ended)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	struct dofi_srq *srq;
	DAT_SRQ_HANDLE h;

	succeed(dofi_srq_create(ia, pz, &attr, &h));
	srq = h;
	expect_type(ended_under(&srq->lock, h, post_to_srq), DAT_INVALID_HANDLE);
	cr_expect(dofi_queue_empty(&srq->queue));
	succeed(post_to_srq(h));
}

static DAT_RETURN post_receive(DAT_HANDLE h)
{
	return dofi_ep_post_recv(h, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 },
				 DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_send(DAT_HANDLE h)
{
	return dofi_ep_post_send(h, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 },
				 DAT_COMPLETION_DEFAULT_FLAG);
}

Test(obj, a_post_finds_that_the_ep_ended)
{
	struct dofi_ep *ep = ep_make();

	expect_type(ended_under(&ep->lock, ep, post_receive), DAT_INVALID_HANDLE);
	cr_expect(dofi_queue_empty(&ep->rq));
	succeed(post_receive(ep));
	expect_type(ended_under(&ep->lock, ep, post_send), DAT_INVALID_HANDLE);
	expect_type(post_send(ep), DAT_INVALID_STATE);
}
