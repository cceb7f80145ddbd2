/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A preload library that makes libfabric's sockets look like EFA, as there is no device to test
 * with: the attributes, limits and manners of connectionless endpoints in prov/efa of libfabric
 * 2.6. A call that EFA would not accept aborts the process, with the reason.
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
#include <sys/queue.h>


/* Values of EFA, and where they are in prov/efa/src. */
#define ADDRESS_LEN 32			/* EFA_EP_ADDR_LEN, efa.h: GID, QP number, queue key */
#define CQ_DATA_SIZE 4			/* EFA_CQ_DATA_SIZE, efa_cq.h */
#define IOV_LIMIT 4			/* EFA_RDM_IOV_LIMIT, efa.h */
#define RMA_IOV_LIMIT 1			/* efa_prov_info.c */
#define MR_MODE (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define MSG_ORDER FI_ORDER_SAS		/* efa_prov_info.c: no order between messages and RMA */
#define MSG_INJECT 64			/* fewer than an MTU, which efa_prov_info.c has at most */
/* EFA_IO_COMP_STATUS_REMOTE_ERROR_BAD_ADDRESS, efa_io_defs.h */
#define BAD_ADDRESS 7

#define die(...)                                                                        \
	do {                                                                            \
		fprintf(stderr, "efa: " __VA_ARGS__);                                   \
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

typedef int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info);
typedef int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
typedef struct fi_info *dupinfo(const struct fi_info *info);
typedef void freeinfo(struct fi_info *info);

/* libfabric's own function: the provider that loads it keeps its symbols to itself. */
static void *real(const char *name)
{
	void *libfabric = dlopen("libfabric.so.1", RTLD_LAZY);
	void *symbol = libfabric ? dlsym(libfabric, name) : NULL;

	if (!symbol)
		die("libfabric has no %s", name);
	return symbol;
}

/* --- the offered fabric----------------------------------------------------- */

#define DEVICES 16

/* The base's interfaces, by the number in the domain name. */
static struct fi_info *base[DEVICES];
static unsigned n_base;

static bool is_efa(const struct fi_info *hints)
{
	return hints && hints->fabric_attr && hints->fabric_attr->prov_name &&
	       !strcmp(hints->fabric_attr->prov_name, "efa");
}

static void name_set(char **name, const char *text)
{
	free(*name);
	*name = strdup(text);
}

static void address_encode(unsigned char *efa, const struct sockaddr_in *in)
{
	memset(efa, 0, ADDRESS_LEN);
	efa[10] = efa[11] = 0xff;
	memcpy(efa + 12, &in->sin_addr, 4);
	memcpy(efa + 16, &in->sin_port, 2);
	efa[20] = 0x5a;
}

static void address_decode(struct sockaddr_in *in, const unsigned char *efa)
{
	*in = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(&in->sin_addr, efa + 12, 4);
	memcpy(&in->sin_port, efa + 16, 2);
}

static void shape(struct fi_info *info, unsigned number, const struct fi_info *hints)
{
	unsigned char *address = malloc(ADDRESS_LEN);
	char name[32];

	snprintf(name, sizeof(name), "rdmap%us6-rdm", number);
	name_set(&info->fabric_attr->prov_name, "efa");
	name_set(&info->fabric_attr->name, "efa");
	name_set(&info->domain_attr->name, name);
	address_encode(address, info->src_addr);
	free(info->src_addr);
	info->src_addr = address;
	info->src_addrlen = ADDRESS_LEN;
	info->addr_format = FI_ADDR_EFA;
	/* as EFA does: without RMA no mode matters but FI_MR_LOCAL */
	info->domain_attr->mr_mode = MR_MODE & (hints->caps & FI_RMA ? ~0 : FI_MR_LOCAL);
	info->domain_attr->mr_key_size = 4;
	info->domain_attr->cq_data_size = CQ_DATA_SIZE;
	info->tx_attr->msg_order = info->rx_attr->msg_order = MSG_ORDER;
	info->tx_attr->inject_size = MSG_INJECT;
	info->tx_attr->iov_limit = info->rx_attr->iov_limit = IOV_LIMIT;
	info->tx_attr->rma_iov_limit = RMA_IOV_LIMIT;
}

/* Whether EFA would answer @hints. */
static bool is_answered(const struct fi_info *hints)
{
	const uint64_t order = hints->tx_attr->msg_order | hints->rx_attr->msg_order;
	const int needed = hints->caps & FI_RMA ? MR_MODE : FI_MR_LOCAL;

	return hints->ep_attr->type == FI_EP_RDM && !(order & ~MSG_ORDER) &&
	       !(needed & ~hints->domain_attr->mr_mode) &&
	       (!hints->addr_format || hints->addr_format == FI_ADDR_EFA);
}

