/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bare libfabric: datagrams, on an endpoint in a domain of its own. It is of the provider of the
 * connections if their endpoints are connectionless; otherwise a datagram endpoint of udp.
 */
#include "perf_raw.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

/* --- opening ------------------------------------------------------------ */

/* The host address of the connection, in digits. */
static int own_host(struct perf_raw *raw, char *host, size_t size)
{
	struct sockaddr_storage addr;
	size_t len = sizeof(addr);
	int rc = fi_getname(&raw->ep->fid, &addr, &len);

	if (rc)
		return perf_raw_fail(raw, "fi_getname", rc);
	if (getnameinfo((struct sockaddr *)&addr, (socklen_t)len, host, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST))
		return perf_raw_fail(raw, "the own address", -FI_EADDRNOTAVAIL);
	return 0;
}

static int find_fabric(struct perf_raw *raw, struct perf_raw *ud)
{
	char host[NI_MAXHOST];

	if (raw->fabric.rdm)
		return perf_raw_getinfo(ud, NULL, NULL, 0);
	return own_host(raw, host, sizeof(host)) ? -1 : perf_raw_getinfo(ud, host, NULL, FI_SOURCE);
}

static int open_endpoint(struct perf_raw *ud)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	int rc;

	if (perf_raw_open_fabric(ud) || perf_raw_open_domain(ud))
		return -1;
	rc = fi_av_open(ud->domain, &attr, &ud->av, NULL);
	if (rc)
		return perf_raw_fail(ud, "fi_av_open", rc);
	return perf_raw_open_ep(ud, ud->info, &ud->av->fid);
}

static struct perf_raw *ud_new(const struct perf_raw *raw)
{
	struct perf_fabric fabric = raw->fabric;
	struct perf_xport *x;

	if (!fabric.rdm) {
		fabric.dgram = true;
		snprintf(fabric.provider, sizeof(fabric.provider), "udp");
		fabric.domain[0] = '\0';
	}
	x = perf_raw_new(&fabric);
	if (!x)
		return NULL;
	x->lay = raw->x.lay;
	x->blocking = raw->x.blocking;
	x->bare_cq = raw->x.bare_cq;
	to_raw(x)->wait_ms = PERF_UD_WAIT_MS;
	return to_raw(x);
}

/* The reason of a failure is the endpoint's. */
static int passed_on(struct perf_raw *raw, int rc)
{
	if (rc < 0 && rc != -EAGAIN && raw->ud->x.err[0])
		perf_fail(&raw->x, "%s", raw->ud->x.err);
	return rc;
}

static int own_address(struct perf_raw *ud, struct perf_ctl *ctl)
{
	size_t len = sizeof(ctl->address);
	int rc = fi_getname(&ud->ep->fid, ctl->address, &len);

	ctl->address_len = (uint32_t)len;
	return rc ? perf_raw_fail(ud, "fi_getname", rc) : 0;
}

static int ud_open(struct perf_xport *x, struct perf_ctl *ctl)
{
	struct perf_raw *raw = to_raw(x), *ud;

	if (raw->ud)
		return perf_fail(x, "the client requested datagrams twice");
	ud = raw->ud = ud_new(raw);
	if (!ud)
		return perf_fail(x, "out of memory");
	if (find_fabric(raw, ud) || open_endpoint(ud) || own_address(ud, ctl))
		return passed_on(raw, -1);
	x->ud.mem = ud->x.mem;
	x->ud.head = 0;
	x->ud.limit = ud->info->ep_attr->max_msg_size;
	return 0;
}

static void ud_close(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	if (raw->ud)
		perf_raw_close(&raw->ud->x);
	raw->ud = NULL;
}

/* libfabric reads as many bytes as its address format has. */
static int insert_peer(struct perf_raw *ud, const struct perf_ctl *ctl)
{
	struct perf_ctl own;
	int n;

	if (own_address(ud, &own))
		return -1;
	if (ud->info->addr_format == FI_ADDR_STR ?
		    !ctl->address_len || ctl->address[ctl->address_len - 1] :
		    ctl->address_len != own.address_len)
		return perf_raw_fail(ud, "the peer's address", -FI_EINVAL);
	n = fi_av_insert(ud->av, ctl->address, 1, &ud->peer, 0, NULL);
	if (n != 1)
		return perf_raw_fail(ud, "the peer's address", n < 0 ? n : -FI_EHOSTUNREACH);
	return 0;
}

static int ud_connect(struct perf_xport *x, const struct perf_ctl *ctl)
{
	struct perf_raw *raw = to_raw(x);

	return passed_on(raw, insert_peer(raw->ud, ctl));
}

/* --- data path ---------------------------------------------------------- */

static int ud_post_recv(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x), *ud = raw->ud;
	void *context = perf_raw_context(ud, cookie);
	ssize_t rc = fi_recv(ud->ep, ud->x.mem + off, len, ud->desc, FI_ADDR_UNSPEC, context);

	(void)lane;
	return passed_on(raw, perf_raw_posted(ud, "fi_recv", context, rc));
}

static int ud_post_send(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x), *ud = raw->ud;
	void *context = perf_raw_context(ud, cookie);
	ssize_t rc = fi_send(ud->ep, ud->x.mem + off, len, ud->desc, ud->peer, context);

	(void)lane;
	return passed_on(raw, perf_raw_posted(ud, "fi_send", context, rc));
}

static int ud_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct perf_raw *raw = to_raw(x);

	return passed_on(raw, perf_raw_poll(&raw->ud->x, comp));
}

const struct perf_ud_ops perf_raw_ud_ops = {
	.open = ud_open,
	.connect = ud_connect,
	.accept = ud_connect,
	.post_recv = ud_post_recv,
	.post_send = ud_post_send,
	.poll = ud_poll,
	.close = ud_close,
};
