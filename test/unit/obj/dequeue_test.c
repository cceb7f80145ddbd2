/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dequeueing: a plain request's completion is written to the caller's event, all other completions
 * keep their order.
 */

#include "obj/evd/cno.h"
#include "obj/ops.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>

TestSuite(dequeue, .init = ops_init, .fini = ia_fini);
TestSuite(dequeue_serial, .init = ops_init_serial, .fini = ia_fini);

static struct dofi_evd *evd_inside(void)
{
	return evd;
}

static struct dofi_cq *cq(void)
{
	return &((struct dofi_pz *)pz)->domain.cq;
}

static void poll_as_a_program(void)
{
	atomic_store(&cq()->armed, false);
	atomic_store(&cq()->programs_fid, cq()->ops->foreign_contexts ? NULL : cq()->fid);
}

static void run_armed(void *body)
{
	cr_assert(cq()->armed);
	(*(void (**)(void))body)();
}

static void run_polled(void *body)
{
	poll_as_a_program();
	(*(void (**)(void))body)();
}

/* Runs on the progress thread, so that no other thread reads the fabric's completions. */
static void alone(void (*body)(void))
{
	dofi_progress_call(&ia->progress, run_polled, &body);
}

static void alone_armed(void (*body)(void))
{
	dofi_progress_call(&ia->progress, run_armed, &body);
}

/* A test whose body runs so. A serial CQ is read with its access lock held: the fake checks it. */
#define ALONE_IN(suite, run, name)          \
	static void name(void);             \
	Test(suite, name)                   \
	{                                   \
		run(name);                  \
	}
#define ALONE(name)                         \
	ALONE_IN(dequeue, alone, name)      \
	static void name(void)
#define ALONE_ARMED(name)                   \
	ALONE_IN(dequeue, alone_armed, name) \
	static void name(void)
#define ALONE_SERIAL(run, name)             \
	ALONE_IN(dequeue, run, name)        \
	ALONE_IN(dequeue_serial, run, name) \
	static void name(void)

static void send_and_complete(unsigned i, uint64_t n)
{
	succeed(post_send(n));
	fake_complete(transport.context[i], 0);
}

static bool nothing(void)
{
	DAT_EVENT event;

	return dofi_evd_dequeue(evd, &event) == DAT_QUEUE_EMPTY;
}

ALONE_SERIAL(alone, a_plain_operation_ends_without_the_queue)
{
	const struct op *op;
	unsigned i = 0;

	for (op = ops; op < ops + N_OPS; op++) {
		succeed(op->post(i));
		cr_expect_eq(transport.plain, ++i);
		if (op->kind == DOFI_DTO_RECV)
			fake_receive(transport.context[i - 1], 0, op->moved);
		else
			fake_complete(transport.context[i - 1], 0);
		take_op(op, i - 1);
		cr_expect_eq(evd_inside()->count_of.straight, i);
		cr_expect_eq(inside()->reads, 0);
		cr_expect(dofi_queue_empty(&inside()->sq) && dofi_queue_empty(&inside()->rq));
		cr_expect(nothing());
		cr_expect_eq(evd_inside()->count_of.not_found, i);
		cr_expect_eq(evd_inside()->count_of.straight, i);
	}
	cr_expect_eq(evd_inside()->count_of.completion, 0);
}

ALONE(of_two_reads_one_is_still_counted)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_read(2, 8, 8, 0));
	fake_complete(transport.context[0], 0);
	fake_complete(transport.context[1], 0);
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 1);
	take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 0);
}

static void post_two_receives(void)
{
	succeed(post_recv(1));
	succeed(post_recv(2));
}

ALONE(a_plain_receive_leaves_the_next)
{
	post_two_receives();
	fake_receive(transport.context[0], 0, 5);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 5);
	cr_expect_eq(dofi_queue_used(&inside()->rq), 1);
	fake_receive(transport.context[1], 0, 0);
	cr_expect_eq(take(2, DAT_DTO_SUCCESS).transfered_length, 0);
	cr_expect_eq(inside()->receipts[DOFI_DTO_RECV].ops, 2);
	cr_expect_eq(inside()->receipts[DOFI_DTO_RECV].bytes, 5);
}

