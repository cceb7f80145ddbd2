/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A preload library that injects into the calls of libfabric what any provider may do at any time:
 *
 *	again	a data call returns -FI_EAGAIN, alone or in a burst. All providers: full queues.
 *	stall	the data calls of an endpoint return -FI_EAGAIN for a second. All: a peer that takes
 *		nothing. Only if DAT_CHAOS has a rate: an end waits 100 ms for the peer.
 *	batch	a read of a completion queue returns fewer completions than there are. sockets reads
 *		one ring entry at a time, tcp stops at an error entry.
 *	hold	completions appear after some reads that return none. verbs, EFA: the device's time.
 *	late	completions appear after 50 ms. The same, and the network's time.
 *	order	completions of two connections are exchanged. All: fi_cq(3) orders one connection.
 *	error	an operation that was executed fails, with the codes of a provider. Half of the
 *		endpoints are then shut down, as by tcp (xnet_ep_disable); verbs leaves that to the
 *		program. Only if DAT_CHAOS has a rate, as programs notice it.
 *	events	events appear after some reads that return none. All: another thread adds them.
 *	trywait	fi_trywait returns -FI_EAGAIN although nothing has come: fi_poll(3) allows it.
 *	wake	a descriptor wakes the thread for nothing. tcp: the sockets of all connections.
 *	open	a call that creates an object returns -FI_ENOMEM, or -FI_EMFILE if it has a
 *		descriptor; fi_enable() -FI_ENOSPC. All: calloc(), socket(), epoll_create(). shm:
 *		smr_create(), in a full /dev/shm. Only with a rate, too.
 *	accept	fi_accept() fails: the requester is gone. tcp: xnet_send_cm_msg(), after an error of
 *		the socket. Only with a rate, too.
 *	connect	fi_connect() fails, or the peer never answers. tcp: connect(2). verbs: lost packets.
 *		Only with a rate, too.
 *	far	not a rate: microseconds from the arrival of a completion until a read returns it,
 *		in order. Simulates a distant peer, without other faults. Connectionless endpoints
 *		only: completions outlive their endpoint.
 *
 * Not injected: -FI_EBUSY of fi_close(), which every provider returns while objects of the closed
 * one are open, and none for a time. An end that overtakes completions, see fid_close().
 *
 * DAT_CHAOS: the seed, and one in how many calls has a fault, 0 for none: "seed=1,again=16". What
 * it does not name has the rate below. DAT_CHAOS_COUNTS: a file of 8 bytes for each kind, in this
 * order, with the number of faults that all processes have injected.
 */
#include "words.h"

#include <dlfcn.h>
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
#include <time.h>
#include <unistd.h>

#define MOST_READS 50  /* without a result, before a held completion or event appears */
#define MOST_BURST 100 /* data calls */
#define STALL_NS 1000000000
#define LATE_NS 50000000

enum kind {
	AGAIN,
	STALL,
	BATCH,
	HOLD,
	LATE,
	ORDER,
	ERROR,
	EVENTS,
	TRYWAIT,
	WAKE,
	OPEN,
	ACCEPT,
	CONNECT,
	KINDS,
	FAR = KINDS
};

static unsigned rate[KINDS] = {
	[AGAIN] = 16, [BATCH] = 4,   [HOLD] = 32,   [LATE] = 4000,
	[ORDER] = 4,  [EVENTS] = 16, [TRYWAIT] = 8, [WAKE] = 16,
};
static uint64_t seed = 1;
static _Atomic uint64_t *counts;
static int64_t far_ns;

static void far_begin(unsigned long us)
{
	far_ns = us * 1000;
	memset(rate, 0, sizeof(rate));
}

