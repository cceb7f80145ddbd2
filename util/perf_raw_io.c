/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bare libfabric: RDMA and completions, common to all kinds of endpoints. */
#include "perf_raw.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <errno.h>
#include <sched.h>

void *perf_raw_context(struct perf_raw *raw, uint64_t cookie)
{
	struct perf_raw_context *context = raw->context_free;

	if (!raw->contexts)
		return (void *)(uintptr_t)cookie;
	raw->context_free = context->next;
	context->cookie = cookie;
	return context;
}

static void context_put(struct perf_raw *raw, struct perf_raw_context *context)
{
	context->next = raw->context_free;
	raw->context_free = context;
}

int perf_raw_posted(struct perf_raw *raw, const char *what, void *context, ssize_t rc)
{
	if (!rc)
		return 0;
	if (raw->contexts)
		context_put(raw, context);
	return rc == -FI_EAGAIN ? -EAGAIN : perf_raw_fail(raw, what, rc);
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
		.addr = raw->peer,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = context,
	};

	return fi_writemsg(raw->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

int perf_raw_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);
	ssize_t rc;

	if (raw->delivery)
		rc = raw_write_delivered(raw, off, len, roff, context);
	else
		rc = fi_write(raw->ep, x->mem + off, len, raw->desc, raw->peer, raw->raddr + roff,
			      raw->rkey, context);
	return perf_raw_posted(raw, "fi_write", context, rc);
}

int perf_raw_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_raw *raw = to_raw(x);
	void *context = perf_raw_context(raw, cookie);

	return perf_raw_posted(raw, "fi_read", context,
			       fi_read(raw->ep, x->mem + off, len, raw->desc, raw->peer,
				       raw->raddr + roff, raw->rkey, context));
}

static __attribute__((noinline)) int raw_cq_error(struct perf_raw *raw, long rc)
{
	struct fi_cq_err_entry err = { 0 };

	if (rc != -FI_EAVAIL || fi_cq_readerr(raw->cq, &err, 0) < 0)
		return perf_raw_fail(raw, "fi_cq_read", rc);
	if (err.err == FI_ECANCELED || err.err == FI_ENOTCONN)
		return perf_fail(&raw->x, "raw %s: the peer closed the connection",
				 raw->fabric.provider);
	return perf_raw_fail(raw, "a transfer failed", -err.err);
}

/* Without a wait object, polls and yields to other threads instead. */
static ssize_t raw_read_waiting(struct perf_raw *raw)
{
	uint64_t end = perf_now_ns() + (uint64_t)raw->wait_ms * 1000000;
	ssize_t n;

	if (raw->has_wait_obj)
		return fi_cq_sread(raw->cq, raw->batch, PERF_RAW_BATCH, NULL, raw->wait_ms);
	while ((n = fi_cq_read(raw->cq, raw->batch, PERF_RAW_BATCH)) == -FI_EAGAIN &&
	       perf_now_ns() < end)
		sched_yield();
	return n;
}

static __attribute__((noinline)) int raw_refill(struct perf_raw *raw)
{
	ssize_t n;

	if (raw->x.blocking)
		n = raw_read_waiting(raw);
	else
		n = fi_cq_read(raw->cq, raw->batch, PERF_RAW_BATCH);
	if (n > 0) {
		raw->next = 0;
		raw->have = (int)n;
		return 1;
	}
	if (n == -FI_EAGAIN || n == -FI_EINTR || n == -FI_ETIMEDOUT || n == 0)
		return 0;
	return raw_cq_error(raw, n);
}

int perf_raw_poll(struct perf_xport *x, struct perf_comp *comp)
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
	if (raw->contexts) {
		comp->cookie = ((struct perf_raw_context *)entry->op_context)->cookie;
		context_put(raw, entry->op_context);
	}
	comp->len = entry->len;
	return 1;
}
