/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection requests: arriving, answered, or never answered. */

#include "obj/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

static DAT_PSP_HANDLE psp;
static DAT_CR_HANDLE cr;
static DAT_EP_HANDLE ep;
static struct fi_info *info;

static void init(void)
{
	objects_init();
	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	info = fi_allocinfo();
}

static void fini(void)
{
	ia_fini();
	fi_freeinfo(info);
}

TestSuite(cr, .init = init, .fini = fini);

struct arrival_call {
	const void *data;
	size_t size;
	int ret;
};

static void arrive_on_thread(void *arg)
{
	struct arrival_call *c = arg;
	const struct dofi_arrival a = {
		.info = info, .listener = &psp, .data = c->data, .data_size = c->size,
	};

	c->ret = dofi_cr_arrived(psp, &a);
}

static int arrive_with(const void *data, size_t size)
{
	struct arrival_call call = { data, size, 1 };

	dofi_progress_call(&ia->progress, arrive_on_thread, &call);
	return call.ret;
}

static void come_from(const char *ip, uint16_t port)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, ip, &in->sin_addr);
	info->dest_addr = in;
	info->dest_addrlen = sizeof(*in);
}

/* One request, and its handle from the event. */
static void arrive(void)
{
	cr_assert_eq(arrive_with("hello", 5), 0);
	cr = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

static DAT_RETURN turn_down(void)
{
#if DAT_VERSION_MAJOR >= 2
	return dofi_cr_reject(cr, 0, NULL);
#else
	return dofi_cr_reject(cr);
#endif
}

static DAT_RETURN take_it(DAT_COUNT size, const void *data)
{
	return dofi_cr_accept(cr, ep, size, (DAT_PVOID)data);
}

/* Arriving */

Test(cr, is_announced_with_what_the_consumer_needs)
{
	DAT_CR_ARRIVAL_EVENT_DATA data;

	cr_assert_eq(arrive_with(NULL, 0), 0);
	data = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(data.sp_handle.psp_handle, psp);
	cr_expect_eq(data.conn_qual, 4711);
	cr_expect_eq(data.local_ia_address_ptr, (DAT_IA_ADDRESS_PTR)&ia->address);
	cr_expect(dofi_cr_check(data.cr_handle));
}

Test(cr, tells_who_asks_and_what_it_says)
{
	DAT_CR_PARAM param;

	come_from("192.0.2.7", 999);
	arrive();
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_expect_eq(param.private_data_size, 5);
	cr_expect(!memcmp(param.private_data, "hello", 5));
	cr_expect_eq(param.remote_port_qual, 999);
	cr_expect_eq(((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr,
		     inet_addr("192.0.2.7"));
	cr_expect_eq(param.local_ep_handle, DAT_HANDLE_NULL);
}

Test(cr, without_private_data_there_is_none)
{
	DAT_CR_PARAM param;

	cr_assert_eq(arrive_with(NULL, 0), 0);
	cr = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_expect_eq(param.private_data_size, 0);
	cr_expect(!param.private_data);
}

Test(cr, the_arguments_of_a_query_are_checked)
{
	DAT_CR_PARAM param;

	arrive();
	expect_handle(dofi_cr_query(psp, DAT_CR_FIELD_ALL, &param), CR);
	expect_handle(dofi_cr_query(NULL, DAT_CR_FIELD_ALL, &param), CR);
	expect_arg(dofi_cr_query(cr, (DAT_CR_PARAM_MASK)0x100, &param), 2);
	expect_arg(dofi_cr_query(cr, DAT_CR_FIELD_ALL, NULL), 3);
}

Test(cr, that_finds_no_room_is_nowhere)
{
	int n = 0, arrived = 0;

	while (!arrive_with(NULL, 0))
		arrived++;
	cr_expect(arrived >= 64);
	cr_expect_eq(dofi_cr_pool.used, (size_t)arrived);
	while (!event_none(evd))
		n++;
	cr_expect_eq(n, arrived);
}

/* Accepting */

Test(cr, the_arguments_of_an_accept_are_checked)
{
	arrive();
	ep = ep_make();
	expect_handle(dofi_cr_accept(NULL, ep, 0, NULL), CR);
	expect_handle(dofi_cr_accept(ep, ep, 0, NULL), CR);
	expect_handle(dofi_cr_accept(cr, NULL, 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, evd, 0, NULL), EP);
	expect_arg(take_it(-1, "x"), 3);
	expect_arg(take_it(ia->max_private_data + 1, memory), 3);
	expect_arg(take_it(1, NULL), 4);
	cr_expect_eq(transport.accepts, 0);
	cr_expect(dofi_cr_check(cr));
}

Test(cr, an_endpoint_of_another_ia_is_foreign)
{
	struct dofi_ia *other;
	DAT_EP_HANDLE foreign;

	arrive();
	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_ep_create(other, NULL, NULL, NULL, NULL, NULL, &foreign));
	expect_handle(dofi_cr_accept(cr, foreign, 0, NULL), EP);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(cr, an_endpoint_without_zone_or_event_queue_is_not_ready)
{
	arrive();
	succeed(dofi_ep_create(ia, NULL, evd, evd, evd, NULL, &ep));
	expect_state(take_it(0, NULL), EP_NOTREADY);
	succeed(dofi_ep_create(ia, pz, evd, evd, NULL, NULL, &ep));
	expect_state(take_it(0, NULL), EP_NOTREADY);
	cr_expect(dofi_cr_check(cr));
}

Test(cr, only_an_unconnected_endpoint_accepts)
{
	arrive();
	ep = ep_make();
	make_connected(ep);
	expect_state(take_it(0, NULL), EP_CONNECTED);
	cr_expect(dofi_cr_check(cr));
}

Test(cr, an_accept_hands_the_request_over)
{
	struct dofi_ep *e;

	come_from("192.0.2.7", 999);
	arrive();
	e = ep = ep_make();
	succeed(take_it(3, "abc"));
	settle();
	cr_expect_eq(transport.accepts, 1);
	cr_expect_eq(e->request.data_size, 3);
	cr_expect(!memcmp(e->request.data, "abc", 3));
	cr_expect_eq(e->local_port, 4711);
	cr_expect_eq(e->remote_port, 999);
	cr_expect_eq(e->state, DAT_EP_STATE_COMPLETION_PENDING);
	expect_handle(take_it(0, NULL), CR);
	cr_expect_eq(transport.rejects, 0);
}

Test(cr, an_accepted_connection_is_announced_once)
{
	arrive();
	ep = ep_make();
	succeed(take_it(0, NULL));
	settle();
	cr_expect(event_none(evd));
	establish(ep, NULL, 0);
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.ep_handle, ep);
	cr_expect(event_none(evd));
}

Test(cr, a_message_before_the_event_waits_for_it)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET s = segment(0, 8);

	arrive();
	ep = ep_make();
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(take_it(0, NULL));
	settle();
	cr_assert_eq(transport.n, 1);
	complete_with(0, 0, 8);
	cr_expect(event_none(evd));
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
}

/* Turning down */

Test(cr, a_reject_is_the_consumers)
{
	arrive();
	succeed(turn_down());
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_CONSUMER);
	expect_handle(turn_down(), CR);
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(dofi_cr_pool.used, 0);
}

