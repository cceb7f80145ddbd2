/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram endpoints, the UD service of the InfiniBand extension: their attributes and state, the
 * exchange of addresses, address handles, sends and receives. The peer is another EP of the IA.
 */

#include "conform.h"

#if DAT_VERSION_MAJOR >= 2
#include <dat2/dat_ib_extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CHAPTER("datagram");

#define GRH 40				/* bytes in front of the data of each receive */
#define MEMORY (256 * 1024)		/* for two of the longest datagrams */
#define HALF (MEMORY / 2)
#define NONE DAT_COMPLETION_DEFAULT_FLAG

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static void needs_datagrams(struct node *n)
{
	const char *value = named_attr(n, DAT_IB_ATTR_UD);

	if (n->attr.extension_supported != DAT_EXTENSION_IB || !value || strcmp(value, "TRUE"))
		skip("the provider has no datagrams");
}

static void attr_of(struct node *n, DAT_EP_ATTR *attr)
{
	node_ep_attr(n, attr);
	attr->service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
}

/* An end with a datagram EP. */
static void ud_end(struct node *n, struct end *e)
{
	DAT_EP_ATTR attr;

	attr_of(n, &attr);
	end_open(n, e, &attr);
}

static const DAT_IB_EXTENSION_EVENT_DATA *ext(const DAT_EVENT *event)
{
	return (const void *)event->event_extension_data;
}

/* The exchange of addresses */

/* @a requests an address at a new PSP. Returns the request. */
static DAT_CR_HANDLE requested(struct node *n, struct end *a, DAT_COUNT size, const void *data)
{
	struct listener listener = { .address = n->address };
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	node_listen(n, &listener.qual);
	connect_with(a->ep, &listener, PAIR_LIMIT, size, data);
	expect_event(n->cr, DAT_IB_UD_CONNECTION_REQUEST_EVENT, &event);
	SAME(ext(&event)->type, DAT_IB_UD_CONNECT_REQUEST);
	SAME(event.event_data.cr_arrival_event_data.conn_qual, listener.qual);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	SAME(param.private_data_size, size);
	CHECK(!size || !memcmp(param.private_data, data, size), "other private data");
	return cr;
}

static DAT_IB_EXTENSION_EVENT_DATA ended(struct end *e, DAT_EVENT_NUMBER number,
					 DAT_IB_EXT_TYPE type, DAT_COUNT size, const void *data)
{
	const DAT_CONNECTION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(e->conn, number, &event);
	d = &event.event_data.connect_event_data;
	CHECK(d->ep_handle == e->ep, "another EP");
	SAME(ext(&event)->type, type);
	SAME(d->private_data_size, size);
	CHECK(!size || !memcmp(d->private_data, data, size), "other private data");
	return *ext(&event);
}

/* Two datagram EPs, and the address of each at the other. */
struct ends {
	struct end a, b;
	struct mem m;
	DAT_IB_EXTENSION_EVENT_DATA of_a, of_b;	/* addresses */
	size_t most;
};

static void ends_make(struct node *n, struct ends *s)
{
	const char *size = named_attr(n, "OFI_DATAGRAM_SIZE");

	needs_datagrams(n);
	ud_end(n, &s->a);
	ud_end(n, &s->b);
	mem_get(n, &s->m, MEMORY);
	s->most = size ? (size_t)atol(size) : 1024;
}

static void ends_open(struct node *n, struct ends *s)
{
	ends_make(n, s);
	OK(dat_cr_accept(requested(n, &s->a, 0, NULL), s->b.ep, 0, NULL));
	s->of_b = ended(&s->a, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, 0,
			NULL);
	s->of_a = ended(&s->b, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH,
			0, NULL);
}

/* Clauses with two ends, which know the other's address or do not. */
#define ACQUAINTED(clause_name) CLAUSE_WITH(ends, s, ends_open, clause_name)
#define APART(clause_name) CLAUSE_WITH(ends, s, ends_make, clause_name)

