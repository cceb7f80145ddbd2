/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A preload library that makes libfabric's sockets look like a device, as there is none to test
 * with: the attributes, limits and manners of connectionless endpoints in libfabric 2.6, one row
 * for each provider. A call that the provider would not accept, or that must not be made there,
 * aborts the process, with the reason.
 *
 * DAT_TEST_SEED	decides which calls are delayed and refused (1), none if it is 0
 * DAT_TEST_FLIGHT	a file of 8 bytes for the maximum of RDMA operations in flight in a process
 * DAT_TEST_EMULATED	the device lacks RDMA: libfabric would emulate it
 * DAT_TEST_UNDER	another provider than sockets, such as tcp of libfabric 2, which is faster,
 *			but ends connections at a refusal
 */
#include "words.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#define SEGMENTS 4			/* at most, in any shape */
/* EFA_IO_COMP_STATUS_REMOTE_ERROR_BAD_ADDRESS, efa_io_defs.h */
#define BAD_ADDRESS 7
#define RDMA_ORDERS (FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW)
#define ATOMIC_ORDERS                                                                   \
	(FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* A completion queue's descriptor: none; silent until fi_trywait() arms it; always silent. */
enum wait { NO_DESCRIPTOR, ARMED, SILENT };

/* The sources of values are below prov/NAME/ of libfabric 2.6.0. 0: as the base, or no limit. */
struct shape {
	const char *name;		/* the fabric's; hints have it as the provider's name */
	const char *provider, *domain;
	uint32_t format;		/* of addresses: bytes, where IP address and port are */
	unsigned address_len, ip_at, port_at;
	uint64_t lacks, order, mode, tags;
	int mr_mode;
	size_t key_size, cq_data_size, mr_cnt, queue, max_msg_size, rdma_order_size;
	size_t tx_iov, rx_iov, rma_iov, inject;
	size_t eager;			/* a longer message is overtaken */
	enum wait wait;
	bool rma;			/* the fabric carries out RDMA, not the target */
	bool moved_by_reads;		/* only reading a completion queue moves data */
	bool answers_all;		/* also hints that it cannot fulfil */
};

static const struct shape shapes[] = {
	{ .name = "efa", .provider = "efa", .domain = "rdmap%us6-rdm",
	  .format = FI_ADDR_EFA, .address_len = 32, /* src/efa_av.h:16: GID, QP number, key */
	  .ip_at = 12, .port_at = 16,
	  .order = FI_ORDER_SAS | ATOMIC_ORDERS,	 /* src/efa_prov_info.c:638 */
	  .tags = UINT64_MAX,				 /* src/efa_prov_info.c:611 */
	  .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	  .key_size = 4, .cq_data_size = 4,		 /* src/efa_cq.h:55 */
	  .tx_iov = 4, .rx_iov = 4, .rma_iov = 1,	 /* src/rdm/efa_rdm_ope.h:9; :200 */
	  .inject = 64,			/* less than an MTU, the most: src/efa_prov_info.c:664 */
	  .wait = NO_DESCRIPTOR, .rma = true },		 /* src/rdm/efa_rdm_cq.c:957 */
	{ .name = "cxi", .provider = "cxi", .domain = "cxi%u",
	  .format = FI_ADDR_CXI, .address_len = 8, .port_at = 4, /* include/cxip.h:386 */
	  .order = FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR |
		   ATOMIC_ORDERS,			 /* include/cxip.h:147 */
	  .tags = (1ull << 48) - 1,			 /* include/cxip.h:593 */
	  .mr_mode = FI_MR_ALLOCATED | FI_MR_ENDPOINT,	 /* src/cxip_info.c:92 */
	  .key_size = 4, .cq_data_size = 8, .mr_cnt = 100, /* :93, :94 and :105 */
	  .queue = 1024, .max_msg_size = UINT32_MAX,	 /* include/cxip.h:166 and :80 */
	  .tx_iov = 1, .rx_iov = 1, .rma_iov = 1,	 /* src/cxip_info.c:272 */
	  .inject = 192,	/* include/cxip.h:162: C_MAX_IDC_PAYLOAD_UNR of libcxi */
	  .eager = 18433,	/* src/cxip_info.c:621: rdzv_threshold + rdzv_get_min */
	  .wait = ARMED },				 /* src/cxip_ep.c:564 */
	{ .name = "psm3", .provider = "psm3", .domain = "irdma%u",
	  .format = FI_ADDR_PSMX3, .address_len = 32, .port_at = 8, /* src/psmx3.h:617 */
	  .order = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW |
		   RDMA_ORDERS | ATOMIC_ORDERS,		 /* src/psmx3.h:129 */
	  .rdma_order_size = 4096, .mode = FI_CONTEXT,	 /* psmx3_attr.c:76 and :120 */
	  .tags = UINT64_MAX,				 /* src/psmx3_attr.c:77 */
	  .key_size = 8, .mr_cnt = 65535,		 /* src/psmx3_attr.c:93 and :110 */
	  .queue = SIZE_MAX, .max_msg_size = UINT32_MAX & ~0xfffu, /* :54 and :72 */
	  .tx_iov = 13, .rx_iov = 1, .rma_iov = 1,	 /* src/psmx3.h:439, attr.c:65, :56 */
	  .inject = 64,					 /* src/psmx3_attr.c:53 */
	  .eager = 16000,				 /* psm3/psm_config.h:194 */
	  .wait = SILENT, .moved_by_reads = true },	 /* src/psmx3_cq.c:1229 */

	/* offers that must be refused */
#define OFFER .format = FI_ADDR_OPX, .address_len = 8, .port_at = 4, .answers_all = true
	{ .name = "efa-direct", .provider = "efa", .domain = "rdmap%us6-rdm", OFFER,
	  .lacks = FI_TAGGED, .mode = FI_CONTEXT2 },	 /* src/efa_prov_info.c:198 and :475 */
	{ .name = "opx", .provider = "opx", .domain = "hfi1_%u", OFFER, .order = ATOMIC_ORDERS,
	  .mode = FI_ASYNC_IOV },			 /* fi_opx.h:340, fi_opx_init.c:236 */
	{ .name = "opx-in-order", .provider = "opx", .domain = "hfi1_%u", OFFER,
	  .order = FI_ORDER_SAS, .mode = FI_ASYNC_IOV }, /* as opx, if it had this order */
	{ .name = "lnx", .provider = "lnx", .domain = "lnx%u", OFFER, .lacks = FI_MSG,
	  .order = FI_ORDER_SAS },			 /* src/lnx_init.c:46, :64 and :597 */
	{ .name = "ucx", .provider = "ucx", .domain = "mlx5_%u", OFFER,
	  .order = FI_ORDER_SAS },			 /* src/ucx_init.c:112 */
};

static const struct shape *shape_named(const char *name)
{
	size_t i;

	for (i = 0; name && i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(name, shapes[i].name))
			return &shapes[i];
	return NULL;
}

#define die(...)                                                                        \
	do {                                                                            \
		fprintf(stderr, "shape: " __VA_ARGS__);                                 \
		fputc('\n', stderr);                                                    \
		abort();                                                                \
	} while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns true once in @n calls, on average. */
static bool one_in(unsigned n)
{
	static _Thread_local uint64_t state;
	static _Thread_local bool is_calm;

	if (!state) {
		const char *seed = getenv("DAT_TEST_SEED");

		is_calm = seed && !strtoull(seed, NULL, 0);
		state = 0x9e3779b97f4a7c15u * (seed ? strtoull(seed, NULL, 0) + 1 : 1);
	}
	if (is_calm)
		return false;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n == 0;
}

/*
 * The state of an object, found by its address: its tables may belong to another layer, such as
 * faults.c. An entry stays, and the next object at the address takes it.
 */
static struct {
	const void *_Atomic fid;
	void *_Atomic state;
} states[1 << 16];

static unsigned state_find(const void *fid)
{
	const unsigned last = sizeof(states) / sizeof(*states) - 1;
	unsigned i = (uintptr_t)fid * 0x9e3779b97f4a7c15u >> 48;

	while (states[i].fid && states[i].fid != fid)
		i = (i + 1) & last;
	return i;
}

static void *state_of(const void *fid)
{
	return states[state_find(fid)].state;
}

static void state_set(const void *fid, void *state)
{
	static unsigned n;
	unsigned i;

	pthread_mutex_lock(&lock);
	i = state_find(fid);
	if (!states[i].fid && ++n == sizeof(states) / sizeof(*states))
		die("too many objects");
	states[i].state = state;
	states[i].fid = fid;
	pthread_mutex_unlock(&lock);
}

/* RDMA operations in flight, and their maximum. */
static _Atomic int64_t in_flight;
static _Atomic int64_t *most_in_flight;

__attribute__((constructor)) static void flight_begin(void)
{
	static _Atomic int64_t own;

	most_in_flight = words_map("DAT_TEST_FLIGHT", &own, sizeof(own));
}

static ssize_t flight_add(ssize_t ret)
{
	int64_t most = *most_in_flight, n = ret ? 0 : ++in_flight;

	while (n > most && !atomic_compare_exchange_weak(most_in_flight, &most, n))
		;
	return ret;
}

/* libfabric's own function: the provider that loads it keeps its symbols to itself. */
static void *real(const char *name)
{
	void *libfabric = dlopen("libfabric.so.1", RTLD_LAZY);
	void *symbol = libfabric ? dlsym(libfabric, name) : NULL;

	if (!symbol)
		die("libfabric has no %s", name);
	return symbol;
}

#define REAL(function) ((__typeof__(function) *)real(#function))

/* Replaces the table at @place of an object by @state's copy, and keeps it in base_NAME. */
#define WRAP(state, name, place)                                                        \
	((state)->base_##name = (place), (state)->name = *(state)->base_##name,         \
	 (place) = &(state)->name)

/* --- the offered fabric----------------------------------------------------- */

#define DEVICES 16

/* The base's interfaces, by the number in the domain name. */
static struct fi_info *base[DEVICES];
static unsigned n_base;

static void name_set(char **name, const char *text)
{
	free(*name);
	*name = strdup(text);
}

/* An address holds the base's IPv4 address and port, and other bytes that peers must not change. */
static void address_encode(const struct shape *s, unsigned char *address,
			   const struct sockaddr_in *in)
{
	memset(address, 0x5a, s->address_len);
	memcpy(address + s->ip_at, &in->sin_addr, 4);
	memcpy(address + s->port_at, &in->sin_port, 2);
}

static void address_decode(const struct shape *s, struct sockaddr_in *in,
			   const unsigned char *address)
{
	*in = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(&in->sin_addr, address + s->ip_at, 4);
	memcpy(&in->sin_port, address + s->port_at, 2);
}

/* Without RMA no mode matters but FI_MR_LOCAL: ofi_cap_mr_mode(), util/src/util_attr.c:545. */
static int mr_mode(const struct shape *s, const struct fi_info *hints)
{
	return s->mr_mode & (hints->caps & FI_RMA ? ~0 : FI_MR_LOCAL);
}

#define SET(member, value) (member = (value) ? (value) : member)

static void shape(const struct shape *s, struct fi_info *info, unsigned number,
		  const struct fi_info *hints)
{
	unsigned char *address = malloc(s->address_len);
	char name[32];

	snprintf(name, sizeof(name), s->domain, number);
	name_set(&info->fabric_attr->prov_name, s->provider);
	name_set(&info->fabric_attr->name, s->name);
	name_set(&info->domain_attr->name, name);
	address_encode(s, address, info->src_addr);
	free(info->src_addr);
	info->src_addr = address;
	info->src_addrlen = s->address_len;
	info->addr_format = s->format;
	info->caps &= ~s->lacks;
	info->mode = s->mode;
	info->domain_attr->mr_mode = mr_mode(s, hints);
	info->domain_attr->cq_data_size = s->cq_data_size;
	SET(info->domain_attr->mr_key_size, s->key_size);
	SET(info->domain_attr->mr_cnt, s->mr_cnt);
	SET(info->ep_attr->max_msg_size, s->max_msg_size);
	SET(info->ep_attr->max_order_waw_size, s->rdma_order_size);
	SET(info->tx_attr->size, s->queue);
	SET(info->rx_attr->size, s->queue);
	info->tx_attr->msg_order = info->rx_attr->msg_order = s->order;
	info->tx_attr->inject_size = s->inject;
	info->tx_attr->iov_limit = s->tx_iov;
	info->rx_attr->iov_limit = s->rx_iov;
	info->tx_attr->rma_iov_limit = s->rma_iov;
}

static bool is_answered(const struct shape *s, const struct fi_info *hints)
{
	const uint64_t order = hints->tx_attr->msg_order | hints->rx_attr->msg_order;

	return hints->ep_attr->type == FI_EP_RDM &&
	       (s->answers_all ||
		(!(order & ~s->order) && !(hints->caps & s->lacks) && !(s->mode & ~hints->mode) &&
		 !(mr_mode(s, hints) & ~hints->domain_attr->mr_mode) &&
		 (!hints->addr_format || hints->addr_format == s->format)));
}

static unsigned base_add(const struct fi_info *info)
{
	unsigned i;

	for (i = 0; i < n_base; i++)
		if (!strcmp(base[i]->domain_attr->name, info->domain_attr->name))
			return i;
	if (n_base == DEVICES)
		return 0;
	base[n_base] = REAL(fi_dupinfo)(info);
	base[n_base]->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return n_base++;
}

static struct fi_info *shape_all(const struct shape *s, struct fi_info *list,
				 const struct fi_info *hints)
{
	struct fi_info *shaped = NULL, **end = &shaped, *i, *next;

	pthread_mutex_lock(&lock);
	for (i = list; i; i = next) {
		next = i->next;
		i->next = NULL;
		if (i->addr_format != FI_SOCKADDR_IN || !i->src_addr) {
			REAL(fi_freeinfo)(i);
			continue;
		}
		shape(s, i, base_add(i), hints);
		*end = i;
		end = &i->next;
	}
	pthread_mutex_unlock(&lock);
	return shaped;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	const char *under = getenv("DAT_TEST_UNDER");
	const struct shape *s = shape_named(hints && hints->fabric_attr ?
					    hints->fabric_attr->prov_name : NULL);
	struct fi_info *h;
	int ret;

	if (!s)
		return REAL(fi_getinfo)(version, node, service, flags, hints, info);
	if (!is_answered(s, hints))
		return -FI_ENODATA;
	h = REAL(fi_dupinfo)(hints);
	name_set(&h->fabric_attr->prov_name, under ? under : "sockets");
	free(h->domain_attr->name);
	h->domain_attr->name = NULL;
	h->domain_attr->mr_mode = 0;
	h->addr_format = FI_FORMAT_UNSPEC;
	ret = REAL(fi_getinfo)(version, NULL, NULL, 0, h, info);
	REAL(fi_freeinfo)(h);
	if (ret)
		return ret;
	*info = shape_all(s, *info, hints);
	return *info ? 0 : -FI_ENODATA;
}

static struct fi_info *base_of(const struct shape *s, const struct fi_info *info)
{
	unsigned number = DEVICES;

	if (sscanf(info->domain_attr->name, s->domain, &number) != 1 || number >= n_base)
		die("no domain %s", info->domain_attr->name);
	return base[number];
}

/* A write or a message that later ones overtake, but a message no other one to its peer. */
struct late {
	STAILQ_ENTRY(late) link;
	struct ep *ep;
	struct fi_msg_rma msg;
	struct iovec iov[SEGMENTS];
	struct fi_rma_iov rma[SEGMENTS]; /* of a write */
	uint64_t flags;			/* FI_INJECT: the message is in copy */
	unsigned reads;			/* reads of the CQ until it is posted */
	unsigned char copy[];
};

STAILQ_HEAD(lates, late);

struct domain {
	const struct shape *shape;
	struct fi_ops_domain ops, *base_ops;
	struct fi_ops_mr mr, *base_mr;
	struct lates late;		/* of all endpoints; lock */
};

/* --- memory ----------------------------------------------------------------- */

struct mr {
	struct fi_ops ops, *base_ops;
	uintptr_t begin, end;
};

static int mr_close(struct fid *fid)
{
	struct mr *mr = state_of(fid);
	int ret = mr->base_ops->close(fid);

	if (!ret)
		free(mr);
	return ret;
}

/* The key is ours, as EFA's is the device's. */
static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
	static _Atomic uint32_t last_key = 0x10000;
	const struct domain *d = state_of(fid);
	struct mr *mr;
	int ret;

	if (offset)
		die("a registration with an offset");
	if (d->shape->mr_mode & FI_MR_ENDPOINT)
		die("a registration that is not bound to an endpoint");
	do
		ret = d->base_mr->reg(fid, buf, len, access, 0,
				       atomic_fetch_add(&last_key, 0x1f01), flags, out, context);
	while (ret == -FI_ENOKEY);
	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	WRAP(mr, ops, (*out)->fid.ops);
	mr->ops.close = mr_close;
	mr->begin = (uintptr_t)buf;
	mr->end = mr->begin + len;
	state_set(*out, mr);
	(*out)->mem_desc = mr;
	return 0;
}

