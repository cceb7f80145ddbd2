/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls on an object that another thread frees meanwhile, and references to it. */

#include "obj/fixture.h"

#include "obj/obj.h"
#include "obj/evd/cno.h"
#include "obj/evd/evd.h"
#include "obj/ep/fast.h"
#include "obj/sp/sp.h"
#include "obj/mem/srq.h"
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

/* The result of @call on @h if the handle ends while the call waits for @lock. */
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

static DAT_RETURN dequeue_parallel(DAT_HANDLE h)
{
	DAT_EVENT event;

	return dofi_evd_take_queued(h, &event);
}

Test(obj, calls_that_wait_for_an_evd_find_that_it_ended)
{
	struct dofi_evd *e = evd_make(4, DAT_EVD_SOFTWARE_FLAG);

	expect_type(ended_under(&e->lock, e, software_event), DAT_INVALID_HANDLE);
	cr_expect_eq(dofi_evd_pending(e), 0);
	expect_type(ended_under(&e->lock, e, wait_for_event), DAT_INVALID_HANDLE);
	expect_type(ended_under(&e->lock, e, dequeue_parallel), DAT_INVALID_HANDLE);
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
	return dofi_srq_post_recv(h, 0, NULL, cookie_of(0));
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
	return dofi_ep_post_recv(h, 0, NULL, cookie_of(0), DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_send(DAT_HANDLE h)
{
	return dofi_ep_post_send(h, 0, NULL, cookie_of(0), DAT_COMPLETION_DEFAULT_FLAG);
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

/* Handles of every kind: which are valid, and the calls that all of them have */

/* One object of each kind. */
static struct {
	DAT_HANDLE handle;
	DAT_HANDLE_TYPE type;
} each[11];
static unsigned n_each;

static void each_add(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	each[n_each].handle = handle;
	each[n_each++].type = type;
}

static void init(void)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
#if DAT_VERSION_MAJOR >= 2
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
#endif
	const struct dofi_arrival arrival = { .data = "" };
	DAT_HANDLE h;

	objects_init();
	each_add(ia, DAT_HANDLE_TYPE_IA);
	each_add(pz, DAT_HANDLE_TYPE_PZ);
	each_add(evd, DAT_HANDLE_TYPE_EVD);
	each_add(lmr, DAT_HANDLE_TYPE_LMR);
	each_add(ep_make(), DAT_HANDLE_TYPE_EP);
	succeed(dofi_cno_create(ia, no_agent, &h));
	each_add(h, DAT_HANDLE_TYPE_CNO);
	succeed(dofi_rmr_create(pz, &h));
	each_add(h, DAT_HANDLE_TYPE_RMR);
	succeed(dofi_rsp_create(ia, 8, DAT_HANDLE_NULL, evd, &h));
	each_add(h, DAT_HANDLE_TYPE_RSP);
#if DAT_VERSION_MAJOR >= 2
	succeed(dofi_csp_create(ia, &comm, some_address(), evd, &h));
	each_add(h, DAT_HANDLE_TYPE_CSP);
#endif
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &h));
	each_add(h, DAT_HANDLE_TYPE_PSP);
	cr_assert_eq(dofi_cr_arrived(h, &arrival), 0);
	each_add(event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
			 .event_data.cr_arrival_event_data.cr_handle,
		 DAT_HANDLE_TYPE_CR);
}

TestSuite(handle, .init = init, .fini = ia_fini);

/* Whether no kind of object is at @h. */
static bool refused(DAT_HANDLE h)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(h);
	DAT_HANDLE_TYPE type;

	return !obj && !dofi_ia_check(h) && !dofi_pz_check(h) && !dofi_evd_check(h) &&
	       !dofi_lmr_check(h) && !dofi_ep_check(h) && !dofi_cno_check(h) &&
	       !dofi_psp_check(h) && !dofi_cr_check(h) &&
	       DAT_GET_TYPE(dofi_get_handle_type(h, &type)) == DAT_INVALID_HANDLE;
}

Test(handle, null_is_no_handle)
{
	cr_expect(refused(DAT_HANDLE_NULL));
}

Test(handle, small_numbers_are_no_handles)
{
	uintptr_t n;

	for (n = 0; n < 100000; n++)
		cr_assert(refused((DAT_HANDLE)n));
}

