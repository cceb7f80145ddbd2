/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A preload library that injects into the calls of libfabric what any provider may do at any time:
 *
 *	again	a data call returns -FI_EAGAIN, alone or in a burst. All providers: full queues.
 *	batch	a read of a completion queue returns fewer completions than there are. sockets reads
 *		one ring entry at a time, tcp stops at an error entry.
 *	hold	completions appear after some reads that return none. verbs, EFA: the device's time.
 *	events	events appear after some reads that return none. All: another thread adds them.
 *	trywait	fi_trywait returns -FI_EAGAIN although nothing has come: fi_poll(3) allows it.
 *	open	a call that creates an object returns -FI_ENOMEM, or -FI_EMFILE if it has a
 *		descriptor. All: calloc(), socket(), epoll_create(). Only if DAT_CHAOS has a
 *		rate, as programs notice it.
 *
 * DAT_CHAOS: the seed, and one in how many calls has a fault, 0 for none: "seed=1,again=16". What
 * it does not name has the rate below. DAT_CHAOS_COUNTS: a file of 8 bytes for each kind, in this
 * order, with the number of faults that all processes have injected.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_READS 50  /* without a result, before a held completion or event appears */
#define MOST_BURST 100 /* data calls */

enum kind {
	AGAIN,
	BATCH,
	HOLD,
	EVENTS,
	TRYWAIT,
	OPEN,
	KINDS
};

static unsigned rate[KINDS] = { 16, 4, 32, 16, 8, 0 };
static uint64_t seed = 1;
static _Atomic uint64_t *counts;

__attribute__((constructor)) static void begin(void)
{
	static char *const names[] = {
		"again", "batch", "hold", "events", "trywait", "open", "seed", NULL,
	};
	static _Atomic uint64_t own[KINDS];
	const char *path = getenv("DAT_CHAOS_COUNTS"), *wanted = getenv("DAT_CHAOS");
	char *copy = wanted ? strdup(wanted) : NULL, *rest = copy, *value;
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1, i;

	while (rest && *rest) {
		i = getsubopt(&rest, names, &value);
		if (i < 0 || !value) {
			fprintf(stderr, "faults: DAT_CHAOS=%s is malformed\n", wanted);
			abort();
		}
		if (i < KINDS)
			rate[i] = strtoul(value, NULL, 0);
		else
			seed = strtoull(value, NULL, 0);
	}
	free(copy);
	counts = own;
	if (fd < 0)
		return;
	counts = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counts == MAP_FAILED)
		abort();
}

/* The next of the numbers that the seed determines, below @n. */
static unsigned draw(unsigned n)
{
	static _Atomic uint64_t drawn;
	uint64_t x = seed * 0x9e3779b97f4a7c15u;

	x += atomic_fetch_add(&drawn, 1) * 0xd1342543de82ef95u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x >> 33) % n;
}

static bool strikes(enum kind kind)
{
	if (!rate[kind] || draw(rate[kind]))
		return false;
	atomic_fetch_add(&counts[kind], 1);
	return true;
}

/* Whether this call is one of a row of calls with a fault. @left counts the calls that are left. */
static bool strikes_again(enum kind kind, _Atomic int *left, unsigned most)
{
	if (atomic_load(left) > 0 && atomic_fetch_sub(left, 1) > 0) {
		atomic_fetch_add(&counts[kind], 1);
		return true;
	}
	if (!strikes(kind))
		return false;
	if (!draw(8))
		atomic_store(left, draw(most));
	return true;
}

/* --- tables of operations ------------------------------------------------------ */

struct held_event;

/*
 * An object's tables are replaced by copies, each behind such a head. The copy with fi_close()
 * knows the others. A library newer than the headers here has longer tables.
 */
struct head {
	const void *base;
	void *also[4];
	_Atomic int left;	      /* calls that are still to have a fault */
	_Atomic bool spares_receives; /* of operations of an endpoint */
	/* of a completion queue: */
	bool has_fd;
	_Atomic unsigned ends;	 /* when it was last known to be empty */
	struct held_event *held; /* of an event queue */
} __attribute__((aligned(16)));