static unsigned base_add(const struct fi_info *info)
{
	unsigned i;

	for (i = 0; i < n_base; i++)
		if (!strcmp(base[i]->domain_attr->name, info->domain_attr->name))
			return i;
	if (n_base == DEVICES)
		return 0;
	base[n_base] = ((dupinfo *)real("fi_dupinfo"))(info);
	base[n_base]->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return n_base++;
}

static struct fi_info *shape_all(struct fi_info *list, const struct fi_info *hints)
{
	struct fi_info *efa = NULL, **end = &efa, *i, *next;

	pthread_mutex_lock(&lock);
	for (i = list; i; i = next) {
		next = i->next;
		i->next = NULL;
		if (i->addr_format != FI_SOCKADDR_IN || !i->src_addr) {
			((freeinfo *)real("fi_freeinfo"))(i);
			continue;
		}
		shape(i, base_add(i), hints);
		*end = i;
		end = &i->next;
	}
	pthread_mutex_unlock(&lock);
	return efa;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	getinfo *next = (getinfo *)real("fi_getinfo");
	const char *under = getenv("DAT_TEST_UNDER");
	struct fi_info *h;
	int ret;

	if (!is_efa(hints))
		return next(version, node, service, flags, hints, info);
	if (!is_answered(hints))
		return -FI_ENODATA;
	h = ((dupinfo *)real("fi_dupinfo"))(hints);
	name_set(&h->fabric_attr->prov_name, under ? under : "sockets");
	free(h->domain_attr->name);
	h->domain_attr->name = NULL;
	h->domain_attr->mr_mode = 0;
	h->addr_format = FI_FORMAT_UNSPEC;
	ret = next(version, NULL, NULL, 0, h, info);
	((freeinfo *)real("fi_freeinfo"))(h);
	if (ret)
		return ret;
	*info = shape_all(*info, hints);
	return *info ? 0 : -FI_ENODATA;
}

static struct fi_info *base_of(const struct fi_info *info)
{
	unsigned number = DEVICES;

	if (sscanf(info->domain_attr->name, "rdmap%us6-rdm", &number) != 1 || number >= n_base)
		die("no domain %s", info->domain_attr->name);
	return base[number];
}

/* --- memory ----------------------------------------------------------------- */

struct mr {
	struct fi_ops ops;
	struct fi_ops *base_ops;
	struct fid_mr *fid;
	void *base_desc;
	uintptr_t begin, end;
};

static int mr_close(struct fid *fid)
{
	struct mr *mr = state_of(fid);
	int ret;

	fid->ops = mr->base_ops;
	ret = fid->ops->close(fid);
	if (ret)
		fid->ops = &mr->ops;
	else
		free(mr);
	return ret;
}

static struct fi_ops_mr *base_mr_ops;

/* The key is ours, as EFA's is the device's. */
static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
	static _Atomic uint32_t last_key = 0x10000;
	struct mr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (offset)
		die("a registration with an offset");
	do
		ret = base_mr_ops->reg(fid, buf, len, access, 0,
				       atomic_fetch_add(&last_key, 0x1f01), flags, out, context);
	while (ret == -FI_ENOKEY);
	if (ret) {
		free(mr);
		return ret;
	}
	mr->fid = *out;
	mr->base_desc = (*out)->mem_desc;
	mr->base_ops = (*out)->fid.ops;
	mr->ops = *mr->base_ops;
	mr->ops.close = mr_close;
	mr->begin = (uintptr_t)buf;
	mr->end = mr->begin + len;
	state_set(*out, mr);
	(*out)->fid.ops = &mr->ops;
	(*out)->mem_desc = mr;
	return 0;
}

/* FI_MR_LOCAL: each segment has the descriptor of memory that contains it. */
static void local_check(const char *call, const void *buf, size_t len, const void *desc)
{
	const struct mr *mr = desc;
	const uintptr_t begin = (uintptr_t)buf;

	if (len && !mr)
		die("%s of %zu bytes without a descriptor", call, len);
	if (len && (begin < mr->begin || begin + len > mr->end))
		die("%s of %zu bytes outside its registration", call, len);
}

static void iov_check(const char *call, const struct iovec *iov, void *const *desc, size_t count)
{
	size_t i;

	if (count > IOV_LIMIT)
		die("%s of %zu segments", call, count);
	for (i = 0; i < count; i++)
		local_check(call, iov[i].iov_base, iov[i].iov_len, desc ? desc[i] : NULL);
}

