/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's bare libfabric side: the exchange that the DAT side does, called
 * straight on FI_EP_MSG. It makes the choices that the DAT provider makes
 * (virtual addresses, 32-bit random keys, writes that complete on delivery),
 * so that a ratio of the two shows the cost of DAT and of nothing else.
 */
#include "perf.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CQ_BATCH 16  /* as the DAT provider reads */
#define CQ_SIZE 4096 /* as the DAT provider opens */
#define CM_DATA_MAX 256
#define KEY_TRIES 16

struct perf_raw {
	struct perf_xport x; /* first: ops get a pointer to it */
	struct perf_fabric fabric;
	struct fi_info *info;
	struct fid_fabric *fab;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	bool delivery;	      /* ask writes to complete on delivery */
	uint64_t raddr, rkey; /* the peer's memory */
	struct fi_cq_msg_entry batch[CQ_BATCH];
	int next, have;
};

/* What an event carries, with room for the private data behind it. */
union cm_entry {
	struct fi_eq_cm_entry head;
	unsigned char room[sizeof(struct fi_eq_cm_entry) + CM_DATA_MAX];
};

static struct perf_raw *to_raw(struct perf_xport *x)
{
	return (struct perf_raw *)x;
}

static int raw_fail(struct perf_raw *raw, const char *what, long rc)
{
	return perf_fail(&raw->x, "raw %s: %s: %s", raw->fabric.provider, what,
			 fi_strerror((int)-rc));
}

/* --- opening ------------------------------------------------------------ */

static struct fi_info *raw_hints(const struct perf_raw *raw, bool domain)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW;
	hints->rx_attr->msg_order = hints->tx_attr->msg_order;
	hints->fabric_attr->prov_name = strdup(raw->fabric.provider);
	if (domain && raw->fabric.domain[0])
		hints->domain_attr->name = strdup(raw->fabric.domain);
	return hints;
}

static int raw_getinfo_once(struct perf_raw *raw, const char *node, const char *service,
			    uint64_t flags, bool domain)
{
	struct fi_info *hints = raw_hints(raw, domain);
	int rc;

	if (!hints)
		return -FI_ENOMEM;
	rc = fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &raw->info);
	fi_freeinfo(hints);
	return rc;
}

static int raw_getinfo(struct perf_raw *raw, const char *node, const char *service, uint64_t flags)
{
	int rc;

	if (raw->info)
		fi_freeinfo(raw->info);
	raw->info = NULL;
	/* a peer behind another interface than the IA's is still reachable */
	rc = raw_getinfo_once(raw, node, service, flags, true);
	if (rc == -FI_ENODATA)
		rc = raw_getinfo_once(raw, node, service, flags, false);
	if (rc)
		return raw_fail(raw, "no connected endpoints", rc);
	raw->delivery = strncmp(raw->info->fabric_attr->prov_name, "verbs", 5);
	return 0;
}

static int raw_open(struct perf_xport *x)
{
	return raw_getinfo(to_raw(x), NULL, NULL, 0);
}

static int raw_open_fabric(struct perf_raw *raw)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	int rc;

	rc = fi_fabric(raw->info->fabric_attr, &raw->fab, NULL);
	if (rc)
		return raw_fail(raw, "fi_fabric", rc);
	rc = fi_eq_open(raw->fab, &attr, &raw->eq, NULL);
	if (rc)
		return raw_fail(raw, "fi_eq_open", rc);
	return 0;
}