__attribute__((constructor)) static void begin(void)
{
	static char *const names[] = {
		"again",   "stall", "batch", "hold",   "late",	  "order", "error", "events",
		"trywait", "wake",  "open",  "accept", "connect", "far",   "seed",  NULL,
	};
	static _Atomic uint64_t own[KINDS];
	const char *wanted = getenv("DAT_CHAOS");
	char *copy = wanted ? strdup(wanted) : NULL, *rest = copy, *value;
	int i;

	while (rest && *rest) {
		i = getsubopt(&rest, names, &value);
		if (i < 0 || !value) {
			fprintf(stderr, "faults: DAT_CHAOS=%s is malformed\n", wanted);
			abort();
		}
		if (i < KINDS)
			rate[i] = strtoul(value, NULL, 0);
		else if (i == FAR)
			far_begin(strtoul(value, NULL, 0));
		else
			seed = strtoull(value, NULL, 0);
	}
	free(copy);
	counts = words_map("DAT_CHAOS_COUNTS", own, sizeof(own));
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

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/*
 * As strikes_again(), for the calls within @ns. Such times are twice as long apart, as the provider
 * waits 100 ms for the last completions.
 */
static bool strikes_for(enum kind kind, _Atomic int64_t *until, int64_t ns)
{
	const int64_t t = rate[kind] ? now() : 0;

	if (!rate[kind] || (t >= *until && t < *until + 2 * ns))
		return false;
	if (t < *until) {
		atomic_fetch_add(&counts[kind], 1);
		return true;
	}
	if (!strikes(kind))
		return false;
	*until = t + ns;
	return true;
}

/* Of the program's own libfabric: the provider keeps the symbols of its libraries to itself. */
static void *libfabric_symbol(const char *name)
{
	void *libfabric = dlopen("libfabric.so.1", RTLD_LAZY);
	void *symbol = libfabric ? dlsym(libfabric, name) : NULL;

	if (!symbol)
		abort();
	return symbol;
}

/* Whether the caller at @from is rxm, over a fabric of its own. */
static bool is_libfabric(void *from)
{
	Dl_info info;

	return dladdr(from, &info) && strstr(info.dli_fname, "libfabric");
}

/* --- tables of operations ------------------------------------------------------ */

struct held_event;

/*
 * An object's tables are replaced by copies, each behind such a head. The copy with fi_close()
 * knows the others. A library newer than the headers here has longer tables.
 */
struct head {
	const void *base;
	void *also[5];
	_Atomic int left;	      /* calls that are still to have a fault */
	_Atomic int64_t until;	      /* calls before this time have a fault */
	_Atomic bool spares_receives; /* of operations of an endpoint */
	_Atomic bool has_read;	      /* of operations of an endpoint: a read was posted */
	bool of_connection;	      /* of an endpoint's connection management */
	/* of a completion queue: */
	bool has_fd;
	size_t entry_size;
	_Atomic unsigned ends;	      /* when it was last known to be empty */
	struct fi_cq_err_entry error; /* to be read; one thread reads a queue at a time */
	bool has_error;
	struct far *far;
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
	free(HEAD(table)->far);
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
static void held_reject(struct fid_pep *pep);
static void notes_drop(const struct fid *fid);

static int fid_close(struct fid *fid)
{
	struct fi_ops *ops = fid->ops;
	const size_t class = fid->fclass;
	size_t i;
	int ret;

	if (class == FI_CLASS_EP)
		notes_drop(fid);
	if (class == FI_CLASS_PEP)
		held_reject((struct fid_pep *)fid);
	ret = BASE(ops)->close(fid);
	if (ret)
		return ret;
	if (class == FI_CLASS_EP) {
		atomic_fetch_add(&ends, 1);
		held_drop(fid);
	}
	for (i = 0; i < 5; i++)
		table_free(HEAD(ops)->also[i]);
	table_free(ops);
	return 0;
}

/* Replaces the table of fi_close(); @also are the other tables of the object. */
static void fid_wrap(struct fid *fid, void *const also[5])
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

/*
 * The endpoints of the contexts that were posted last. notes_lock is also held while an endpoint
 * that was found here is used.
 */
static struct note {
	void *context;
	struct fid_ep *ep;
} notes[1 << 14];
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

static struct note *note_of(const void *context)
{
	return &notes[((uintptr_t)context * 0x9e3779b97f4a7c15u) >> 50];
}

static void note(void *context, struct fid_ep *ep)
{
	if (!context || (!rate[ORDER] && !rate[ERROR]))
		return;
	pthread_mutex_lock(&notes_lock);
	*note_of(context) = (struct note){ context, ep };
	pthread_mutex_unlock(&notes_lock);
}

/* The endpoint that @context was posted to; NULL: not known. notes_lock held. */
static struct fid_ep *noted(const void *context)
{
	const struct note *n = note_of(context);

	return n->context == context ? n->ep : NULL;
}

static void notes_drop(const struct fid *fid)
{
	size_t i;

	pthread_mutex_lock(&notes_lock);
	for (i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].ep && &notes[i].ep->fid == fid)
			notes[i] = (struct note){ NULL, NULL };
	pthread_mutex_unlock(&notes_lock);
}

static bool is_refused(void *table)
{
	HEAD(table)->spares_receives = false;
	return strikes_for(STALL, &HEAD(table)->until, STALL_NS) ||
	       strikes_again(AGAIN, &HEAD(table)->left, MOST_BURST);
}

/*
 * A connectionless endpoint has a queue of its own for receives, which the program fills before it
 * sends: rxm, EFA and sockets refuse none of these.
 */
static bool is_receive_refused(void *table)
{
	return !HEAD(table)->spares_receives && is_refused(table);
}

static bool is_read_refused(void *table)
{
	HEAD(table)->has_read = true;
	return is_refused(table);
}

#define PARAMS(...) struct fid_ep *ep, __VA_ARGS__
#define CALL(refused, table, name, noted_context, params, ...) \
	static ssize_t table##_##name(params)                  \
	{                                                      \
		if (refused(ep->table))                        \
			return -FI_EAGAIN;                     \
		note(noted_context, ep);                       \
		return BASE(ep->table)->name(ep, __VA_ARGS__); \
	}

CALL(is_receive_refused, msg, recv, context,
     PARAMS(void *buf, size_t len, void *desc, fi_addr_t from, void *context), buf, len, desc, from,
     context)
CALL(is_receive_refused, msg, recvv, context,
     PARAMS(const struct iovec *iov, void **desc, size_t n, fi_addr_t from, void *context), iov,
     desc, n, from, context)
CALL(is_receive_refused, msg, recvmsg, m->context, PARAMS(const struct fi_msg *m, uint64_t flags),
     m, flags)
CALL(is_refused, msg, send, context,
     PARAMS(const void *buf, size_t len, void *desc, fi_addr_t to, void *context), buf, len, desc,
     to, context)
CALL(is_refused, msg, sendv, context,
     PARAMS(const struct iovec *iov, void **desc, size_t n, fi_addr_t to, void *context), iov, desc,
     n, to, context)
CALL(is_refused, msg, sendmsg, m->context, PARAMS(const struct fi_msg *m, uint64_t flags), m, flags)
CALL(is_refused, msg, inject, NULL, PARAMS(const void *buf, size_t len, fi_addr_t to), buf, len, to)
CALL(is_refused, msg, senddata, context,
     PARAMS(const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context),
     buf, len, desc, data, to, context)
CALL(is_refused, msg, injectdata, NULL,
     PARAMS(const void *buf, size_t len, uint64_t data, fi_addr_t to), buf, len, data, to)

CALL(is_read_refused, rma, read, context,
     PARAMS(void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr, uint64_t key,
	    void *context),
     buf, len, desc, to, addr, key, context)
CALL(is_read_refused, rma, readmsg, m->context, PARAMS(const struct fi_msg_rma *m, uint64_t flags),
     m, flags)
CALL(is_refused, rma, write, context,
     PARAMS(const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr, uint64_t key,
	    void *context),
     buf, len, desc, to, addr, key, context)
CALL(is_refused, rma, writemsg, m->context, PARAMS(const struct fi_msg_rma *m, uint64_t flags), m,
     flags)

CALL(is_receive_refused, tagged, recvmsg, m->context,
     PARAMS(const struct fi_msg_tagged *m, uint64_t flags), m, flags)
CALL(is_refused, tagged, sendmsg, m->context, PARAMS(const struct fi_msg_tagged *m, uint64_t flags),
     m, flags)
CALL(is_refused, tagged, inject, NULL,
     PARAMS(const void *buf, size_t len, fi_addr_t to, uint64_t tag), buf, len, to, tag)

CALL(is_refused, atomic, writemsg, m->context,
     PARAMS(const struct fi_msg_atomic *m, uint64_t flags), m, flags)

static int ep_control(struct fid *fid, int command, void *arg)
{
	if (command == FI_ENABLE && strikes(OPEN))
		return -FI_ENOSPC;
	return BASE(fid->ops)->control(fid, command, arg);
}

static int cm_accept(struct fid_ep *ep, const void *param, size_t len)
{
	return strikes(ACCEPT) ? -FI_ECONNRESET : BASE(ep->cm)->accept(ep, param, len);
}

static int cm_connect(struct fid_ep *ep, const void *address, const void *param, size_t len)
{
	if (strikes(CONNECT))
		return draw(2) ? -FI_EADDRNOTAVAIL : 0;
	return BASE(ep->cm)->connect(ep, address, param, len);
}

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
	if (WRAP(ep, cm)) {
		HEAD(ep->cm)->of_connection = info->ep_attr->type == FI_EP_MSG;
		ep->cm->accept = cm_accept;
		ep->cm->connect = cm_connect;
	}
	fid_wrap(&ep->fid, (void *[5]){ ep->msg, ep->rma, ep->tagged, ep->atomic, ep->cm });
	ep->fid.ops->control = ep_control;
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

	if (!count || head->ends != ends ||
	    !(strikes_for(LATE, &head->until, LATE_NS) ||
	      strikes_again(HOLD, &head->left, MOST_READS)))
		return false;
	if (BASE(cq->ops)->read(cq, buf, 0) != -FI_EAGAIN && head->has_fd)
		BASE(cq->ops)->signal(cq);
	return true;
}