ACQUAINTED("dat_ep_connect/SUCCESS/the address of a datagram EP")
{
	CHECK(s->of_a.remote_ah.ah && s->of_b.remote_ah.ah, "no address handle");
	CHECK(s->of_a.remote_ah.qpn && s->of_b.remote_ah.qpn, "no number");
	CHECK(s->of_a.remote_ah.qpn != s->of_b.remote_ah.qpn, "two EPs have one number");
	CHECK(s->of_a.context.as_ptr && s->of_b.context.as_ptr, "no exchange");
	SAME(((struct sockaddr *)&s->of_b.remote_ah.ia_addr)->sa_family, n->address.ss_family);
	SAME(ep_state(s->a.ep), DAT_EP_STATE_CONNECTED);
	SAME(ep_state(s->b.ep), DAT_EP_STATE_CONNECTED);
}

APART("dat_ep_connect/SUCCESS/private data with addresses")
{
	static const char ask[] = "request", answer[] = "the answer";

	OK(dat_cr_accept(requested(n, &s->a, sizeof(ask), ask), s->b.ep, sizeof(answer),
			 (DAT_PVOID)answer));
	ended(&s->a, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, sizeof(answer),
	      answer);
	ended(&s->b, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH,
	      sizeof(ask), ask);
}

ACQUAINTED("dat_ep_connect/SUCCESS/several addresses for a datagram EP")
{
	DAT_IB_EXTENSION_EVENT_DATA second;

	OK(dat_cr_accept(requested(n, &s->a, 0, NULL), s->b.ep, 0, NULL));
	second = ended(&s->a, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, 0, NULL);
	SAME(second.remote_ah.qpn, s->of_b.remote_ah.qpn);
}

CLAUSE("dat_ep_connect/SUCCESS/no service point for datagrams")
{
	struct listener listener = { .address = n->address };
	struct end a;

	needs_datagrams(n);
	ud_end(n, &a);
	listener.qual = free_qualifier(n);
	connect_with(a.ep, &listener, PAIR_LIMIT, 0, NULL);
	ended(&a, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, 0, NULL);
	SAME(ep_state(a.ep), DAT_EP_STATE_CONNECTED);
}

CLAUSE("dat_ep_connect/SUCCESS/the time-out of an exchange")
{
	struct listener listener = { .address = n->address };
	struct end a;

	needs_datagrams(n);
	ud_end(n, &a);
	node_listen(n, &listener.qual);
	connect_with(a.ep, &listener, 20, 0, NULL);
	ended(&a, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, 0, NULL);
	SAME(ep_state(a.ep), DAT_EP_STATE_CONNECTED);
}

APART("dat_cr_reject/SUCCESS/a request for an address")
{
	OK(cr_reject(requested(n, &s->a, 0, NULL), 3, "no"));
	ended(&s->a, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, 3, "no");
	SAME(ep_state(s->a.ep), DAT_EP_STATE_CONNECTED);
}

/* A request says which kind of EP accepts it. */
APART("dat_cr_accept/INVALID_HANDLE/a connected EP for a request for an address")
{
	DAT_CR_HANDLE cr;
	struct end c;

	end_open(n, &c, NULL);
	cr = requested(n, &s->a, 0, NULL);
	FAILS(dat_cr_accept(cr, c.ep, 0, NULL), DAT_INVALID_HANDLE);
	OK(dat_cr_accept(cr, s->b.ep, 0, NULL));
	ended(&s->a, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH, 0, NULL);
}

APART("dat_cr_accept/INVALID_HANDLE/a datagram EP for a connection")
{
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct end c;

	end_open(n, &c, NULL);
	cr = end_request(n, &c, &psp);
	FAILS(dat_cr_accept(cr, s->b.ep, 0, NULL), DAT_INVALID_HANDLE);
	OK(cr_reject(cr, 0, NULL));
}

/* The EP */

APART("dat_ep_create/SUCCESS/a datagram EP")
{
	DAT_EP_PARAM param;

	SAME(ep_state(s->a.ep), DAT_EP_STATE_CONNECTED);
	OK(dat_ep_query(s->a.ep, DAT_EP_FIELD_ALL, &param));
	SAME((int)param.ep_attr.service_type, (int)DAT_IB_SERVICE_TYPE_UD);
	CHECK(param.ep_attr.max_message_size <= s->most, "more than a datagram");
}