/* --- endpoints --------------------------------------------------------------- */

/* An RMA write that later operations overtake. */
struct write {
	STAILQ_ENTRY(write) link;
	struct ep *ep;
	struct fi_msg_rma msg;
	struct iovec iov[IOV_LIMIT];
	struct fi_rma_iov rma[IOV_LIMIT];
	uint64_t flags;
	unsigned reads;			/* reads of the CQ until it is posted */
};

struct domain {
	struct fi_ops_domain ops;
	struct fi_ops_domain *base_ops;
	struct fi_ops_mr mr;
	STAILQ_HEAD(writes, write) writes; /* of all endpoints; lock */
};

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

static ssize_t ep_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from,
		       void *context)
{
	struct ep *ep = state_of(fid);

	local_check("fi_recv", buf, len, desc);
	return ep->base_msg->recv(fid, buf, len, NULL, from, context);
}

static ssize_t ep_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	struct ep *ep = state_of(fid);

	if (len > MSG_INJECT)
		die("fi_inject of %zu bytes", len);
	return one_in(16) ? -FI_EAGAIN : ep->base_msg->inject(fid, buf, len, to);
}

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg m = *msg;

	iov_check("fi_sendmsg", m.msg_iov, m.desc, m.iov_count);
	m.desc = NULL;
	return one_in(16) ? -FI_EAGAIN : ep->base_msg->sendmsg(fid, &m, flags);
}

static ssize_t ep_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_tagged m = *msg;

	iov_check("fi_tsendmsg", m.msg_iov, m.desc, m.iov_count);
	m.desc = NULL;
	return one_in(16) ? -FI_EAGAIN : ep->base_tagged->sendmsg(fid, &m, flags);
}

static ssize_t ep_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_tagged m = *msg;

	iov_check("fi_trecvmsg", m.msg_iov, m.desc, m.iov_count);
	m.desc = NULL;
	return one_in(16) ? -FI_EAGAIN : ep->base_tagged->recvmsg(fid, &m, flags);
}

static ssize_t ep_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_rma m = *msg;

	iov_check("fi_readmsg", m.msg_iov, m.desc, m.iov_count);
	m.desc = NULL;
	return one_in(16) ? -FI_EAGAIN : flight_add(ep->base_rma->readmsg(fid, &m, flags));
}

static void write_delay(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct write *w = calloc(1, sizeof(*w));

	w->ep = ep;
	w->msg = *msg;
	memcpy(w->iov, msg->msg_iov, msg->iov_count * sizeof(*w->iov));
	memcpy(w->rma, msg->rma_iov, msg->rma_iov_count * sizeof(*w->rma));
	w->msg.msg_iov = w->iov;
	w->msg.rma_iov = w->rma;
	w->msg.desc = NULL;
	w->flags = flags;
	w->reads = 1 + one_in(2) + 2 * one_in(4);
	pthread_mutex_lock(&lock);
	STAILQ_INSERT_TAIL(&ep->domain->writes, w, link);
	pthread_mutex_unlock(&lock);
}

static ssize_t ep_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = state_of(fid);
	struct fi_msg_rma m = *msg;

	iov_check("fi_writemsg", m.msg_iov, m.desc, m.iov_count);
	m.desc = NULL;
	if (m.rma_iov_count > RMA_IOV_LIMIT)
		die("fi_writemsg of %zu remote segments", m.rma_iov_count);
	if (getenv("DAT_TEST_EMULATED"))
		die("fi_writemsg is emulated");
	if (one_in(16))
		return -FI_EAGAIN;
	if (!one_in(2))
		return flight_add(ep->base_rma->writemsg(fid, &m, flags));
	write_delay(ep, msg, flags);
	return flight_add(0);
}

/* Posts the writes that were delayed long enough, or all of @ep. */
static void writes_post(struct domain *domain, const struct ep *ep)
{
	struct writes later = STAILQ_HEAD_INITIALIZER(later);
	struct write *w;

	pthread_mutex_lock(&lock);
	while ((w = STAILQ_FIRST(&domain->writes))) {
		STAILQ_REMOVE_HEAD(&domain->writes, link);
		if ((ep && ep != w->ep) || (!ep && --w->reads) ||
		    w->ep->base_rma->writemsg(w->ep->fid, &w->msg, w->flags)) {
			w->reads += !w->reads;
			STAILQ_INSERT_TAIL(&later, w, link);
		} else {
			free(w);
		}
	}
	STAILQ_CONCAT(&domain->writes, &later);
	pthread_mutex_unlock(&lock);
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ep *ep = state_of(fid);
	struct sockaddr_in in;
	size_t size = sizeof(in);
	int ret = ep->base_cm->getname(fid, &in, &size);

	if (ret)
		return ret;
	if (*len < ADDRESS_LEN) {
		*len = ADDRESS_LEN;
		return -FI_ETOOSMALL;
	}
	*len = ADDRESS_LEN;
	address_encode(addr, &in);
	return 0;
}

