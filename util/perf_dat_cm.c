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
		return "no listener at this address";
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
	DAT_RETURN ret;

	if (perf_dat_open_cm_evd(dat, DAT_EVD_CR_FLAG, &dat->cr_evd))
		return -1;
	if (qual)
		ret = dat_psp_create(dat->ia, qual, dat->cr_evd, DAT_PSP_CONSUMER_FLAG, &dat->psp);
	else
		ret = dat_psp_create_any(dat->ia, &qual, dat->cr_evd, DAT_PSP_CONSUMER_FLAG,
					 &dat->psp);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "cannot listen", ret);
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
		return perf_fail(&dat->x, "%s: %s", dat->device, perf_dat_event_text(event->event_number));
	dat->connected = true;
	return 0;
}

void perf_dat_hello(struct perf_dat *dat, unsigned int index, unsigned char *buf)
{
	struct perf_hello hello = {
		.flags = dat->x.blocking ? PERF_HELLO_WAIT : 0,
		.size_max = dat->x.size_max,
		.window = dat->x.lay.window,
		.addr = (uintptr_t)dat->x.mem,
		.key = dat->remote.rmr_context,
		.index = index,
	};

	perf_hello_encode(&hello, buf);
}

static void peer_memory(struct perf_dat *dat, const struct perf_hello *hello)
{
	dat->remote.rmr_context = hello->key;
	dat->raddr = hello->addr;
}

static int dat_accept_cr(struct perf_dat *dat, DAT_CR_HANDLE cr, const struct perf_hello *hello)
{
	unsigned char buf[PERF_HELLO_LEN];
	DAT_EVENT event;
	DAT_RETURN ret;

	dat->x.size_max = hello->size_max;
	dat->x.blocking = hello->flags & PERF_HELLO_WAIT;
	perf_layout_init(&dat->x.lay, hello->size_max, hello->window);
	if (perf_dat_open_ep(dat)) {
		CR_REJECT(cr);
		return -1;
	}
	perf_dat_hello(dat, 0, buf);
	peer_memory(dat, hello);
	ret = dat_cr_accept(cr, dat->ep, sizeof(buf), buf);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_cr_accept", ret);
	return perf_dat_established(dat, &event);
}

int perf_dat_wait_cr(struct perf_dat *dat, DAT_CR_HANDLE *cr, struct perf_hello *hello)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_RETURN ret;

	if (perf_dat_event(dat, dat->cr_evd, dat->x.wait_client_ms, &event))
		return -1;
	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	ret = dat_cr_query(*cr, DAT_CR_FIELD_ALL, &param);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_cr_query", ret);
	if (perf_hello_check(&dat->x, param.private_data, (size_t)param.private_data_size, hello)) {
		CR_REJECT(*cr);
		return -1;
	}
	return 0;
}

int perf_dat_accept(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	struct perf_hello hello;
	DAT_CR_HANDLE cr;

	return perf_dat_wait_cr(dat, &cr, &hello) ? -1 : dat_accept_cr(dat, cr, &hello);
}

int perf_dat_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_CONNECTION_EVENT_DATA *data;
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_hello hello;
	DAT_EVENT event;
	DAT_RETURN ret;

	if (perf_dat_open_ep(dat))
		return -1;
	perf_dat_hello(dat, 0, buf);
	ret = dat_ep_connect(dat->ep, (DAT_IA_ADDRESS_PTR)addr, port,
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

void perf_dat_disconnect(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_COUNT more;
	DAT_EVENT event;

	if (!dat->connected)
		return;
	dat_ep_disconnect(dat->ep, DAT_CLOSE_GRACEFUL_FLAG);
	dat_evd_wait(dat->conn_evd, 2000000, 1, &event, &more);
	dat->connected = false;
}
