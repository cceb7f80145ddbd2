/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common service points: their qualifiers, and the requests that arrive there. */

#include "obj/fixture.h"

#if DAT_VERSION_MAJOR >= 2

#include "obj/sp/sp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#define PORT 7000

static DAT_CSP_HANDLE csp;
static DAT_COMM comm;
static struct sockaddr_in at;

static void init(void)
{
	objects_init();
	comm = (DAT_COMM){ .domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP };
	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
}

static DAT_RETURN make(void)
{
	return dofi_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&at, evd, &csp);
}

TestSuite(csp, .init = init, .fini = ia_fini);

Test(csp, handles_are_checked)
{
	DAT_IA_ADDRESS_PTR a = (DAT_IA_ADDRESS_PTR)&at;
	DAT_EVD_HANDLE dto = evd_make(4, DAT_EVD_DTO_FLAG);
	struct dofi_ia *other;

	expect_handle(dofi_csp_create(NULL, &comm, a, evd, &csp), IA);
	expect_handle(dofi_csp_create(evd, &comm, a, evd, &csp), IA);
	expect_handle(dofi_csp_create(ia, &comm, a, NULL, &csp), EVD_CR);
	expect_handle(dofi_csp_create(ia, &comm, a, pz, &csp), EVD_CR);
	expect_handle(dofi_csp_create(ia, &comm, a, dto, &csp), EVD_CR);
	expect_handle(dofi_csp_query(evd, 0, &(DAT_CSP_PARAM){ 0 }), CSP);
	expect_handle(dofi_csp_free(NULL), CSP);
	cr_assert_eq(ia_try_open(&other), 0);
	expect_handle(dofi_csp_create(other, &comm, a, evd, &csp), EVD_CR);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.listens, 0);
}

Test(csp, arguments_are_checked)
{
	expect_arg(dofi_csp_create(ia, NULL, (DAT_IA_ADDRESS_PTR)&at, evd, &csp), 2);
	expect_arg(dofi_csp_create(ia, &comm, NULL, evd, &csp), 3);
	expect_arg(dofi_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&at, evd, NULL), 5);
	at.sin_port = 0;
	expect_arg(make(), 3);
	cr_expect_eq(transport.listens, 0);
	at.sin_port = htons(PORT);
	succeed(make());
	expect_arg(dofi_csp_query(csp, (DAT_CSP_PARAM_MASK)0x10, &(DAT_CSP_PARAM){ 0 }), 2);
	expect_arg(dofi_csp_query(csp, DAT_CSP_FIELD_ALL, NULL), 3);
}

Test(csp, other_kinds_of_address_are_refused)
{
	static const DAT_COMM others[] = {
		{ AF_INET6, SOCK_STREAM, IPPROTO_TCP }, { AF_UNIX, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_DGRAM, IPPROTO_UDP }, { AF_INET, SOCK_STREAM, IPPROTO_SCTP },
		{ -1, -1, -1 },
	};
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		comm = others[i];
		expect_type(make(), DAT_COMM_NOT_SUPPORTED);
	}
	cr_expect_eq(transport.listens, 0);
}

Test(csp, listens_on_the_ias_address_or_any)
{
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	succeed(make());
	succeed(dofi_csp_free(csp));
	at.sin_addr.s_addr = htonl(INADDR_ANY);
	comm.protocol = 0;
	succeed(make());
	succeed(dofi_csp_free(csp));
	at.sin_addr.s_addr = inet_addr("192.0.2.7");
	expect_arg(make(), 3);
	at.sin_family = AF_INET6;
	expect_arg(make(), 3);
}

Test(csp, of_the_other_family_too)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT },
			    a = own;
	DAT_CSP_PARAM param;

	memcpy(&ia->address, &own, sizeof(own));
	comm.domain = AF_INET6;
	a.sin6_port = htons(PORT);
	succeed(dofi_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&a, evd, &csp));
	succeed(dofi_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	cr_expect(!memcmp(param.address_ptr, &a, sizeof(a)));
	succeed(dofi_csp_free(csp));
	a.sin6_addr = in6addr_any;
	succeed(dofi_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&a, evd, &csp));
	a.sin6_addr.s6_addr[0] = 0x20;
	expect_arg(dofi_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&a, evd, &csp), 3);
}

