/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's DAT side: connections. Uses only the public API; one source for both versions. */
#include "perf_dat.h"

#include <string.h>

/* Names that differ between the two API versions. */
#if DAT_VERSION_MAJOR >= 2
#define CR_REJECT(cr) dat_cr_reject(cr, 0, NULL)
#else
#define CR_REJECT(cr) dat_cr_reject(cr)
#endif

const char *perf_dat_event_text(DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return "the peer refused the connection";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		return "no listener at this address, or one with other options "
		       "(--peers, --raw-only)";
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return "the host is unreachable";
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return "no answer from the peer";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
		return "the client failed while connecting";
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		return "the peer closed the connection";
	case DAT_CONNECTION_EVENT_BROKEN:
		return "the connection broke";
	default:
		return "an unexpected connection event";
	}
}

int perf_dat_listen(struct perf_xport *x, unsigned int *port)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_CONN_QUAL qual = *port;
	char what[PERF_LISTEN_TEXT];
	DAT_RETURN ret;

	if (perf_dat_open_cm_evd(dat, DAT_EVD_CR_FLAG, &dat->cr_evd))
		return -1;
	if (qual)
		ret = dat_psp_create(dat->ia, qual, dat->cr_evd, DAT_PSP_CONSUMER_FLAG, &dat->psp);
	else
		ret = dat_psp_create_any(dat->ia, &qual, dat->cr_evd, DAT_PSP_CONSUMER_FLAG,
					 &dat->psp);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, perf_listen_text(*port, what, sizeof(what)), ret);
	*port = (unsigned int)qual;
	return 0;
}

int perf_dat_event(struct perf_dat *dat, DAT_EVD_HANDLE evd, int timeout_ms, DAT_EVENT *event)
{
	DAT_TIMEOUT us = timeout_ms < 0 ? DAT_TIMEOUT_INFINITE : (DAT_TIMEOUT)timeout_ms * 1000;
	DAT_COUNT more;
	DAT_RETURN ret;

	do {
		ret = dat_evd_wait(evd, us, 1, event, &more);
	} while (DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL);
	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return perf_fail(&dat->x, "%s: no answer from the peer", dat->device);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_evd_wait", ret);
	return 0;
}

int perf_dat_established(struct perf_dat *dat, DAT_EVENT *event)
{
	/* the connect call has its own timeout; this timeout is only a backup */
	if (perf_dat_event(dat, dat->conn_evd, (int)dat->x.timeout_ms + 1000, event))
		return -1;
	if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		return perf_fail(&dat->x, "%s: %s", dat->device,
				 perf_dat_event_text(event->event_number));
	dat->connected = true;
	return 0;
}

static unsigned int at_least_1(unsigned int n)
{
	return n ? n : 1;
}

void perf_dat_hello(struct perf_dat *dat, unsigned int index, unsigned char *buf)
{
	struct perf_hello hello = {
		.flags = (dat->x.blocking ? PERF_HELLO_WAIT : 0) |
			 (dat->x.srq ? PERF_HELLO_SRQ : 0),
		.size_max = dat->x.size_max,
		.window = (uint16_t)dat->x.lay.window,
		.endpoints = (uint8_t)at_least_1(dat->x.lanes),
		.threads = (uint8_t)at_least_1(dat->x.threads),
		.addr = (uintptr_t)dat->x.mem,
		.key = dat->own,
		.index = (uint16_t)index,
		.session = dat->x.session,
		.segments = (uint8_t)dat->x.segments,
	};

	perf_hello_encode(&hello, buf);
}

static void peer_memory(struct perf_dat *dat, const struct perf_hello *hello)
{
	dat->remote.rmr_context = hello->key;
	dat->raddr = hello->addr;
}

/* --- the server's end --------------------------------------------------- */

int perf_dat_wait_cr(struct perf_dat *dat, int timeout_ms, struct perf_dat_request *request)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_RETURN ret;

	if (perf_dat_event(dat, dat->cr_evd, timeout_ms, &event))
		return -1;
	request->cr = event.event_data.cr_arrival_event_data.cr_handle;
	ret = dat_cr_query(request->cr, DAT_CR_FIELD_ALL, &param);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_cr_query", ret);
	if (perf_hello_check(&dat->x, param.private_data, (size_t)param.private_data_size,
			     &request->hello)) {
		CR_REJECT(request->cr);
		return -1;
	}
	return 0;
}

/* Whether @request is connection @index of @session; any session if that is 0. */
static bool is_wanted(const struct perf_dat_request *request, uint16_t session, unsigned int index)
{
	return request->hello.index == index && (!session || request->hello.session == session);
}

static bool take_held(struct perf_dat *from, uint16_t session, unsigned int index,
		      struct perf_dat_request *request)
{
	unsigned int i;

	for (i = 0; i < from->nheld; i++) {
		if (!is_wanted(&from->held[i], session, index))
			continue;
		*request = from->held[i];
		memmove(&from->held[i], &from->held[i + 1],
			(--from->nheld - i) * sizeof(from->held[0]));
		return true;
	}
	return false;
}