/* FI_MR_LOCAL: each segment has the descriptor of memory that contains it. */
static void local_check(const struct shape *s, const char *call, const void *buf, size_t len,
			const void *desc)
{
	const struct mr *mr = desc;
	const uintptr_t begin = (uintptr_t)buf;

	if (!len || !(s->mr_mode & FI_MR_LOCAL))
		return;
	if (!mr)
		die("%s of %zu bytes without a descriptor", call, len);
	if (begin < mr->begin || begin + len > mr->end)
		die("%s of %zu bytes outside its registration", call, len);
}

/* Returns the number of bytes. */
static size_t iov_check(const struct shape *s, const char *call, size_t limit,
			const struct iovec *iov, void *const *desc, size_t count)
{
	size_t i, len = 0;

	if (count > limit)
		die("%s of %zu segments", call, count);
	for (i = 0; i < count; i++) {
		local_check(s, call, iov[i].iov_base, iov[i].iov_len, desc ? desc[i] : NULL);
		len += iov[i].iov_len;
	}
	return len;
}

/* --- endpoints --------------------------------------------------------------- */

struct ep {
	struct fi_ops_msg msg, *base_msg;
	struct fi_ops_tagged tagged, *base_tagged;
	struct fi_ops_rma rma, *base_rma;
	struct fi_ops_cm cm, *base_cm;
	struct fi_ops_ep ops, *base_ops;
	struct fi_ops fid_ops, *base_fid_ops;
	struct fid_ep *fid;
	struct domain *domain;
};