/* Programs for InfiniBand name its largest message. */
APART("dat_ep_create/SUCCESS/a datagram EP for long messages")
{
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct end e;

	attr_of(n, &attr);
	attr.max_message_size = 1u << 20;
	end_open(n, &e, &attr);
	OK(dat_ep_query(e.ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.ep_attr.max_message_size, s->most);
}

CLAUSE("dat_ep_create/INVALID_HANDLE/a datagram EP without a PZ")
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	needs_datagrams(n);
	attr_of(n, &attr);
	FAILS(dat_ep_create(n->ia, DAT_HANDLE_NULL, n->recv, n->req, n->conn, &attr, &ep),
	      DAT_INVALID_HANDLE);
}

/* Its state does not change: no event follows. */
ACQUAINTED("dat_ep_disconnect/SUCCESS/a datagram EP")
{
	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	SAME(ep_state(s->a.ep), DAT_EP_STATE_CONNECTED);
	expect_quiet(s->a.conn);
}

APART("dat_ep_reset/INVALID_STATE/a datagram EP")
{
	FAILS(dat_ep_reset(s->a.ep), DAT_INVALID_STATE);
}

/* Operations of connections */
APART("dat_ep_post_send/INVALID_HANDLE/a datagram EP")
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote;

	iov = mem_segment(&s->m, 0, 8);
	remote = mem_remote(&s->m, HALF, 8);
	FAILS(dat_ep_post_send(s->a.ep, 1, &iov, cookie_of(1), NONE), DAT_INVALID_HANDLE);
	FAILS(dat_ep_post_rdma_write(s->a.ep, 1, &iov, cookie_of(1), &remote, NONE),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_post_rdma_read(s->a.ep, 1, &iov, cookie_of(1), &remote, NONE),
	      DAT_INVALID_HANDLE);
}

/* Sends and receives */

static DAT_RETURN send_to(struct end *e, const struct mem *m, size_t length,
			  const DAT_IB_EXTENSION_EVENT_DATA *to, int flags)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, 0, length);

	return dat_ib_post_send_ud(e->ep, 1, &iov, &to->remote_ah, cookie_of(2), flags);
}

static DAT_EVENT completed(DAT_EVD_HANDLE evd, uint64_t cookie, DAT_IB_DTOS operation,
			   DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(evd, DAT_IB_DTO_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, status);
	SAME((int)d->operation, (int)operation);
	SAME(ext(&event)->type, operation == DAT_IB_DTO_SEND_UD ? DAT_IB_UD_SEND : DAT_IB_UD_RECV);
	return event;
}

static void receives(struct ends *s, uint64_t cookie, size_t length)
{
	const DAT_EVENT event = completed(s->b.recv, cookie, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);

	SAME(event.event_data.dto_completion_event_data.transfered_length, GRH + length);
}


static void name_send(unsigned i, char *name, size_t size)
{
	static const char *const what[] = { "no data", "one byte", "the longest" };

	snprintf(name, size, "dat_ib_post_send_ud/SUCCESS/%s", what[i]);
}