/* Exchanges completions of different endpoints that follow each other. */
static void reorder(struct fid_cq *cq, char *entries, ssize_t n)
{
	const size_t size = HEAD(cq->ops)->entry_size;
	char kept[sizeof(struct fi_cq_tagged_entry)], *at;
	const struct fid_ep *first, *second;

	for (at = entries; n > 1; n--, at += size) {
		pthread_mutex_lock(&notes_lock);
		first = noted(((struct fi_cq_entry *)at)->op_context);
		second = noted(((struct fi_cq_entry *)(at + size))->op_context);
		pthread_mutex_unlock(&notes_lock);
		if (!first || !second || first == second || !strikes(ORDER))
			continue;
		memcpy(kept, at, size);
		memcpy(at, at + size, size);
		memcpy(at + size, kept, size);
	}
}

typedef uint32_t version(void);

/*
 * Whether fi_shutdown() stands for tcp's own end of @ep. tcp of 1.17 ends it outside the reply to a
 * read, and a call within the reply frees the read twice: docs/libfabric-defects.md.
 */
static bool may_shut(struct fid_ep *ep)
{
	return !ep->rma || !HEAD(ep->rma)->has_read ||
	       FI_VERSION_GE(((version *)libfabric_symbol("fi_version"))(), FI_VERSION(1, 18));
}

