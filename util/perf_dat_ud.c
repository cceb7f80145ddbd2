/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's DAT side: datagrams, which only DAT 2.0 has. The datagram EPs have a protection zone,
 * and so a CQ of the provider, of their own: polling them does not poll the connections.
 */
#include "perf_dat.h"

#include <dat2/dat_ib_extensions.h>

#include <stdlib.h>
#include <string.h>

/* Bytes in front of the data of a received datagram. */
#define HEADER 40

struct perf_dat_ud {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE dto_evd, conn_evd, cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	unsigned int n;
	struct {
		DAT_EP_HANDLE ep;
		DAT_IB_ADDR_HANDLE peer;
	} lane[PERF_ENDPOINTS_MAX];
};

/* --- opening ------------------------------------------------------------ */

static int query_limit(struct perf_dat *dat, size_t *limit)
{
	DAT_PROVIDER_ATTR attr;
	DAT_RETURN ret = dat_ia_query(dat->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr);
	const char *size;

	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_ia_query", ret);
	size = dat_named_attr(&attr, "OFI_DATAGRAM_SIZE");
	*limit = size ? strtoul(size, NULL, 10) : 0;
	return *limit ? 0 : perf_fail(&dat->x, "%s: has no datagrams", dat->device);
}

static int open_evd(struct perf_dat *dat, DAT_COUNT qlen, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	DAT_RETURN ret = dat_evd_create(dat->ia, qlen, DAT_HANDLE_NULL, flags, evd);

	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_evd_create", ret);
}

static int open_evds(struct perf_dat *dat)
{
	struct perf_dat_ud *ud = dat->ud;
	DAT_COUNT lanes = (DAT_COUNT)ud->n, window = (DAT_COUNT)dat->x.lay.window;

	if (open_evd(dat, 3 * window + 4 * lanes + 16, DAT_EVD_DTO_FLAG, &ud->dto_evd) ||
	    open_evd(dat, 2 * lanes + 8, DAT_EVD_CONNECTION_FLAG, &ud->conn_evd))
		return -1;
	return open_evd(dat, 2 * lanes + 8, DAT_EVD_CR_FLAG, &ud->cr_evd);
}

static int open_memory(struct perf_dat *dat)
{
	DAT_REGION_DESCRIPTION region = { .for_va = dat->x.mem };
	DAT_RMR_CONTEXT remote;
	DAT_RETURN ret;

	ret = dat_pz_create(dat->ia, &dat->ud->pz);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_pz_create", ret);
	ret = dat_lmr_create(dat->ia, DAT_MEM_TYPE_VIRTUAL, region, dat->x.lay.total, dat->ud->pz,
			     DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			     DAT_VA_TYPE_VA, &dat->ud->lmr, &dat->ud->context, &remote, NULL, NULL);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_lmr_create", ret);
}

static int open_ep(struct perf_dat *dat, unsigned int i)
{
	struct perf_dat_ud *ud = dat->ud;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	perf_dat_ep_attr(dat, &attr);
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_message_size = dat->x.ud.limit;
	attr.max_rdma_size = 0;
	attr.max_recv_dtos = 2 * (DAT_COUNT)dat->x.lay.window + 4;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	attr.max_rdma_read_iov = attr.max_rdma_write_iov = 0;
	ret = dat_ep_create(dat->ia, ud->pz, ud->dto_evd, ud->dto_evd, ud->conn_evd, &attr,
			    &ud->lane[i].ep);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_create", ret);
}

static int listen_on(struct perf_dat *dat, struct perf_ctl *ctl)
{
	DAT_CONN_QUAL qual;
	DAT_RETURN ret;

	ret = dat_psp_create_any(dat->ia, &qual, dat->ud->cr_evd, DAT_PSP_CONSUMER_FLAG,
				 &dat->ud->psp);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_psp_create_any", ret);
	ctl->value = qual;
	return 0;
}

static int ud_open(struct perf_xport *x, struct perf_ctl *ctl)
{
	struct perf_dat *dat = perf_to_dat(x);
	unsigned int i;

	if (dat->ud)
		return perf_fail(x, "the client requested datagrams twice");
	if (query_limit(dat, &x->ud.limit))
		return -1;
	dat->ud = calloc(1, sizeof(*dat->ud));
	if (!dat->ud)
		return perf_fail(x, "out of memory");
	dat->ud->n = x->lanes ? x->lanes : 1;
	x->ud.mem = x->mem;
	x->ud.head = HEADER;
	if (open_evds(dat) || open_memory(dat))
		return -1;
	for (i = 0; i < dat->ud->n; i++)
		if (open_ep(dat, i))
			return -1;
	return ctl->type == PERF_CTL_READY ? listen_on(dat, ctl) : 0;
}

