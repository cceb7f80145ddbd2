/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The examples for EPs, service points and connection requests. */

#include "examples.h"

#include "pages/dat_cr_accept.h"
#include "pages/dat_cr_handoff.h"
#include "pages/dat_cr_query.h"
#include "pages/dat_cr_reject.h"
#include "pages/dat_ep_connect.h"
#include "pages/dat_ep_create.h"
#include "pages/dat_ep_disconnect.h"
#include "pages/dat_ep_dup_connect.h"
#include "pages/dat_ep_free.h"
#include "pages/dat_ep_get_status.h"
#include "pages/dat_ep_modify.h"
#include "pages/dat_ep_query.h"
#include "pages/dat_ep_reset.h"
#include "pages/dat_psp_create.h"
#include "pages/dat_psp_create_any.h"
#include "pages/dat_psp_query.h"
#include "pages/dat_rsp_create.h"
#include "pages/dat_rsp_query.h"
#if DAT_VERSION_MAJOR >= 2
#include "pages/dat_csp_create.h"
#include "pages/dat_csp_query.h"
#include "pages/dat_ep_common_connect.h"
#endif

#include <stdlib.h>
#include <string.h>

CHAPTER("connect");

/* Requests */

/* Begins to connect with private data; returns the request. */
static DAT_CR_HANDLE request_with_data(struct node *n, struct attempt *c, const void *data,
				       DAT_COUNT size)
{
	struct listener listener;

	attempt_open(n, c);
	listener = listener_of(n, c->qual);
	connect_with(c->a.ep, &listener, pair_scaled(PAIR_LIMIT), size, data);
	return node_request(n);
}

CLAUSE("dat_cr_accept")
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	OK(accept_and_wait(cr, c.b.ep, c.b.conn));
	SAME(ep_state(c.b.ep), DAT_EP_STATE_CONNECTED);
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.a.ep);
	FAILS(accept_and_wait(cr, c.b.ep, c.b.conn), DAT_INVALID_HANDLE);
}

CLAUSE("dat_cr_handoff")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL first = fresh_qualifier();
	DAT_UINT32 service = 2;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct attempt c;

	OK(dat_psp_create(n->ia, first + service, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr = request_with_data(n, &c, &service, sizeof(service));
	OK(dispatch(cr, first));
	expect_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == psp, "wrong PSP");
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, c.b.ep, 0, NULL));
	expect_established(&c);
}

CLAUSE("dat_cr_handoff/INVALID_PARAMETER")
{
	struct attempt c;
	DAT_CR_HANDLE cr = attempt_start(n, &c);

	FAILS(dispatch(cr, 1), DAT_INVALID_PARAMETER);
	OK(cr_reject(cr, 0, NULL));
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, c.a.ep);
}

static void expect_private_data(struct node *n, const char *sent, const char *wanted)
{
	char text[6];
	struct attempt c;

	OK(get_private_data(request_with_data(n, &c, sent, strlen(sent)), text, sizeof(text)));
	CHECK(!strcmp(text, wanted), "\"%s\"", text);
}

CLAUSE("dat_cr_query")
{
	expect_private_data(n, "I am", "I am");
	expect_private_data(n, "here I am", "here ");
	expect_private_data(n, "", "");
}

