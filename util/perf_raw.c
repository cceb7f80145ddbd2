/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bare libfabric: opening and closing. */
#include "perf_raw.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CQ_SIZE 4096 /* as in the DAT provider */
/* More than operations in progress: a window of sends, one of receives, and control messages. */
#define CONTEXTS (4 * PERF_WINDOW_MAX)
#define KEY_TRIES 16
#define NAME_TRIES 16

#define RAW_CLOSE(fid_ptr)                         \
	do {                                       \
		if (fid_ptr)                       \
			fi_close(&(fid_ptr)->fid); \
		(fid_ptr) = NULL;                  \
	} while (0)

/* A send must arrive after earlier writes. */
#define WRITES_ORDERED (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW)

/* FI_MR_BASIC, no longer in the headers: virtual addresses and provider keys. */
#define MR_BASIC (1 << 0)
#define MR_MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

int perf_raw_fail(struct perf_raw *raw, const char *what, long rc)
{
	return perf_fail(&raw->x, "raw %s: %s: %s", raw->fabric.provider, what,
			 fi_strerror((int)-rc));
}

/* --- opening ------------------------------------------------------------ */

/*
 * Layered providers and psm3 support virtual addresses, and shared memory checks keys, only in
 * basic mode.
 */
static int raw_mr_mode(const struct perf_fabric *fabric)
{
	bool basic = strchr(fabric->provider, ';') || !strcmp(fabric->provider, "shm") ||
		     !strcmp(fabric->provider, "psm3");

	return fabric->rdm && basic ? MR_BASIC : MR_MODES;
}

static enum fi_ep_type raw_ep_type(const struct perf_fabric *fabric)
{
	if (fabric->dgram)
		return FI_EP_DGRAM;
	return fabric->rdm ? FI_EP_RDM : FI_EP_MSG;
}

static struct fi_info *raw_hints(const struct perf_fabric *fabric, bool domain, uint64_t order)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	if (!fabric->dgram)
		hints->caps |= FI_RMA | (fabric->rdm ? FI_TAGGED : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = raw_ep_type(fabric);
	hints->domain_attr->mr_mode = raw_mr_mode(fabric);
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->av_type = fabric->rdm || fabric->dgram ? FI_AV_TABLE : FI_AV_UNSPEC;
	if (!fabric->dgram)
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	hints->fabric_attr->prov_name = strdup(fabric->provider);
	if (domain && fabric->domain[0])
		hints->domain_attr->name = strdup(fabric->domain);
	return hints;
}

/* The missing thing if fi_getinfo() fails. */
static const char *raw_kind(const struct perf_fabric *fabric)
{
	if (fabric->dgram)
		return "no datagram endpoints";
	return fabric->rdm ? "no connectionless endpoints" : "no connected endpoints";
}

/* Address arguments of fi_getinfo(). */
struct raw_getinfo_args {
	const char *node, *service;
	uint64_t flags;
};

static int raw_getinfo_once(struct perf_raw *raw, const struct raw_getinfo_args *args, bool domain,
			    uint64_t order)
{
	struct fi_info *hints = raw_hints(&raw->fabric, domain, order);
	int rc;

	if (!hints)
		return -FI_ENOMEM;
	rc = fi_getinfo(FI_VERSION(1, 17), args->node, args->service, args->flags, hints,
			&raw->info);
	fi_freeinfo(hints);
	return rc;
}

int perf_raw_getinfo(struct perf_raw *raw, const char *node, const char *service, uint64_t flags)
{
	const struct raw_getinfo_args args = { node, service, flags };
	int rc;

	if (raw->info)
		fi_freeinfo(raw->info);
	raw->info = NULL;
	rc = raw_getinfo_once(raw, &args, true, WRITES_ORDERED);
	/* retry without the domain: the peer may be behind another interface than the IA's */
	if (rc == -FI_ENODATA)
		rc = raw_getinfo_once(raw, &args, false, WRITES_ORDERED);
	if (rc == -FI_ENODATA && raw->fabric.rdm)
		rc = raw_getinfo_once(raw, &args, true, FI_ORDER_SAS); /* efa */
	if (rc)
		return perf_raw_fail(raw, raw_kind(&raw->fabric), rc);
	raw->delivery = strncmp(raw->info->fabric_attr->prov_name, "verbs", 5);
	return 0;
}

int perf_raw_open_fabric(struct perf_raw *raw)
{
	int rc = fi_fabric(raw->info->fabric_attr, &raw->fab, NULL);

	return rc ? perf_raw_fail(raw, "fi_fabric", rc) : 0;
}