#define HEAD(table) ((struct head *)(table)-1)
#define BASE(table) ((__typeof__(table))(uintptr_t)HEAD(table)->base)

static void *table_copy(const void *base, size_t size)
{
	struct head *head = calloc(1, sizeof(*head) + size);

	if (!head)
		abort();
	head->base = base;
	return memcpy(head + 1, base, size);
}

static void held_free(struct held_event *held);

static void table_free(void *table)
{
	if (!table)
		return;
	held_free(HEAD(table)->held);
	free(HEAD(table));
}

/*
 * Ends of connections reported, and endpoints closed. No end overtakes a completion, and no
 * completion of an endpoint comes after it was closed and the queue was empty. So none is held
 * back after an end until its queue was empty. Where a fabric has ends that overtake, it reports
 * them itself.
 */
static _Atomic unsigned ends;

static void held_drop(const struct fid *fid);

static int fid_close(struct fid *fid)
{
	struct fi_ops *ops = fid->ops;
	const size_t class = fid->fclass;
	int ret = BASE(ops)->close(fid);
	size_t i;

	if (ret)
		return ret;
	if (class == FI_CLASS_EP) {
		atomic_fetch_add(&ends, 1);
		held_drop(fid);
	}
	for (i = 0; i < 4; i++)
		table_free(HEAD(ops)->also[i]);
	table_free(ops);
	return 0;
}

/* Replaces the table of fi_close(); @also are the other tables of the object. */
static void fid_wrap(struct fid *fid, void *const also[4])
{
	struct fi_ops *ops = table_copy(fid->ops, fid->ops->size);

	ops->close = fid_close;
	memcpy(HEAD(ops)->also, also, sizeof(HEAD(ops)->also));
	fid->ops = ops;
}

/* Whether a call that creates an object fails, and how. */
static int no_resources(bool has_fd)
{
	if (!strikes(OPEN))
		return 0;
	return has_fd && draw(2) ? -FI_EMFILE : -FI_ENOMEM;
}

/* --- endpoints ------------------------------------------------------------------- */

static bool is_refused(void *table)
{
	HEAD(table)->spares_receives = false;
	return strikes_again(AGAIN, &HEAD(table)->left, MOST_BURST);
}

/*
 * A connectionless endpoint has a queue of its own for receives, which the program fills before it
 * sends: rxm, EFA and sockets refuse none of these.
 */
static bool is_receive_refused(void *table)
{
	return !HEAD(table)->spares_receives && is_refused(table);
}

#define PARAMS(...) struct fid_ep *ep, __VA_ARGS__
#define CALL(refused, table, name, params, ...)                                                  \
	static ssize_t table##_##name(params)                                                    \
	{                                                                                        \
		return refused(ep->table) ? -FI_EAGAIN : BASE(ep->table)->name(ep, __VA_ARGS__); \
	}

CALL(is_receive_refused, msg, recv,
     PARAMS(void *buf, size_t len, void *desc, fi_addr_t from, void *context), buf, len, desc, from,
     context)
CALL(is_receive_refused, msg, recvv,
     PARAMS(const struct iovec *iov, void **desc, size_t n, fi_addr_t from, void *context), iov,
     desc, n, from, context)
CALL(is_receive_refused, msg, recvmsg, PARAMS(const struct fi_msg *m, uint64_t flags), m, flags)
CALL(is_refused, msg, send,
     PARAMS(const void *buf, size_t len, void *desc, fi_addr_t to, void *context), buf, len, desc,
     to, context)
CALL(is_refused, msg, sendv,
     PARAMS(const struct iovec *iov, void **desc, size_t n, fi_addr_t to, void *context), iov, desc,
     n, to, context)
CALL(is_refused, msg, sendmsg, PARAMS(const struct fi_msg *m, uint64_t flags), m, flags)
CALL(is_refused, msg, inject, PARAMS(const void *buf, size_t len, fi_addr_t to), buf, len, to)
CALL(is_refused, msg, senddata,
     PARAMS(const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context),
     buf, len, desc, data, to, context)
