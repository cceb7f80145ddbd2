/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagram EPs between two processes, for datagram.c and test/robust/datagrams.c. 2.0 only. */
#ifndef PAIR_DATAGRAM_H
#define PAIR_DATAGRAM_H

#include "pair.h"

#include <dat2/dat_ib_extensions.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define GRH 40u				/* bytes in front of the data of each receive */
#define UD_MEMORY (256u * 1024)
#define UD_HALF (UD_MEMORY / 2)

/* An end with a datagram EP, and the address handle of the peer's. */
struct ud {
	struct node n;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE knocks;		/* completions of door's receives */
	/*
	 * An EP of the PZ for the first datagrams, which the fabric may drop: it makes its
	 * connection to the peer for them.
	 */
	DAT_EP_HANDLE door;
	struct mem m;
	DAT_IB_ADDR_HANDLE to, to_door;
	DAT_PSP_HANDLE psp;
	struct listener listener;	/* the server's */
	size_t most;			/* bytes of data in a datagram */
};

static inline DAT_DTO_COOKIE ud_cookie(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

static inline void ud_attr(struct node *n, DAT_EP_ATTR *attr)
{
	node_ep_attr(n, attr);
	attr->service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr->max_recv_dtos = attr->max_request_dtos = 256;
}

static inline DAT_EP_HANDLE ud_ep(struct ud *u, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv)
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	ud_attr(&u->n, &attr);
	OK(dat_ep_create(u->n.ia, pz, recv, u->n.req, u->n.conn, &attr, &ep));
	return ep;
}

/* Skips the case if the IA has no datagrams. */
static inline void ud_node_open(struct ud *u)
{
	const char *value, *size;

	memset(u, 0, sizeof(*u));
	node_open(&u->n);
	value = named_attr(&u->n, DAT_IB_ATTR_UD);
	if (!value || strcmp(value, "TRUE"))
		pair_skip("the fabric has no datagrams");
	size = named_attr(&u->n, "OFI_DATAGRAM_SIZE");
	CHECK(size, "no size of datagrams");
	u->most = (size_t)atol(size);
	CHECK(u->most >= 256 && u->most + GRH <= UD_HALF, "%s", size);
	mem_get(&u->n, &u->m, UD_MEMORY);
	u->knocks = node_evd(&u->n, 64, DAT_EVD_DTO_FLAG);
	u->door = ud_ep(u, u->n.pz, u->knocks);
	u->ep = ud_ep(u, u->n.pz, u->n.recv);
}

/* The extension's data of @event. */
static inline DAT_IB_EXTENSION_EVENT_DATA ud_ext(const DAT_EVENT *event)
{
	DAT_IB_EXTENSION_EVENT_DATA x;

	memcpy(&x, event->event_extension_data, sizeof(x));
	return x;
}

/* Waits for the end of an exchange of @ep, which must be this. Returns its address handle. */
static inline DAT_IB_ADDR_HANDLE ud_ended(struct ud *u, DAT_EP_HANDLE ep,
					  DAT_EVENT_NUMBER number, DAT_IB_EXT_TYPE type,
					  size_t size, unsigned seed)
{
	const DAT_CONNECTION_EVENT_DATA *d;
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event;

	expect_event(u->n.conn, number, &event);
	d = &event.event_data.connect_event_data;
	CHECK(d->ep_handle == ep, "of another EP");
	check_data(d->private_data_size, d->private_data, (DAT_COUNT)size, seed);
	x = ud_ext(&event);
	SAME(x.type, type);
	if (number == DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED) {
		CHECK(x.remote_ah.ah && x.remote_ah.qpn, "no address handle");
		CHECK(x.context.as_ptr, "no exchange");
		OK(dat_ib_ud_cm_free(ep, x.context.as_ptr));
	}
	return x.remote_ah;
}

#define UD_DATA 20			/* private data of exchanges */

/* The active side: requests the address of the peer's EP at @to. */
static inline void ud_call(DAT_EP_HANDLE ep, const struct listener *to)
{
	unsigned char data[UD_DATA];

	fill(data, sizeof(data), 1);
	connect_with(ep, to, PAIR_LIMIT, sizeof(data), data);
}

static inline DAT_IB_ADDR_HANDLE ud_called(struct ud *u, DAT_EP_HANDLE ep)
{
	return ud_ended(u, ep, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH,
			UD_DATA, 2);
}