/* Takes the request for connection @index, and keeps other clients' for later. */
static int take_request(struct perf_dat *from, int timeout_ms, uint16_t session, unsigned int index,
			struct perf_dat_request *request)
{
	if (take_held(from, session, index, request))
		return 0;
	for (;;) {
		if (perf_dat_wait_cr(from, timeout_ms, request))
			return -1;
		if (is_wanted(request, session, index))
			return 0;
		if (from->nheld == PERF_DAT_HELD)
			CR_REJECT(request->cr);
		else
			from->held[from->nheld++] = *request;
	}
}

/* Rejects the further requests of a client that has ended. */
void perf_dat_forget(struct perf_xport *listener, uint16_t session)
{
	struct perf_dat *from = perf_to_dat(listener);
	unsigned int i, n = 0;

	for (i = 0; i < from->nheld; i++) {
		if (from->held[i].hello.session == session)
			CR_REJECT(from->held[i].cr);
		else
			from->held[n++] = from->held[i];
	}
	from->nheld = n;
}

/* The first connection of a thread brings the client's settings. */
static int apply_hello(struct perf_dat *dat, const struct perf_hello *hello)
{
	struct perf_xport *x = &dat->x;

	x->size_max = hello->size_max;
	x->blocking = hello->flags & PERF_HELLO_WAIT;
	x->srq = hello->flags & PERF_HELLO_SRQ;
	x->segments = hello->segments;
	x->lanes = hello->endpoints;
	x->threads = hello->threads;
	x->session = hello->session;
	perf_layout_init(&x->lay, hello->size_max, hello->window);
	if (perf_dat_open_eps(dat))
		return -1;
	peer_memory(dat, hello);
	return 0;
}

static int accept_lane(struct perf_dat *dat, unsigned int lane,
		       const struct perf_dat_request *request)
{
	unsigned char buf[PERF_HELLO_LEN];
	DAT_EVENT event;
	DAT_RETURN ret;

	if (lane == 0 && apply_hello(dat, &request->hello)) {
		CR_REJECT(request->cr);
		return -1;
	}
	perf_dat_hello(dat, request->hello.index, buf);
	ret = dat_cr_accept(request->cr, dat->eps[lane], sizeof(buf), buf);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_cr_accept", ret);
	return perf_dat_established(dat, &event);
}

int perf_dat_accept(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x), *from = dat->owner ? dat->owner : dat;
	int timeout_ms = x->session ? (int)x->timeout_ms : x->wait_client_ms;
	struct perf_dat_request request;
	unsigned int lane = 0;

	do {
		if (take_request(from, timeout_ms, x->session, x->first_lane + lane, &request)) {
			perf_fail(x, "%s", from->x.err);
			from->x.err[0] = '\0';
			x->refused = from->x.refused;
			from->x.refused = false;
			return -1;
		}
		if (accept_lane(dat, lane, &request))
			return -1;
		timeout_ms = (int)x->timeout_ms;
	} while (++lane < x->lanes);
	return 0;
}

/* --- the client's end --------------------------------------------------- */

static int connect_lane(struct perf_dat *dat, unsigned int lane, const struct sockaddr *addr,
			unsigned int port)
{
	struct perf_xport *x = &dat->x;
	DAT_CONNECTION_EVENT_DATA *data;
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_hello hello;
	DAT_EVENT event;
	DAT_RETURN ret;

	perf_dat_hello(dat, x->first_lane + lane, buf);
	ret = dat_ep_connect(dat->eps[lane], (DAT_IA_ADDRESS_PTR)(uintptr_t)addr, port,
			     (DAT_TIMEOUT)x->timeout_ms * 1000, sizeof(buf), buf,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_ep_connect", ret);
	if (perf_dat_established(dat, &event))
		return -1;
	data = &event.event_data.connect_event_data;
	if (perf_hello_check(x, data->private_data, (size_t)data->private_data_size, &hello))
		return -1;
	peer_memory(dat, &hello);
	return 0;
}

int perf_dat_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port)
{
	struct perf_dat *dat = perf_to_dat(x);
	unsigned int lane;

	if (perf_dat_open_eps(dat))
		return -1;
	memcpy(&dat->server, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in));
	for (lane = 0; lane < dat->neps; lane++)
		if (connect_lane(dat, lane, addr, port))
			return -1;
	return 0;
}

/* --- the end ------------------------------------------------------------ */

void perf_dat_disconnect(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_COUNT more;
	DAT_EVENT event;
	unsigned int i;

	if (!dat->connected)
		return;
	for (i = 0; i < dat->neps; i++)
		dat_ep_disconnect(dat->eps[i], DAT_CLOSE_GRACEFUL_FLAG);
	for (i = 0; i < dat->neps; i++)
		if (dat_evd_wait(dat->conn_evd, 2000000, 1, &event, &more) != DAT_SUCCESS)
			break;
	dat->connected = false;
}