static int raw_open_domain(struct perf_raw *raw)
{
	struct fi_cq_attr attr = {
		.size = CQ_SIZE,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = raw->x.blocking || !raw->x.bare_cq ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	int rc;

	/* a fabric that offers both takes virtual addresses when told here */
	if (!(raw->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR))
		raw->info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	rc = fi_domain(raw->fab, raw->info, &raw->domain, NULL);
	if (rc)
		return raw_fail(raw, "fi_domain", rc);
	rc = fi_cq_open(raw->domain, &attr, &raw->cq, NULL);
	if (rc)
		return raw_fail(raw, "fi_cq_open", rc);
	return 0;
}

static int raw_register(struct perf_raw *raw)
{
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	int rc = -FI_ENOKEY, tries;
	uint32_t key;

	for (tries = 0; rc == -FI_ENOKEY && tries < KEY_TRIES; tries++) {
		if (getrandom(&key, sizeof(key), 0) != sizeof(key))
			key = (uint32_t)perf_now_ns();
		rc = fi_mr_reg(raw->domain, raw->x.mem, raw->x.lay.total, access, 0, key, 0,
			       &raw->mr, NULL);
	}
	if (rc)
		return raw_fail(raw, "fi_mr_reg", rc);
	raw->desc = fi_mr_desc(raw->mr);
	if (fi_mr_key(raw->mr) > UINT32_MAX)
		return raw_fail(raw, "remote key beyond 32 bits", -FI_EOVERFLOW);
	return 0;
}

/* Everything up to an endpoint that can receive; @info tells its peer. */
static int raw_open_ep(struct perf_raw *raw, struct fi_info *info)
{
	int rc;

	if (perf_mem_alloc(&raw->x) || raw_open_domain(raw) || raw_register(raw))
		return -1;
	rc = fi_endpoint(raw->domain, info, &raw->ep, NULL);
	if (rc)
		return raw_fail(raw, "fi_endpoint", rc);
	rc = fi_ep_bind(raw->ep, &raw->eq->fid, 0);
	if (!rc)
		rc = fi_ep_bind(raw->ep, &raw->cq->fid, FI_SEND | FI_RECV);
	if (!rc)
		rc = fi_enable(raw->ep);
	if (rc)
		return raw_fail(raw, "fi_enable", rc);
	return perf_run_arm(&raw->x);
}

/* --- connecting --------------------------------------------------------- */

static int raw_eq_error(struct perf_raw *raw)
{
	struct fi_eq_err_entry err = { 0 };

	if (fi_eq_readerr(raw->eq, &err, 0) < 0)
		return raw_fail(raw, "fi_eq_readerr", -FI_EIO);
	return raw_fail(raw, "connection failed", -err.err);
}

/* Waits for @want; @timeout_ms < 0 is forever. Returns the data's length. */
static long raw_cm_wait(struct perf_raw *raw, uint32_t want, union cm_entry *entry, int timeout_ms)
{
	uint64_t end = perf_now_ns() + timeout_ms * 1000000ull;
	uint32_t event;
	ssize_t n;

	for (;;) {
		n = fi_eq_sread(raw->eq, &event, entry, sizeof(*entry), PERF_NAP_MS, 0);
		if (n == -FI_EAVAIL)
			return raw_eq_error(raw);
		if (n >= 0 && event == want)
			return n < (ssize_t)sizeof(entry->head) ? 0 :
								  n - (ssize_t)sizeof(entry->head);
		if (n >= 0)
			return raw_fail(raw, "connection failed", -FI_ECONNABORTED);
		if (n != -FI_EAGAIN && n != -FI_EINTR && n != -FI_ETIMEDOUT)
			return raw_fail(raw, "fi_eq_sread", n);
		if (timeout_ms >= 0 && perf_now_ns() > end)
			return raw_fail(raw, "no answer from the peer", -FI_ETIMEDOUT);
	}
}

static void raw_hello(struct perf_raw *raw, unsigned char *buf)
{
	struct perf_hello hello = {
		.flags = (raw->x.blocking ? PERF_HELLO_WAIT : 0) |
			 (raw->x.bare_cq ? PERF_HELLO_BARE_CQ : 0),
		.size_max = raw->x.size_max,
		.window = raw->x.lay.window,
		.addr = (uintptr_t)raw->x.mem,
		.key = (uint32_t)fi_mr_key(raw->mr),
	};

	perf_hello_encode(&hello, buf);
}

/* On every address, as the provider's listeners: the client chooses its way. */
static int raw_listen(struct perf_xport *x, unsigned int *port)
{
	struct perf_raw *raw = to_raw(x);
	struct sockaddr_storage addr;
	char service[16];
	size_t len = sizeof(addr);
	int rc;

	snprintf(service, sizeof(service), "%u", *port);
	if (raw_getinfo(raw, NULL, service, FI_SOURCE) || raw_open_fabric(raw))
		return -1;
	rc = fi_passive_ep(raw->fab, raw->info, &raw->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(raw->pep, &raw->eq->fid, 0);
	if (!rc)
		rc = fi_listen(raw->pep);
	if (!rc)
		rc = fi_getname(&raw->pep->fid, &addr, &len);
	if (rc)
		return raw_fail(raw, "cannot listen", rc);
	/* sin_port and sin6_port are at the same place */
	*port = ntohs(((struct sockaddr_in *)&addr)->sin_port);
	return 0;
}

static int raw_answer(struct perf_raw *raw, struct fi_info *info, const struct perf_hello *hello)
{
	unsigned char buf[PERF_HELLO_LEN];
	union cm_entry entry;
	int rc;

	raw->x.size_max = hello->size_max;
	raw->x.blocking = hello->flags & PERF_HELLO_WAIT;
	raw->x.bare_cq = hello->flags & PERF_HELLO_BARE_CQ;
	raw->raddr = hello->addr;
	raw->rkey = hello->key;
	perf_layout_init(&raw->x.lay, hello->size_max, hello->window);
	if (raw_open_ep(raw, info))
		return -1;
	raw_hello(raw, buf);
	rc = fi_accept(raw->ep, buf, sizeof(buf));
	if (rc)
		return raw_fail(raw, "fi_accept", rc);
	return raw_cm_wait(raw, FI_CONNECTED, &entry, (int)raw->x.timeout_ms) < 0 ? -1 : 0;
}

static int raw_accept(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);
	struct perf_hello hello;
	union cm_entry entry;
	long len;
	int rc;

	len = raw_cm_wait(raw, FI_CONNREQ, &entry, x->wait_client_ms);
	if (len < 0)
		return -1;
	if (perf_greet(x, entry.head.data, (size_t)len, &hello)) {
		fi_reject(raw->pep, entry.head.info->handle, NULL, 0);
		rc = -1;
	} else {
		rc = raw_answer(raw, entry.head.info, &hello);
	}
	fi_freeinfo(entry.head.info);
	return rc;
}

static int raw_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port)
{
	struct perf_raw *raw = to_raw(x);
	unsigned char buf[PERF_HELLO_LEN];
	char host[NI_MAXHOST], service[16];
	struct perf_hello hello;
	union cm_entry entry;
	long len;
	int rc;

	rc = getnameinfo(addr, sizeof(struct sockaddr_storage), host, sizeof(host), NULL, 0,
			 NI_NUMERICHOST);
	if (rc)
		return perf_fail(x, "raw: %s", gai_strerror(rc));
	snprintf(service, sizeof(service), "%u", port);
	if (raw_getinfo(raw, host, service, 0) || raw_open_fabric(raw) || raw_open_ep(raw, raw->info))
		return -1;
	raw_hello(raw, buf);
	rc = fi_connect(raw->ep, raw->info->dest_addr, buf, sizeof(buf));
	if (rc)
		return raw_fail(raw, "cannot connect", rc);
	len = raw_cm_wait(raw, FI_CONNECTED, &entry, (int)x->timeout_ms);
	if (len < 0 || perf_greet(x, entry.head.data, (size_t)len, &hello))
		return -1;
	raw->raddr = hello.addr;
	raw->rkey = hello.key;
	return 0;
}