/* FI_CONTEXT, FI_CONTEXT2: the provider keeps its own data in the context. */
static void context_use(const struct shape *s, void *context)
{
	if (context && s->mode)
		memset(context, 0xa5, s->mode & FI_CONTEXT2 ? sizeof(struct fi_context2) :
							      sizeof(struct fi_context));
}

static ssize_t post(const struct ep *ep, const struct fi_msg_rma *m, uint64_t flags)
{
	const struct iovec *iov = m->msg_iov;
	const struct fi_msg msg = {
		.msg_iov = iov, .iov_count = m->iov_count, .addr = m->addr, .context = m->context,
	};

	if (m->rma_iov_count)
		return ep->base_rma->writemsg(ep->fid, m, flags);
	if (flags & FI_INJECT)
		return ep->base_msg->inject(ep->fid, iov->iov_base, iov->iov_len, m->addr);
	return ep->base_msg->sendmsg(ep->fid, &msg, flags);
}

/* Whether @m is a message, and @list has one to the same peer. */
static bool is_behind(const struct lates *list, const struct ep *ep, const struct fi_msg_rma *m)
{
	const struct late *l;

	if (m->rma_iov_count)
		return false;
	STAILQ_FOREACH(l, list, link)
		if (!l->msg.rma_iov_count && l->ep == ep && l->msg.addr == m->addr)
			return true;
	return false;
}

