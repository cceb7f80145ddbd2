/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's DAT side: opening and closing. Uses only the public API; one source for uDAPL 1.2 and
 * DAT 2.0.
 */
#include "perf_dat.h"

#include "open_reason.h"

#include <stdlib.h>
#include <string.h>

#define ASYNC_QLEN 16
#define CONN_QLEN 8

/* Differences between the two API versions. */
#if DAT_VERSION_MAJOR >= 2
#include <dat2/dat_ib_extensions.h>
#define ATOMICS(attr) \
	((attr)->extension_supported == DAT_EXTENSION_IB ? DAT_IB_MEM_PRIV_REMOTE_ATOMIC : 0)
#define LMR_CREATE(ia, mem, len, pz, priv, lmr, lctx, rctx)                                     \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, priv, DAT_VA_TYPE_VA, lmr, lctx, \
		       rctx, NULL, NULL)
#define UD_OPS (&perf_dat_ud_ops)
#define EXT_OPS (&perf_dat_ext_ops)
#else
#define ATOMICS(attr) 0
#define LMR_CREATE(ia, mem, len, pz, priv, lmr, lctx, rctx) \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, priv, lmr, lctx, rctx, NULL, NULL)
#define UD_OPS NULL
#define EXT_OPS NULL
#endif

int perf_dat_fail(struct perf_dat *dat, const char *what, DAT_RETURN ret)
{
	char text[128];

	return perf_fail(&dat->x, "%s: %s: %s", dat->device, what,
			 dat_text_error(ret, text, sizeof(text)));
}

const char *perf_dat_api(void)
{
	return DAT_VERSION_MAJOR >= 2 ? "2.0" : "1.2";
}

/* --- opening ------------------------------------------------------------ */

static void fabric_record(struct perf_dat *dat, const DAT_PROVIDER_ATTR *attr)
{
	const char *provider = dat_named_attr(attr, "OFI_PROVIDER");
	const char *domain = dat_named_attr(attr, "OFI_DOMAIN");
	const char *endpoint = dat_named_attr(attr, "OFI_ENDPOINT");
	const struct sockaddr *addr = dat->ia_attr.ia_address_ptr;
	size_t len = 0;

	snprintf(dat->fabric.provider, sizeof(dat->fabric.provider), "%s",
		 provider ? provider : "");
	snprintf(dat->fabric.domain, sizeof(dat->fabric.domain), "%s", domain ? domain : "");
	/* the provider's own shared memory is compared with libfabric's */
	if (!strcmp(dat->fabric.provider, "rings")) {
		strcpy(dat->fabric.provider, "shm");
		dat->fabric.domain[0] = '\0';
	}
	dat->fabric.rdm = endpoint && !strcmp(endpoint, "rdm");
	if (addr && addr->sa_family == AF_INET)
		len = sizeof(struct sockaddr_in);
	else if (addr && addr->sa_family == AF_INET6)
		len = sizeof(struct sockaddr_in6);
	memcpy(&dat->fabric.addr, addr, len);
}

static int query_ia(struct perf_dat *dat)
{
	DAT_PROVIDER_ATTR attr;
	DAT_RETURN ret;

	ret = dat_ia_query(dat->ia, NULL, DAT_IA_FIELD_ALL, &dat->ia_attr, DAT_PROVIDER_FIELD_ALL,
			   &attr);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_ia_query", ret);
	if (attr.max_private_data_size < PERF_HELLO_LEN)
		return perf_fail(&dat->x,
				 "%s: carries only %d bytes of private "
				 "data, %d are needed",
				 dat->device, attr.max_private_data_size, PERF_HELLO_LEN);
	fabric_record(dat, &attr);
	return 0;
}

static int open_pz(struct perf_dat *dat)
{
	DAT_RETURN ret = dat_pz_create(dat->ia, &dat->pz);

	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_pz_create", ret);
}

int perf_dat_open_ia(struct perf_dat *dat)
{
	char reason[REASON_MAX];
	DAT_RETURN ret;

	ret = reason_open(dat->device, ASYNC_QLEN, &dat->async_evd, &dat->ia, reason,
			  sizeof(reason));
	if (ret != DAT_SUCCESS) {
		dat->ia = DAT_HANDLE_NULL;
		return perf_fail(&dat->x, "%s: cannot open the IA: %s", dat->device, reason);
	}
	return query_ia(dat) ? -1 : open_pz(dat);
}