static int raw_open_cq(struct perf_raw *raw)
{
	struct fi_cq_attr attr = {
		.size = CQ_SIZE,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = raw->x.blocking || !raw->x.bare_cq ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	int rc = fi_cq_open(raw->domain, &attr, &raw->cq, NULL);

	/* shared memory has no wait object */
	if (rc == -FI_ENOSYS && attr.wait_obj == FI_WAIT_FD) {
		attr.wait_obj = FI_WAIT_NONE;
		rc = fi_cq_open(raw->domain, &attr, &raw->cq, NULL);
	}
	raw->has_wait_obj = attr.wait_obj == FI_WAIT_FD;
	return rc ? perf_raw_fail(raw, "fi_cq_open", rc) : 0;
}

static int raw_alloc_contexts(struct perf_raw *raw)
{
	int i;

	raw->contexts = calloc(CONTEXTS, sizeof(*raw->contexts));
	if (!raw->contexts)
		return perf_raw_fail(raw, "the contexts", -FI_ENOMEM);
	for (i = 1; i < CONTEXTS; i++)
		raw->contexts[i].next = &raw->contexts[i - 1];
	raw->context_free = &raw->contexts[CONTEXTS - 1];
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
		return perf_raw_fail(raw, "fi_mr_reg", rc);
	raw->desc = fi_mr_desc(raw->mr);
	if (fi_mr_key(raw->mr) > UINT32_MAX)
		return perf_raw_fail(raw, "the remote key exceeds 32 bits", -FI_EOVERFLOW);
	return 0;
}

int perf_raw_open_domain(struct perf_raw *raw)
{
	int rc;

	/* a fabric that offers both modes uses virtual addresses if requested here */
	if (!raw->fabric.dgram &&
	    !(raw->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC)))
		raw->info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	rc = fi_domain(raw->fab, raw->info, &raw->domain, NULL);
	if (rc)
		return perf_raw_fail(raw, "fi_domain", rc);
	if (raw_open_cq(raw) || perf_mem_alloc(&raw->x))
		return -1;
	if (raw->info->mode & (FI_CONTEXT | FI_CONTEXT2) && raw_alloc_contexts(raw))
		return -1;
	/* datagrams need a registration only for a local buffer */
	if (raw->fabric.dgram && !(raw->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	return raw_register(raw);
}

static int raw_enable(struct perf_raw *raw, struct fid *fid)
{
	int rc = fi_ep_bind(raw->ep, fid, 0);

	if (!rc)
		rc = fi_ep_bind(raw->ep, &raw->cq->fid, FI_TRANSMIT | FI_RECV);
	return rc ? rc : fi_enable(raw->ep);
}

/*
 * libfabric's shm names an endpoint after the process number and a count of endpoints. If a killed
 * process with the same number has left a file with this name, fi_enable() returns EBUSY. A new
 * endpoint gets the next name.
 */
int perf_raw_open_ep(struct perf_raw *raw, struct fi_info *info, struct fid *fid)
{
	int rc = -FI_EBUSY, tries;

	for (tries = 0; rc == -FI_EBUSY && tries < NAME_TRIES; tries++) {
		RAW_CLOSE(raw->ep);
		rc = fi_endpoint(raw->domain, info, &raw->ep, NULL);
		if (rc)
			return perf_raw_fail(raw, "fi_endpoint", rc);
		rc = raw_enable(raw, fid);
	}
	return rc ? perf_raw_fail(raw, "fi_enable", rc) : 0;
}

/* --- greetings ---------------------------------------------------------- */

void perf_raw_hello(const struct perf_raw *raw, struct perf_hello *hello)
{
	*hello = (struct perf_hello){
		.flags = (raw->x.blocking ? PERF_HELLO_WAIT : 0) |
			 (raw->x.bare_cq ? PERF_HELLO_BARE_CQ : 0),
		.size_max = raw->x.size_max,
		.window = (uint16_t)raw->x.lay.window,
		.endpoints = 1,
		.threads = 1,
		.addr = (uintptr_t)raw->x.mem,
		.key = (uint32_t)fi_mr_key(raw->mr),
	};
}

void perf_raw_store_hello(struct perf_raw *raw, const struct perf_hello *hello)
{
	raw->raddr = hello->addr;
	raw->rkey = hello->key;
}

void perf_raw_apply_hello(struct perf_raw *raw, const struct perf_hello *hello)
{
	raw->x.size_max = hello->size_max;
	raw->x.blocking = hello->flags & PERF_HELLO_WAIT;
	raw->x.bare_cq = hello->flags & PERF_HELLO_BARE_CQ;
	perf_layout_init(&raw->x.lay, hello->size_max, hello->window);
	perf_raw_store_hello(raw, hello);
}

/* --- closing ------------------------------------------------------------ */

void perf_raw_close(struct perf_xport *x)
{
	struct perf_raw *raw = to_raw(x);

	x->ops->ud->close(x);
	RAW_CLOSE(raw->ep);
	RAW_CLOSE(raw->pep);
	RAW_CLOSE(raw->av);
	RAW_CLOSE(raw->mr);
	RAW_CLOSE(raw->cq);
	RAW_CLOSE(raw->domain);
	RAW_CLOSE(raw->eq);
	RAW_CLOSE(raw->fab);
	if (raw->info)
		fi_freeinfo(raw->info);
	perf_oob_close(&raw->oob);
	perf_mem_free(x);
	free(raw->contexts);
	free(raw);
}

struct perf_xport *perf_raw_new(const struct perf_fabric *fabric)
{
	struct perf_raw *raw = calloc(1, sizeof(*raw));

	if (!raw)
		return NULL;
	raw->fabric = *fabric;
	raw->wait_ms = PERF_WAIT_MS;
	raw->x.ops = fabric->rdm ? &perf_raw_rdm_ops : &perf_raw_msg_ops;
	perf_oob_init(&raw->oob);
	return &raw->x;
}

void perf_raw_fabric(struct perf_xport *x, struct perf_fabric *fabric)
{
	struct perf_raw *raw = to_raw(x);

	*fabric = raw->fabric;
	if (raw->info)
		snprintf(fabric->domain, sizeof(fabric->domain), "%s",
			 raw->info->domain_attr->name);
}

void perf_raw_version(struct perf_fabric *fabric)
{
	uint32_t version = fi_version();

	snprintf(fabric->libfabric, sizeof(fabric->libfabric), "%u.%u", FI_MAJOR(version),
		 FI_MINOR(version));
}

bool perf_raw_has_wait_obj(struct perf_xport *x)
{
	return to_raw(x)->has_wait_obj;
}