/* Posts one in @n operations later, and those behind it. Returns true for these. */
static bool is_late(struct ep *ep, const struct fi_msg_rma *m, uint64_t flags, unsigned n)
{
	const size_t copied = flags & FI_INJECT ? m->msg_iov->iov_len : 0;
	struct lates *list = &ep->domain->late;
	struct late *l = NULL;

	pthread_mutex_lock(&lock);
	if (is_behind(list, ep, m) || one_in(n)) {
		l = calloc(1, sizeof(*l) + copied);
		l->ep = ep;
		l->msg = *m;
		l->msg.msg_iov = memcpy(l->iov, m->msg_iov, m->iov_count * sizeof(*l->iov));
		l->msg.rma_iov = memcpy(l->rma, m->rma_iov ? m->rma_iov : l->rma,
					m->rma_iov_count * sizeof(*l->rma));
		if (flags & FI_INJECT)
			l->iov->iov_base = memcpy(l->copy, l->iov->iov_base, copied);
		l->flags = flags;
		l->reads = 1 + one_in(2) + 2 * one_in(4);
		STAILQ_INSERT_TAIL(list, l, link);
	}
	pthread_mutex_unlock(&lock);
	return l;
}

/* Posts the operations that were late long enough, or all of @closing. */
static void lates_post(struct domain *domain, const struct ep *closing)
{
	struct lates later = STAILQ_HEAD_INITIALIZER(later);
	struct late *l;
	bool stays;

	pthread_mutex_lock(&lock);
	while ((l = STAILQ_FIRST(&domain->late))) {
		STAILQ_REMOVE_HEAD(&domain->late, link);
		l->reads -= l->reads && !closing;
		stays = closing ? l->ep != closing : l->reads || is_behind(&later, l->ep, &l->msg);
		if (!stays)
			stays = post(l->ep, &l->msg, l->flags) && !closing;
		if (stays)
			STAILQ_INSERT_TAIL(&later, l, link);
		else
			free(l);
	}
	STAILQ_CONCAT(&domain->late, &later);
	pthread_mutex_unlock(&lock);
}

