/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection requests: arriving, answered, or never answered. */

#include "obj/fixture.h"
#include "obj/reason.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

static DAT_PSP_HANDLE psp;
static DAT_CR_HANDLE cr;
static DAT_EP_HANDLE ep;

static void init(void)
{
	objects_init();
	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

TestSuite(cr, .init = init, .fini = ia_fini);

static void arrive(void)
{
	cr = request_at(psp);
}

static DAT_RETURN take_it(DAT_COUNT size, const void *data)
{
	return dofi_cr_accept(cr, ep, size, (DAT_PVOID)data);
}

/* Arriving */

Test(cr, is_announced_with_what_the_consumer_needs)
{
	DAT_CR_ARRIVAL_EVENT_DATA data;

	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	data = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(data.sp_handle.psp_handle, psp);
	cr_expect_eq(data.conn_qual, 4711);
	cr_expect_eq(data.local_ia_address_ptr, (DAT_IA_ADDRESS_PTR)&ia->address);
	cr_expect(dofi_cr_check(data.cr_handle));
}

Test(cr, query_returns_peer_and_private_data)
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

	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	cr = event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
		     .event_data.cr_arrival_event_data.cr_handle;
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

Test(cr, a_request_without_room_in_the_evd_leaves_no_cr)
{
	int n = 0, arrived = 0;

	while (!arrive_at(psp, NULL, 0))
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

Test(cr, a_refused_accept_gives_its_reason)
{
	arrive();
	ep = ep_make();
	REASON(dofi_cr_accept(ep, ep, 0, NULL), "is no unanswered request");
	REASON(dofi_cr_accept(cr, evd, 0, NULL), "permitted: an EP of the request's IA");
	REASON(take_it(-1, "x"), "private_data_size is -1; permitted: 0 to 244");
	REASON(take_it(1, NULL), "no private_data, with a size of 1");
	make_connected(ep);
	REASON(take_it(0, NULL), "is in the state CONNECTED");
	succeed(dofi_ep_create(ia, NULL, evd, evd, evd, NULL, &ep));
	REASON(take_it(0, NULL), "the EP to accept has no PZ");
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

Test(cr, an_endpoint_without_pz_or_event_queue_is_not_ready)
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
	((struct dofi_cr *)cr)->preambles = true;
	e = ep = ep_make();
	succeed(take_it(3, "abc"));
	settle();
	cr_expect_eq(transport.accepts, 1);
	cr_expect_eq(e->request.data_size, 3);
	cr_expect(!memcmp(e->request.data, "abc", 3));
	cr_expect_eq(e->local_port, 4711);
	cr_expect_eq(e->remote_port, 999);
	cr_expect_eq(e->peer_secret, PEER_SECRET);
	cr_expect(e->preambles);
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

/* Rejecting */

Test(cr, a_reject_is_the_consumers)
{
	arrive();
	succeed(turn_down(cr));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_CONSUMER);
	expect_handle(turn_down(cr), CR);
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

Test(cr, an_unanswered_request_is_the_providers_reject)
{
	arrive();
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
	expect_handle(turn_down(cr), CR);
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
	enum { ACCEPTS, REJECTS, HANDS_OFF } how;
	DAT_RETURN ret;
};

static void *answer(void *arg)
{
	struct answer *a = arg;

	switch (a->how) {
	case ACCEPTS:
		a->ret = take_it(0, NULL);
		break;
	case REJECTS:
		a->ret = turn_down(cr);
		break;
	case HANDS_OFF:
		a->ret = dofi_cr_handoff(cr, 4712);
		break;
	}
	return NULL;
}

Test(cr, of_two_answers_one_counts)
{
	struct answer a[2] = { { .how = ACCEPTS }, { .how = REJECTS } };
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

/* Handing off */

#define QUAL 4712

static DAT_PSP_HANDLE other_psp;

static void other_point(DAT_PSP_FLAGS flags)
{
	succeed(dofi_psp_create(ia, QUAL, evd, flags, &other_psp));
}

/* Hands @cr off and takes its new arrival at @sp. */
static void handed_to(DAT_HANDLE sp)
{
	DAT_CR_ARRIVAL_EVENT_DATA data;

	succeed(dofi_cr_handoff(cr, QUAL));
	expect_handle(dofi_cr_query(cr, 0, &(DAT_CR_PARAM){ 0 }), CR);
	data = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(data.sp_handle.psp_handle, sp);
	cr_expect_eq(data.conn_qual, QUAL);
	cr_expect(data.cr_handle != cr);
	cr = data.cr_handle;
	cr_expect_eq(((struct dofi_cr *)cr)->secret, PEER_SECRET);
	cr_expect_eq(transport.rejects, 0);
	cr_expect(event_none(evd));
}

static DAT_CR_PARAM asked(void)
{
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param;
}

Test(cr, handed_off_arrives_elsewhere_as_it_was)
{
	DAT_CR_PARAM param;

	other_point(DAT_PSP_CONSUMER_FLAG);
	come_from("192.0.2.7", 999);
	arrive();
	handed_to(other_psp);
	param = asked();
	cr_expect_eq(param.private_data_size, 5);
	cr_expect(!memcmp(param.private_data, "hello", 5));
	cr_expect_eq(param.remote_port_qual, 999);
	cr_expect_eq(((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr,
		     inet_addr("192.0.2.7"));
	cr_expect_eq(param.local_ep_handle, DAT_HANDLE_NULL);
	cr_expect_eq(dofi_cr_pool.used, 1);
}

Test(cr, handed_off_is_accepted_as_any_other)
{
	struct dofi_ep *e;

	other_point(DAT_PSP_CONSUMER_FLAG);
	arrive();
	handed_to(other_psp);
	e = ep = ep_make();
	succeed(take_it(0, NULL));
	settle();
	cr_expect_eq(transport.accepts, 1);
	cr_expect_eq(e->local_port, QUAL);
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr_expect_eq(transport.rejects, 0);
}

Test(cr, handed_off_is_turned_down_as_any_other)
{
	other_point(DAT_PSP_CONSUMER_FLAG);
	arrive();
	handed_to(other_psp);
	succeed(turn_down(cr));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_CONSUMER);
}

Test(cr, may_be_handed_back)
{
	other_point(DAT_PSP_CONSUMER_FLAG);
	arrive();
	handed_to(other_psp);
	succeed(dofi_cr_handoff(cr, 4711));
	cr_expect_eq(event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
		     .event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
	cr_expect_eq(dofi_cr_pool.used, 1);
	cr_expect_eq(transport.rejects, 0);
}

Test(cr, is_handed_to_its_own_service_point)
{
	arrive();
	succeed(dofi_cr_handoff(cr, 4711));
	expect_handle(turn_down(cr), CR);
	cr_expect_eq(event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
		     .event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
}

Test(cr, without_a_listener_it_stays)
{
	DAT_PSP_HANDLE foreign;
	DAT_EVD_HANDLE foreign_evd;
	struct dofi_ia *other;

	arrive();
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
	expect_arg(dofi_cr_handoff(cr, 0), 2);
	other_point(DAT_PSP_CONSUMER_FLAG);
	succeed(dofi_psp_free(other_psp));
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
	transport.listen_result = -EADDRINUSE;
	expect_type(dofi_psp_create(ia, QUAL, evd, DAT_PSP_CONSUMER_FLAG, &other_psp),
		    DAT_CONN_QUAL_IN_USE);
	transport.listen_result = 0;
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_evd_create(other, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &foreign_evd));
	succeed(dofi_psp_create(other, QUAL, foreign_evd, DAT_PSP_CONSUMER_FLAG, &foreign));
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect(event_none(evd));
	succeed(turn_down(cr));
	cr_expect_eq(transport.rejects, 1);
}

Test(cr, the_handle_of_a_handoff_is_checked)
{
	arrive();
	expect_handle(dofi_cr_handoff(NULL, 4711), CR);
	expect_handle(dofi_cr_handoff(psp, 4711), CR);
	succeed(turn_down(cr));
	expect_handle(dofi_cr_handoff(cr, 4711), CR);
	expect_handle(dofi_cr_handoff(cr, QUAL), CR);
}

Test(cr, handed_to_a_reserved_point_spends_it)
{
	DAT_RSP_HANDLE rsp;

	ep = ep_make();
	succeed(dofi_rsp_create(ia, QUAL, ep, evd, &rsp));
	arrive();
	handed_to(rsp);
	cr_expect_eq(asked().local_ep_handle, ep);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	succeed(dofi_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_COMPLETION_PENDING);
	arrive();
	expect_arg(dofi_cr_handoff(cr, QUAL), 2);
}

Test(cr, handed_to_a_point_that_makes_endpoints_gets_one)
{
	other_point(DAT_PSP_PROVIDER_FLAG);
	arrive();
	handed_to(other_psp);
	ep = asked().local_ep_handle;
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

Test(cr, handed_off_leaves_its_endpoint_behind)
{
	DAT_RSP_HANDLE rsp;

	other_point(DAT_PSP_CONSUMER_FLAG);
	ep = ep_make();
	succeed(dofi_rsp_create(ia, 4713, ep, evd, &rsp));
	cr = request_at(rsp);
	handed_to(other_psp);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
	cr_expect_eq(asked().local_ep_handle, DAT_HANDLE_NULL);
	/* the endpoint may also be the one that accepts the request */
	succeed(take_it(0, NULL));
}

Test(cr, handed_off_takes_an_endpoint_that_was_made_for_it_along)
{
	DAT_PSP_HANDLE making;

	other_point(DAT_PSP_CONSUMER_FLAG);
	succeed(dofi_psp_create(ia, 4713, evd, DAT_PSP_PROVIDER_FLAG, &making));
	cr = request_at(making);
	ep = asked().local_ep_handle;
	handed_to(other_psp);
	expect_handle(dofi_ep_get_status(ep, NULL, NULL, NULL), EP);
	cr_expect_eq(dofi_ep_pool.used, 0);
}

/* As if it had arrived from the peer at the full queue. */
Test(cr, handed_to_a_full_queue_is_turned_down)
{
	DAT_EVD_HANDLE full = evd_make(1, DAT_EVD_CR_FLAG);
	DAT_CR_HANDLE other;

	succeed(dofi_psp_create(ia, QUAL, full, DAT_PSP_CONSUMER_FLAG, &other_psp));
	while (!arrive_at(other_psp, NULL, 0))
		;
	arrive();
	other = cr;
	succeed(dofi_cr_handoff(cr, QUAL));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
	expect_handle(turn_down(other), CR);
}

Test(cr, handed_off_and_then_not_answered)
{
	other_point(DAT_PSP_CONSUMER_FLAG);
	arrive();
	handed_to(other_psp);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
}

Test(cr, of_an_accept_and_a_handoff_one_counts)
{
	struct answer a[2] = { { .how = ACCEPTS }, { .how = HANDS_OFF } };
	int round, i, accepts;

	other_point(DAT_PSP_CONSUMER_FLAG);
	for (round = 0; round < 100; round++) {
		arrive();
		ep = ep_make();
		accepts = transport.accepts;
		for (i = 0; i < 2; i++)
			pthread_create(&a[i].thread, NULL, answer, &a[i]);
		for (i = 0; i < 2; i++)
			pthread_join(a[i].thread, NULL);
		settle();
		cr_assert(!a[0].ret != !a[1].ret);
		cr_assert_eq(transport.accepts, accepts + !a[0].ret);
		cr_assert_eq(event_none(evd), !a[0].ret);
		succeed(dofi_ep_free(ep));
	}
}
