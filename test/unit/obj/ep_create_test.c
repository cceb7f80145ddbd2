/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints: creating, querying, freeing. */

#include "obj/ep_one.h"
#include "obj/reason.h"

#include <netinet/in.h>

TestSuite(ep_create, .init = ep_one, .fini = ia_fini);

/* Creating */

Test(ep_create, handles_are_checked)
{
	DAT_EVD_HANDLE cr = evd_make(4, DAT_EVD_CR_FLAG), dto = evd_make(4, DAT_EVD_DTO_FLAG);

	expect_handle(dofi_ep_create(NOWHERE, pz, evd, evd, evd, NULL, &ep), IA);
	expect_handle(make(NOWHERE, evd, evd, evd, NULL), PZ);
	expect_handle(make(evd, evd, evd, evd, NULL), PZ);
	expect_handle(make(pz, pz, evd, evd, NULL), EVD_RECV);
	expect_handle(make(pz, cr, evd, evd, NULL), EVD_RECV);
	expect_handle(make(pz, evd, NOWHERE, evd, NULL), EVD_REQUEST);
	expect_handle(make(pz, evd, cr, evd, NULL), EVD_REQUEST);
	expect_handle(make(pz, evd, evd, dto, NULL), EVD_CONN);
	expect_arg(dofi_ep_create(ia, pz, evd, evd, evd, NULL, NULL), 7);
	cr_expect_eq(dofi_ep_pool.used, 1);
}

Test(ep_create, a_refusal_gives_its_reason)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC, .max_recv_dtos = 70000 };
	DAT_EVD_HANDLE cr = evd_make(4, DAT_EVD_CR_FLAG);

	REASON(dofi_ep_create(NOWHERE, pz, evd, evd, evd, NULL, &ep), "is no open IA");
	REASON(make(NOWHERE, evd, evd, evd, NULL), "pz_handle 0x7fff00001000 is no live PZ");
	REASON(make(pz, NOWHERE, evd, evd, NULL), "recv_evd_handle 0x7fff00001000 is no live EVD");
	REASON(make(pz, evd, cr, evd, NULL), "request_evd_handle");
	REASON(make(pz, evd, evd, cr, NULL), "has the flags 0x10, without 0x40");
	REASON(dofi_ep_create(ia, pz, evd, evd, evd, NULL, NULL), "no ep_handle");
	REASON(make(pz, evd, evd, evd, &attr),
	       "ep_attr.max_recv_dtos is 70000; permitted: 0 to 65536");
	attr.max_recv_dtos = 4;
	attr.qos = (DAT_QOS)0x100;
	REASON(make(pz, evd, evd, evd, &attr), "ep_attr.qos is 0x100; permitted: DAT_QOS_BEST");
	attr.qos = DAT_QOS_BEST_EFFORT;
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	ia->fabric.cq_data = false;
	ia->strict = true;
	REASON(make(pz, evd, evd, evd, &attr), "SOLICITED_WAIT where the fabric carries data");
}

Test(ep_create, parts_of_another_ia_are_foreign)
{
	struct dofi_ia *other;
	DAT_PZ_HANDLE zone;

	cr_assert_eq(ia_try_open(&other), 0);
	other->strict = true;
	succeed(dofi_pz_create(other, &zone));
	expect_handle(make(zone, evd, evd, evd, NULL), PZ);
	expect_handle(dofi_ep_create(other, zone, evd, NULL, NULL, NULL, &ep), EVD_RECV);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

/* Unless strict, an EP delivers to the EVDs of another instance of its IA. */
Test(ep_create, event_queues_of_another_instance_outlive_their_ia)
{
	struct dofi_ia *other;
	DAT_EVD_HANDLE theirs, next;
	DAT_EP_HANDLE lone;
	size_t used;

	ia->strict = false;
	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_evd_create(other, 8, NULL, DAT_EVD_DEFAULT_FLAG, &theirs));
	succeed(make(pz, theirs, theirs, theirs, NULL));
	expect_state(dofi_evd_free(theirs), EVD_IN_USE);
	expect_state(dofi_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	make_connected(ep);
	post_recv(1);
	used = dofi_evd_pool.used;
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	/* the memory waits for the EP, which ends without events */
	cr_expect_eq(dofi_evd_pool.used, used);
	expect_handle(dofi_ep_create(ia, pz, theirs, evd, evd, NULL, &lone), EVD_RECV);
	next = evd_make(8, DAT_EVD_DTO_FLAG);
	cr_expect(next != theirs);
	end(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(event_none(next));
	succeed(dofi_ep_free(ep));
	cr_expect_eq(dofi_evd_pool.used, used);
	succeed(dofi_evd_free(next));
	cr_expect_eq(dofi_evd_pool.used, used - 1);
}

Test(ep_create, what_a_query_returns_is_accepted_back)
{
	DAT_EP_PARAM a, b;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &a));
	succeed(make(pz, evd, evd, evd, &a.ep_attr));
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &b));
	cr_expect(!memcmp(&a.ep_attr, &b.ep_attr, sizeof(a.ep_attr)));
}