static ssize_t ep_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from,
		       void *context)
{
	struct ep *ep = state_of(fid);

	local_check(ep->domain->shape, "fi_recv", buf, len, desc);
	context_use(ep->domain->shape, context);
	return ep->base_msg->recv(fid, buf, len, NULL, from, context);
}

static ssize_t message_send(struct ep *ep, const struct fi_msg_rma *m, uint64_t flags)
{
	const struct shape *s = ep->domain->shape;

	if (one_in(16))
		return -FI_EAGAIN;
	context_use(s, m->context);
	return s->moved_by_reads && is_late(ep, m, flags, 4) ? 0 : post(ep, m, flags);
}

static ssize_t ep_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	struct ep *ep = state_of(fid);
	const struct iovec iov = { (void *)buf, len };
	const struct fi_msg_rma m = { .msg_iov = &iov, .iov_count = 1, .addr = to };

	if (len > ep->domain->shape->inject)
		die("fi_inject of %zu bytes", len);
	return message_send(ep, &m, FI_INJECT);
}

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	const struct shape *s = ep->domain->shape;
	const struct fi_msg_rma m = {
		.msg_iov = msg->msg_iov, .iov_count = msg->iov_count, .addr = msg->addr,
		.context = msg->context,
	};
	const size_t len = iov_check(s, "fi_sendmsg", s->tx_iov, m.msg_iov, msg->desc, m.iov_count);

	if (flags & ~FI_COMPLETION)
		die("fi_sendmsg with the flags %#" PRIx64, flags);
	if (s->eager && len > s->eager)
		die("fi_sendmsg of %zu bytes, which later messages overtake", len);
	return message_send(ep, &m, flags);
}