CALL(is_refused, msg, injectdata, PARAMS(const void *buf, size_t len, uint64_t data, fi_addr_t to),
     buf, len, data, to)

CALL(is_refused, rma, read,
     PARAMS(void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr, uint64_t key,
	    void *context),
     buf, len, desc, to, addr, key, context)
CALL(is_refused, rma, readmsg, PARAMS(const struct fi_msg_rma *m, uint64_t flags), m, flags)
CALL(is_refused, rma, write,
     PARAMS(const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr, uint64_t key,
	    void *context),
     buf, len, desc, to, addr, key, context)
CALL(is_refused, rma, writemsg, PARAMS(const struct fi_msg_rma *m, uint64_t flags), m, flags)

CALL(is_receive_refused, tagged, recvmsg, PARAMS(const struct fi_msg_tagged *m, uint64_t flags), m,
     flags)
CALL(is_refused, tagged, sendmsg, PARAMS(const struct fi_msg_tagged *m, uint64_t flags), m, flags)
CALL(is_refused, tagged, inject, PARAMS(const void *buf, size_t len, fi_addr_t to, uint64_t tag),
     buf, len, to, tag)

CALL(is_refused, atomic, writemsg, PARAMS(const struct fi_msg_atomic *m, uint64_t flags), m, flags)

#define WRAP(object, table)                                                                       \
	((object)->table = (object)->table ? table_copy((object)->table, (object)->table->size) : \
					     NULL)

static int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		   void *context)
{
	int ret = no_resources(true);
	struct fid_ep *ep;

	if (!ret)
		ret = BASE(domain->ops)->endpoint(domain, info, out, context);
	if (ret)
		return ret;
	ep = *out;
	if (WRAP(ep, msg)) {
		HEAD(ep->msg)->spares_receives = info->ep_attr->type != FI_EP_MSG;
		ep->msg->recv = msg_recv;
		ep->msg->recvv = msg_recvv;
		ep->msg->recvmsg = msg_recvmsg;
		ep->msg->send = msg_send;
		ep->msg->sendv = msg_sendv;
		ep->msg->sendmsg = msg_sendmsg;
		ep->msg->inject = msg_inject;
		ep->msg->senddata = msg_senddata;
		ep->msg->injectdata = msg_injectdata;
	}
	if (WRAP(ep, rma)) {
		ep->rma->read = rma_read;
		ep->rma->readmsg = rma_readmsg;
		ep->rma->write = rma_write;
		ep->rma->writemsg = rma_writemsg;
	}
	if (WRAP(ep, tagged)) {
		HEAD(ep->tagged)->spares_receives = info->ep_attr->type != FI_EP_MSG;
		ep->tagged->recvmsg = tagged_recvmsg;
		ep->tagged->sendmsg = tagged_sendmsg;
		ep->tagged->inject = tagged_inject;
	}
	if (WRAP(ep, atomic))
		ep->atomic->writemsg = atomic_writemsg;
	fid_wrap(&ep->fid, (void *[]){ ep->msg, ep->rma, ep->tagged, ep->atomic });
	return 0;
}

/* --- queues ------------------------------------------------------------------------ */

/*
 * Whether this read returns nothing. A read of no entries makes progress, as any read does, and
 * tells whether there is a completion or an error. tcp's progress takes the descriptor's signal
 * for entries that the reader will take, so there is another: a thread may sleep on the
 * descriptor.
 */
static bool is_held(struct fid_cq *cq, void *buf, size_t count)
{
	struct head *head = HEAD(cq->ops);

	if (!count || head->ends != ends || !strikes_again(HOLD, &head->left, MOST_READS))
		return false;
	if (BASE(cq->ops)->read(cq, buf, 0) != -FI_EAGAIN && head->has_fd)
		BASE(cq->ops)->signal(cq);
	return true;
}

/* libfabric's fi_trywait() reads no entries to see whether there is one. */
static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	unsigned seen = ends;
	ssize_t n;

	if (is_held(cq, buf, count))
		return -FI_EAGAIN;
	if (count > 1 && strikes(BATCH))
		count = 1 + draw(count - 1);
	n = BASE(cq->ops)->read(cq, buf, count);
	if (n == -FI_EAGAIN)
		HEAD(cq->ops)->ends = seen;
	return n;
}

