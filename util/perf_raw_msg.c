/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bare libfabric: connected endpoints. */
#include "perf_raw.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <netdb.h>
#include <string.h>

#define CM_DATA_MAX 256

/* A CM event, with space for the private data that follows it. */
union cm_entry {
	struct fi_eq_cm_entry head;
	unsigned char space[sizeof(struct fi_eq_cm_entry) + CM_DATA_MAX];
};

/* --- opening ------------------------------------------------------------ */

static int raw_open(struct perf_xport *x)
{
	return perf_raw_getinfo(to_raw(x), NULL, NULL, 0);
}

static int raw_open_eq(struct perf_raw *raw)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	int rc;

	if (perf_raw_open_fabric(raw))
		return -1;
	rc = fi_eq_open(raw->fab, &attr, &raw->eq, NULL);
	return rc ? perf_raw_fail(raw, "fi_eq_open", rc) : 0;
}

/* Creates everything up to an endpoint that can receive; @info names its peer. */
static int raw_open_ep(struct perf_raw *raw, struct fi_info *info)
{
	if (perf_raw_open_domain(raw) || perf_raw_open_ep(raw, info, &raw->eq->fid))
		return -1;
	return perf_run_arm(&raw->x);
}

/* --- connecting --------------------------------------------------------- */

static int raw_eq_error(struct perf_raw *raw)
{
	struct fi_eq_err_entry err = { 0 };

	if (fi_eq_readerr(raw->eq, &err, 0) < 0)
		return perf_raw_fail(raw, "fi_eq_readerr", -FI_EIO);
	return perf_raw_fail(raw, "connection failed", -err.err);
}

/* Waits for event @want; @timeout_ms < 0 is forever. Returns the length of the private data. */
static long raw_cm_wait(struct perf_raw *raw, uint32_t want, union cm_entry *entry, int timeout_ms)
{
	uint64_t end = perf_now_ns() + timeout_ms * 1000000ull;
	uint32_t event;
	ssize_t n;

	for (;;) {
		n = fi_eq_sread(raw->eq, &event, entry, sizeof(*entry), PERF_WAIT_MS, 0);
		if (n == -FI_EAVAIL)
			return raw_eq_error(raw);
		if (n >= 0 && event == want)
			return n < (ssize_t)sizeof(entry->head) ? 0 :
								  n - (ssize_t)sizeof(entry->head);
		if (n >= 0)
			return perf_raw_fail(raw, "connection failed", -FI_ECONNABORTED);
		if (n != -FI_EAGAIN && n != -FI_EINTR && n != -FI_ETIMEDOUT)
			return perf_raw_fail(raw, "fi_eq_sread", n);
		if (timeout_ms >= 0 && perf_now_ns() > end)
			return perf_raw_fail(raw, "no answer from the peer", -FI_ETIMEDOUT);
	}
}

static void raw_hello_encode(const struct perf_raw *raw, unsigned char *buf)
{
	struct perf_hello hello;

	perf_raw_hello(raw, &hello);
	perf_hello_encode(&hello, buf);
}

/* Listens on every address, as the DAT provider does: the client chooses the path. */
static int raw_listen(struct perf_xport *x, unsigned int *port)
{
	struct perf_raw *raw = to_raw(x);
	struct sockaddr_storage addr;
	char service[16], what[PERF_LISTEN_TEXT];
	size_t len = sizeof(addr);
	int rc;

	snprintf(service, sizeof(service), "%u", *port);
	if (perf_raw_getinfo(raw, NULL, service, FI_SOURCE) || raw_open_eq(raw))
		return -1;
	rc = fi_passive_ep(raw->fab, raw->info, &raw->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(raw->pep, &raw->eq->fid, 0);
	if (!rc)
		rc = fi_listen(raw->pep);
	if (!rc)
		rc = fi_getname(&raw->pep->fid, &addr, &len);
	if (rc)
		return perf_raw_fail(raw, perf_listen_text(*port, what, sizeof(what)), rc);
	/* sin_port and sin6_port have the same offset */
	*port = ntohs(((struct sockaddr_in *)&addr)->sin_port);
	return 0;
}

/*
 * A listener on every address belongs to no device (verbs): the request names the device that it
 * arrived on.
 */
static int raw_use_device(struct perf_raw *raw, const struct fi_info *request)
{
	struct fi_info *info;

	if (!strcmp(raw->info->fabric_attr->name, request->fabric_attr->name))
		return 0;
	info = fi_dupinfo(request);
	if (!info)
		return perf_raw_fail(raw, "fi_dupinfo", -FI_ENOMEM);
	info->handle = NULL;
	fi_freeinfo(raw->info);
	raw->info = info;
	return 0;
}

static int raw_accept_request(struct perf_raw *raw, struct fi_info *info,
			      const struct perf_hello *hello)
{
	unsigned char buf[PERF_HELLO_LEN];
	union cm_entry entry;
	int rc;

	perf_raw_apply_hello(raw, hello);
	if (raw_use_device(raw, info) || raw_open_ep(raw, info))
		return -1;
	raw_hello_encode(raw, buf);
	rc = fi_accept(raw->ep, buf, sizeof(buf));
	if (rc)
		return perf_raw_fail(raw, "fi_accept", rc);
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
	if (perf_hello_check(x, entry.head.data, (size_t)len, &hello)) {
		fi_reject(raw->pep, entry.head.info->handle, NULL, 0);
		rc = -1;
	} else {
		rc = raw_accept_request(raw, entry.head.info, &hello);
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
	if (perf_raw_getinfo(raw, host, service, 0) || raw_open_eq(raw) ||
	    raw_open_ep(raw, raw->info))
		return -1;
	raw_hello_encode(raw, buf);
	rc = fi_connect(raw->ep, raw->info->dest_addr, buf, sizeof(buf));
	if (rc)
		return perf_raw_fail(raw, "cannot connect", rc);
	len = raw_cm_wait(raw, FI_CONNECTED, &entry, (int)x->timeout_ms);
	if (len < 0 || perf_hello_check(x, entry.head.data, (size_t)len, &hello))
		return -1;
	perf_raw_store_hello(raw, &hello);
	return 0;
}

/* --- data path ---------------------------------------------------------- */

static int raw_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);
	ssize_t rc = fi_recv(raw->ep, x->mem + off, len, raw->desc, 0, context);

	return perf_raw_posted(raw, "fi_recv", context, rc);
}

static int raw_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);
	ssize_t rc = fi_send(raw->ep, x->mem + off, len, raw->desc, 0, context);

	return perf_raw_posted(raw, "fi_send", context, rc);
}

/* --- the end ------------------------------------------------------------ */

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

static void raw_disconnect(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	if (raw->ep)
		fi_shutdown(raw->ep, 0);
}

const struct perf_ops perf_raw_msg_ops = {
	.name = "raw",
	.open = raw_open,
	.listen = raw_listen,
	.accept = raw_accept,
	.connect = raw_connect,
	.post_recv = raw_post_recv,
	.post_send = raw_post_send,
	.post_write = perf_raw_post_write,
	.post_read = perf_raw_post_read,
	.poll = perf_raw_poll,
	.check = raw_check,
	.disconnect = raw_disconnect,
	.close = perf_raw_close,
	.ud = &perf_raw_ud_ops,
};