static struct fi_msg_tagged tagged(const struct ep *ep, const char *call, size_t limit,
				   const struct fi_msg_tagged *msg)
{
	const struct shape *s = ep->domain->shape;
	struct fi_msg_tagged m = *msg;

	iov_check(s, call, limit, m.msg_iov, m.desc, m.iov_count);
	if (m.tag & ~s->tags)
		die("%s with the tag %#" PRIx64, call, m.tag);
	context_use(s, m.context);
	m.desc = NULL;
	return m;
}

static ssize_t ep_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_tagged m = tagged(ep, "fi_tsendmsg", ep->domain->shape->tx_iov, msg);

	return one_in(16) ? -FI_EAGAIN : ep->base_tagged->sendmsg(fid, &m, flags);
}

static ssize_t ep_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_tagged m = tagged(ep, "fi_trecvmsg", ep->domain->shape->rx_iov, msg);

	return one_in(16) ? -FI_EAGAIN : ep->base_tagged->recvmsg(fid, &m, flags);
}

static struct fi_msg_rma rma(const struct ep *ep, const char *call, const struct fi_msg_rma *msg)
{
	const struct shape *s = ep->domain->shape;
	struct fi_msg_rma m = *msg;

	if (!s->rma)
		die("%s, but the target carries out RDMA", call);
	iov_check(s, call, s->tx_iov, m.msg_iov, m.desc, m.iov_count);
	if (m.rma_iov_count > s->rma_iov)
		die("%s of %zu remote segments", call, m.rma_iov_count);
	m.desc = NULL;
	return m;
}

static ssize_t ep_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_rma m = rma(ep, "fi_readmsg", msg);

	return one_in(16) ? -FI_EAGAIN : flight_add(ep->base_rma->readmsg(fid, &m, flags));
}