/* --- data path ---------------------------------------------------------- */

static int raw_posted(struct perf_raw *raw, const char *what, ssize_t rc)
{
	if (rc == 0 || rc == -FI_EAGAIN)
		return rc ? -EAGAIN : 0;
	return raw_fail(raw, what, rc);
}

static int raw_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	ssize_t rc = fi_recv(raw->ep, x->mem + off, len, raw->desc, 0, (void *)(uintptr_t)cookie);

	return rc ? raw_posted(raw, "fi_recv", rc) : 0;
}

static int raw_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	ssize_t rc = fi_send(raw->ep, x->mem + off, len, raw->desc, 0, (void *)(uintptr_t)cookie);

	return rc ? raw_posted(raw, "fi_send", rc) : 0;
}

static ssize_t raw_write_delivered(struct perf_raw *raw, size_t off, size_t len, size_t roff,
				   void *context)
{
	struct iovec iov = { raw->x.mem + off, len };
	struct fi_rma_iov rma = { raw->raddr + roff, len, raw->rkey };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &raw->desc,
		.iov_count = 1,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = context,
	};

	return fi_writemsg(raw->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static int raw_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = (void *)(uintptr_t)cookie;
	ssize_t rc;

	if (raw->delivery)
		rc = raw_write_delivered(raw, off, len, roff, context);
	else
		rc = fi_write(raw->ep, x->mem + off, len, raw->desc, 0, raw->raddr + roff,
			      raw->rkey, context);
	return rc ? raw_posted(raw, "fi_write", rc) : 0;
}