CLAUSE("dat_cr_reject")
{
	DAT_EVENT event;
	struct attempt c;

	OK(reject_with_reason(attempt_start(n, &c), "busy"));
	expect_event(c.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
#if DAT_VERSION_MAJOR >= 2
	SAME(event.event_data.connect_event_data.private_data_size, 4);
	CHECK(!memcmp(event.event_data.connect_event_data.private_data, "busy", 4), "wrong data");
#endif
}

/* Service points */

struct service {
	struct node *n;
	struct end e;
	DAT_CONN_QUAL qual;
};

static void *one_request_thread(void *arg)
{
	struct service *s = arg;
	DAT_CR_HANDLE cr;

	OK(one_request(s->n->ia, s->qual, &cr));
	OK(dat_cr_accept(cr, s->e.ep, 0, NULL));
	return NULL;
}

/* Runs @function in a thread: it waits for a request at @qual and accepts it with @e. */
static void serve_and_connect(struct node *n, void *(*function)(void *))
{
	struct service s = { .n = n, .qual = fresh_qualifier() };
	pthread_t thread;
	struct end e;

	end_open(n, &s.e, NULL);
	end_open(n, &e, NULL);
	thread = start_thread(function, &s);
	connect_when_listening(n, &e, s.qual);
	join_thread(thread);
	expect_conn(s.e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s.e.ep);
}

CLAUSE("dat_psp_create")
{
	DAT_CR_HANDLE cr;

	serve_and_connect(n, one_request_thread);
	FAILS(one_request(n->ia, 0, &cr), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create_any")
{
	DAT_PSP_HANDLE psp;
	const char *text;
	DAT_RETURN ret;
	struct attempt c;

	end_open(n, &c.a, NULL);
	end_open(n, &c.b, NULL);
	capture(1);
	ret = listen_anywhere(n->ia, n->cr, &psp);
	text = captured();
	OK(ret);
	end_connect(n, &c.a, strtoull(text, NULL, 10));
	OK(dat_cr_accept(node_request(n), c.b.ep, 0, NULL));
	expect_established(&c);
	FAILS(listen_anywhere(n->ia, n->recv, &psp), DAT_INVALID_HANDLE);
}

static void *accept_at_thread(void *arg)
{
	struct service *s = arg;

	OK(accept_at(s->n->ia, s->qual, s->e.ep, s->n->cr));
	return NULL;
}

CLAUSE("dat_rsp_create")
{
	serve_and_connect(n, accept_at_thread);
	FAILS(accept_at(n->ia, fresh_qualifier(), node_ep(n, NULL), n->recv), DAT_INVALID_HANDLE);
}

CLAUSE("dat_psp_query")
{
	DAT_CONN_QUAL chosen, qual = 0;
	DAT_PSP_HANDLE psp;

	OK(dat_psp_create_any(n->ia, &chosen, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(qualifier_of(psp, &qual));
	SAME(qual, chosen);
	FAILS(qualifier_of(n->pz, &qual), DAT_INVALID_HANDLE);
}

CLAUSE("dat_rsp_query")
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, fresh_qualifier(), ep, n->cr, &rsp));
	OK(free_rsp_and_ep(rsp));
	FAILS(dat_ep_free(ep), DAT_INVALID_HANDLE);
	FAILS(free_rsp_and_ep(rsp), DAT_INVALID_HANDLE);
}

/* Connecting */

CLAUSE("dat_ep_connect")
{
	const char *host = host_of(n);
	struct attempt c;

	attempt_open(n, &c);
	FAILS(connect_to(c.a.ep, "nowhere", c.qual), DAT_INVALID_ADDRESS);
	OK(connect_to(c.a.ep, host, c.qual));
	OK(dat_cr_accept(node_request(n), c.b.ep, 0, NULL));
	expect_established(&c);
	FAILS(connect_to(c.a.ep, host, c.qual), DAT_INVALID_STATE);
}

CLAUSE("dat_ep_dup_connect")
{
	struct attempt c, second;
	DAT_CR_PARAM request;
	DAT_CR_HANDLE cr;

	attempt_accept(n, &c);
	expect_established(&c);
	end_open(n, &second.a, NULL);
	end_open(n, &second.b, NULL);
	OK(connect_second(second.a.ep, c.a.ep));
	cr = node_request(n);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	SAME(request.private_data_size, sizeof("bulk data"));
	CHECK(!strcmp(request.private_data, "bulk data"), "wrong data");
	OK(dat_cr_accept(cr, second.b.ep, 0, NULL));
	expect_established(&second);
}

static void expect_peer(DAT_EP_HANDLE ep, const char *host)
{
	const char *text;
	DAT_RETURN ret;

	capture(1);
	ret = print_peer(ep);
	text = captured();
	OK(ret);
	CHECK(!strncmp(text, host, strlen(host)) && !strcmp(text + strlen(host), "\n"), "%s", text);
}

CLAUSE("dat_ep_query")
{
	const char *host = host_of(n);
	struct couple c;

	couple_make(n, &c, NULL, NULL);
	expect_peer(c.a.ep, "not connected");
	couple_connect(n, &c);
	expect_peer(c.a.ep, host);
	expect_peer(c.b.ep, host);
	FAILS(print_peer(n->pz), DAT_INVALID_HANDLE);
}

#if DAT_VERSION_MAJOR >= 2

#define FIRST_PORT 38000
#define LAST_PORT 38999

/* Listens at the first free port. */
static unsigned short listen_first(struct node *n, DAT_CSP_HANDLE *csp)
{
	DAT_RETURN ret = DAT_PORT_IN_USE;
	unsigned short port = FIRST_PORT;

	while ((ret = listen_at(n->ia, port, n->cr, csp)) && port < LAST_PORT &&
	       DAT_GET_TYPE(ret) == DAT_PORT_IN_USE)
		port++;
	OK(ret);
	return port;
}

CLAUSE("dat_csp_create")
{
	DAT_CSP_HANDLE csp, second;
	unsigned short port = listen_first(n, &csp);
	DAT_HANDLE_TYPE type;

	OK(dat_get_handle_type(csp, &type));
	SAME(type, DAT_HANDLE_TYPE_CSP);
	FAILS(listen_at(n->ia, port, n->cr, &second), DAT_PORT_IN_USE);
}

CLAUSE("dat_csp_query")
{
	const char *text;
	DAT_CSP_HANDLE csp;
	char wanted[16];
	DAT_RETURN ret;

	host_of(n);
	snprintf(wanted, sizeof(wanted), "port %d\n", listen_first(n, &csp));
	capture(1);
	ret = close_port(csp);
	text = captured();
	OK(ret);
	CHECK(!strcmp(text, wanted), "\"%s\", not \"%s\"", text, wanted);
	FAILS(close_port(csp), DAT_INVALID_HANDLE);
}

CLAUSE("dat_ep_common_connect")
{
	const char *host = host_of(n);
	DAT_CSP_HANDLE csp;
	unsigned short port = listen_first(n, &csp);
	struct attempt c;

	end_open(n, &c.a, NULL);
	end_open(n, &c.b, NULL);
	FAILS(connect_port(c.a.ep, "nowhere", port), DAT_INVALID_ADDRESS);
	OK(connect_port(c.a.ep, host, port));
	OK(dat_cr_accept(node_request(n), c.b.ep, 0, NULL));
	expect_established(&c);
}

#endif

/* The life of an EP */

CLAUSE("dat_ep_create")
{
	DAT_EVD_HANDLE evd;
	DAT_EP_PARAM param;
	DAT_EVD_PARAM queue;
	DAT_EP_HANDLE ep;

	OK(make_ep(n->ia, n->pz, &evd, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_attr.max_recv_dtos >= 500 && param.ep_attr.max_request_dtos >= 500,
	      "%d and %d", param.ep_attr.max_recv_dtos, param.ep_attr.max_request_dtos);
	CHECK(param.recv_evd_handle == evd && param.request_evd_handle == evd &&
		      param.connect_evd_handle == evd,
	      "wrong EVD");
	FAILS(make_ep(n->ia, n->recv, &evd, &ep), DAT_INVALID_HANDLE);
	FAILS(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &queue), DAT_INVALID_HANDLE);
}

COUPLED("dat_ep_get_status")
{
	SAME(is_idle(c->a.ep), DAT_TRUE);
	post_recv(c->a.ep, &c->m, 0, 64, 1);
	SAME(is_idle(c->a.ep), DAT_FALSE);
	post_send(c->b.ep, &c->m, 64, 64, 2);
	expect_dto(c->a.recv, 1, DAT_DTO_SUCCESS, 64);
	SAME(is_idle(c->a.ep), DAT_TRUE);
	SAME(is_idle(n->pz), DAT_FALSE);
}

COUPLED("dat_ep_modify")
{
	DAT_EP_PARAM param;

	FAILS(set_depth(c->a.ep, 200), DAT_INVALID_STATE);
	couple_disconnect(c, &c->a);
	OK(set_depth(c->a.ep, 200));
	OK(dat_ep_query(c->a.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_attr.max_recv_dtos >= 200 && param.ep_attr.max_request_dtos >= 200,
	      "%d and %d", param.ep_attr.max_recv_dtos, param.ep_attr.max_request_dtos);
}

COUPLED("dat_ep_disconnect")
{
	OK(disconnect_wait(c->a.ep, c->a.conn, pair_scaled(PAIR_LIMIT) * 1000));
	SAME(ep_state(c->a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c->b.ep);
	FAILS(disconnect_wait(node_ep(n, NULL), n->conn, 1), DAT_INVALID_STATE);
}

#define MESSAGES 16	/* exceeds the network's buffers */

COUPLED("dat_ep_disconnect/unsent messages")
{
	struct mem m;
	unsigned k;

	mem_get(n, &m, 1u << 20);
	for (k = 0; k < MESSAGES; k++)
		post_send(c->a.ep, &m, 0, m.size, k);
	OK(disconnect_wait(c->a.ep, c->a.conn, 1000));
	SAME(ep_state(c->a.ep), DAT_EP_STATE_DISCONNECTED);
	SAME(drain(c->a.conn), 0);
	SAME(drain(c->a.req), MESSAGES);
}

CLAUSE("dat_ep_reset")
{
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };
	DAT_LMR_TRIPLET first;
	struct mem m;
	struct attempt c;

	attempt_accept(n, &c);
	expect_established(&c);
	mem_get(n, &m, 4096);
	first = mem_segment(&m, 0, 64);
	FAILS(connect_again(c.a.ep, &first, cookie, (DAT_IA_ADDRESS_PTR)&n->address, c.qual),
	      DAT_INVALID_STATE);
	OK(dat_ep_disconnect(c.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(c.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c.a.ep);
	expect_conn(c.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c.b.ep);

	OK(connect_again(c.a.ep, &first, cookie, (DAT_IA_ADDRESS_PTR)&n->address, c.qual));
	OK(dat_ep_reset(c.b.ep));
	OK(dat_cr_accept(node_request(n), c.b.ep, 0, NULL));
	expect_established(&c);
	fill(m.base + 64, 64, 3);
	post_send(c.b.ep, &m, 64, 64, 6);
	expect_dto(c.a.recv, 5, DAT_DTO_SUCCESS, 64);
	verify(m.base, 64, 3);
}

CLAUSE("dat_ep_free")
{
	DAT_EVD_HANDLE evd = node_evd(n, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	DAT_PSP_HANDLE psp;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	struct end e;
	struct mem m;

	OK(dat_pz_create(n->ia, &pz));
	mem_get_with(n, pz, &m, 4096, DAT_MEM_PRIV_ALL_FLAG);
	OK(dat_ep_create(n->ia, pz, evd, evd, evd, NULL, &ep));
	end_open(n, &e, NULL);
	OK(dat_cr_accept(end_request(n, &e, &psp), ep, 0, NULL));
	expect_conn(e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, e.ep);
	expect_conn(evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	post_recv(ep, &m, 0, 64, 1);
	OK(free_all(ep, m.lmr, pz, evd));
	expect_conn(e.conn, DAT_CONNECTION_EVENT_DISCONNECTED, e.ep);
	FAILS(free_all(ep, m.lmr, pz, evd), DAT_INVALID_HANDLE);
	FAILS(dat_lmr_free(m.lmr), DAT_INVALID_HANDLE);
	FAILS(dat_pz_free(pz), DAT_INVALID_HANDLE);
	FAILS(dat_evd_free(evd), DAT_INVALID_HANDLE);
}
