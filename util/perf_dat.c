/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's DAT side. Uses only the public API; one source for uDAPL 1.2 and DAT 2.0.
 */
#include "perf_dat.h"

#include "open_reason.h"

#include <stdlib.h>
#include <string.h>

#define ASYNC_QLEN 16
#define CONN_QLEN 8

/* Names that differ between the two API versions. */
#if DAT_VERSION_MAJOR >= 2
#define RMR_ADDRESS(triplet) ((triplet).virtual_address)
#define CR_REJECT(cr) dat_cr_reject(cr, 0, NULL)
#define LMR_CREATE(ia, mem, len, pz, lmr, lctx, rctx)                                 \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, DAT_MEM_PRIV_ALL_FLAG, \
		       DAT_VA_TYPE_VA, lmr, lctx, rctx, NULL, NULL)
#else
#define RMR_ADDRESS(triplet) ((triplet).target_address)
#define CR_REJECT(cr) dat_cr_reject(cr)
#define LMR_CREATE(ia, mem, len, pz, lmr, lctx, rctx)                                            \
	dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, mem, len, pz, DAT_MEM_PRIV_ALL_FLAG, lmr, lctx, \
		       rctx, NULL, NULL)
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

	snprintf(dat->fabric.provider, sizeof(dat->fabric.provider), "%s", provider ? provider : "");
	snprintf(dat->fabric.domain, sizeof(dat->fabric.domain), "%s", domain ? domain : "");
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

int perf_dat_open_ia(struct perf_dat *dat)
{
	char reason[REASON_MAX];
	DAT_RETURN ret;

	ret = reason_open(dat->device, ASYNC_QLEN, &dat->async_evd, &dat->ia, reason, sizeof(reason));
	if (ret != DAT_SUCCESS) {
		dat->ia = DAT_HANDLE_NULL;
		return perf_fail(&dat->x, "%s: cannot open the IA: %s", dat->device, reason);
	}
	if (query_ia(dat))
		return -1;
	ret = dat_pz_create(dat->ia, &dat->pz);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_pz_create", ret);
}

/* A connection has at most a few events and one request. */
static int evd_of_connections(struct perf_dat *dat, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	DAT_RETURN ret;

	ret = dat_evd_create(dat->ia, CONN_QLEN + 2 * (DAT_COUNT)dat->npeers, DAT_HANDLE_NULL,
			     flags, evd);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_evd_create", ret);
}

int perf_dat_open_conns(struct perf_dat *dat)
{
	return evd_of_connections(dat, DAT_EVD_CONNECTION_FLAG, &dat->conn_evd);
}

static int dat_open(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);

	return perf_dat_open_ia(dat) ? -1 : perf_dat_open_conns(dat);
}

static int dat_listen(struct perf_xport *x, unsigned int *port)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_CONN_QUAL qual = *port;
	DAT_RETURN ret;

	if (evd_of_connections(dat, DAT_EVD_CR_FLAG, &dat->cr_evd))
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

static int dat_register(struct perf_dat *dat)
{
	DAT_REGION_DESCRIPTION region = { .for_va = dat->x.mem };
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_RETURN ret;

	ret = LMR_CREATE(dat->ia, region, dat->x.lay.total, dat->pz, &dat->lmr, &local, &remote);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_lmr_create", ret);
	dat->local.lmr_context = local;
	/* holds the context for the peer until the peer's own context is known */
	dat->remote.rmr_context = remote;
	return 0;
}

static DAT_COUNT at_most(DAT_COUNT want, DAT_COUNT limit)
{
	return want < limit ? want : limit;
}