Test(csp, query_returns_what_peers_are_to_connect_to)
{
	const struct sockaddr_in *in;
	DAT_CSP_PARAM param;

	comm.protocol = 0;
	succeed(make());
	succeed(dofi_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	cr_expect_eq(param.ia_handle, (DAT_IA_HANDLE)ia);
	cr_expect_eq(param.evd_handle, evd);
	cr_expect_eq(param.comm->domain, AF_INET);
	cr_expect_eq(param.comm->type, SOCK_STREAM);
	cr_expect_eq(param.comm->protocol, IPPROTO_TCP);
	in = (const struct sockaddr_in *)param.address_ptr;
	cr_expect_eq(in->sin_port, htons(PORT));
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

Test(csp, a_taken_port_is_reported_as_such)
{
	transport.listen_result = -EADDRINUSE;
	expect_type(make(), DAT_PORT_IN_USE);
	transport.listen_result = -ENOMEM;
	expect_type(make(), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(dofi_csp_pool.used, 0);
}

/* Answering a request and handing it off work as for any other service point. */
Test(csp, its_requests_are_like_those_of_a_psp)
{
	DAT_CR_ARRIVAL_EVENT_DATA d;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep = ep_make();

	succeed(make());
	cr_assert_eq(arrive_at(csp, "hello", 5), 0);
	d = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(d.sp_handle.csp_handle, csp);
	cr_expect_eq(d.conn_qual, PORT);
	succeed(dofi_cr_accept(d.cr_handle, ep, 0, NULL));
	succeed(turn_down(request_at(csp)));
	succeed(dofi_psp_create(ia, 9, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_cr_handoff(request_at(csp), 9));
	d = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(d.sp_handle.psp_handle, psp);
	succeed(dofi_cr_handoff(d.cr_handle, PORT));
	d = event_take(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	cr_expect_eq(d.sp_handle.csp_handle, csp);
}

Test(csp, freed_it_hears_nothing)
{
	succeed(make());
	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	succeed(dofi_csp_free(csp));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_csp_free(csp), CSP);
	succeed(dofi_evd_free(evd));
}

Test(csp, ends_with_its_ia)
{
	succeed(make());
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.unlistens, 1);
	expect_handle(dofi_csp_free(csp), CSP);
}

/* The connecting peer */

static DAT_RETURN common_connect(DAT_EP_HANDLE ep, DAT_TIMEOUT timeout, DAT_COUNT size, void *data)
{
	return dofi_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&at, timeout, size, data);
}

TestSuite(ep_common_connect, .init = init, .fini = ia_fini);

Test(ep_common_connect, arguments_are_checked)
{
	DAT_EP_HANDLE ep = ep_make();
	struct sockaddr_storage strange = { .ss_family = AF_UNIX };

	expect_handle(common_connect(evd, 1, 0, NULL), EP);
	expect_type(dofi_ep_common_connect(ep, NULL, 1, 0, NULL), DAT_INVALID_ADDRESS);
	expect_type(dofi_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&strange, 1, 0, NULL),
		    DAT_INVALID_ADDRESS);
	expect_arg(common_connect(ep, 0, 0, NULL), 3);
	expect_arg(common_connect(ep, 1, -1, memory), 4);
	expect_arg(common_connect(ep, 1, ia->max_private_data + 1, memory), 4);
	expect_arg(common_connect(ep, 1, 1, NULL), 5);
	at.sin_port = 0;
	expect_ret(common_connect(ep, 1, 0, NULL),
		   DOFI_RET(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_UNCONNECTED);
}

Test(ep_common_connect, connects_to_the_port_of_the_address)
{
	DAT_EP_HANDLE ep = ep_make();
	DAT_EP_PARAM param;

	succeed(common_connect(ep, DAT_TIMEOUT_INFINITE, 3, memory));
	settle();
	cr_expect_eq(transport.connects, 1);
	cr_expect_eq(transport.connecting->request.conn_qual, PORT);
	cr_expect_eq(transport.connecting->request.data_size, 3);
	establish(ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	cr_expect_eq(param.remote_port_qual, PORT);
	cr_expect_eq(param.comm.domain, AF_INET);
	cr_expect_eq(param.comm.type, SOCK_STREAM);
	cr_expect_eq(param.comm.protocol, IPPROTO_TCP);
	expect_state(common_connect(ep, 1, 0, NULL), EP_CONNECTED);
}

Test(ep_common_connect, a_connection_can_be_duplicated)
{
	DAT_EP_HANDLE ep = ep_make(), other = ep_make();

	succeed(common_connect(ep, DAT_TIMEOUT_INFINITE, 0, NULL));
	settle();
	establish(ep, NULL, 0);
	succeed(dofi_ep_dup_connect(other, ep, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT));
	settle();
	cr_expect_eq(transport.connecting, (struct dofi_ep *)other);
	cr_expect_eq(transport.connecting->request.conn_qual, PORT);
}
#endif
