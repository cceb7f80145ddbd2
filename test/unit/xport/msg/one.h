/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One endpoint of the connected transport on the fake fabric, and a request that it may accept. */
#ifndef UNIT_XPORT_MSG_ONE_H
#define UNIT_XPORT_MSG_ONE_H

#include "xport/fabric.h"

#define PORT 4711
#define MAPPED 70000			/* a qualifier that is no port */
#define TRIES 4

static DAT_EP_HANDLE ep;
static char payload[DOFI_WIRE_MAX_DATA];

static inline void init(void)
{
	size_t i;

	xport_init();
	ep = ep_make();
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (char)(i + 1);
}

static inline struct dofi_ep *inside(void)
{
	return ep;
}

/*
 * The attempt or connection ended with @number as its only event, and nothing is open at the
 * fabric.
 */
static inline DAT_CONNECTION_EVENT_DATA ended_with(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = event_only(number);

	cr_expect_eq(event.event_data.connect_event_data.ep_handle, ep);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
	cr_expect_eq(fake_eps.open, 0);
	return event.event_data.connect_event_data;
}

static inline void make_established(void)
{
	connect_to(ep, PORT);
	cm_event(FI_CONNECTED, fake_eps.last, wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	event_only(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline void connecting_fails(DAT_EVENT_NUMBER number)
{
	connect_to(ep, PORT);
	ended_with(number);
}

static inline void init_sockets(void)
{
	fabric_name = "sockets";
	init();
}

static DAT_PSP_HANDLE psp;
static DAT_CR_HANDLE cr;

static inline void init_request(void)
{
	init();
	psp = psp_make(PORT);
	cm_request(fake_eps.last_pep, wire(DOFI_WIRE_REQUEST, 0, payload, 10));
	cr = cr_take();
}

static inline void accept_request(void)
{
	succeed(dofi_cr_accept(cr, ep, 3, payload));
	quiesce();
}

static const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

static inline void init_established(void)
{
	init();
	make_established();
}

static inline DAT_LMR_TRIPLET *segments(void)
{
	static DAT_LMR_TRIPLET iov[3];
	int i;

	for (i = 0; i < 3; i++)
		iov[i] = segment(64 * i, 8);
	return iov;
}

/* Our endpoint of an SRQ reports that in its request, and posts a receive for preambles. */
static inline DAT_SRQ_HANDLE make_shared(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR ep_attr = inside()->attr;
	DAT_SRQ_HANDLE srq;

	succeed(dofi_srq_create(ia, pz, &srq_attr, &srq));
	succeed(dofi_ep_free(ep));
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &ep_attr, &ep));
	return srq;
}

#endif
