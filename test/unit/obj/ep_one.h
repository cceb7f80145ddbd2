/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One endpoint, and calls on it for tests of endpoints. */
#ifndef UNIT_OBJ_EP_ONE_H
#define UNIT_OBJ_EP_ONE_H

#include "obj/fixture.h"

#include <semaphore.h>

static DAT_EP_HANDLE ep;

static inline void ep_one(void)
{
	objects_init();
	ep = ep_make();
}

static inline struct dofi_ep *inside(void)
{
	return ep;
}

static inline DAT_EP_STATE state(void)
{
	DAT_EP_STATE s;

	succeed(dofi_ep_get_status(ep, &s, NULL, NULL));
	return s;
}

static inline DAT_RETURN connect_to(DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
				    DAT_TIMEOUT timeout)
{
	return dofi_ep_connect(ep, address, qual, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG);
}

static inline DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags)
{
	return dofi_ep_disconnect(ep, flags);
}

static inline void post_recv(uint64_t n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void post_send(uint64_t n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET s = segment(0, 8);

	succeed(dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void expect_flushed(uint64_t n)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);

	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* The connection ends with @event, as reported by the transport. */
static inline void end(DAT_EVENT_NUMBER event)
{
	dofi_ep_end_with(inside(), event, NULL, 0);
	settle();
}

static inline DAT_RETURN make(DAT_PZ_HANDLE zone, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			      DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr)
{
	return dofi_ep_create(ia, zone, recv, request, connect, attr, &ep);
}

/* Work that keeps the progress thread busy until the test posts hold. */
static sem_t hold;

static inline void hold_run(struct dofi_work *work)
{
	while (sem_wait(&hold))
		;
}

#endif