static void ep_attr_init(struct perf_dat *dat, DAT_EP_ATTR *attr)
{
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
	attr->max_request_iov = 1;
	attr->max_rdma_read_in = at_most((DAT_COUNT)dat->x.lay.window, ia->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = at_most((DAT_COUNT)dat->x.lay.window, ia->max_rdma_read_per_ep_out);
	attr->max_rdma_read_iov = 1;
	attr->max_rdma_write_iov = 1;
}

int perf_dat_open_dtos(struct perf_dat *dat)
{
	DAT_COUNT qlen = 2 * (DAT_COUNT)dat->x.lay.window + 16 + 2 * (DAT_COUNT)dat->npeers;
	DAT_RETURN ret;

	ret = dat_evd_create(dat->ia, qlen, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dat->dto_evd);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_evd_create", ret);
	return perf_mem_alloc(&dat->x) ? -1 : dat_register(dat);
}

/* Creates everything up to an endpoint that can receive. */
static int dat_open_ep(struct perf_dat *dat)
{
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	if (dat->x.size_max > dat->ia_attr.max_message_size ||
	    dat->x.size_max > dat->ia_attr.max_rdma_size)
		return perf_fail(&dat->x,
				 "%s: messages of %u bytes exceed "
				 "its limit",
				 dat->device, dat->x.size_max);
	if (perf_dat_open_dtos(dat))
		return -1;
	ep_attr_init(dat, &attr);
	ret = dat_ep_create(dat->ia, dat->pz, dat->dto_evd, dat->dto_evd, dat->conn_evd, &attr,
			    &dat->ep);
	if (ret != DAT_SUCCESS)
		return perf_dat_fail(dat, "dat_ep_create", ret);
	return perf_run_arm(&dat->x);
}

/* --- connecting --------------------------------------------------------- */

static const char *event_text(DAT_EVENT_NUMBER number)
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
		return perf_fail(&dat->x, "%s: %s", dat->device, event_text(event->event_number));
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
	if (dat_open_ep(dat)) {
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

static int dat_accept(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	struct perf_hello hello;
	DAT_CR_HANDLE cr;

	return perf_dat_wait_cr(dat, &cr, &hello) ? -1 : dat_accept_cr(dat, cr, &hello);
}

static int dat_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_CONNECTION_EVENT_DATA *data;
	unsigned char buf[PERF_HELLO_LEN];
	struct perf_hello hello;
	DAT_EVENT event;
	DAT_RETURN ret;

	if (dat_open_ep(dat))
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

/* --- data path ---------------------------------------------------------- */

static inline DAT_LMR_TRIPLET local_iov(const struct perf_dat *dat, size_t off, size_t len)
{
	DAT_LMR_TRIPLET iov = dat->local;

	iov.virtual_address = (uintptr_t)(dat->x.mem + off);
	iov.segment_length = len;
	return iov;
}

static inline DAT_RMR_TRIPLET remote_iov(const struct perf_dat *dat, size_t off, size_t len)
{
	DAT_RMR_TRIPLET iov = dat->remote;

	RMR_ADDRESS(iov) = dat->raddr + off;
	iov.segment_length = len;
	return iov;
}

static int dat_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_recv(dat->ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_recv", ret);
}

static int dat_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_send(dat->ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_send", ret);
}

static int dat_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_RMR_TRIPLET target = remote_iov(dat, roff, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_write(dat->ep, 1, &iov, user, &target, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_rdma_write", ret);
}

static int dat_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = local_iov(dat, off, len);
	DAT_RMR_TRIPLET source = remote_iov(dat, roff, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_read(dat->ep, 1, &iov, user, &source, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_rdma_read", ret);
}

static int dat_check(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_EVENT event;

	if (dat_evd_dequeue(dat->conn_evd, &event) != DAT_SUCCESS)
		return 0;
	dat->connected = false;
	return perf_fail(x, "%s: %s", dat->device, event_text(event.event_number));
}

__attribute__((noinline)) int perf_dat_dto_error(struct perf_dat *dat, DAT_DTO_COMPLETION_STATUS status)
{
	static const char *const name[] = {
		[DAT_DTO_ERR_FLUSHED] = "flushed",
		[DAT_DTO_ERR_LOCAL_LENGTH] = "wrong local length",
		[DAT_DTO_ERR_LOCAL_EP] = "local endpoint error",
		[DAT_DTO_ERR_LOCAL_PROTECTION] = "local protection error",
		[DAT_DTO_ERR_BAD_RESPONSE] = "bad response",
		[DAT_DTO_ERR_REMOTE_ACCESS] = "remote access error",
		[DAT_DTO_ERR_REMOTE_RESPONDER] = "remote responder error",
		[DAT_DTO_ERR_TRANSPORT] = "transport error",
		[DAT_DTO_ERR_RECEIVER_NOT_READY] = "receiver not ready",
		[DAT_DTO_ERR_PARTIAL_PACKET] = "partial packet",
	};
	DAT_EVENT event;

	if (status != DAT_DTO_ERR_FLUSHED)
		return perf_fail(&dat->x, "%s: a transfer failed: %s", dat->device,
				 status < sizeof(name) / sizeof(name[0]) && name[status] ?
					 name[status] :
					 "unknown status");
	/* flushes precede the event that reports the reason */
	if (perf_dat_event(dat, dat->conn_evd, 1000, &event))
		return -1;
	dat->connected = false;
	return perf_fail(&dat->x, "%s: %s", dat->device, event_text(event.event_number));
}

static DAT_RETURN next_event(struct perf_dat *dat, DAT_EVENT *event)
{
	DAT_COUNT more;

	if (!dat->x.blocking)
		return dat_evd_dequeue(dat->dto_evd, event);
	return dat_evd_wait(dat->dto_evd, PERF_WAIT_MS * 1000, 1, event, &more);
}

static int dat_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = next_event(dat, &event);
	if (ret != DAT_SUCCESS) {
		ret = DAT_GET_TYPE(ret);
		if (ret == DAT_QUEUE_EMPTY || ret == DAT_TIMEOUT_EXPIRED ||
		    ret == DAT_INTERRUPTED_CALL)
			return 0;
		return perf_dat_fail(dat, "cannot read completions", ret);
	}
	dto = &event.event_data.dto_completion_event_data;
	if (dto->status != DAT_DTO_SUCCESS)
		return perf_dat_dto_error(dat, dto->status);
	comp->cookie = dto->user_cookie.as_64;
	comp->len = dto->transfered_length;
	return 1;
}

/* --- closing ------------------------------------------------------------ */

static void dat_disconnect(struct perf_xport *x)
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

static void dat_close(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);

	if (dat->ep)
		dat_ep_free(dat->ep);
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
	if (dat->ia)
		dat_ia_close(dat->ia, DAT_CLOSE_ABRUPT_FLAG);
	perf_mem_free(x);
	free(dat->peers);
	free(dat);
}

static const struct perf_ops dat_ops = {
	.name = "DAT",
	.open = dat_open,
	.listen = dat_listen,
	.accept = dat_accept,
	.connect = dat_connect,
	.post_recv = dat_post_recv,
	.post_send = dat_post_send,
	.post_write = dat_post_write,
	.post_read = dat_post_read,
	.poll = dat_poll,
	.check = dat_check,
	.disconnect = dat_disconnect,
	.close = dat_close,
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

void perf_dat_fabric(struct perf_xport *x, struct perf_fabric *fabric)
{
	*fabric = perf_to_dat(x)->fabric;
}