Test(handle, wild_pointers_are_no_handles)
{
	int here;

	cr_expect(refused(&here));
	cr_expect(refused((DAT_HANDLE)UINTPTR_MAX));
	cr_expect(refused(NOWHERE));
	cr_expect(refused(&refused));
}

Test(handle, addresses_inside_objects_are_no_handles)
{
	unsigned i, off;

	for (i = 0; i < n_each; i++)
		for (off = 1; off < 200; off++) {
			char *p = (char *)each[i].handle + off;

			cr_assert(refused(p) || dofi_pool_index(p), "%u+%u", i, off);
		}
}

Test(handle, every_handle_has_its_type)
{
	DAT_HANDLE_TYPE type;
	unsigned i;

	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_handle_type(each[i].handle, &type));
		cr_expect_eq(type, each[i].type);
	}
}

Test(handle, a_handle_of_one_kind_is_none_of_another)
{
	unsigned i;

	for (i = 0; i < n_each; i++) {
		DAT_HANDLE h = each[i].handle;
		DAT_HANDLE_TYPE t = each[i].type;

		cr_expect_eq(dofi_ia_check(h) != NULL, t == DAT_HANDLE_TYPE_IA);
		cr_expect_eq(dofi_pz_check(h) != NULL, t == DAT_HANDLE_TYPE_PZ);
		cr_expect_eq(dofi_evd_check(h) != NULL, t == DAT_HANDLE_TYPE_EVD);
		cr_expect_eq(dofi_lmr_check(h) != NULL, t == DAT_HANDLE_TYPE_LMR);
		cr_expect_eq(dofi_ep_check(h) != NULL, t == DAT_HANDLE_TYPE_EP);
		cr_expect_eq(dofi_cno_check(h) != NULL, t == DAT_HANDLE_TYPE_CNO);
		cr_expect_eq(dofi_psp_check(h) != NULL, t == DAT_HANDLE_TYPE_PSP);
		cr_expect_eq(dofi_cr_check(h) != NULL, t == DAT_HANDLE_TYPE_CR);
	}
}

Test(handle, every_handle_is_dead_after_the_ia)
{
	unsigned i;

	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < n_each; i++)
		cr_expect(refused(each[i].handle), "%u", i);
}

Test(handle, a_freed_handle_is_dead_though_its_neighbour_lives)
{
	DAT_EP_HANDLE a = ep_make(), b = ep_make();

	succeed(dofi_ep_free(a));
	cr_expect(refused(a));
	expect_handle(dofi_ep_free(a), EP);
	cr_expect(!refused(b));
}

Test(handle, the_consumers_context_is_kept_for_each)
{
	DAT_CONTEXT context;
	unsigned i;

	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_consumer_context(each[i].handle, &context));
		cr_expect_eq(context.as_64, 0, "%u", i);
		context.as_64 = 0x1122334455667788ull + i;
		succeed(dofi_set_consumer_context(each[i].handle, context));
	}
	for (i = 0; i < n_each; i++) {
		succeed(dofi_get_consumer_context(each[i].handle, &context));
		cr_expect_eq(context.as_64, 0x1122334455667788ull + i);
	}
}

Test(handle, a_new_object_has_no_old_context)
{
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_PZ_HANDLE h;
	int i;

	for (i = 0; i < 200; i++) {	/* more than the pool's first chunk holds */
		succeed(dofi_pz_create(ia, &h));
		succeed(dofi_get_consumer_context(h, &context));
		cr_assert_eq(context.as_64, 0);
		context.as_64 = 5;
		succeed(dofi_set_consumer_context(h, context));
		succeed(dofi_pz_free(h));
	}
}

Test(handle, context_calls_check_their_arguments)
{
	DAT_CONTEXT context = { .as_64 = 0 };

	expect_type(dofi_set_consumer_context(NOWHERE, context), DAT_INVALID_HANDLE);
	expect_type(dofi_get_consumer_context(DAT_HANDLE_NULL, &context), DAT_INVALID_HANDLE);
	expect_arg(dofi_get_consumer_context(ia, NULL), 2);
	expect_arg(dofi_get_handle_type(ia, NULL), 2);
}