Test(ep_create, needs_neither_pz_nor_queues_to_be_made)
{
	DAT_EP_PARAM p;

	succeed(make(NULL, NULL, NULL, NULL, NULL));
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect(!p.pz_handle && !p.recv_evd_handle && !p.request_evd_handle &&
		  !p.connect_evd_handle);
	succeed(dofi_ep_free(ep));
}

Test(ep_create, holds_its_pz_and_its_queues)
{
	DAT_EVD_HANDLE own = evd_make(4, EVD_ALL_FLAGS);
	DAT_PZ_HANDLE zone;

	succeed(dofi_pz_create(ia, &zone));
	succeed(make(zone, own, own, own, NULL));
	expect_type(dofi_pz_free(zone), DAT_INVALID_STATE);
	expect_type(dofi_evd_free(own), DAT_INVALID_STATE);
	succeed(dofi_ep_free(ep));
	succeed(dofi_evd_free(own));
	succeed(dofi_pz_free(zone));
}

/* Querying */

Test(ep_create, the_arguments_of_a_query_are_checked)
{
	DAT_EP_PARAM p;

	expect_handle(dofi_ep_query(evd, DAT_EP_FIELD_ALL, &p), EP);
	expect_arg(dofi_ep_query(ep, (DAT_EP_PARAM_MASK)1 << 31, &p), 2);
	expect_arg(dofi_ep_query(ep, DAT_EP_FIELD_ALL, NULL), 3);
	expect_handle(dofi_ep_get_status(NULL, NULL, NULL, NULL), EP);
}

Test(ep_create, query_returns_the_parameters)
{
	DAT_EP_PARAM p;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect_eq(p.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(p.pz_handle, pz);
	cr_expect_eq(p.recv_evd_handle, evd);
	cr_expect_eq(p.request_evd_handle, evd);
	cr_expect_eq(p.connect_evd_handle, evd);
	cr_expect_eq(p.ep_state, DAT_EP_STATE_UNCONNECTED);
	cr_expect(!p.remote_ia_address_ptr && !p.remote_port_qual);
}

Test(ep_create, query_returns_the_peer_while_there_is_one)
{
	DAT_EP_PARAM p;

	start_connecting(ep);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect_eq(p.remote_port_qual, 4711);
	cr_expect_eq(((struct sockaddr_in *)p.remote_ia_address_ptr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	end(DAT_CONNECTION_EVENT_UNREACHABLE);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	cr_expect(!p.remote_ia_address_ptr && !p.remote_port_qual);
}

Test(ep_create, is_idle_while_nothing_is_posted)
{
	DAT_BOOLEAN recv, request;

	make_connected(ep);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(recv && request);
	post_recv(1);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(!recv && request);
	post_send(2);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(!recv && !request);
	complete(0);
	complete(1);
	succeed(dofi_ep_get_status(ep, NULL, &recv, &request));
	cr_expect(recv && request);
}

/* Freeing */

Test(ep_create, a_freed_handle_is_none)
{
	succeed(dofi_ep_free(ep));
	expect_handle(dofi_ep_free(ep), EP);
	expect_handle(dofi_ep_reset(ep), EP);
	expect_handle(disconnect(DAT_CLOSE_ABRUPT_FLAG), EP);
	expect_handle(connect_to(some_address(), 1, 1), EP);
}

Test(ep_create, is_freed_silently_while_connected)
{
	make_connected(ep);
	post_send(1);
	post_recv(2);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(transport.closes, 1);
	while (!event_none(evd))
		;
	cr_expect_eq(dofi_ep_pool.used, 0);
}

Test(ep_create, takes_its_connection_events_along)
{
	start_connecting(ep);
	establish(ep, NULL, 0);
	succeed(dofi_ep_free(ep));
	cr_expect(event_none(evd));
}

Test(ep_create, is_freed_while_it_connects)
{
	start_connecting(ep);
	succeed(dofi_ep_free(ep));
	cr_expect(event_none(evd));
	cr_expect_eq(transport.closes, 1);
}
