/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connects two endpoints of an open IA with each other, and exchanges messages. */
#include "info_loop.h"

#include "dat_cause.h"
#include "dat_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define QLEN 8
#define MESSAGE 8
#define WAIT_SECONDS 10
#define STEP_MESSAGES 100 /* the messages of a step */

#if DAT_VERSION_MAJOR >= 2
#define LMR_CREATE(ia, mem, len, pz, lmr, context)                                    \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, DAT_MEM_PRIV_ALL_FLAG, \
		       DAT_VA_TYPE_VA, lmr, context, NULL, NULL, NULL)
#else
#define LMR_CREATE(ia, mem, len, pz, lmr, context)                                         \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, DAT_MEM_PRIV_ALL_FLAG, lmr, \
		       context, NULL, NULL, NULL)
#endif

/* The connecting EP is 0, the accepting EP is 1. Each has a receive and a send buffer. */
struct loop {
	struct child *child;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE requests, connections, sent, received;
	DAT_EP_HANDLE ep[2];
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	void *memory;
	char *why;
	size_t len;
};

static bool ok(struct loop *l, const char *call, DAT_RETURN ret)
{
	char text[128];

	if (ret == DAT_SUCCESS)
		return true;
	snprintf(l->why, l->len, "%s: %s", call, dat_text_error(ret, text, sizeof(text)));
	return false;
}

static bool evd_make(struct loop *l, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	return ok(l, "dat_evd_create", dat_evd_create(l->ia, QLEN, DAT_HANDLE_NULL, flags, evd));
}

static bool ep_make(struct loop *l, DAT_EP_HANDLE *ep)
{
	return ok(l, "dat_ep_create",
		  dat_ep_create(l->ia, l->pz, l->received, l->sent, l->connections, NULL, ep));
}

static bool objects_make(struct loop *l)
{
	long page = sysconf(_SC_PAGESIZE);

	if (posix_memalign(&l->memory, (size_t)page, (size_t)page))
		return ok(l, "posix_memalign", DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES);
	return ok(l, "dat_pz_create", dat_pz_create(l->ia, &l->pz)) &&
	       evd_make(l, DAT_EVD_CR_FLAG, &l->requests) &&
	       evd_make(l, DAT_EVD_CONNECTION_FLAG, &l->connections) &&
	       evd_make(l, DAT_EVD_DTO_FLAG, &l->sent) &&
	       evd_make(l, DAT_EVD_DTO_FLAG, &l->received) && ep_make(l, &l->ep[0]) &&
	       ep_make(l, &l->ep[1]) &&
	       ok(l, "dat_lmr_create",
		  LMR_CREATE(l->ia, (DAT_REGION_DESCRIPTION){ .for_va = l->memory }, (DAT_VLEN)page,
			     l->pz, &l->lmr, &l->context)) &&
	       ok(l, "dat_psp_create_any",
		  dat_psp_create_any(l->ia, &l->qual, l->requests, DAT_PSP_CONSUMER_FLAG, &l->psp));
}

/* Waits for an event with @number; another event, or none in time, is a failure. */
static bool await(struct loop *l, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, const char *what,
		  DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN ret = dat_evd_wait(evd, WAIT_SECONDS * 1000000, 1, event, &more);

	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED) {
		if (evd == l->requests || evd == l->connections)
			snprintf(l->why, l->len, "no %s within %d s" DAT_CAUSE_FORMAT, what,
				 WAIT_SECONDS, DAT_CAUSE_UNREACHED);
		else
			snprintf(l->why, l->len, "no %s within %d s", what, WAIT_SECONDS);
		return false;
	}
	if (!ok(l, "dat_evd_wait", ret))
		return false;
	if (event->event_number == number)
		return true;
	snprintf(l->why, l->len, "event 0x%x in place of %s (datinfo --explain 0x%x)",
		 (unsigned)event->event_number, what, (unsigned)event->event_number);
	return false;
}

static bool both_connect(struct loop *l, DAT_IA_ADDRESS_PTR address)
{
	DAT_EVENT event;

	return ok(l, "dat_ep_connect",
		  dat_ep_connect(l->ep[0], address, l->qual, WAIT_SECONDS * 1000000, 0, NULL,
				 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) &&
	       await(l, l->requests, DAT_CONNECTION_REQUEST_EVENT, "connection request", &event) &&
	       ok(l, "dat_cr_accept",
		  dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, l->ep[1], 0,
				NULL)) &&
	       await(l, l->connections, DAT_CONNECTION_EVENT_ESTABLISHED, "connection", &event) &&
	       await(l, l->connections, DAT_CONNECTION_EVENT_ESTABLISHED, "connection", &event);
}

static DAT_LMR_TRIPLET segment(const struct loop *l, int i)
{
	DAT_LMR_TRIPLET s = { .lmr_context = l->context, .segment_length = MESSAGE };

	s.virtual_address = (DAT_VADDR)(uintptr_t)l->memory + (DAT_VADDR)(i * MESSAGE);
	return s;
}

static bool receive_post(struct loop *l, int end)
{
	DAT_LMR_TRIPLET s = segment(l, end);
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	return ok(l, "dat_ep_post_recv",
		  dat_ep_post_recv(l->ep[end], 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static bool send_post(struct loop *l, int end)
{
	DAT_LMR_TRIPLET s = segment(l, 2 + end);
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	return ok(l, "dat_ep_post_send",
		  dat_ep_post_send(l->ep[end], 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Waits for the completion of an operation. */
static bool completion_await(struct loop *l, DAT_EVD_HANDLE evd, const char *what)
{
	DAT_EVENT event;
	DAT_DTO_COMPLETION_STATUS status;

	if (!await(l, evd, DAT_DTO_COMPLETION_EVENT, what, &event))
		return false;
	status = event.event_data.dto_completion_event_data.status;
	if (status == DAT_DTO_SUCCESS)
		return true;
	snprintf(l->why, l->len, "a %s completed with status %d", what, (int)status);
	return false;
}

/* One message from EP @from to the other EP, which has a receive posted. */
static bool message_pass(struct loop *l, int from)
{
	return send_post(l, from) && completion_await(l, l->received, "receive") &&
	       completion_await(l, l->sent, "send") && receive_post(l, !from);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool messages_exchange(struct loop *l, double *us)
{
	double begin = now_us();
	int i;

	for (i = 0; i < LOOP_MESSAGES; i++) {
		if (i % STEP_MESSAGES == 0)
			child_step(l->child, "exchanging messages");
		if (!message_pass(l, i % 2))
			return false;
	}
	*us = (now_us() - begin) / LOOP_MESSAGES;
	return true;
}

bool loop_run(struct child *c, DAT_IA_HANDLE ia, DAT_IA_ADDRESS_PTR address, double *us, char *why,
	      size_t len)
{
	struct loop l = { .child = c, .ia = ia, .why = why, .len = len };

	child_step(c, "creating objects");
	if (!objects_make(&l))
		return false;
	child_step(c, "connecting to its own address");
	if (!both_connect(&l, address))
		return false;
	return receive_post(&l, 0) && receive_post(&l, 1) && messages_exchange(&l, us);
}