/* The fabric may have been given a byte of room. */
ALONE(a_byte_for_a_receive_of_none_is_too_long)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	fake_receive(transport.context[0], 0, 1);
	take(1, DAT_DTO_ERR_LOCAL_LENGTH);
}

static unsigned sweeps;

static void swept(struct dofi_cq *cq)
{
	sweeps++;
}

ALONE_SERIAL(alone, an_empty_poll_may_be_what_frees_a_slot)
{
	const struct dofi_progress_ops *before = cq()->ops;
	struct dofi_progress_ops ops = *before;

	ops.swept = swept;
	cq()->ops = &ops;
	cr_expect(nothing());
	cr_expect_eq(sweeps, 0);
	dofi_cq_want_sweep(cq());
	cr_expect(nothing());
	cr_expect_eq(sweeps, 1);
	cq()->ops = before;
}

ALONE(a_completion_ends_without_the_queue_while_others_are_in_progress)
{
	uint64_t n;

	for (n = 0; n < 4; n++)
		succeed(post_send(n));
	for (n = 0; n < 4; n++) {
		fake_complete(transport.context[n], 0);
		take(n, DAT_DTO_SUCCESS);
	}
	cr_expect_eq(evd_inside()->count_of.straight, 4);
}

ALONE_SERIAL(alone, several_at_once_come_in_order)
{
	uint64_t n;

	for (n = 0; n < 20; n++)
		send_and_complete(n, n);
	for (n = 0; n < 20; n++)
		take(n, DAT_DTO_SUCCESS);
	cr_expect(nothing());
	cr_expect_eq(evd_inside()->count_of.straight, 20);
}

ALONE_SERIAL(alone, with_others_under_way_several_are_read_at_once)
{
	unsigned reads = fake.cq_reads;
	uint64_t n;

	for (n = 0; n < 6; n++)
		send_and_complete(n, n);
	take(0, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 5);	/* it is not known yet whether there are more */
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 0);
	for (n = 2; n < 6; n++)
		take(n, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.cq_reads, reads + 2);
	cr_expect_eq(evd_inside()->count_of.straight, 6);
	/* after a poll that found none, one completion is read */
	cr_expect(nothing());
	send_and_complete(6, 6);
	send_and_complete(7, 7);
	take(6, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 1);
}

ALONE(of_several_each_goes_its_own_way)
{
	DAT_LMR_TRIPLET two[] = { segment(0, 8), segment(8, 8) };

	succeed(dofi_ep_post_recv(ep, 2, two, cookie_of(10), DAT_COMPLETION_DEFAULT_FLAG));
	send_and_complete(1, 1);
	succeed(post_send(2));
	succeed(post_send(3));
	take(1, DAT_DTO_SUCCESS);
	fake_complete(transport.context[0], 0);
	fake_complete(transport.context[2], 0);
	fake_complete(transport.context[3], 0);
	take(10, DAT_DTO_SUCCESS);
	cr_expect_eq(cq()->left, 2);	/* so the two are not queued behind it */
	take(2, DAT_DTO_SUCCESS);
	take(3, DAT_DTO_SUCCESS);
	cr_expect(nothing());
	cr_expect_eq(evd_inside()->count_of.straight, 4);
}

ALONE(a_wait_takes_what_was_read_too)
{
	DAT_EVENT event;
	DAT_COUNT more;
	uint64_t n;

	for (n = 0; n < 4; n++)
		send_and_complete(n, n);
	for (n = 0; n < 4; n++) {
		succeed(dofi_evd_wait(evd, 0, 1, &event, &more));
		cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
		cr_expect_eq(cq()->left, n ? 3 - n : 0);
	}
}