/* FI_OPT_EFA_EMULATED_READ and _WRITE of libfabric 2's fi_ext.h. */
#define EMULATED_READ (FI_OPT_EFA_RNR_RETRY + 1)
#define EMULATED_WRITE (FI_OPT_EFA_RNR_RETRY + 2)

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct ep *ep = state_of(fid);

	if (level != FI_OPT_ENDPOINT || (name != EMULATED_READ && name != EMULATED_WRITE))
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
	struct fid_ep *f = ep->fid;
	int ret;

	writes_post(ep->domain, ep);
	fid->ops = ep->base_fid_ops;
	f->msg = ep->base_msg;
	f->tagged = ep->base_tagged;
	f->rma = ep->base_rma;
	f->cm = ep->base_cm;
	f->ops = ep->base_ops;
	ret = fid->ops->close(fid);
	atomic_fetch_add(&closed, 1);
	if (!ret)
		free(ep);
	return ret;
}

#define WRAP(member)                                                                    \
	(ep->base_##member = (*fid)->member, ep->member = *ep->base_##member,           \
	 (*fid)->member = &ep->member)

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid,
		    void *context)
{
	struct domain *d = state_of(domain);
	struct ep *ep = calloc(1, sizeof(*ep));
	int ret = d->base_ops->endpoint(domain, base_of(info), fid, context);

	if (ret) {
		free(ep);
		return ret;
	}
	state_set(*fid, ep);
	ep->fid = *fid;
	ep->domain = d;
	WRAP(msg);
	WRAP(tagged);
	WRAP(rma);
	WRAP(cm);
	WRAP(ops);
	ep->base_fid_ops = (*fid)->fid.ops;
	ep->fid_ops = *ep->base_fid_ops;
	(*fid)->fid.ops = &ep->fid_ops;
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
	address_decode(&in, addr);
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
	struct domain *domain;
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

	writes_post(cq->domain, NULL);
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

/* efa_rdm_cq.c: there is no wait object. */
static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
		   void *context)
{
	struct domain *d = state_of(domain);
	struct cq *cq;
	int ret;

	if (attr->wait_obj != FI_WAIT_NONE)
		return -FI_ENOSYS;
	ret = d->base_ops->cq_open(domain, attr, fid, context);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));	/* never freed: a read may still hold it */
	state_set(*fid, cq);
	cq->domain = d;
	cq->base_ops = (*fid)->ops;
	cq->ops = *cq->base_ops;
	cq->ops.read = cq_read;
	cq->ops.readerr = cq_readerr;
	(*fid)->ops = &cq->ops;
	return 0;
}

/* --- domains -------------------------------------------------------------------- */

static struct fi_ops_fabric *base_fabric_ops;

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **fid,
		       void *context)
{
	struct domain *d;
	int ret = base_fabric_ops->domain(fabric, base_of(info), fid, context);

	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));	/* never freed, as a CQ's */
	state_set(*fid, d);
	STAILQ_INIT(&d->writes);
	d->base_ops = (*fid)->ops;
	d->ops = *d->base_ops;
	d->ops.endpoint = endpoint;
	d->ops.av_open = av_open;
	d->ops.cq_open = cq_open;
	base_mr_ops = (*fid)->mr;
	d->mr = *base_mr_ops;
	d->mr.reg = mr_reg;
	(*fid)->ops = &d->ops;
	(*fid)->mr = &d->mr;
	return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	static struct fi_ops_fabric ops;
	fabric_open *next = (fabric_open *)real("fi_fabric");
	int ret;

	if (!attr->prov_name || strcmp(attr->prov_name, "efa"))
		return next(attr, fabric, context);
	if (!n_base)
		die("fi_fabric before fi_getinfo");
	ret = next(base[0]->fabric_attr, fabric, context);
	if (ret)
		return ret;
	base_fabric_ops = (*fabric)->ops;
	ops = *base_fabric_ops;
	ops.domain = domain_open;
	(*fabric)->ops = &ops;
	return 0;
}