static ssize_t cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *from)
{
	unsigned seen = ends;
	ssize_t n;

	if (is_held(cq, buf, count))
		return -FI_EAGAIN;
	if (count > 1 && strikes(BATCH))
		count = 1 + draw(count - 1);
	n = BASE(cq->ops)->readfrom(cq, buf, count, from);
	if (n == -FI_EAGAIN)
		HEAD(cq->ops)->ends = seen;
	return n;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		   void *context)
{
	int ret = no_resources(attr->wait_obj != FI_WAIT_NONE);
	struct fid_cq *cq;

	if (!ret)
		ret = BASE(domain->ops)->cq_open(domain, attr, out, context);
	if (ret)
		return ret;
	cq = *out;
	WRAP(cq, ops);
	HEAD(cq->ops)->has_fd = attr->wait_obj == FI_WAIT_FD;
	cq->ops->read = cq_read;
	cq->ops->readfrom = cq_readfrom;
	fid_wrap(&cq->fid, (void *[4]){ cq->ops });
	return 0;
}

/* An event read from the provider and not yet delivered. held_lock protects it and the list. */
struct held_event {
	struct held_event *next;
	bool is;
	bool armed; /* fi_trywait() found nothing: its caller may read once more, and then sleep */
	uint32_t number;
	ssize_t size;
	char data[1024];
};

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static struct held_event *held_events;

/* A provider drops the events of an endpoint that is closed. */
static void held_drop(const struct fid *fid)
{
	struct held_event *h;

	pthread_mutex_lock(&held_lock);
	for (h = held_events; h; h = h->next)
		if (h->is && ((const struct fi_eq_cm_entry *)h->data)->fid == fid)
			h->is = false;
	pthread_mutex_unlock(&held_lock);
}

static void held_free(struct held_event *held)
{
	struct held_event **at = &held_events;

	if (!held)
		return;
	pthread_mutex_lock(&held_lock);
	while (*at != held)
		at = &(*at)->next;
	*at = held->next;
	pthread_mutex_unlock(&held_lock);
	free(held);
}

/*
 * Fetches the next event into the empty @h, if it shall be held back. Else returns the read's
 * result.
 */
static ssize_t eq_fetch(struct fid_eq *eq, struct held_event *h, uint32_t *event, void *buf,
			size_t len)
{
	ssize_t n = BASE(eq->ops)->read(eq, event, buf, len, 0);

	if (n == -FI_EAVAIL || (n >= 0 && *event == FI_SHUTDOWN))
		atomic_fetch_add(&ends, 1);
	if (n < 0 || n > (ssize_t)sizeof(h->data) || h->armed || !strikes(EVENTS)) {
		h->armed = false;
		return n;
	}
	memcpy(h->data, buf, (size_t)n);
	h->number = *event;
	h->size = n;
	HEAD(eq->ops)->left = draw(MOST_READS);
	h->is = true;
	return -FI_EAGAIN;
}

/*
 * One thread reads an event queue. libfabric's fi_trywait() looks whether there is an event, and
 * its fi_eq_readerr() is a read with a flag.
 */
static ssize_t eq_read_locked(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			      uint64_t flags)
{
	struct held_event *h = HEAD(eq->ops)->held;

	if (!h->is && flags)
		return BASE(eq->ops)->read(eq, event, buf, len, flags);
	if (!h->is)
		return eq_fetch(eq, h, event, buf, len);
	if (flags & FI_PEEK)
		return h->size;
	if (atomic_fetch_sub(&HEAD(eq->ops)->left, 1) > 0)
		return -FI_EAGAIN;
	*event = h->number;
	memcpy(buf, h->data, (size_t)h->size);
	h->is = false;
	return h->size;
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	ssize_t n;

	pthread_mutex_lock(&held_lock);
	n = eq_read_locked(eq, event, buf, len, flags);
	pthread_mutex_unlock(&held_lock);
	return n;
}