/*
 * Whether the completion in @entry becomes an error, with codes of verbs (vrb_poll_cq: FI_EIO and
 * the status: remote access, retries, RNR), tcp (xnet_progress_tx: the error of the socket), EFA
 * (efa_rdm_cq.c: FI_EIO and the device's status), or shm (smr_progress.c; negative in 1.17).
 */
static bool becomes_error(struct fid_cq *cq, const struct fi_cq_msg_entry *entry)
{
	static const struct {
		int err, prov_errno;
	} codes[] = {
		{ FI_EIO, 10 },	      { FI_EIO, 12 }, { FI_EIO, 13 },	 { EPIPE, 0 },
		{ FI_ECONNRESET, 0 }, { FI_EIO, 4 },  { -FI_EACCES, 0 },
	};
	struct head *head = HEAD(cq->ops);
	const unsigned code = draw(sizeof(codes) / sizeof(*codes));
	struct fid_ep *ep;

	if (head->entry_size < sizeof(*entry) || !(entry->flags & (FI_SEND | FI_READ | FI_WRITE)))
		return false;
	pthread_mutex_lock(&notes_lock);
	ep = noted(entry->op_context);
	head->has_error = ep && strikes(ERROR);
	if (head->has_error && ep->cm && HEAD(ep->cm)->of_connection && draw(2) && may_shut(ep))
		fi_shutdown(ep, 0);
	pthread_mutex_unlock(&notes_lock);
	head->error = (struct fi_cq_err_entry){
		.op_context = entry->op_context,
		.flags = entry->flags,
		.err = codes[code].err,
		.prov_errno = codes[code].prov_errno,
	};
	return head->has_error;
}