static void free_evd(DAT_EVD_HANDLE evd)
{
	if (evd)
		dat_evd_free(evd);
}

static void ud_close(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	struct perf_dat_ud *ud = dat->ud;
	unsigned int i;

	if (!ud)
		return;
	for (i = 0; i < ud->n; i++)
		if (ud->lane[i].ep)
			dat_ep_free(ud->lane[i].ep);
	if (ud->psp)
		dat_psp_free(ud->psp);
	if (ud->lmr)
		dat_lmr_free(ud->lmr);
	free_evd(ud->dto_evd);
	free_evd(ud->conn_evd);
	free_evd(ud->cr_evd);
	if (ud->pz)
		dat_pz_free(ud->pz);
	free(ud);
	dat->ud = NULL;
}

/* --- addresses ---------------------------------------------------------- */

/* Waits for the address handle of the peer of @lane. */
static int wait_address(struct perf_dat *dat, unsigned int lane)
{
	DAT_IB_EXTENSION_EVENT_DATA *ext;
	DAT_EVENT event;

	if (perf_dat_event(dat, dat->ud->conn_evd, (int)dat->x.timeout_ms + 1000, &event))
		return -1;
	ext = (DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	if (event.event_number != DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED)
		return perf_fail(&dat->x, "%s: no exchange of addresses for datagrams: event %#x",
				 dat->device, (unsigned int)event.event_number);
	dat->ud->lane[lane].peer = ext->remote_ah;
	return 0;
}

static int ud_connect(struct perf_xport *x, const struct perf_ctl *ctl)
{
	struct perf_dat *dat = perf_to_dat(x);
	unsigned int i;
	DAT_RETURN ret;

	for (i = 0; i < dat->ud->n; i++) {
		ret = dat_ep_connect(dat->ud->lane[i].ep, (DAT_IA_ADDRESS_PTR)&dat->server,
				     (DAT_CONN_QUAL)ctl->value, (DAT_TIMEOUT)x->timeout_ms * 1000,
				     0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			return perf_dat_fail(dat, "dat_ep_connect", ret);
		if (wait_address(dat, i))
			return -1;
	}
	return 0;
}

/* The client makes one request at a time. */
static int ud_accept(struct perf_xport *x, const struct perf_ctl *ctl)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_EVENT event;
	DAT_RETURN ret;
	unsigned int i;

	(void)ctl;
	for (i = 0; i < dat->ud->n; i++) {
		if (perf_dat_event(dat, dat->ud->cr_evd, (int)x->timeout_ms, &event))
			return -1;
		ret = dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
				    dat->ud->lane[i].ep, 0, NULL);
		if (ret != DAT_SUCCESS)
			return perf_dat_fail(dat, "dat_cr_accept", ret);
		if (wait_address(dat, i))
			return -1;
	}
	return 0;
}

/* --- data path ---------------------------------------------------------- */

static inline DAT_LMR_TRIPLET local_iov(const struct perf_dat *dat, size_t off, size_t len)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = dat->ud->context,
		.virtual_address = (uintptr_t)(dat->x.mem + off),
		.segment_length = len,
	};
}

static int ud_post_recv(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_recv(dat->ud->lane[lane].ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_recv", ret);
}

static int ud_post_send(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ib_post_send_ud(dat->ud->lane[lane].ep, 1, &iov, &dat->ud->lane[lane].peer, user,
				  DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ib_post_send_ud", ret);
}

static DAT_RETURN next_event(struct perf_dat *dat, DAT_EVENT *event)
{
	DAT_COUNT more;

	if (!dat->x.blocking)
		return dat_evd_dequeue(dat->ud->dto_evd, event);
	return dat_evd_wait(dat->ud->dto_evd, PERF_UD_WAIT_MS * 1000, 1, event, &more);
}

static int ud_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = next_event(dat, &event);
	if (ret != DAT_SUCCESS) {
		if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY ||
		    DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED ||
		    DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL)
			return 0;
		return perf_dat_fail(dat, "cannot read completions", ret);
	}
	dto = &event.event_data.dto_completion_event_data;
	if (dto->status != DAT_DTO_SUCCESS)
		return perf_dat_dto_error(dat, dto->status);
	comp->cookie = dto->user_cookie.as_64;
	comp->len = dto->transfered_length;
	if (comp->cookie & PERF_COOKIE_RX)
		comp->len -= HEADER;
	return 1;
}

const struct perf_ud_ops perf_dat_ud_ops = {
	.open = ud_open,
	.connect = ud_connect,
	.accept = ud_accept,
	.post_recv = ud_post_recv,
	.post_send = ud_post_send,
	.poll = ud_poll,
	.close = ud_close,
};