static ssize_t ep_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_rma m = rma(ep, "fi_writemsg", msg);

	if (getenv("DAT_TEST_EMULATED"))
		die("fi_writemsg is emulated");
	if (one_in(16))
		return -FI_EAGAIN;
	return flight_add(is_late(ep, &m, flags, 2) ? 0 : post(ep, &m, flags));
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ep *ep = state_of(fid);
	const struct shape *s = ep->domain->shape;
	struct sockaddr_in in;
	size_t size = sizeof(in);
	int ret = ep->base_cm->getname(fid, &in, &size);

	if (!ret && *len < s->address_len)
		ret = -FI_ETOOSMALL;
	*len = s->address_len;
	if (ret)
		return ret;
	address_encode(s, addr, &in);
	return 0;
}

/* FI_OPT_EFA_EMULATED_READ and _WRITE of libfabric 2's fi_ext.h. */
#define EMULATED_READ (FI_OPT_EFA_RNR_RETRY + 1)
#define EMULATED_WRITE (FI_OPT_EFA_RNR_RETRY + 2)

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct ep *ep = state_of(fid);

	if (!ep->domain->shape->rma || level != FI_OPT_ENDPOINT ||
	    (name != EMULATED_READ && name != EMULATED_WRITE))
		return ep->base_ops->getopt(fid, level, name, value, len);
	*(bool *)value = getenv("DAT_TEST_EMULATED");
	*len = sizeof(bool);
	return 0;
}

/* Endpoints that were closed: see cq_read(). */
static _Atomic unsigned closed;

static int ep_close(struct fid *fid)
{
	struct ep *ep = state_of(fid);
	int ret;

	lates_post(ep->domain, ep);
	ret = ep->base_fid_ops->close(fid);
	atomic_fetch_add(&closed, 1);
	if (!ret)
		free(ep);
	return ret;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid,
		    void *context)
{
	struct domain *d = state_of(domain);
	struct ep *ep;
	int ret = d->base_ops->endpoint(domain, base_of(d->shape, info), fid, context);

	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	state_set(*fid, ep);
	ep->fid = *fid;
	ep->domain = d;
	WRAP(ep, msg, (*fid)->msg);
	WRAP(ep, tagged, (*fid)->tagged);
	WRAP(ep, rma, (*fid)->rma);
	WRAP(ep, cm, (*fid)->cm);
	WRAP(ep, ops, (*fid)->ops);
	WRAP(ep, fid_ops, (*fid)->fid.ops);
	ep->fid_ops.close = ep_close;
	ep->msg.recv = ep_recv;
	ep->msg.inject = ep_inject;
	ep->msg.sendmsg = ep_sendmsg;
	ep->tagged.sendmsg = ep_tsendmsg;
	ep->tagged.recvmsg = ep_trecvmsg;
	ep->rma.readmsg = ep_readmsg;
	ep->rma.writemsg = ep_writemsg;
	ep->cm.getname = ep_getname;
	ep->ops.getopt = ep_getopt;
	return 0;
}

/* --- address vectors ----------------------------------------------------------- */

static struct fi_ops_av *base_av_ops;

static int av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *to,
		     uint64_t flags, void *context)
{
	struct sockaddr_in in;

	if (count != 1)
		die("fi_av_insert of %zu addresses", count);
	address_decode(state_of(av), &in, addr);
	return base_av_ops->insert(av, &in, 1, to, flags, context);
}

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context)
{
	static struct fi_ops_av ops;
	struct domain *d = state_of(domain);
	int ret = d->base_ops->av_open(domain, attr, av, context);

	if (ret)
		return ret;
	state_set(*av, (void *)d->shape);
	pthread_mutex_lock(&lock);
	base_av_ops = (*av)->ops;
	ops = *base_av_ops;
	ops.insert = av_insert;
	(*av)->ops = &ops;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- completion queues --------------------------------------------------------- */

struct cq {
	struct fi_ops_cq ops, *base_ops;
	struct fi_ops fid_ops, *base_fid_ops;
	struct domain *domain;
	int fd;		/* holds the base's descriptor, which reports only when armed; or -1 */
	int base_fd;
	unsigned closed; /* endpoints, when it was last empty */
};

/*
 * Reads come late, and return half of the completions. After the close of an endpoint no read is
 * late until the queue was empty, as the next read of EFA's queue returns all that remain.
 */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	const unsigned seen = closed;
	struct cq *cq = state_of(fid);
	const struct fi_cq_data_entry *entry = buf;
	ssize_t n, i;

	lates_post(cq->domain, NULL);
	if (cq->closed == seen && one_in(8))
		return -FI_EAGAIN;
	n = cq->base_ops->read(fid, buf, (count + 1) / 2);
	if (n == -FI_EAGAIN)
		cq->closed = seen;
	for (i = 0; i < n; i++)
		in_flight -= (entry[i].flags & FI_RMA) != 0;
	return n;
}

