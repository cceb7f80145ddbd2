/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points: creating, querying, freeing. */

#include "obj/fixture.h"

#include "base/log.h"
#include "capture.h"

#include <errno.h>
#include <string.h>

static DAT_PSP_HANDLE psp;
static DAT_CONN_QUAL qual;

static DAT_RETURN psp_make(DAT_CONN_QUAL conn_qual)
{
	return dofi_psp_create(ia, conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

static DAT_RETURN make_any(void)
{
	return dofi_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

TestSuite(psp, .init = objects_init, .fini = ia_fini);

Test(psp, handles_are_checked)
{
	DAT_EVD_HANDLE dto = evd_make(4, DAT_EVD_DTO_FLAG);

	expect_handle(dofi_psp_create(NOWHERE, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), IA);
	expect_handle(dofi_psp_create(NULL, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), IA);
	expect_handle(dofi_psp_create(ia, 7, NULL, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create(ia, 7, pz, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create(ia, 7, dto, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_create_any(ia, &qual, dto, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	expect_handle(dofi_psp_query(evd, 0, &(DAT_PSP_PARAM){ 0 }), PSP);
	expect_handle(dofi_psp_free(NULL), PSP);
	cr_expect_eq(transport.listens, 0);
}

Test(psp, an_evd_of_another_ia_is_foreign)
{
	struct dofi_ia *other;

	cr_assert_eq(ia_try_open(&other), 0);
	expect_handle(dofi_psp_create(other, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp), EVD_CR);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(psp, arguments_are_checked)
{
	expect_arg(psp_make(0), 2);
	expect_arg(dofi_psp_create(ia, 7, evd, (DAT_PSP_FLAGS)77, &psp), 4);
	expect_arg(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, NULL), 5);
	expect_arg(dofi_psp_create_any(ia, NULL, evd, DAT_PSP_CONSUMER_FLAG, &psp), 2);
	cr_expect_eq(transport.listens, 0);
	succeed(psp_make(7));
	expect_arg(dofi_psp_query(psp, (DAT_PSP_PARAM_MASK)0x100, &(DAT_PSP_PARAM){ 0 }), 2);
	expect_arg(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, NULL), 3);
}

Test(psp, query_returns_the_parameters)
{
	DAT_PSP_PARAM param;

	succeed(psp_make(0x123456789abcull));
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(param.conn_qual, 0x123456789abcull);
	cr_expect_eq(param.evd_handle, evd);
	cr_expect_eq(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
}

/* With endpoints that the provider creates */

static DAT_EP_HANDLE made_with(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param.local_ep_handle;
}

static void make_making(void)
{
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_PROVIDER_FLAG, &psp));
}

Test(psp, the_provider_makes_endpoints_if_asked)
{
	DAT_PROVIDER_ATTR attr;
	DAT_PSP_PARAM param;

	make_making();
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
	succeed(dofi_psp_create_any(ia, &qual, evd, DAT_PSP_PROVIDER_FLAG, &psp));
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	cr_expect_eq(attr.ep_creator, DAT_PSP_CREATES_EP_IFASKED);
}

Test(psp, an_endpoint_that_came_has_defaults_and_a_peer_but_no_parts)
{
	DAT_EP_HANDLE own, ep;
	DAT_EP_PARAM usual, param;

	come_from("192.0.2.7", 999);
	make_making();
	ep = made_with(request_at(psp));
	own = ep_make();
	succeed(dofi_ep_query(own, DAT_EP_FIELD_ALL, &usual));
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	cr_expect_eq(param.ep_state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	cr_expect(!param.pz_handle && !param.recv_evd_handle && !param.request_evd_handle &&
		  !param.connect_evd_handle);
	cr_expect(!memcmp(&param.ep_attr, &usual.ep_attr, sizeof(usual.ep_attr)));
	cr_expect_eq(param.remote_port_qual, 999);
	cr_expect_eq(param.local_port_qual, 7);
	cr_expect(param.remote_ia_address_ptr);
}

Test(psp, each_request_comes_with_an_endpoint_of_its_own)
{
	DAT_EP_HANDLE a, b;

	make_making();
	a = made_with(request_at(psp));
	b = made_with(request_at(psp));
	cr_expect(a && b && a != b);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(state_of_ep(a), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

Test(psp, an_endpoint_that_came_is_accepted_with_when_it_has_its_parts)
{
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;

	make_making();
	cr = request_at(psp);
	ep = made_with(cr);
	expect_state(dofi_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), EP_NOTREADY);
	expect_handle(dofi_cr_accept(cr, ep, 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, ep_make(), 0, NULL), EP);
	furnish(ep);
	succeed(dofi_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	settle();
	cr_expect_eq(transport.accepts, 1);
	establish(ep, NULL, 0);
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.ep_handle, ep);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	succeed(dofi_ep_free(ep));
}

Test(psp, an_endpoint_that_came_goes_with_its_request)
{
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;

	make_making();
	cr = request_at(psp);
	ep = made_with(cr);
	furnish(ep);
	succeed(turn_down(cr));
	expect_handle(dofi_ep_get_status(ep, NULL, NULL, NULL), EP);
	cr_expect_eq(dofi_ep_pool.used, 0);
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
}

Test(psp, without_room_for_an_endpoint_a_request_is_refused)
{
	DAT_IA_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_COUNT i;

	make_making();
	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	for (i = 0; i < attr.max_eps; i++)
		succeed(dofi_ep_create(ia, NULL, NULL, NULL, NULL, NULL, &ep));
	cr_expect_eq(arrive_at(psp, NULL, 0), -ENOMEM);
	cr_expect(event_none(evd));
	cr_expect_eq(dofi_cr_pool.used, 0);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(arrive_at(psp, NULL, 0), 0);
}

Test(psp, without_room_for_its_event_a_request_leaves_no_endpoint)
{
	DAT_EVD_HANDLE full = evd_make(1, DAT_EVD_CR_FLAG);
	size_t arrived = 0;

	succeed(dofi_psp_create(ia, 7, full, DAT_PSP_PROVIDER_FLAG, &psp));
	while (!arrive_at(psp, NULL, 0))
		arrived++;
	cr_expect_eq(dofi_ep_pool.used, arrived);
	cr_expect_eq(dofi_cr_pool.used, arrived);
}

/* Requests with an event that can no longer be taken */
Test(psp, a_freed_queue_turns_its_requests_down)
{
	DAT_EVD_HANDLE own = evd_make(8, EVD_ALL_FLAGS);
	DAT_CR_HANDLE taken;

	succeed(dofi_psp_create(ia, 7, own, DAT_PSP_PROVIDER_FLAG, &psp));
	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	taken = event_take(own, DAT_CONNECTION_REQUEST_EVENT)
		.event_data.cr_arrival_event_data.cr_handle;
	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	succeed(post_number(own, 1));
	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(transport.rejects, 0);
	succeed(dofi_evd_free(own));
	cr_expect_eq(transport.rejects, 2);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
	cr_expect_eq(dofi_ep_pool.used, 1);
	succeed(turn_down(taken));
}

Test(psp, unanswered_requests_do_not_keep_the_ia_open)
{
	DAT_CR_HANDLE taken;

	make_making();
	taken = request_at(psp);
	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	succeed(dofi_psp_free(psp));
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	succeed(dofi_evd_free(evd));
	cr_expect_eq(transport.rejects, 1);
	succeed(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	cr_expect_eq(transport.rejects, 2);
	expect_handle(turn_down(taken), CR);
}

Test(psp, an_accepted_endpoint_keeps_the_ia_open)
{
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;

	make_making();
	cr = request_at(psp);
	ep = made_with(cr);
	furnish(ep);
	succeed(dofi_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	succeed(dofi_psp_free(psp));
	succeed(dofi_lmr_free(lmr));
	expect_type(dofi_pz_free(pz), DAT_INVALID_STATE);
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_pz_free(pz));
	succeed(dofi_evd_free(evd));
	succeed(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Any */

Test(psp, any_returns_the_qualifier_that_the_transport_chose)
{
	DAT_PSP_PARAM param;

	transport.any_qual = 4242;
	succeed(make_any());
	cr_expect_eq(qual, 4242);
	succeed(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	cr_expect_eq(param.conn_qual, 4242);
}

Test(psp, a_taken_qualifier_is_in_use)
{
	transport.listen_result = -EADDRINUSE;
	psp = NOWHERE;
	expect_type(psp_make(7), DAT_CONN_QUAL_IN_USE);
	cr_expect_eq(psp, NOWHERE);
	cr_expect_eq(dofi_psp_pool.used, 0);
}

/* Such as an address that was removed from its interface after the IA was opened. */
Test(psp, a_failure_to_listen_is_logged_with_the_address)
{
	static struct capture said;
	const char *text;

	transport.listen_result = -EADDRNOTAVAIL;
	capture_begin(&said);
	expect_ret(psp_make(7), DOFI_NO_RESOURCE(DEVICE));
	text = capture_end(&said);
	cr_expect(strstr(text, "listening at 127.0.0.1, qualifier 7: no interface has this "),
		  "%s", text);
}

Test(psp, without_a_free_qualifier_any_is_unavailable)
{
	transport.listen_result = -EADDRINUSE;
	qual = 99;
	expect_type(make_any(), DAT_CONN_QUAL_UNAVAILABLE);
	cr_expect_eq(qual, 99);
	cr_expect_eq(dofi_psp_pool.used, 0);
}

Test(psp, a_failed_one_lets_its_evd_go)
{
	DAT_EVD_HANDLE own = evd_make(4, DAT_EVD_CR_FLAG);

	transport.listen_result = -ENOMEM;
	expect_type(dofi_psp_create(ia, 7, own, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_INSUFFICIENT_RESOURCES);
	succeed(dofi_evd_free(own));
}

Test(psp, holds_its_evd)
{
	DAT_EVD_HANDLE own = evd_make(4, DAT_EVD_CR_FLAG);

	succeed(dofi_psp_create(ia, 7, own, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_type(dofi_evd_free(own), DAT_INVALID_STATE);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(own));
}

Test(psp, listens_until_it_is_freed)
{
	succeed(psp_make(7));
	cr_expect_eq(transport.listens, 1);
	cr_expect_eq(transport.unlistens, 0);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_psp_free(psp), PSP);
	expect_handle(dofi_psp_query(psp, 0, &(DAT_PSP_PARAM){ 0 }), PSP);
	cr_expect_eq(transport.unlistens, 1);
}

Test(psp, ends_with_its_ia)
{
	succeed(psp_make(7));
	expect_type(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_psp_free(psp), PSP);
}

/* Reserved service points: their one request, and the endpoint that waits for it */

static DAT_RSP_HANDLE rsp;
static DAT_EP_HANDLE ep;
static DAT_CR_HANDLE cr;

static void init(void)
{
	objects_init();
	ep = ep_make();
}

TestSuite(rsp, .init = init, .fini = ia_fini);

static DAT_RETURN make_for(DAT_EP_HANDLE with)
{
	return dofi_rsp_create(ia, 7, with, evd, &rsp);
}

static void make(void)
{
	succeed(make_for(ep));
}

static void arrive(void)
{
	make();
	cr = request_at(rsp);
}

static DAT_RETURN accept_it(void)
{
	return dofi_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL);
}

static DAT_EP_HANDLE ep_of_request(void)
{
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(cr, DAT_CR_FIELD_LOCAL_EP_HANDLE, &param));
	return param.local_ep_handle;
}

static DAT_EP_HANDLE reserved_ep(DAT_RSP_HANDLE of)
{
	DAT_RSP_PARAM param;

	succeed(dofi_rsp_query(of, DAT_RSP_FIELD_ALL, &param));
	return param.ep_handle;
}

/* Creating */

Test(rsp, handles_are_checked)
{
	DAT_EVD_HANDLE dto = evd_make(4, DAT_EVD_DTO_FLAG);

	expect_handle(dofi_rsp_create(NOWHERE, 7, ep, evd, &rsp), IA);
	expect_handle(dofi_rsp_create(NULL, 7, ep, evd, &rsp), IA);
	expect_handle(dofi_rsp_create(ia, 7, NOWHERE, evd, &rsp), EP);
	expect_handle(dofi_rsp_create(ia, 7, pz, evd, &rsp), EP);
	expect_handle(dofi_rsp_create(ia, 7, ep, NULL, &rsp), EVD_CR);
	expect_handle(dofi_rsp_create(ia, 7, ep, dto, &rsp), EVD_CR);
	expect_handle(dofi_rsp_query(evd, 0, &(DAT_RSP_PARAM){ 0 }), RSP);
	expect_handle(dofi_rsp_free(NULL), RSP);
	cr_expect_eq(transport.listens, 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
}

Test(rsp, objects_of_another_ia_are_foreign)
{
	struct dofi_ia *other;
	DAT_EVD_HANDLE other_evd;

	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_evd_create(other, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &other_evd));
	expect_handle(dofi_rsp_create(other, 7, ep, other_evd, &rsp), EP);
	expect_handle(dofi_rsp_create(ia, 7, ep, other_evd, &rsp), EVD_CR);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

Test(rsp, arguments_are_checked)
{
	expect_arg(dofi_rsp_create(ia, 0, ep, evd, &rsp), 2);
	expect_arg(dofi_rsp_create(ia, 7, ep, evd, NULL), 5);
	cr_expect_eq(transport.listens, 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
	make();
	expect_arg(dofi_rsp_query(rsp, (DAT_RSP_PARAM_MASK)0x100, &(DAT_RSP_PARAM){ 0 }), 2);
	expect_arg(dofi_rsp_query(rsp, DAT_RSP_FIELD_ALL, NULL), 3);
}

Test(rsp, only_an_unconnected_endpoint_is_reserved)
{
	DAT_EP_HANDLE connected = ep_make();

	make_connected(connected);
	expect_state(make_for(connected), EP_CONNECTED);
	make();
	expect_state(dofi_rsp_create(ia, 8, ep, evd, &rsp), EP_RESERVED);
	cr_expect_eq(transport.listens, 1);
	cr_expect_eq(dofi_rsp_pool.used, 1);
}

Test(rsp, query_returns_the_parameters)
{
	DAT_RSP_PARAM param;

	succeed(dofi_rsp_create(ia, 0x123456789abcull, ep, evd, &rsp));
	succeed(dofi_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(param.conn_qual, 0x123456789abcull);
	cr_expect_eq(param.evd_handle, evd);
	cr_expect_eq(param.ep_handle, ep);
}

Test(rsp, is_an_object)
{
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;

	make();
	succeed(dofi_get_handle_type(rsp, &type));
	cr_expect_eq(type, DAT_HANDLE_TYPE_RSP);
	succeed(dofi_set_consumer_context(rsp, (DAT_CONTEXT){ .as_64 = 42 }));
	succeed(dofi_get_consumer_context(rsp, &context));
	cr_expect_eq(context.as_64, 42);
}

Test(rsp, a_taken_qualifier_leaves_the_endpoint_unreserved)
{
	transport.listen_result = -EADDRINUSE;
	rsp = NOWHERE;
	expect_type(make_for(ep), DAT_CONN_QUAL_IN_USE);
	cr_expect_eq(rsp, NOWHERE);
	cr_expect_eq(dofi_rsp_pool.used, 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
	transport.listen_result = -ENOMEM;
	expect_type(make_for(ep), DAT_INSUFFICIENT_RESOURCES);
	succeed(dofi_ep_free(ep));
}

Test(rsp, holds_its_evd)
{
	DAT_EVD_HANDLE own = evd_make(4, DAT_EVD_CR_FLAG);

	succeed(dofi_rsp_create(ia, 7, ep, own, &rsp));
	expect_type(dofi_evd_free(own), DAT_INVALID_STATE);
	succeed(dofi_rsp_free(rsp));
	succeed(dofi_evd_free(own));
}

/* Freeing */

Test(rsp, listens_until_it_is_freed_and_lets_the_endpoint_go)
{
	make();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_RESERVED);
	cr_expect_eq(transport.listens, 1);
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(transport.unlistens, 1);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
	expect_handle(dofi_rsp_free(rsp), RSP);
	expect_handle(dofi_rsp_query(rsp, 0, &(DAT_RSP_PARAM){ 0 }), RSP);
	make_connected(ep);
}

Test(rsp, freed_with_its_request_pending_leaves_that_and_the_endpoint)
{
	arrive();
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	cr_expect_eq(ep_of_request(), ep);
	succeed(accept_it());
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_COMPLETION_PENDING);
}

Test(rsp, freed_after_the_connection_stands)
{
	arrive();
	succeed(accept_it());
	settle();
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(rsp, an_endpoint_may_be_freed_before_it)
{
	arrive();
	succeed(accept_it());
	cr_expect_eq(reserved_ep(rsp), ep);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(reserved_ep(rsp), DAT_HANDLE_NULL);
	/* the next endpoint has the address of the freed one, but does not belong to the RSP */
	ep = ep_make();
	cr_expect_eq(reserved_ep(rsp), DAT_HANDLE_NULL);
	succeed(dofi_rsp_free(rsp));
}

/* The request */

Test(rsp, a_request_is_announced_with_it_and_its_endpoint)
{
	DAT_CR_ARRIVAL_EVENT_DATA data;
	DAT_EP_PARAM param;

	come_from("192.0.2.7", 999);
	make();
	cr_assert_eq(arrive_at(rsp, "hello", 5), 0);
	data = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(data.sp_handle.rsp_handle, rsp);
	cr_expect_eq(data.conn_qual, 7);
	cr = data.cr_handle;
	cr_expect_eq(ep_of_request(), ep);
	cr_expect_eq(reserved_ep(rsp), ep);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	cr_expect_eq(param.ep_state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	cr_expect_eq(param.remote_port_qual, 999);
	cr_expect_eq(param.local_port_qual, 7);
	cr_expect(param.remote_ia_address_ptr);
	cr_expect_eq(param.pz_handle, pz);
}

Test(rsp, a_second_request_is_refused)
{
	arrive();
	cr_expect_eq(arrive_at(rsp, NULL, 0), -EBUSY);
	succeed(accept_it());
	cr_expect_eq(arrive_at(rsp, NULL, 0), -EBUSY);
	cr_expect(event_none(evd));
	cr_expect_eq(dofi_cr_pool.used, 0);
}

Test(rsp, is_accepted_with_its_own_endpoint_and_no_other)
{
	arrive();
	expect_handle(dofi_cr_accept(cr, ep, 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, ep_make(), 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, NOWHERE, 0, NULL), EP);
	expect_arg(dofi_cr_accept(cr, DAT_HANDLE_NULL, -1, NULL), 3);
	expect_arg(dofi_cr_accept(cr, DAT_HANDLE_NULL, 1, NULL), 4);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	succeed(dofi_cr_accept(cr, DAT_HANDLE_NULL, 3, (DAT_PVOID)"abc"));
	settle();
	cr_expect_eq(transport.accepts, 1);
	expect_handle(accept_it(), CR);
	establish(ep, NULL, 0);
	cr_expect_eq(event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED)
		     .event_data.connect_event_data.ep_handle, ep);
	cr_expect_eq(transport.rejects, 0);
}

Test(rsp, an_endpoint_that_is_not_ready_accepts_nothing)
{
	succeed(dofi_ep_free(ep));
	succeed(dofi_ep_create(ia, NULL, evd, evd, evd, NULL, &ep));
	arrive();
	expect_state(accept_it(), EP_NOTREADY);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	succeed(turn_down(cr));
}

Test(rsp, turned_down_gives_the_endpoint_back_but_takes_no_other_request)
{
	arrive();
	succeed(turn_down(cr));
	cr_expect_eq(transport.why, DOFI_REJECT_CONSUMER);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
	cr_expect_eq(arrive_at(rsp, NULL, 0), -EBUSY);
	make_connected(ep);
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(rsp, an_endpoint_given_back_may_be_reserved_by_another)
{
	DAT_RSP_HANDLE first;

	arrive();
	succeed(turn_down(cr));
	first = rsp;
	succeed(dofi_rsp_create(ia, 8, ep, evd, &rsp));
	cr_expect_eq(reserved_ep(first), DAT_HANDLE_NULL);
	cr_expect_eq(reserved_ep(rsp), ep);
	succeed(dofi_rsp_free(first));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_RESERVED);
	cr = request_at(rsp);
	cr_expect_eq(ep_of_request(), ep);
}

Test(rsp, a_request_without_room_for_its_event_was_none)
{
	DAT_EVD_HANDLE full = evd_make(1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT event;

	succeed(dofi_rsp_create(ia, 7, ep, full, &rsp));
	while (post_number(full, 1) == DAT_SUCCESS)
		;
	cr_expect(arrive_at(rsp, NULL, 0) < 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_RESERVED);
	cr_expect_eq(dofi_cr_pool.used, 0);
	succeed(dofi_evd_dequeue(full, &event));
	cr_expect_eq(arrive_at(rsp, NULL, 0), 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
}

/* Receives that were posted early stay posted, whatever happens to the request. */
Test(rsp, keeps_the_receives_of_its_endpoint)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_BOOLEAN idle;

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	make();
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr = request_at(rsp);
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(turn_down(cr));
	succeed(dofi_rsp_free(rsp));
	succeed(dofi_ep_get_status(ep, NULL, &idle, NULL));
	cr_expect(!idle);
	cr_expect(event_none(evd));
	make_connected(ep);
	cr_expect_eq(transport.n, 3);
}

/* Without an endpoint */

static void arrive_with_one_made(void)
{
	succeed(make_for(DAT_HANDLE_NULL));
	cr = request_at(rsp);
	succeed(dofi_ep_free(ep));
	ep = ep_of_request();
}

Test(rsp, without_an_endpoint_one_is_made)
{
	arrive_with_one_made();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	cr_expect_eq(reserved_ep(rsp), DAT_HANDLE_NULL);
	cr_expect_eq(arrive_at(rsp, NULL, 0), -EBUSY);
	expect_state(accept_it(), EP_NOTREADY);
	furnish(ep);
	succeed(accept_it());
	settle();
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_rsp_free(rsp));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(rsp, an_endpoint_that_was_made_goes_with_its_request)
{
	arrive_with_one_made();
	succeed(turn_down(cr));
	expect_handle(dofi_ep_get_status(ep, NULL, NULL, NULL), EP);
	cr_expect_eq(dofi_ep_pool.used, 0);
	cr_expect_eq(arrive_at(rsp, NULL, 0), -EBUSY);
}

/* Permitted calls on an endpoint while it waits for a request or has one */

static void refuses_all_but_receives(DAT_RETURN_SUBTYPE why)
{
	const DAT_RETURN bad = DOFI_RET(DAT_INVALID_STATE, why);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_TRIPLET remote = remote_segment(8);
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_EP_STATE before = state_of_ep(ep);
	DAT_PSP_HANDLE psp;

	succeed(dofi_psp_create(ia, 99, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	expect_ret(dofi_ep_connect(ep, some_address(), 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
				   DAT_CONNECT_DEFAULT_FLAG), bad);
	expect_ret(dofi_cr_accept(request_at(psp), ep, 0, NULL), bad);
	expect_ret(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), bad);
	expect_ret(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), bad);
	expect_ret(dofi_ep_reset(ep), bad);
	expect_ret(dofi_ep_free(ep), bad);
	expect_ret(make_for(ep), bad);
	expect_ret(dofi_ep_post_send(ep, 1, &s, cookie, 0), bad);
	expect_ret(dofi_ep_post_rdma_write(ep, 1, &s, cookie, &remote, 0), bad);
	expect_ret(dofi_ep_post_rdma_read(ep, 1, &s, cookie, &remote, 0), bad);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(state_of_ep(ep), before);
	cr_expect(dofi_ep_check(ep));
}

Test(rsp, a_reserved_endpoint_is_nothing_elses)
{
	make();
	refuses_all_but_receives(DAT_INVALID_STATE_EP_RESERVED);
}

Test(rsp, an_endpoint_with_a_request_is_nothing_elses)
{
	arrive();
	refuses_all_but_receives(DAT_INVALID_STATE_EP_PASSCONNPENDING);
}

Test(rsp, an_endpoint_that_was_made_is_nothing_elses)
{
	arrive_with_one_made();
	furnish(ep);
	refuses_all_but_receives(DAT_INVALID_STATE_EP_TENTCONNPENDING);
}

/* With its IA */

Test(rsp, ends_with_its_ia)
{
	make();
	expect_type(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_rsp_free(rsp), RSP);
}

Test(rsp, a_pending_request_ends_with_the_ia)
{
	arrive();
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
}

Test(rsp, an_endpoint_that_was_made_ends_with_the_ia)
{
	arrive_with_one_made();
	furnish(ep);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
}

/* Freeing races with the request: it is either refused, or arrives and can be answered. */

struct meeting {
	DAT_RSP_HANDLE rsp;
	int ret;
};

static void *free_it(void *arg)
{
	struct meeting *m = arg;

	succeed(dofi_rsp_free(m->rsp));
	return NULL;
}

static void arrive_if_listening(void *arg)
{
	struct meeting *m = arg;
	struct dofi_sp *sp = dofi_sp_find(ia, 7);
	const struct dofi_arrival a = { .request = &transport };

	m->ret = sp ? dofi_cr_arrived(sp, &a) : -ENOENT;
}

Test(rsp, freeing_meets_a_request)
{
	int round;

	for (round = 0; round < 200; round++) {
		struct meeting m = { .ret = 1 };
		pthread_t thread;

		make();
		m.rsp = rsp;
		pthread_create(&thread, NULL, free_it, &m);
		dofi_progress_call(&ia->progress, arrive_if_listening, &m);
		pthread_join(thread, NULL);
		if (!m.ret) {
			cr_assert_eq(state_of_ep(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
			cr = event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
				.event_data.cr_arrival_event_data.cr_handle;
			succeed(turn_down(cr));
		}
		cr_assert_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
		cr_assert(event_none(evd));
	}
}