/* Whether a read shall return nothing, or an error, instead of being passed on. */
static ssize_t read_instead(struct fid_cq *cq, void *buf, size_t count)
{
	if (HEAD(cq->ops)->has_error)
		return -FI_EAVAIL;
	return is_held(cq, buf, count) ? -FI_EAGAIN : 0;
}

/* One entry is read where it may become an error, as none may be behind that. */
static size_t entries_to_read(size_t count)
{
	if (count > 1 && rate[ERROR] && !draw(8))
		return 1;
	return count > 1 && strikes(BATCH) ? 1 + draw(count - 1) : count;
}

static ssize_t have_read(struct fid_cq *cq, void *buf, ssize_t n, unsigned seen)
{
	if (n == -FI_EAGAIN)
		HEAD(cq->ops)->ends = seen;
	return n == 1 && rate[ERROR] && becomes_error(cq, buf) ? -FI_EAVAIL : n;
}

/* Completions in transit. One thread reads a queue at a time. */
struct far {
	unsigned head, tail;
	struct {
		int64_t due;
		struct fi_cq_tagged_entry entry;	/* has room for an entry of any format */
	} at[1 << 14];
};

#define FAR_SIZE (sizeof(((struct far *)NULL)->at) / sizeof(((struct far *)NULL)->at[0]))

static ssize_t far_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct head *head = HEAD(cq->ops);
	struct far *far = head->far;
	const int64_t at_now = now();
	unsigned at;
	ssize_t n = 0;

	while (far->tail - far->head < FAR_SIZE) {
		at = far->tail % FAR_SIZE;
		n = BASE(cq->ops)->read(cq, &far->at[at].entry, 1);
		if (n != 1)
			break;
		far->at[at].due = at_now + far_ns;
		far->tail++;
	}
	if (far->head == far->tail)
		return n;
	for (n = 0; (size_t)n < count && far->head != far->tail; n++, far->head++) {
		at = far->head % FAR_SIZE;
		if (far->at[at].due > at_now)
			break;
		memcpy((char *)buf + n * head->entry_size, &far->at[at].entry, head->entry_size);
	}
	return n ? n : -FI_EAGAIN;
}

/* libfabric's fi_trywait() reads no entries to see whether there is one. */
static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	const unsigned seen = ends;
	ssize_t n;

	if (HEAD(cq->ops)->far)
		return far_read(cq, buf, count);
	n = read_instead(cq, buf, count);
	if (n)
		return n;
	n = BASE(cq->ops)->read(cq, buf, entries_to_read(count));
	reorder(cq, buf, n);
	return have_read(cq, buf, n, seen);
}

static ssize_t cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *from)
{
	const unsigned seen = ends;
	ssize_t n = read_instead(cq, buf, count);

	if (n)
		return n;
	n = BASE(cq->ops)->readfrom(cq, buf, entries_to_read(count), from);
	return have_read(cq, buf, n, seen);
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *error, uint64_t flags)
{
	struct head *head = HEAD(cq->ops);

	if (!head->has_error)
		return BASE(cq->ops)->readerr(cq, error, flags);
	head->has_error = false;
	*error = head->error;
	return 1;
}

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
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
	HEAD(cq->ops)->entry_size = entry_size(attr->format);
	HEAD(cq->ops)->far = far_ns ? calloc(1, sizeof(struct far)) : NULL;
	cq->ops->read = cq_read;
	cq->ops->readfrom = cq_readfrom;
	cq->ops->readerr = cq_readerr;
	fid_wrap(&cq->fid, (void *[5]){ cq->ops });
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