static int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		   void *context)
{
	int ret = no_resources(true);
	struct fid_eq *eq;

	if (!ret)
		ret = BASE(fabric->ops)->eq_open(fabric, attr, out, context);
	if (ret)
		return ret;
	eq = *out;
	WRAP(eq, ops);
	HEAD(eq->ops)->held = calloc(1, sizeof(struct held_event));
	if (!HEAD(eq->ops)->held)
		abort();
	pthread_mutex_lock(&held_lock);
	HEAD(eq->ops)->held->next = held_events;
	held_events = HEAD(eq->ops)->held;
	pthread_mutex_unlock(&held_lock);
	eq->ops->read = eq_read;
	fid_wrap(&eq->fid, (void *[4]){ eq->ops });
	return 0;
}

/* --- memory and addresses --------------------------------------------------------------- */

#define MR_BASE(fid) BASE(((struct fid_domain *)(fid))->mr)

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const int ret = no_resources(false);

	return ret ? ret :
		     MR_BASE(fid)->reg(fid, buf, len, access, offset, key, flags, mr, context);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const int ret = no_resources(false);

	return ret ? ret :
		     MR_BASE(fid)->regv(fid, iov, count, access, offset, key, flags, mr, context);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	const int ret = no_resources(false);

	return ret ? ret : MR_BASE(fid)->regattr(fid, attr, flags, mr);
}

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context)
{
	const int ret = no_resources(false);

	return ret ? ret : BASE(domain->ops)->av_open(domain, attr, av, context);
}

/* --- domains and fabrics -------------------------------------------------------------- */

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	int ret = no_resources(true);
	struct fid_domain *domain;

	if (!ret)
		ret = BASE(fabric->ops)->domain(fabric, info, out, context);
	if (ret)
		return ret;
	domain = *out;
	WRAP(domain, ops);
	domain->ops->endpoint = ep_open;
	domain->ops->cq_open = cq_open;
	domain->ops->av_open = av_open;
	if (WRAP(domain, mr)) {
		domain->mr->reg = mr_reg;
		domain->mr->regv = mr_regv;
		domain->mr->regattr = mr_regattr;
	}
	fid_wrap(&domain->fid, (void *[4]){ domain->ops, domain->mr });
	return 0;
}

static int passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			void *context)
{
	const int ret = no_resources(true);

	return ret ? ret : BASE(fabric->ops)->passive_ep(fabric, info, pep, context);
}

/* Where fi_trywait() does not read the queue (libfabric 2.x), it would miss a held event. */
static bool is_holding(const struct fid *fid)
{
	const struct fid_eq *eq = (const struct fid_eq *)fid;
	bool is;

	if (fid->fclass != FI_CLASS_EQ)
		return false;
	pthread_mutex_lock(&held_lock);
	is = HEAD(eq->ops)->held->is;
	HEAD(eq->ops)->held->armed = !is;
	pthread_mutex_unlock(&held_lock);
	return is;
}

static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (is_holding(fids[i]))
			return -FI_EAGAIN;
	return strikes(TRYWAIT) ? -FI_EAGAIN : BASE(fabric->ops)->trywait(fabric, fids, count);
}

typedef int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* libfabric's own function: the provider that loads it keeps its symbols to itself. */
static fabric_open *base_fabric(void)
{
	void *libfabric = dlopen("libfabric.so.1", RTLD_LAZY);
	fabric_open *open = libfabric ? (fabric_open *)dlsym(libfabric, "fi_fabric") : NULL;

	if (!open)
		abort();
	return open;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	int ret = no_resources(false);
	struct fid_fabric *fabric;

	if (!ret)
		ret = base_fabric()(attr, out, context);
	if (ret)
		return ret;
	fabric = *out;
	WRAP(fabric, ops);
	fabric->ops->domain = domain_open;
	fabric->ops->eq_open = eq_open;
	fabric->ops->passive_ep = passive_open;
	fabric->ops->trywait = fabric_trywait;
	fid_wrap(&fabric->fid, (void *[4]){ fabric->ops });
	return 0;
}