FAMILY(3, name_send)
{
	struct ends s;
	size_t length;

	ends_open(n, &s);
	length = i == 2 ? s.most : i;
	fill(s.m.base, length, 5);
	post_recv(s.b.ep, &s.m, HALF, GRH + length, 1);
	OK(send_to(&s.a, &s.m, length, &s.of_b, NONE));
	completed(s.a.req, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
	receives(&s, 1, length);
	verify(s.m.base + HALF + GRH, length, 5);
	expect_quiet(s.b.recv);
}

ACQUAINTED("dat_ib_post_send_ud/SUCCESS/to the sender of a request")
{
	post_recv(s->a.ep, &s->m, HALF, GRH + 8, 1);
	OK(send_to(&s->b, &s->m, 8, &s->of_a, NONE));
	completed(s->b.req, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
	completed(s->a.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
}

ACQUAINTED("dat_ib_post_send_ud/SUCCESS/no event")
{
	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 1);
	OK(send_to(&s->a, &s->m, 8, &s->of_b, DAT_COMPLETION_SUPPRESS_FLAG));
	receives(s, 1, 8);
	expect_quiet(s->a.req);
}

ACQUAINTED("dat_ib_post_send_ud/SUCCESS/a receive that is too short")
{
	post_recv(s->b.ep, &s->m, HALF, GRH + 7, 1);
	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 3);
	OK(send_to(&s->a, &s->m, 8, &s->of_b, NONE));
	completed(s->b.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_ERR_LOCAL_LENGTH);
	SAME(ep_state(s->b.ep), DAT_EP_STATE_CONNECTED);
	OK(send_to(&s->a, &s->m, 8, &s->of_b, NONE));
	receives(s, 3, 8);
}

/* The number may be any EP's of the PZ. */
ACQUAINTED("dat_ib_post_send_ud/SUCCESS/another EP of the peer")
{
	DAT_IB_EXTENSION_EVENT_DATA to;

	to = s->of_b;
	to.remote_ah.qpn = s->of_a.remote_ah.qpn;
	post_recv(s->a.ep, &s->m, HALF, GRH + 8, 1);
	OK(send_to(&s->a, &s->m, 8, &to, NONE));
	completed(s->a.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
	expect_quiet(s->b.recv);
}

ACQUAINTED("dat_ib_post_send_ud/SUCCESS/no such EP")
{
	DAT_IB_EXTENSION_EVENT_DATA to;

	to = s->of_b;
	to.remote_ah.qpn ^= 0x555000;
	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 1);
	OK(send_to(&s->a, &s->m, 8, &to, NONE));
	completed(s->a.req, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
	expect_quiet(s->b.recv);
}

ACQUAINTED("dat_ib_post_send_ud_immed/SUCCESS")
{
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;

	iov = mem_segment(&s->m, 0, 8);
	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 1);
	OK(dat_ib_post_send_ud_immed(s->a.ep, 1, &iov, &s->of_b.remote_ah, cookie_of(2), 0x89abcdef,
				     NONE));
	event = completed(s->b.recv, 1, DAT_IB_DTO_RECV_UD_IMMED, DAT_DTO_SUCCESS);
	SAME(ext(&event)->val.immed.data, 0x89abcdef);
	SAME(event.event_data.dto_completion_event_data.transfered_length, GRH + 8);
}

ACQUAINTED("dat_ib_post_send_ud/LENGTH_ERROR")
{
	FAILS(send_to(&s->a, &s->m, s->most + 1, &s->of_b, NONE), DAT_LENGTH_ERROR);
}

ACQUAINTED("dat_ib_post_send_ud/INVALID_HANDLE")
{
	struct end c;

	end_open(n, &c, NULL);
	FAILS(send_to(&c, &s->m, 8, &s->of_b, NONE), DAT_INVALID_HANDLE);
	c.ep = n->recv;
	FAILS(send_to(&c, &s->m, 8, &s->of_b, NONE), DAT_INVALID_HANDLE);
}

ACQUAINTED("dat_ib_post_send_ud/INVALID_PARAMETER/no address handle")
{
	DAT_IB_EXTENSION_EVENT_DATA to;
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&s->m, 0, 8);
	FAILS(dat_ib_post_send_ud(s->a.ep, 1, &iov, NULL, cookie_of(1), NONE),
	      DAT_INVALID_PARAMETER);
	to = s->of_b;
	to.remote_ah.ah = NULL;
	FAILS(send_to(&s->a, &s->m, 8, &to, NONE), DAT_INVALID_PARAMETER);
	to.remote_ah.ah = (void *)s;
	FAILS(send_to(&s->a, &s->m, 8, &to, NONE), DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_post_send_ud/INVALID_PARAMETER/segments")
{
	DAT_LMR_TRIPLET iov;

	iov = mem_segment(&s->m, 0, 8);
	FAILS(dat_ib_post_send_ud(s->a.ep, -1, &iov, &s->of_b.remote_ah, cookie_of(1), NONE),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(s->a.ep, 1, NULL, &s->of_b.remote_ah, cookie_of(1), NONE),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ib_post_send_ud(s->a.ep, 10000, &iov, &s->of_b.remote_ah, cookie_of(1), NONE),
	      DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_post_send_ud/INVALID_PARAMETER/flags")
{
	FAILS(send_to(&s->a, &s->m, 8, &s->of_b, 0x8000), DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_post_send_ud/PROTECTION_VIOLATION")
{
	struct mem other;

	other = s->m;
	other.lmr_context ^= 0x5a5a5a5a;
	FAILS(send_to(&s->a, &other, 8, &s->of_b, NONE), DAT_PROTECTION_VIOLATION);
}

/* Address handles and exchanges */

ACQUAINTED("dat_ib_ud_ah_free/SUCCESS")
{
	OK(dat_ib_ud_ah_free(s->a.ep, &s->of_b.remote_ah));
	OK(dat_ib_ud_ah_free(s->b.ep, &s->of_a.remote_ah));
	FAILS(send_to(&s->a, &s->m, 8, &s->of_b, NONE), DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_ud_ah_free/INVALID_PARAMETER")
{
	DAT_IB_ADDR_HANDLE ah;

	ah = s->of_b.remote_ah;
	OK(dat_ib_ud_ah_free(s->a.ep, &ah));
	OK(dat_ib_ud_ah_free(s->a.ep, &s->of_a.remote_ah));
	FAILS(dat_ib_ud_ah_free(s->a.ep, &ah), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_ah_free(s->a.ep, NULL), DAT_INVALID_PARAMETER);
	ah.ah = NULL;
	FAILS(dat_ib_ud_ah_free(s->a.ep, &ah), DAT_INVALID_PARAMETER);
	ah.ah = (void *)s;
	FAILS(dat_ib_ud_ah_free(s->a.ep, &ah), DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_ud_ah_free/INVALID_HANDLE")
{
	struct end c;

	end_open(n, &c, NULL);
	FAILS(dat_ib_ud_ah_free(c.ep, &s->of_b.remote_ah), DAT_INVALID_HANDLE);
	FAILS(dat_ib_ud_ah_free(n->recv, &s->of_b.remote_ah), DAT_INVALID_HANDLE);
}

/* The address handle stays. */
ACQUAINTED("dat_ib_ud_cm_free/SUCCESS")
{
	OK(dat_ib_ud_cm_free(s->a.ep, s->of_b.context.as_ptr));
	OK(dat_ib_ud_cm_free(s->b.ep, s->of_a.context.as_ptr));
	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 1);
	OK(send_to(&s->a, &s->m, 8, &s->of_b, NONE));
	receives(s, 1, 8);
}

ACQUAINTED("dat_ib_ud_cm_free/INVALID_PARAMETER")
{
	FAILS(dat_ib_ud_cm_free(s->a.ep, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_cm_free(s->a.ep, s), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_cm_free(s->a.ep, s->of_a.context.as_ptr), DAT_INVALID_PARAMETER);
	OK(dat_ib_ud_cm_free(s->a.ep, s->of_b.context.as_ptr));
	FAILS(dat_ib_ud_cm_free(s->a.ep, s->of_b.context.as_ptr), DAT_INVALID_PARAMETER);
}

ACQUAINTED("dat_ib_ud_cm_free/INVALID_HANDLE")
{
	struct end c;

	end_open(n, &c, NULL);
	FAILS(dat_ib_ud_cm_free(c.ep, s->of_b.context.as_ptr), DAT_INVALID_HANDLE);
	FAILS(dat_ib_ud_cm_free(n->recv, s->of_b.context.as_ptr), DAT_INVALID_HANDLE);
}

ACQUAINTED("dat_ep_free/SUCCESS/a datagram EP with receives")
{
	DAT_EVENT event;

	post_recv(s->b.ep, &s->m, HALF, GRH + 8, 1);
	OK(dat_ep_free(s->b.ep));
	while (dat_evd_dequeue(s->b.recv, &event) == DAT_SUCCESS)
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	OK(send_to(&s->a, &s->m, 8, &s->of_b, NONE));
	completed(s->a.req, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
}

#endif