static int raw_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	ssize_t rc = fi_read(raw->ep, x->mem + off, len, raw->desc, 0, raw->raddr + roff, raw->rkey,
			     (void *)(uintptr_t)cookie);

	return rc ? raw_posted(raw, "fi_read", rc) : 0;
}

static __attribute__((noinline)) int raw_cq_error(struct perf_raw *raw, long rc)
{
	struct fi_cq_err_entry err = { 0 };

	if (rc != -FI_EAVAIL || fi_cq_readerr(raw->cq, &err, 0) < 0)
		return raw_fail(raw, "fi_cq_read", rc);
	if (err.err == FI_ECANCELED || err.err == FI_ENOTCONN)
		return perf_fail(&raw->x, "raw %s: the peer closed the connection",
				 raw->fabric.provider);
	return raw_fail(raw, "a transfer failed", -err.err);
}

static __attribute__((noinline)) int raw_refill(struct perf_raw *raw)
{
	ssize_t n;

	if (raw->x.blocking)
		n = fi_cq_sread(raw->cq, raw->batch, CQ_BATCH, NULL, PERF_NAP_MS);
	else
		n = fi_cq_read(raw->cq, raw->batch, CQ_BATCH);
	if (n > 0) {
		raw->next = 0;
		raw->have = (int)n;
		return 1;
	}
	if (n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT || n == 0)
		return 0;
	return raw_cq_error(raw, n);
}

static int raw_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct perf_raw *raw = to_raw(x);
	struct fi_cq_msg_entry *entry;

	if (raw->next == raw->have) {
		int rc = raw_refill(raw);

		if (rc <= 0)
			return rc;
	}
	entry = &raw->batch[raw->next++];
	comp->cookie = (uintptr_t)entry->op_context;
	comp->len = entry->len;
	return 1;
}

static int raw_check(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);
	union cm_entry entry;
	uint32_t event;
	ssize_t n;

	n = fi_eq_read(raw->eq, &event, &entry, sizeof(entry), 0);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL)
		return raw_eq_error(raw);
	return perf_fail(x, "raw %s: the peer closed the connection", raw->fabric.provider);
}

/* --- closing ------------------------------------------------------------ */

static void raw_disconnect(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	if (raw->ep)
		fi_shutdown(raw->ep, 0);
}

#define RAW_CLOSE(fid_ptr)                         \
	do {                                       \
		if (fid_ptr)                       \
			fi_close(&(fid_ptr)->fid); \
		(fid_ptr) = NULL;                  \
	} while (0)

static void raw_close(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	RAW_CLOSE(raw->ep);
	RAW_CLOSE(raw->pep);
	RAW_CLOSE(raw->mr);
	RAW_CLOSE(raw->cq);
	RAW_CLOSE(raw->domain);
	RAW_CLOSE(raw->eq);
	RAW_CLOSE(raw->fab);
	if (raw->info)
		fi_freeinfo(raw->info);
	perf_mem_free(x);
	free(raw);
}

static const struct perf_ops raw_ops = {
	.name = "raw",
	.open = raw_open,
	.listen = raw_listen,
	.accept = raw_accept,
	.connect = raw_connect,
	.post_recv = raw_post_recv,
	.post_send = raw_post_send,
	.post_write = raw_post_write,
	.post_read = raw_post_read,
	.poll = raw_poll,
	.check = raw_check,
	.disconnect = raw_disconnect,
	.close = raw_close,
};

struct perf_xport *perf_raw_new(const struct perf_fabric *fabric)
{
	struct perf_raw *raw = calloc(1, sizeof(*raw));

	if (!raw)
		return NULL;
	raw->fabric = *fabric;
	raw->x.ops = &raw_ops;
	return &raw->x;
}

void perf_raw_fabric(struct perf_xport *x, struct perf_fabric *fabric)
{
	struct perf_raw *raw = to_raw(x);

	*fabric = raw->fabric;
	if (raw->info)
		snprintf(fabric->domain, sizeof(fabric->domain), "%s", raw->info->domain_attr->name);
}