#if DAT_VERSION_MAJOR >= 2
Test(cr, a_reject_takes_private_data)
{
	arrive();
	expect_arg(dofi_cr_reject(cr, -1, memory), 2);
	expect_arg(dofi_cr_reject(cr, ia->max_private_data + 1, memory), 2);
	expect_arg(dofi_cr_reject(cr, 1, NULL), 3);
	cr_expect_eq(transport.rejects, 0);
	succeed(dofi_cr_reject(cr, 3, (DAT_PVOID)"sad"));
	cr_expect_eq(transport.reject_size, 3);
	cr_expect(!memcmp(transport.reject_data, "sad", 3));
}
#endif

Test(cr, nobody_answered_is_the_providers_reject)
{
	arrive();
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
	expect_handle(turn_down(), CR);
}

Test(cr, outlives_its_service_point)
{
	arrive();
	succeed(dofi_psp_free(psp));
	ep = ep_make();
	succeed(take_it(0, NULL));
	settle();
	cr_expect_eq(transport.accepts, 1);
}

struct answer {
	pthread_t thread;
	bool accepts;
	DAT_RETURN ret;
};

static void *answer(void *arg)
{
	struct answer *a = arg;

	a->ret = a->accepts ? take_it(0, NULL) : turn_down();
	return NULL;
}

Test(cr, of_two_answers_one_counts)
{
	struct answer a[2] = { { .accepts = true }, { .accepts = false } };
	int round, i, answered;

	for (round = 0; round < 100; round++) {
		arrive();
		ep = ep_make();
		answered = transport.rejects + transport.accepts;
		for (i = 0; i < 2; i++)
			pthread_create(&a[i].thread, NULL, answer, &a[i]);
		for (i = 0; i < 2; i++)
			pthread_join(a[i].thread, NULL);
		settle();
		cr_assert(!a[0].ret != !a[1].ret);
		cr_assert_eq(transport.rejects + transport.accepts, answered + 1);
		succeed(dofi_ep_free(ep));
	}
}