/* EFA reports a refusal of the peer as EINVAL: efa_errno.h, to_fi_errno(). */
static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct cq *cq = state_of(fid);
	ssize_t ret = cq->base_ops->readerr(fid, entry, flags);

	in_flight -= ret == 1 && entry->flags & FI_RMA;
	if (ret == 1 && entry->flags & FI_RMA && entry->err != FI_ECANCELED) {
		entry->err = FI_EINVAL;
		entry->prov_errno = BAD_ADDRESS;
	}
	return ret;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct cq *cq = state_of(fid);

	if (command != FI_GETWAIT || cq->fd < 0)
		return cq->base_fid_ops->control(fid, command, arg);
	*(int *)arg = cq->fd;
	return 0;
}

static int cq_close(struct fid *fid)
{
	struct cq *cq = state_of(fid);
	int ret = cq->base_fid_ops->close(fid);

	if (!ret && cq->fd >= 0)
		close(cq->fd);
	return ret;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
		   void *context)
{
	struct domain *d = state_of(domain);
	const bool has_fd = attr->wait_obj != FI_WAIT_NONE;
	struct epoll_event none = { .events = 0 };
	struct cq *cq;
	int ret;

	if (has_fd && d->shape->wait == NO_DESCRIPTOR)
		return -FI_ENOSYS;
	ret = d->base_ops->cq_open(domain, attr, fid, context);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));	/* never freed: a read may still hold it */
	state_set(*fid, cq);
	cq->domain = d;
	cq->fd = has_fd ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (has_fd && (fi_control(&(*fid)->fid, FI_GETWAIT, &cq->base_fd) ||
		       epoll_ctl(cq->fd, EPOLL_CTL_ADD, cq->base_fd, &none)))
		die("no descriptor of a completion queue");
	WRAP(cq, fid_ops, (*fid)->fid.ops);
	cq->fid_ops.control = cq_control;
	cq->fid_ops.close = cq_close;
	WRAP(cq, ops, (*fid)->ops);
	cq->ops.read = cq_read;
	cq->ops.readerr = cq_readerr;
	return 0;
}

/* --- domains -------------------------------------------------------------------- */

static struct fi_ops_fabric *base_fabric_ops;

/* Arms the descriptors, also where there is something to read: another thread may sleep. */
static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	struct epoll_event event = { .events = EPOLLIN };
	const struct cq *cq;
	int i;

	for (i = 0; i < count; i++) {
		cq = fids[i]->fclass == FI_CLASS_CQ ? state_of(fids[i]) : NULL;
		if (cq && cq->fd >= 0 && cq->domain->shape->wait == ARMED)
			epoll_ctl(cq->fd, EPOLL_CTL_MOD, cq->base_fd, &event);
	}
	return base_fabric_ops->trywait(fabric, fids, count);
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid,
		       void *context)
{
	const struct shape *s = shape_named(info->fabric_attr->name);
	struct domain *d;
	int ret = base_fabric_ops->domain(fabric, base_of(s, info), fid, context);

	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));	/* never freed, as a CQ's */
	state_set(*fid, d);
	d->shape = s;
	STAILQ_INIT(&d->late);
	WRAP(d, ops, (*fid)->ops);
	d->ops.endpoint = endpoint;
	d->ops.av_open = av_open;
	d->ops.cq_open = cq_open;
	WRAP(d, mr, (*fid)->mr);
	d->mr.reg = mr_reg;
	return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	static struct fi_ops_fabric ops;
	int ret;

	if (!shape_named(attr->name))
		return REAL(fi_fabric)(attr, fabric, context);
	if (!n_base)
		die("fi_fabric before fi_getinfo");
	ret = REAL(fi_fabric)(base[0]->fabric_attr, fabric, context);
	if (ret)
		return ret;
	base_fabric_ops = (*fabric)->ops;
	ops = *base_fabric_ops;
	ops.domain = domain_open;
	ops.trywait = trywait;
	(*fabric)->ops = &ops;
	return 0;
}