int perf_dat_open_cm_evd(struct perf_dat *dat, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	DAT_RETURN ret;

	ret = dat_evd_create(dat->ia, CONN_QLEN + 2 * (DAT_COUNT)dat->neps, DAT_HANDLE_NULL,
			     flags, evd);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_evd_create", ret);
}

int perf_dat_open_conns(struct perf_dat *dat)
{
	return perf_dat_open_cm_evd(dat, DAT_EVD_CONNECTION_FLAG, &dat->conn_evd);
}

static int dat_open(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);

	return dat->owner ? open_pz(dat) : perf_dat_open_ia(dat);
}

static int dat_register(struct perf_dat *dat)
{
	DAT_REGION_DESCRIPTION region = { .for_va = dat->x.mem };
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_RETURN ret;

	ret = LMR_CREATE(dat->ia, region, dat->x.lay.total, dat->pz,
			 DAT_MEM_PRIV_ALL_FLAG | ATOMICS(&dat->ia_attr), &dat->lmr, &local,
			 &remote);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_lmr_create", ret);
	dat->local.lmr_context = local;
	dat->own = remote;
	return 0;
}

static DAT_COUNT at_most(DAT_COUNT want, DAT_COUNT limit)
{
	return want < limit ? want : limit;
}

void perf_dat_ep_attr(const struct perf_dat *dat, DAT_EP_ATTR *attr)
{
	const DAT_COUNT segments = dat->x.segments ? (DAT_COUNT)dat->x.segments : 1;
	const DAT_IA_ATTR *ia = &dat->ia_attr;

	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->max_message_size = ia->max_message_size;
	attr->max_rdma_size = ia->max_rdma_size;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	attr->request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	/* a window of data, and control messages before and after it */
	attr->max_recv_dtos = (DAT_COUNT)dat->x.lay.window + 4;
	attr->max_request_dtos = (DAT_COUNT)dat->x.lay.window + 4;
	attr->max_recv_iov = 1;
	attr->max_request_iov = segments;
	attr->max_rdma_read_in = at_most((DAT_COUNT)dat->x.lay.window, ia->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out =
		at_most((DAT_COUNT)dat->x.lay.window, ia->max_rdma_read_per_ep_out);
	attr->max_rdma_read_iov = segments;
	attr->max_rdma_write_iov = segments;
}

int perf_dat_open_dtos(struct perf_dat *dat)
{
	DAT_COUNT qlen = 2 * (DAT_COUNT)dat->x.lay.window + 16 + 2 * (DAT_COUNT)dat->neps;
	DAT_RETURN ret;

	ret = dat_evd_create(dat->ia, qlen, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dat->dto_evd);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_evd_create", ret);
	return perf_mem_alloc(&dat->x) ? -1 : dat_register(dat);
}

static int open_ep(struct perf_dat *dat, unsigned int i)
{
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	perf_dat_ep_attr(dat, &attr);
	if (dat->srq)
		ret = dat_ep_create_with_srq(dat->ia, dat->pz, dat->dto_evd, dat->dto_evd,
					     dat->conn_evd, dat->srq, &attr, &dat->eps[i]);
	else
		ret = dat_ep_create(dat->ia, dat->pz, dat->dto_evd, dat->dto_evd, dat->conn_evd,
				    &attr, &dat->eps[i]);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "cannot create an EP", ret);
}

static int open_srq(struct perf_dat *dat)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = (DAT_COUNT)dat->x.lay.window + 4,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_RETURN ret = dat_srq_create(dat->ia, dat->pz, &attr, &dat->srq);

	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_srq_create", ret);
}

/* Fails if a kind of operation cannot have as many segments as the options ask for. */
static int check_segments(struct perf_dat *dat)
{
	const DAT_IA_ATTR *ia = &dat->ia_attr;
	DAT_COUNT limit = at_most(ia->max_iov_segments_per_dto,
				  at_most(ia->max_iov_segments_per_rdma_read,
					  ia->max_iov_segments_per_rdma_write));

	if (dat->x.segments > 1 && (DAT_COUNT)dat->x.segments > limit)
		return perf_fail(&dat->x, "%s: a message has at most %d segments", dat->device,
				 (int)limit);
	return 0;
}

