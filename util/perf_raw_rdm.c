/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bare libfabric: connectionless endpoints. Addresses are exchanged over TCP. */
#include "perf_raw.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <poll.h>
#include <string.h>

/* One tag for all messages: there are two endpoints, and messages arrive in order. */
#define TAG 1

/* Time that a client may take to close after it announced the end. */
#define END_MS 2000

static int raw_open(struct perf_xport *x)
{
	return perf_raw_getinfo(to_raw(x), NULL, NULL, 0);
}

/* Creates everything up to an endpoint that can receive. */
static int raw_open_ep(struct perf_raw *raw)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	int rc;

	if (perf_raw_open_fabric(raw) || perf_raw_open_domain(raw))
		return -1;
	rc = fi_av_open(raw->domain, &attr, &raw->av, NULL);
	if (rc)
		return perf_raw_fail(raw, "fi_av_open", rc);
	return perf_raw_open_ep(raw, raw->info, &raw->av->fid) ? -1 : perf_run_arm(&raw->x);
}

/* --- exchange of addresses ---------------------------------------------- */

static int raw_card_send(struct perf_raw *raw)
{
	unsigned char buf[PERF_CARD_LEN];
	struct perf_card card = { .len = 0 };
	size_t len = sizeof(card.address);
	int rc = fi_getname(&raw->ep->fid, card.address, &len);

	if (rc)
		return perf_raw_fail(raw, "fi_getname", rc);
	perf_raw_hello(raw, &card.hello);
	card.len = (uint32_t)len;
	perf_card_encode(&card, buf);
	return perf_oob_send(&raw->oob, &raw->x, buf, sizeof(buf));
}

static int raw_card_recv(struct perf_raw *raw, struct perf_card *card)
{
	unsigned char buf[PERF_CARD_LEN];

	if (perf_oob_recv(&raw->oob, &raw->x, buf, sizeof(buf)))
		return -1;
	if (perf_card_decode(card, buf, sizeof(buf)))
		return perf_fail(&raw->x, "the peer is not a datperf of this version");
	return perf_hello_check(&raw->x, buf, sizeof(buf), &card->hello);
}

/*
 * libfabric reads as many bytes as its address format has, so @card must match the format of the
 * own address.
 */
static bool raw_is_address(const struct perf_raw *raw, const struct perf_card *card)
{
	unsigned char own[PERF_ADDRESS_MAX];
	size_t len = sizeof(own);

	if (raw->info->addr_format == FI_ADDR_STR)
		return !card->address[card->len - 1];
	return !fi_getname(&raw->ep->fid, own, &len) && card->len == len;
}

static int raw_peer_insert(struct perf_raw *raw, const struct perf_card *card)
{
	int n;

	if (!raw_is_address(raw, card))
		return perf_raw_fail(raw, "the peer's address", -FI_EINVAL);
	n = fi_av_insert(raw->av, card->address, 1, &raw->peer, 0, NULL);
	if (n != 1)
		return perf_raw_fail(raw, "the peer's address", n < 0 ? n : -FI_EHOSTUNREACH);
	return 0;
}

static int raw_listen(struct perf_xport *x, unsigned int *port)
{
	return perf_oob_listen(&to_raw(x)->oob, x, port);
}

static int raw_accept(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);
	struct perf_card card;

	if (perf_oob_accept(&raw->oob, x) || raw_card_recv(raw, &card))
		return -1;
	perf_raw_apply_hello(raw, &card.hello);
	return raw_open_ep(raw) || raw_peer_insert(raw, &card) ? -1 : raw_card_send(raw);
}

static int raw_connect(struct perf_xport *x, const struct sockaddr *addr, unsigned int port)
{
	struct perf_raw *raw = to_raw(x);
	struct perf_card card;

	if (perf_oob_connect(&raw->oob, x, addr, port) || raw_open_ep(raw) || raw_card_send(raw) ||
	    raw_card_recv(raw, &card))
		return -1;
	perf_raw_store_hello(raw, &card.hello);
	return raw_peer_insert(raw, &card);
}

/* --- data path ---------------------------------------------------------- */

static int raw_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);
	ssize_t rc = fi_trecv(raw->ep, x->mem + off, len, raw->desc, FI_ADDR_UNSPEC, TAG, 0,
			     context);

	return perf_raw_posted(raw, "fi_trecv", context, rc);
}

static int raw_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);
	ssize_t rc = fi_tsend(raw->ep, x->mem + off, len, raw->desc, raw->peer, TAG, context);

	return perf_raw_posted(raw, "fi_tsend", context, rc);
}

/* --- the end ------------------------------------------------------------ */

static int raw_check(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	if (!perf_oob_peer_closed(&raw->oob))
		return 0;
	return perf_fail(x, "raw %s: the peer closed the connection", raw->fabric.provider);
}

/*
 * The client closes first, when it has received all that it waits for. Until then the server reads
 * its CQ, because none of these fabrics makes progress by itself.
 */
static void raw_disconnect(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);
	struct pollfd pfd = { .fd = raw->oob.fd, .events = POLLIN };
	uint64_t end = perf_now_ns() + END_MS * 1000000ull;

	if (raw->oob.listener < 0)
		return;
	while (!poll(&pfd, 1, 1) && perf_now_ns() < end)
		fi_cq_read(raw->cq, raw->batch, PERF_RAW_BATCH);
}

const struct perf_ops perf_raw_rdm_ops = {
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
