/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections of datperf --peers. Uses only the public API; one source for both versions. */
#include "perf_peers.h"
#include "perf_dat.h"

#include <stdlib.h>

/* Polls between two reads of the clock. */
#define EMPTY_BATCH 64

int perf_peers_open(struct perf_xport *x, unsigned int n)
{
	struct perf_dat *dat = perf_to_dat(x);

	dat->eps = calloc(n, sizeof(DAT_EP_HANDLE));
	if (!dat->eps)
		return perf_fail(x, "out of memory");
	dat->neps = n;
	return perf_dat_open_ia(dat);
}

int perf_peers_create(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_RETURN ret;
	unsigned int i;

	if (perf_dat_open_dtos(dat) || perf_dat_open_conns(dat))
		return -1;
	for (i = 0; i < dat->neps; i++) {
		ret = dat_ep_create(dat->ia, dat->pz, dat->dto_evd, dat->dto_evd, dat->conn_evd,
				    NULL, &dat->eps[i]);
		if (ret != DAT_SUCCESS)
			return perf_dat_fail(dat, "dat_ep_create", ret);
		/* one buffer serves all connections: messages use one connection at a time */
		if (perf_peers_select(x, i) || perf_run_arm(x))
			return -1;
	}
	return 0;
}

static int all_established(struct perf_dat *dat)
{
	DAT_EVENT event;
	unsigned int i;

	for (i = 0; i < dat->neps; i++)
		if (perf_dat_established(dat, &event))
			return -1;
	return 0;
}

static int connect_one(struct perf_dat *dat, unsigned int i, const struct sockaddr *addr,
		       unsigned int port)
{
	unsigned char buf[PERF_HELLO_LEN];
	DAT_RETURN ret;

	/* with --local the IA's own address, as other fabrics than tcp have no 127.0.0.1 */
	if (!addr)
		addr = (const struct sockaddr *)&dat->fabric.addr;
	perf_dat_hello(dat, i, buf);
	ret = dat_ep_connect(dat->eps[i], (DAT_IA_ADDRESS_PTR)(uintptr_t)addr, port,
			     (DAT_TIMEOUT)dat->x.timeout_ms * 1000, sizeof(buf), buf,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_connect", ret);
}

int perf_peers_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port,
		       uint64_t *ns)
{
	struct perf_dat *dat = perf_to_dat(x);
	uint64_t begin = perf_now_ns();
	unsigned int i;

	for (i = 0; i < dat->neps; i++)
		if (connect_one(dat, i, addr, port))
			return -1;
	if (all_established(dat))
		return -1;
	*ns = perf_now_ns() - begin;
	return 0;
}

/* Connections have equal numbers at both ends, whatever the order of the requests. */
static int accept_one(struct perf_dat *dat)
{
	struct perf_dat_request request;
	unsigned int index;
	DAT_RETURN ret;

	if (perf_dat_wait_cr(dat, dat->x.wait_client_ms, &request))
		return -1;
	index = request.hello.index;
	if (index >= dat->neps)
		return perf_fail(&dat->x, "the client requested connection %u of %u", index,
				 dat->neps);
	ret = dat_cr_accept(request.cr, dat->eps[index], 0, NULL);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_cr_accept", ret);
}

int perf_peers_accept(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	unsigned int i;

	for (i = 0; i < dat->neps; i++)
		if (accept_one(dat))
			return -1;
	return all_established(dat);
}

int perf_peers_select(struct perf_xport *x, uint64_t index)
{
	struct perf_dat *dat = perf_to_dat(x);

	if (index >= dat->neps)
		return perf_fail(x, "the client requested an invalid connection");
	dat->ep = dat->eps[index];
	return 0;
}

/* No event is expected: this is most likely the end of a connection. */
static int unexpected(struct perf_dat *dat, DAT_RETURN ret, const DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_STATUS status = event->event_data.dto_completion_event_data.status;

	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_evd_dequeue", ret);
	if (status != DAT_DTO_SUCCESS)
		return perf_dat_dto_error(dat, status);
	return perf_fail(&dat->x, "an unexpected completion");
}

int perf_peers_empty(struct perf_xport *x, uint64_t budget_ns, double *us)
{
	struct perf_dat *dat = perf_to_dat(x);
	uint64_t begin = perf_now_ns(), now, n = 0;
	DAT_EVENT event;
	DAT_RETURN ret;

	do {
		for (int i = 0; i < EMPTY_BATCH; i++) {
			ret = dat_evd_dequeue(dat->dto_evd, &event);
			if (DAT_GET_TYPE(ret) != DAT_QUEUE_EMPTY)
				return unexpected(dat, ret, &event);
		}
		n += EMPTY_BATCH;
		now = perf_now_ns();
	} while (now - begin < budget_ns);
	*us = (double)(now - begin) / (double)n / 1000;
	return 0;
}

int perf_peers_end(struct perf_xport *x, uint64_t *ns)
{
	struct perf_dat *dat = perf_to_dat(x);
	uint64_t begin = perf_now_ns();
	DAT_RETURN ret;

	ret = dat_ia_close(dat->ia, DAT_CLOSE_ABRUPT_FLAG);
	*ns = perf_now_ns() - begin;
	/* the end of the process releases the rest */
	dat->ep = dat->lmr = dat->dto_evd = dat->conn_evd = dat->cr_evd = dat->pz = DAT_HANDLE_NULL;
	dat->psp = dat->ia = DAT_HANDLE_NULL;
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ia_close", ret);
}