int perf_dat_open_eps(struct perf_dat *dat)
{
	unsigned int i, n = dat->x.lanes ? dat->x.lanes : 1;

	if (dat->x.size_max > dat->ia_attr.max_message_size ||
	    dat->x.size_max > dat->ia_attr.max_rdma_size)
		return perf_fail(&dat->x,
				 "%s: messages of %u bytes exceed "
				 "its limit",
				 dat->device, dat->x.size_max);
	if (check_segments(dat))
		return -1;
	dat->eps = calloc(n, sizeof(*dat->eps));
	if (!dat->eps)
		return perf_fail(&dat->x, "out of memory");
	dat->neps = n;
	if (perf_dat_open_dtos(dat) || perf_dat_open_conns(dat) || (dat->x.srq && open_srq(dat)))
		return -1;
	for (i = 0; i < n; i++)
		if (open_ep(dat, i))
			return -1;
	dat->ep = dat->eps[0];
	return perf_run_arm(&dat->x);
}

/* --- closing ------------------------------------------------------------ */

static void dat_close(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	unsigned int i;

	if (x->ops->ud)
		x->ops->ud->close(x);
	for (i = 0; i < dat->neps; i++)
		if (dat->eps[i])
			dat_ep_free(dat->eps[i]);
	if (dat->srq)
		dat_srq_free(dat->srq);
	if (dat->psp)
		dat_psp_free(dat->psp);
	if (dat->lmr)
		dat_lmr_free(dat->lmr);
	if (dat->dto_evd)
		dat_evd_free(dat->dto_evd);
	if (dat->conn_evd)
		dat_evd_free(dat->conn_evd);
	if (dat->cr_evd)
		dat_evd_free(dat->cr_evd);
	if (dat->pz)
		dat_pz_free(dat->pz);
	/* abrupt: also destroys objects left after an error */
	if (dat->ia && !dat->owner)
		dat_ia_close(dat->ia, DAT_CLOSE_ABRUPT_FLAG);
	perf_mem_free(x);
	free(dat->eps);
	free(dat);
}

static void dat_select(struct perf_xport *x, unsigned int lane)
{
	struct perf_dat *dat = perf_to_dat(x);

	dat->ep = dat->eps[lane];
}

static const struct perf_ops dat_ops = {
	.name = "DAT",
	.open = dat_open,
	.listen = perf_dat_listen,
	.accept = perf_dat_accept,
	.connect = perf_dat_connect,
	.post_recv = perf_dat_post_recv,
	.post_send = perf_dat_post_send,
	.post_write = perf_dat_post_write,
	.post_read = perf_dat_post_read,
	.select = dat_select,
	.poll = perf_dat_poll,
	.check = perf_dat_check,
	.disconnect = perf_dat_disconnect,
	.close = dat_close,
	.ud = UD_OPS,
	.ext = EXT_OPS,
};

struct perf_xport *perf_dat_new(const char *device)
{
	struct perf_dat *dat = calloc(1, sizeof(*dat));

	if (!dat)
		return NULL;
	dat->device = device;
	dat->x.ops = &dat_ops;
	return &dat->x;
}

struct perf_xport *perf_dat_share(struct perf_xport *x)
{
	struct perf_dat *owner = perf_to_dat(x), *dat;
	struct perf_xport *shared = perf_dat_new(owner->device);

	if (!shared)
		return NULL;
	dat = perf_to_dat(shared);
	dat->owner = owner;
	dat->ia = owner->ia;
	dat->ia_attr = owner->ia_attr;
	dat->fabric = owner->fabric;
	shared->timeout_ms = x->timeout_ms;
	shared->wait_client_ms = x->wait_client_ms;
	shared->blocking = x->blocking;
	shared->size_max = x->size_max;
	shared->lay = x->lay;
	shared->lanes = x->lanes;
	shared->threads = x->threads;
	shared->session = x->session;
	shared->srq = x->srq;
	shared->segments = x->segments;
	return shared;
}

void perf_dat_fabric(struct perf_xport *x, struct perf_fabric *fabric)
{
	*fabric = perf_to_dat(x)->fabric;
}
