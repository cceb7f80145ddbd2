/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capacity of queues, and the order in which operations reach the fabric. */

#include "obj/ops.h"

#include <sched.h>

TestSuite(ep_queue, .init = ops_init, .fini = ia_fini);
OPS_SUITES;

/* Capacity and order */

/* The slow path doubles the slots. */
static void fill_queue(DAT_RETURN (*post)(uint64_t n), const struct dofi_queue *q, unsigned depth)
{
	const unsigned first = transport.n, plain = transport.plain;
	unsigned i;

	for (i = 0; i < depth; i++)
		succeed(post(i));
	expect_plain(plain + depth - q->steps);
	expect_type(post(99), DAT_INSUFFICIENT_RESOURCES);
	complete(first);
	expect_type(post(99), DAT_INSUFFICIENT_RESOURCES);
	take(0, DAT_DTO_SUCCESS);
	succeed(post(depth));
	expect_type(post(99), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(transport.n, first + depth + 1);
}

BOTH_PATHS(a_queue_takes_what_was_agreed_and_no_more)
{
	fill_queue(post_send, &inside()->sq, inside()->sq.limit);
	fill_queue(post_recv, &inside()->rq, inside()->attr.max_recv_dtos);
}

/* Slots */

Test(ep_queue, an_unused_queue_has_few_slots)
{
	cr_expect_eq(inside()->sq.mask + 1, DOFI_QUEUE_FIRST);
	cr_expect_eq(inside()->rq.mask + 1, DOFI_QUEUE_FIRST);
}

/* Operations in flight keep their slots, at any position of the ring. */
Test(ep_queue, slots_double_under_operations_in_flight)
{
	const struct dofi_queue *q = &inside()->sq;
	const unsigned limit = q->limit;
	unsigned n = 0, done = 0;

	for (; n < DOFI_QUEUE_FIRST; n++)
		succeed(post_send(n));
	for (; done < DOFI_QUEUE_FIRST - 1; done++) {
		complete(done);
		take(done, DAT_DTO_SUCCESS);
	}
	cr_assert_eq(q->steps, 0);
	for (; n < done + limit; n++)
		succeed(post_send(n));
	cr_expect_eq(q->mask + 1, limit);
	expect_type(post_send(n), DAT_INSUFFICIENT_RESOURCES);
	for (; done < n; done++) {
		complete(done);
		take(done, DAT_DTO_SUCCESS);
	}
}

Test(ep_queue, slots_that_are_free_again_are_used_before_it_doubles)
{
	uint64_t n;

	for (n = 0; n < 10 * DOFI_QUEUE_FIRST; n++) {
		succeed(post_send(n));
		succeed(post_recv(n));
		complete(2 * n);
		complete(2 * n + 1);
		take(n, DAT_DTO_SUCCESS);
		take(n, DAT_DTO_SUCCESS);
	}
	cr_expect_eq(inside()->sq.steps, 0);
	cr_expect_eq(inside()->rq.steps, 0);
}

TestSuite(ep_queue_unconnected, .init = ops_init_unconnected, .fini = ia_fini);

Test(ep_queue_unconnected, receives_double_the_slots)
{
	unsigned n, limit = inside()->rq.limit;

	for (n = 0; n < limit; n++)
		succeed(post_recv(n));
	expect_type(post_recv(n), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(dofi_queue_used(&inside()->rq), limit);
}

/* A request or receive that has completed counts until its own event is dequeued. */
Test(ep_queue, an_event_keeps_its_place_until_it_is_dequeued)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_recv(2));
	succeed(post_send(3));
	succeed(post_recv(4));
	complete(0);
	complete(1);
	complete(2);
	expect_type(post_send(5), DAT_INSUFFICIENT_RESOURCES);
	expect_type(post_recv(5), DAT_INSUFFICIENT_RESOURCES);
	take(1, DAT_DTO_SUCCESS);
	succeed(post_send(5));
	expect_type(post_send(6), DAT_INSUFFICIENT_RESOURCES);
	expect_type(post_recv(6), DAT_INSUFFICIENT_RESOURCES);
	take(2, DAT_DTO_SUCCESS);
	succeed(post_recv(6));
	expect_type(post_recv(7), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_queue, a_suppressed_event_keeps_no_place)
{
	DAT_EP_ATTR attr = attr_of_depth(1);

	make_with(evd, evd, &attr);
	succeed(send_flags(1, DAT_COMPLETION_SUPPRESS_FLAG));
	complete(0);
	succeed(post_send(2));
}

/*
 * dat_evd_create(3) states the size. It also suffices for the end of a connection, which flushes
 * all that is left.
 */
Test(ep_queue, an_evd_of_the_size_of_its_queues_does_not_overflow)
{
	DAT_EVD_HANDLE small = evd_make(6, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(3);
	unsigned i;

	make_with(small, small, &attr);
	for (i = 0; i < 3; i++) {
		succeed(post_send(i));
		succeed(post_recv(10 + i));
	}
	complete(0);
	complete(1);
	expect_type(post_send(3), DAT_INSUFFICIENT_RESOURCES);
	expect_type(post_recv(13), DAT_INSUFFICIENT_RESOURCES);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(dofi_evd_pending((struct dofi_evd *)small), 6);
	/* an operation that is flushed at once counts as well */
	expect_type(post_send(4), DAT_INSUFFICIENT_RESOURCES);
	expect_type(post_recv(14), DAT_INSUFFICIENT_RESOURCES);
	for (i = 0; i < 6; i++)
		event_take(small, DAT_DTO_COMPLETION_EVENT);
	succeed(post_recv(14));
	event_take(small, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(evd), "nothing has overflowed");
}

/* More endpoints than it takes until one reuses the memory of an earlier one. */
#define ENOUGH 4096

/* Events outlive their EP, and another EP reuses its memory. */
Test(ep_queue, the_events_of_a_former_endpoint_take_no_places)
{
	DAT_EVD_HANDLE other = evd_make(4, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr = attr_of_depth(1);
	DAT_EP_HANDLE former;
	unsigned n = 0;

	make_with(other, other, &attr);
	former = ep;
	succeed(post_send(1));
	complete(0);
	succeed(dofi_ep_free(ep));
	do
		succeed(dofi_ep_create(ia, pz, other, other, evd, &attr, &ep));
	while (ep != former && n++ < ENOUGH);
	cr_assert_eq(ep, former, "memory of a pool is used again");
	make_connected(ep);
	succeed(post_send(2));
	expect_type(post_send(3), DAT_INSUFFICIENT_RESOURCES);
	event_take(other, DAT_DTO_COMPLETION_EVENT);
	expect_type(post_send(3), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_queue, events_that_go_with_their_evd_take_no_places)
{
	DAT_EVD_HANDLE other = evd_make(4, DAT_EVD_DTO_FLAG);
	const DAT_EP_PARAM param = { .request_evd_handle = evd };
	DAT_EP_ATTR attr = attr_of_depth(1);

	make_with(evd, other, &attr);
	succeed(post_send(1));
	complete(0);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	succeed(dofi_ep_reset(ep));
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
	cr_expect_eq(dofi_unread_count(&inside()->sq_unread), 1);
	succeed(dofi_evd_free(other));
	cr_expect_eq(dofi_unread_count(&inside()->sq_unread), 0);
}

/* Runs on the progress thread, so that no other thread reads the completions. */
static void fill_and_post(void *arg)
{
	unsigned i, depth = inside()->sq.limit;
	DAT_RETURN *ret = arg;

	for (i = 0; i < depth; i++)
		succeed(send_flags(i, DAT_COMPLETION_SUPPRESS_FLAG));
	expect_type(send_flags(i, DAT_COMPLETION_SUPPRESS_FLAG), DAT_INSUFFICIENT_RESOURCES);
	fake_complete(transport.context[0], 0);
	*ret = send_flags(i, DAT_COMPLETION_SUPPRESS_FLAG);
}

Test(ep_queue, a_full_queue_is_read_if_the_program_never_polls)
{
	DAT_RETURN ret = DAT_INTERNAL_ERROR;

	dofi_progress_call(&ia->progress, fill_and_post, &ret);
	succeed(ret);
	cr_expect(event_none(evd));
}

static void *post_one_more(void *arg)
{
	DAT_RETURN *ret = arg;

	*ret = send_flags(99, DAT_COMPLETION_SUPPRESS_FLAG);
	return NULL;
}

/* The lock is held until the post has found that. The completion is there for the next reader. */
Test(ep_queue, a_full_queue_is_read_after_another_thread_that_reads)
{
	struct dofi_cq *cq = inside()->cq;
	const unsigned depth = inside()->sq.limit;
	DAT_RETURN ret = DAT_INTERNAL_ERROR;
	pthread_t thread;
	unsigned i;

	for (i = 0; i < depth; i++)
		succeed(send_flags(i, DAT_COMPLETION_SUPPRESS_FLAG));
	dofi_mutex_lock(&cq->lock);
	fake_complete(transport.context[0], 0);
	pthread_create(&thread, NULL, post_one_more, &ret);
	while (!atomic_load(&cq->refused))
		sched_yield();
	dofi_mutex_unlock(&cq->lock);
	pthread_join(thread, NULL);
	succeed(ret);
	cr_expect(event_none(evd));
}

Test(ep_queue, room_is_not_rounded)
{
	static const DAT_COUNT depths[] = { 0, 1, 2, 3, 5, 63 };
	DAT_COUNT i, d;

	for (d = 0; d < (DAT_COUNT)(sizeof(depths) / sizeof(depths[0])); d++) {
		DAT_EP_ATTR attr = attr_of_depth(depths[d]);

		make_with(evd, evd, &attr);
		for (i = 0; i < depths[d]; i++) {
			succeed(post_send(i));
			succeed(post_recv(i));
		}
		expect_type(post_send(i), DAT_INSUFFICIENT_RESOURCES);
		expect_type(post_recv(i), DAT_INSUFFICIENT_RESOURCES);
	}
}

/* Slots are taken and released in order. */
Test(ep_queue, a_later_completion_makes_no_room)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_send(2));
	complete(1);
	expect_type(post_send(3), DAT_INSUFFICIENT_RESOURCES);
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	succeed(post_send(3));
	succeed(post_send(4));
	expect_type(post_send(5), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_queue, the_counters_wrap)
{
	DAT_EP_ATTR attr = attr_of_depth(5);
	struct dofi_queue *q;
	unsigned i;

	make_with(evd, evd, &attr);
	q = &inside()->sq;
	q->head = q->next = q->tail = UINT32_MAX - 1;
	for (i = 0; i < 5; i++)
		succeed(post_send(i));
	expect_type(post_send(9), DAT_INSUFFICIENT_RESOURCES);
	for (i = 0; i < 5; i++) {
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	cr_expect(dofi_queue_empty(q));
	cr_expect_eq(q->head, 3);
}

Test(ep_queue, receives_have_room_of_their_own)
{
	unsigned i;

	for (i = 0; i < inside()->sq.limit; i++)
		succeed(post_send(i));
	for (i = 0; i < inside()->rq.limit; i++)
		succeed(post_recv(i));
	expect_type(post_recv(99), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_queue, what_finds_no_room_at_the_fabric_waits_its_turn)
{
	int i;

	transport.taken = 2;
	for (i = 0; i < 4; i++)
		succeed(post_send(i));
	cr_assert_eq(transport.n, 2);
	transport.taken = 1;
	complete(0);
	cr_assert_eq(transport.n, 3);
	cr_expect_eq(transport.dto[2]->cookie, 2);
	transport.taken = 1;
	complete(1);
	cr_assert_eq(transport.n, 4);
	cr_expect_eq(transport.dto[3]->cookie, 3);
}

/* Operations that the transport completes at once */

BOTH_PATHS(what_is_done_at_once_waits_for_its_elders)
{
	succeed(post_write(1, 8, 8));
	transport.fail = DOFI_DONE;
	succeed(post_write(2, 8, 8));
	transport.fail = DOFI_DONE;
	succeed(post_send(3));
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(ep_queue, what_is_done_at_once_makes_way_for_a_fence)
{
	transport.taken = 0;
	succeed(post_read(1, 8, 8, 0));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	transport.taken = 10;
	transport.fail = DOFI_DONE;
	dofi_mutex_lock(&inside()->lock);
	dofi_dto_submit_pending(inside());
	dofi_mutex_unlock(&inside()->lock);
	take(1, DAT_DTO_SUCCESS);
	cr_assert_eq(transport.n, 1);
	complete(0);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_queue, the_last_that_is_done_at_once_ends_a_graceful_disconnect)
{
	transport.taken = 0;
	succeed(post_write(1, 8, 8));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	cr_expect(event_none(evd));
	transport.fail = DOFI_DONE;
	dofi_mutex_lock(&inside()->lock);
	dofi_dto_submit_pending(inside());
	dofi_mutex_unlock(&inside()->lock);
	settle();
	take(1, DAT_DTO_SUCCESS);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep_queue, a_read_that_found_no_room_is_counted_once)
{
	DAT_EP_ATTR attr = attr_of_depth(4);

	attr.max_rdma_read_out = 1;
	make_with(evd, evd, &attr);
	transport.taken = 1;
	succeed(post_send(1));
	succeed(post_read(2, 8, 8, 0));
	cr_expect_eq(inside()->reads, 0);
	transport.taken = 2;
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 1);
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_queue, what_waits_is_flushed_too)
{
	transport.taken = 0;
	succeed(post_send(1));
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(transport.n, 0);
}

BOTH_PATHS(no_more_reads_are_under_way_than_agreed)
{
	const unsigned most = inside()->attr.max_rdma_read_out, all = most + 3;
	unsigned i, plain;

	/* the slow path doubles the slots */
	for (i = 0; i < all; i++)
		succeed(post_send(i));
	for (i = 0; i < all; i++) {
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	plain = transport.plain + most;
	for (i = 0; i < most + 2; i++)
		succeed(post_read(i, 8, 8, 0));
	succeed(post_write(i, 8, 8));
	expect_plain(plain);
	cr_assert_eq(transport.n, all + most);
	complete(all);
	cr_assert_eq(transport.n, all + most + 1);
	complete(all + 1);
	cr_assert_eq(transport.n, 2 * all, "the write was behind a read that waited");
	cr_expect_eq(transport.dto[2 * all - 1]->kind, DOFI_DTO_WRITE);
	expect_plain(plain);
	for (i = 2; i < all; i++)
		complete(all + i);
	for (i = 0; i < all; i++)
		take(i, DAT_DTO_SUCCESS);
}

BOTH_PATHS(a_fence_waits_for_earlier_reads)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_send(2));
	succeed(send_flags(3, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	expect_plain(2);
	cr_assert_eq(transport.n, 2);
	complete(1);
	cr_assert_eq(transport.n, 2);	/* the fence is for reads, and a send is not one */
	complete(0);
	cr_assert_eq(transport.n, 3);
	cr_expect_eq(transport.dto[2]->cookie, 3);
	complete(2);
	for (unsigned i = 1; i < 4; i++)
		take(i, DAT_DTO_SUCCESS);
}

Test(ep_queue, a_fence_without_reads_waits_for_nothing)
{
	succeed(post_send(1));
	succeed(send_flags(2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	cr_expect_eq(transport.n, 2);
}

Test(ep_queue, after_an_end_no_read_is_counted)
{
	unsigned i, most = inside()->attr.max_rdma_read_out;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	while (!event_none(evd))
		;
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	cr_expect_eq(transport.n, 2 * most);
}

/* Threads */

Test(ep_queue, threads_post_at_once)
{
	unsigned next[POSTERS] = { 0 }, i;

	make_roomy();
	posters_start();
	posters_join();
	cr_assert_eq(transport.n, POSTERS * POSTS);
	for (i = transport.n; i--; )
		complete(i);
	for (i = 0; i < transport.n; i++) {
		DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
		uint64_t n = event.event_data.dto_completion_event_data.user_cookie.as_64;

		cr_assert_eq(n % POSTS, next[n / POSTS]++);
	}
	cr_expect(event_none(evd));
}

/* The fabric, as a thread of its own. */
static void *completes(void *arg)
{
	struct fi_cq_data_entry entry = { .len = 0 };
	unsigned i = 0;

	while (i < POSTERS * POSTS) {
		entry.op_context = submitted(i);
		i += entry.op_context != NULL;
		dofi_dto_complete(&entry, 0, NULL);
		if (!entry.op_context)
			sched_yield();
	}
	return NULL;
}

Test(ep_queue, completions_come_while_threads_post)
{
	pthread_t fabric;
	unsigned i;

	make_roomy();
	pthread_create(&fabric, NULL, completes, NULL);
	posters_start();
	posters_join();
	pthread_join(fabric, NULL);
	for (i = 0; i < POSTERS * POSTS; i++)
		event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(evd));
	cr_expect(dofi_queue_empty(&inside()->sq));
}
