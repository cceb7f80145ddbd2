/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points: creating, querying, freeing. */

#include "obj/fixture.h"

#include "base/log.h"
#include "capture.h"

#include <errno.h>
#include <string.h>

static DAT_PSP_HANDLE psp;
static DAT_CONN_QUAL qual;

static DAT_RETURN make(DAT_CONN_QUAL conn_qual)
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
	expect_arg(make(0), 2);
	expect_arg(dofi_psp_create(ia, 7, evd, (DAT_PSP_FLAGS)77, &psp), 4);
	expect_arg(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, NULL), 5);
	expect_arg(dofi_psp_create_any(ia, NULL, evd, DAT_PSP_CONSUMER_FLAG, &psp), 2);
	cr_expect_eq(transport.listens, 0);
	succeed(make(7));
	expect_arg(dofi_psp_query(psp, (DAT_PSP_PARAM_MASK)0x100, &(DAT_PSP_PARAM){ 0 }), 2);
	expect_arg(dofi_psp_query(psp, DAT_PSP_FIELD_ALL, NULL), 3);
}

Test(psp, query_returns_the_parameters)
{
	DAT_PSP_PARAM param;

	succeed(make(0x123456789abcull));
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
	expect_type(make(7), DAT_CONN_QUAL_IN_USE);
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
	expect_ret(make(7), DOFI_NO_RESOURCE(DEVICE));
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
	succeed(make(7));
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
	succeed(make(7));
	expect_type(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_psp_free(psp), PSP);
}