/* The passive side. */
static inline DAT_CR_HANDLE ud_request(struct ud *u)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;

	expect_event(u->n.cr, DAT_IB_UD_CONNECTION_REQUEST_EVENT, &event);
	SAME(ud_ext(&event).type, DAT_IB_UD_CONNECT_REQUEST);
	OK(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, DAT_CR_FIELD_ALL,
			&param));
	check_data(param.private_data_size, param.private_data, UD_DATA, 1);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static inline DAT_IB_ADDR_HANDLE ud_accept(struct ud *u, DAT_EP_HANDLE ep)
{
	unsigned char data[UD_DATA];

	fill(data, sizeof(data), 2);
	OK(dat_cr_accept(ud_request(u), ep, sizeof(data), data));
	return ud_ended(u, ep, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
			DAT_IB_UD_PASSIVE_REMOTE_AH, UD_DATA, 1);
}

static inline DAT_RETURN ud_send_from(DAT_EP_HANDLE ep, const struct mem *m,
				      const DAT_IB_ADDR_HANDLE *to, size_t offset, size_t length,
				      uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, length);

	return dat_ib_post_send_ud(ep, 1, &iov, to, ud_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

/* Expects the completion of an operation next. Returns its immediate data. */
static inline uint32_t ud_done(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
			       DAT_IB_DTOS operation, size_t length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(evd, DAT_IB_DTO_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	CHECK(d->ep_handle == ep, "of another EP");
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME((int)d->operation, (int)operation);
	SAME(d->transfered_length, length);
	SAME(ud_ext(&event).type,
	     operation == DAT_IB_DTO_SEND_UD ? DAT_IB_UD_SEND : DAT_IB_UD_RECV);
	return ud_ext(&event).val.immed.data;
}

static inline void ud_send(struct ud *u, const DAT_IB_ADDR_HANDLE *to, size_t offset, size_t length,
			   uint64_t cookie)
{
	OK(ud_send_from(u->ep, &u->m, to, offset, length, cookie));
	ud_done(u->n.req, u->ep, cookie, DAT_IB_DTO_SEND_UD, length);
}

/* Knocks until the peer has heard it: from then on no datagram should be lost. */
static inline void ud_knock(struct pair *p, struct ud *u)
{
	struct pollfd heard = { .fd = p->fd, .events = POLLIN };
	const int64_t until = pair_deadline(PAIR_LIMIT);
	bool told = false;
	DAT_EVENT event;
	DAT_COUNT more;

	post_recv(u->door, &u->m, 0, GRH + 1, 0);
	while (!told || poll(&heard, 1, 0) != 1) {
		CHECK(pair_now() < until, "no datagram arrives");
		OK(ud_send_from(u->door, &u->m, &u->to_door, 0, 1, 0));
		ud_done(u->n.req, u->door, 0, DAT_IB_DTO_SEND_UD, 1);
		if (dat_evd_wait(u->knocks, 50000, 1, &event, &more) == DAT_SUCCESS) {
			pair_send(p, "!", 1);
			told = true;
		}
	}
	pair_recv(p, &more, 1);
	pair_sync(p);
}

/* Both roles: two ends that have each other's address. */
static inline void ud_open(struct pair *p, struct ud *u)
{
	ud_node_open(u);
	if (p->server) {
		u->psp = node_listen(&u->n, &u->listener.qual);
		pair_send_listener(p, &u->n, u->listener.qual);
		u->to = ud_accept(u, u->ep);
		u->to_door = ud_accept(u, u->door);
	} else {
		pair_recv_listener(p, &u->listener);
		ud_call(u->ep, &u->listener);
		u->to = ud_called(u, u->ep);
		ud_call(u->door, &u->listener);
		u->to_door = ud_called(u, u->door);
	}
	CHECK(u->to.ah == u->to_door.ah, "a PZ has one address handle of a peer's PZ");
	ud_knock(p, u);
}

static inline void ud_close(struct pair *p, struct ud *u)
{
	pair_sync(p);
	OK(dat_ib_ud_ah_free(u->ep, &u->to));
	OK(dat_ib_ud_ah_free(u->ep, &u->to_door));
	if (u->psp)
		OK(dat_psp_free(u->psp));
	OK(dat_ep_free(u->door));
	OK(dat_ep_free(u->ep));
	OK(dat_evd_free(u->knocks));
	mem_put(&u->m);
	node_close(&u->n);
}

#endif