ALONE(nothing_overtakes)
{
	succeed(post_send(1));
	succeed(post_send(2));
	fake_complete(transport.context[1], 0);
	cr_expect(nothing());
	fake_complete(transport.context[0], 0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	cr_expect(nothing());
}

ALONE(a_second_message_received_first_overtakes_nothing)
{
	post_two_receives();
	fake_receive(transport.context[1], 0, 7);
	cr_expect(nothing());
	fake_receive(transport.context[0], 0, 8);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).transfered_length, 8);
	cr_expect_eq(take(2, DAT_DTO_SUCCESS).transfered_length, 7);
	cr_expect(nothing());
}

ALONE(what_ended_before_its_turn_is_not_left_behind)
{
	succeed(post_send(1));
	succeed(post_read(2, 8, 8, 0));
	fake_complete(transport.context[1], 0);
	cr_expect(nothing());
	fake_complete(transport.context[0], 0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

ALONE(what_is_queued_comes_first)
{
	succeed(post_number(evd, 5));
	send_and_complete(0, 1);
	event_take(evd, DAT_SOFTWARE_EVENT);
	cr_expect_eq(fake_unread(), 1);	/* no read was needed */
	take(1, DAT_DTO_SUCCESS);
}

/* The progress thread has to know whether a read brought the program an event. */
ALONE(a_queued_event_is_recorded_at_the_cq)
{
	send_and_complete(0, 1);
	atomic_store(&cq()->delivered, false);
	cr_expect(dofi_cq_drain(cq()));
	cr_expect(atomic_load(&cq()->delivered));
	take(1, DAT_DTO_SUCCESS);
	atomic_store(&cq()->delivered, false);
	send_and_complete(1, 2);
	take(2, DAT_DTO_SUCCESS);
	cr_expect(!atomic_load(&cq()->delivered));
}

ALONE(a_completion_counts_once)
{
	void *first;

	send_and_complete(0, 1);
	take(1, DAT_DTO_SUCCESS);
	first = transport.context[0];
	fake_complete(first, 0);
	fake_complete(NULL, 0);
	cr_expect(nothing());
	cr_expect(nothing());
	/* nor is it counted when the slot has its next operation */
	while (dofi_dto_of(transport.context[transport.n - 1]) != dofi_dto_of(first) ||
	       transport.n == 1) {
		send_and_complete(transport.n, 2);
		if (dofi_dto_of(transport.context[transport.n - 1]) != dofi_dto_of(first))
			take(2, DAT_DTO_SUCCESS);
	}
	while (fake_unread())
		take(2, DAT_DTO_SUCCESS);
	succeed(post_send(3));
	fake_complete(first, 0);
	cr_expect(nothing());
}

ALONE(a_message_arrives_once)
{
	post_two_receives();
	fake_receive(transport.context[0], 0, 8);
	take(1, DAT_DTO_SUCCESS);
	fake_receive(transport.context[0], 0, 8);
	cr_expect(nothing());
	cr_expect_eq(dofi_queue_used(&inside()->rq), 1);
}

static void failed(void)
{
	succeed(post_send(1));
	fake_complete(transport.context[0], FI_EIO);
	take(1, DAT_DTO_ERR_TRANSPORT);
	cr_expect_eq(evd_inside()->count_of.completion, 0);
}

Test(dequeue, a_failure_goes_the_way_of_all)
{
	alone(failed);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

ALONE_SERIAL(alone_armed, an_armed_cq_is_emptied)
{
	uint64_t n;

	for (n = 0; n < 3; n++)
		send_and_complete(n, n);
	take(0, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 0);	/* no event would report the rest */
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
}

static DAT_EP_HANDLE silent;

static void behind_the_taken_event(void)
{
	DAT_EP_HANDLE first = ep;

	send_and_complete(0, 1);
	ep = silent;
	send_and_complete(1, 2);
	ep = first;
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 0);
	cr_expect(dofi_queue_empty(&((struct dofi_ep *)silent)->sq));
	cr_expect(nothing());
}

/* In a batch, behind the event that the caller took. */
Test(dequeue, an_endpoint_without_event_queues_completes_silently)
{
	succeed(dofi_ep_create(ia, pz, NULL, NULL, evd, NULL, &silent));
	make_connected(silent);
	alone_armed(behind_the_taken_event);
}

ALONE_ARMED(the_first_receive_is_looked_for_at_once)
{
	DAT_LMR_TRIPLET two[] = { segment(0, 8), segment(8, 8) };

	fake_complete(NULL, 0);
	succeed(post_recv(1));
	cr_expect_eq(fake_unread(), 0);	/* no event reports a message that was there before */
	fake_complete(NULL, 0);
	succeed(post_recv(2));
	/* the first receive was still posted, so no message was missed */
	cr_expect_eq(fake_unread(), 1);
	fake_receive(transport.context[0], 0, 8);
	fake_receive(transport.context[1], 0, 8);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	fake_complete(NULL, 0);
	succeed(dofi_ep_post_recv(ep, 2, two, cookie_of(3), DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(fake_unread(), 0);
	cr_expect_eq(transport.plain, 2);
}

static DAT_EVD_HANDLE other;

/* The completion at hand belongs to the other EVD, although evd is polled first. */
static void found_by_the_other(uint64_t n)
{
	DAT_EVENT event;

	cr_expect(nothing());
	succeed(dofi_evd_dequeue(other, &event));
	cr_expect_eq(event.evd_handle, other);
	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
}

static void of_another(void)
{
	send_and_complete(0, 1);
	found_by_the_other(1);
}

Test(dequeue, an_event_goes_to_its_own_queue)
{
	other = evd_make(8, DAT_EVD_DTO_FLAG);
	make_with(evd, other, NULL);
	alone(of_another);
}

static void received_for_another(void)
{
	post_two_receives();
	fake_receive(transport.context[0], 0, 8);
	found_by_the_other(1);
}

Test(dequeue, a_message_goes_to_its_own_queue)
{
	other = evd_make(8, DAT_EVD_DTO_FLAG);
	make_with(other, evd, NULL);
	alone(received_for_another);
}

static void behind_another(void)
{
	succeed(post_recv(1));
	send_and_complete(1, 2);
	send_and_complete(2, 3);
	fake_complete(transport.context[0], 0);
	/* at the first dequeue, as a program that was notified expects */
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake_unread(), 0);
}

Test(dequeue, what_others_have_to_get_is_passed_on)
{
	other = evd_make(8, DAT_EVD_DTO_FLAG);
	make_with(evd, other, NULL);
	alone(behind_another);
}

static void one_of_two_feeds(void)
{
	cr_expect_eq(evd_inside()->sole_cq, NULL);
	send_and_complete(0, 1);
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(evd_inside()->count_of.straight, 1);	/* not queued */
}

Test(dequeue, two_pzs_may_feed_an_event_queue)
{
	DAT_EP_HANDLE second;
	DAT_PZ_HANDLE zone;

	cr_expect_eq(evd_inside()->sole_cq, cq());
	succeed(dofi_pz_create(dofi_ia_export(ia), &zone));
	succeed(dofi_ep_create(ia, zone, evd, evd, evd, NULL, &second));
	make_connected(second);
	alone(one_of_two_feeds);
	succeed(dofi_ep_free(second));
	cr_expect_eq(evd_inside()->sole_cq, cq());
}

static void with_a_cno(void)
{
	cr_expect_eq(evd_inside()->sole_cq, NULL);
	send_and_complete(0, 1);
	take(1, DAT_DTO_SUCCESS);
}

Test(dequeue, a_cno_is_notified_of_remaining_events)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE of;

	succeed(dofi_cno_create(dofi_ia_export(ia), DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	alone(with_a_cno);
	expect_type(dofi_cno_wait(cno, 0, &of), DAT_QUEUE_EMPTY);
	succeed(dofi_evd_modify_cno(evd, DAT_HANDLE_NULL));
	cr_expect_eq(evd_inside()->sole_cq, cq());
}

static unsigned looked_at;

static void look(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	looked_at++;
	dofi_dto_complete(entry, err, sink);
}

static void frames(void)
{
	static struct dofi_progress_ops ops;

	ops = *cq()->ops;
	ops.foreign_contexts = true;
	cq()->completed = look;
	cq()->ops = &ops;
	poll_as_a_program();
	send_and_complete(0, 1);
	take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(looked_at, 1);
	cr_expect_eq(evd_inside()->count_of.straight, 1);	/* not queued */
	cr_expect(nothing());
}

/*
 * The context of a completion may be a frame and not a slot of an endpoint, so the transport checks
 * it.
 */
Test(dequeue, a_transport_with_frames_looks_at_them_itself)
{
	looked_at = 0;
	alone(frames);
}

/* Objects of the pool's first chunk are looked up in fewer steps. */
Test(dequeue, later_objects_are_as_good)
{
	enum { MANY = DOFI_POOL_FIRST };
	DAT_EVD_HANDLE evds[MANY];
	DAT_EP_HANDLE eps[MANY];
	DAT_EVENT event;
	int i;

	for (i = 0; i < MANY; i++) {
		evds[i] = evd_make(8, DAT_EVD_DTO_FLAG);
		succeed(dofi_ep_create(ia, pz, evds[i], evds[i], evd, NULL, &eps[i]));
	}
	ep = eps[MANY - 1];
	other = evds[MANY - 1];
	make_connected(ep);
	succeed(post_send(9));
	complete(0);
	cr_expect_eq(transport.plain, 1);
	succeed(dofi_evd_dequeue(other, &event));
	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, 9);
	cr_expect_eq(dofi_evd_dequeue(other, &event), DAT_QUEUE_EMPTY);
	expect_arg(dofi_evd_dequeue(other, NULL), 2);
}

/* Completions arrive and are taken while other threads post. Each thread's come in its order. */
static void while_others_post(void)
{
	unsigned next[POSTERS] = { 0 }, taken = 0, done = 0;
	DAT_EVENT event;
	void *context;

	posters_start();
	while (taken < POSTERS * POSTS) {
		context = submitted(done);
		if (context) {
			fake_complete(context, 0);
			done++;
		} else {
			sched_yield();
		}
		if (dofi_evd_dequeue(evd, &event) == DAT_SUCCESS) {
			uint64_t n = event.event_data.dto_completion_event_data.user_cookie.as_64;

			cr_assert_eq(n % POSTS, next[n / POSTS]++);
			taken++;
		}
	}
	posters_join();
	cr_expect(nothing());
	cr_expect_eq(inside()->posted[DOFI_DTO_SEND].ops, POSTERS * POSTS);
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(dequeue, other_threads_may_post_meanwhile)
{
	make_roomy();
	alone(while_others_post);
}

/* Completes the operation with context @arg, and takes its event. */
static void *take_one(void *arg)
{
	fake_complete(arg, 0);
	take(1, DAT_DTO_SUCCESS);
	return NULL;
}

static void behind_the_lock(void)
{
	pthread_t thread;

	succeed(post_send(1));
	succeed(post_send(2));
	dofi_mutex_lock(&inside()->lock);
	cr_assert(!pthread_create(&thread, NULL, take_one, transport.context[0]));
	/* the thread reads the completion and then waits for the EP's lock */
	while (!atomic_load(&inside()->lock.waiters))
		sched_yield();
	cr_expect_eq(dofi_queue_used(&inside()->sq), 2);
	dofi_mutex_unlock(&inside()->lock);
	pthread_join(thread, NULL);
	cr_expect_eq(dofi_queue_used(&inside()->sq), 1);
	/* on the slow path, but without the queue */
	cr_expect_eq(evd_inside()->count_of.straight, 1);
}

Test(dequeue, an_endpoint_that_is_locked_is_waited_for)
{
	alone(behind_the_lock);
}