typedef void freeinfo(struct fi_info *info);

/*
 * rxm closes its passive endpoint without reading the requests that have come. libfabric leaves the
 * sockets of these open (ofi_eq_cleanup()), which a request that is held back makes likely.
 */
static void held_reject(struct fid_pep *pep)
{
	struct held_event *h;

	pthread_mutex_lock(&held_lock);
	for (h = held_events; h; h = h->next) {
		const struct fi_eq_cm_entry *entry = (const struct fi_eq_cm_entry *)h->data;

		if (!h->is || h->number != FI_CONNREQ || entry->fid != &pep->fid)
			continue;
		fi_reject(pep, entry->info->handle, NULL, 0);
		((freeinfo *)libfabric_symbol("fi_freeinfo"))(entry->info);
		h->is = false;
	}
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
	fid_wrap(&eq->fid, (void *[5]){ eq->ops });
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
	fid_wrap(&domain->fid, (void *[5]){ domain->ops, domain->mr });
	return 0;
}

static int passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			void *context)
{
	int ret = no_resources(true);

	if (!ret)
		ret = BASE(fabric->ops)->passive_ep(fabric, info, pep, context);
	if (!ret && is_libfabric(__builtin_return_address(0)))
		fid_wrap(&(*pep)->fid, (void *[5]){ NULL }); /* for held_reject() */
	return ret;
}

/*
 * Where fi_trywait() does not read the queue (libfabric 2.x), it would miss a held event, and
 * completions in transit.
 */
static bool is_holding(const struct fid *fid)
{
	const struct fid_eq *eq = (const struct fid_eq *)fid;
	const struct far *far;
	bool is;

	if (fid->fclass == FI_CLASS_CQ) {
		far = HEAD(((const struct fid_cq *)fid)->ops)->far;
		return far && far->head != far->tail;
	}
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
	struct fid_cq *cq;
	int i, ret;

	for (i = 0; i < count; i++)
		if (is_holding(fids[i]))
			return -FI_EAGAIN;
	ret = strikes(TRYWAIT) ? -FI_EAGAIN : BASE(fabric->ops)->trywait(fabric, fids, count);
	for (i = 0; i < count && !ret; i++) {
		cq = (struct fid_cq *)fids[i];
		if (fids[i]->fclass == FI_CLASS_CQ && HEAD(cq->ops)->has_fd && strikes(WAKE))
			BASE(cq->ops)->signal(cq);
	}
	return ret;
}

typedef int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* Returns fi_fabric() of efa.c, if efa.so is loaded after this library, or of libfabric. */
static fabric_open *base_fabric(void)
{
	fabric_open *open = (fabric_open *)dlsym(RTLD_NEXT, "fi_fabric");

	return open ? open : (fabric_open *)libfabric_symbol("fi_fabric");
}

/*
 * Returns whether the fabric of the caller at @from gets no faults. Where operations fail, rxm's
 * inner fabric gets none: rxm ignores the failure of an injected frame, and waits without limit for
 * a connection.
 */
static bool is_spared(void *from)
{
	return (rate[ERROR] || rate[ACCEPT] || rate[CONNECT]) && is_libfabric(from);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	int ret = no_resources(false);
	struct fid_fabric *fabric;

	if (!ret)
		ret = base_fabric()(attr, out, context);
	if (ret || is_spared(__builtin_return_address(0)))
		return ret;
	fabric = *out;
	WRAP(fabric, ops);
	fabric->ops->domain = domain_open;
	fabric->ops->eq_open = eq_open;
	fabric->ops->passive_ep = passive_open;
	fabric->ops->trywait = fabric_trywait;
	fid_wrap(&fabric->fid, (void *[5]){ fabric->ops });
	return 0;
}
