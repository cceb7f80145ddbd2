/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints of the fake fabric. */

#include "fake_ep.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fake_eps fake_eps;

/* guards the notes on the last endpoint, because several may be opened at once */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint16_t port_of(const void *address)
{
	return address ? ntohs(((const struct sockaddr_in *)address)->sin_port) : 0;
}

static void note_data(const void *data, size_t len)
{
	fake_eps.len = len;
	memcpy(fake_eps.data, data, len < sizeof(fake_eps.data) ? len : sizeof(fake_eps.data));
}

/* Endpoints */

static int ep_close(struct fid *fid)
{
	fake_guarded();
	fake.open--;
	fake_eps.open--;
	free((struct fake_ep *)fid);
	return fake_eps.fault.close;
}

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_ep *ep = (struct fake_ep *)fid;

	fake_guarded();
	if (to == &fake.eq.fid) {
		ep->eq_bound = !fake_eps.fault.bind_eq;
		return fake_eps.fault.bind_eq;
	}
	ep->cq_bound = !fake_eps.fault.bind_cq && flags == (FI_TRANSMIT | FI_RECV);
	return fake_eps.fault.bind_cq;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct fake_ep *ep = (struct fake_ep *)fid;

	fake_guarded();
	if (command != FI_ENABLE || !ep->eq_bound || !ep->cq_bound)
		return -FI_EOPBADSTATE;
	ep->enabled = !fake_eps.fault.enable;
	return fake_eps.fault.enable;
}

static int ep_connect(struct fid_ep *fid, const void *address, const void *data, size_t len)
{
	fake_guarded();
	if (!((struct fake_ep *)fid)->enabled)
		return -FI_EOPBADSTATE;
	memcpy(&fake_eps.peer, address, sizeof(struct sockaddr_in));
	if (fake_eps.peer.ss_family == AF_INET6)
		memcpy(&fake_eps.peer, address, sizeof(struct sockaddr_in6));
	note_data(data, len);
	fake_eps.connected_to[fake_eps.connects++ % 32] = port_of(address);
	fake_eps.open_at_connect = fake_eps.open;
	fake_eps.ops_at_connect = fake_eps.ops;
	return fake_eps.fault.connect;
}

static int ep_accept(struct fid_ep *fid, const void *data, size_t len)
{
	fake_guarded();
	if (!((struct fake_ep *)fid)->enabled)
		return -FI_EOPBADSTATE;
	note_data(data, len);
	fake_eps.accepts++;
	fake_eps.ops_at_connect = fake_eps.ops;
	if (fake_eps.connects_at_accept)
		fake_event_add(&(struct fake_event){
			.event = FI_CONNECTED, .entry.fid = &fid->fid,
		});
	return fake_eps.fault.accept;
}

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	fake_guarded();
	fake_eps.shutdowns++;
	return 0;
}

static int get_name(fid_t fid, void *address, size_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (fid->fclass != FI_CLASS_PEP)
		return -FI_ENOSYS;
	in.sin_port = htons(((struct fake_pep *)fid)->port);
	if (!fake_eps.fault.getname)
		memcpy(address, &in, sizeof(in) < *len ? sizeof(in) : *len);
	*len = sizeof(in);
	return fake_eps.fault.getname;
}

/* Operations */

static ssize_t op(enum fake_op kind, const struct iovec *iov, size_t count, void *context)
{
	const int ret = fake_eps.fault.op;

	fake_guarded();
	if (ret && (!fake_eps.fault.op_only || fake_eps.fault.op_only == kind)) {
		if (fake_eps.fault.op_times && !--fake_eps.fault.op_times)
			fake_eps.fault.op = 0;
		return ret;
	}
	fake_eps.ops++;
	fake_eps.op = kind;
	fake_eps.count = count;
	memcpy(fake_eps.iov, iov, count * sizeof(*iov));
	fake_eps.context = context;
	fake_eps.remote_addr = fake_eps.remote_key = fake_eps.remote_len = fake_eps.flags = 0;
	fake_eps.cq_data = 0;
	return 0;
}

static ssize_t op_flat(enum fake_op kind, const void *buf, size_t len, void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return op(kind, &iov, 1, context);
}

static ssize_t ep_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
		       void *context)
{
	return op_flat(FAKE_SEND, buf, len, context);
}

static ssize_t ep_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t to, void *context)
{
	return op(FAKE_SENDV, iov, count, context);
}

/* Copies an injected message, because the caller may reuse its memory at once. */
static void keep(const struct iovec *iov)
{
	if (iov->iov_len > sizeof(fake_eps.injected))
		abort();
	memcpy(fake_eps.injected, iov->iov_base, iov->iov_len);
}

static ssize_t ep_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	ssize_t ret = op_flat(FAKE_INJECT, buf, len, NULL);

	if (!ret)
		keep(&fake_eps.iov[0]);
	return ret;
}

static ssize_t ep_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		       void *context)
{
	return op_flat(FAKE_RECV, buf, len, context);
}

static ssize_t ep_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t from, void *context)
{
	return op(FAKE_RECVV, iov, count, context);
}

static ssize_t note_remote(ssize_t ret, uint64_t addr, uint64_t key)
{
	fake_eps.remote_addr = addr;
	fake_eps.remote_key = key;
	return ret;
}

static ssize_t ep_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		       uint64_t addr, uint64_t key, void *context)
{
	return note_remote(op_flat(FAKE_READ, buf, len, context), addr, key);
}

static ssize_t ep_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t from, uint64_t addr, uint64_t key, void *context)
{
	return note_remote(op(FAKE_READV, iov, count, context), addr, key);
}

static ssize_t ep_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
			uint64_t addr, uint64_t key, void *context)
{
	return note_remote(op_flat(FAKE_WRITE_NOW, buf, len, context), addr, key);
}

static ssize_t ep_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = op(FAKE_WRITE, msg->msg_iov, msg->iov_count, msg->context);

	fake_eps.flags = flags;
	fake_eps.cq_data = msg->data;
	fake_eps.remote_len = msg->rma_iov_count == 1 ? msg->rma_iov->len : 0;
	return note_remote(ret, msg->rma_iov->addr, msg->rma_iov->key);
}

static ssize_t ep_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = op(FAKE_READMSG, msg->msg_iov, msg->iov_count, msg->context);

	fake_eps.flags = flags;
	return note_remote(ret, msg->rma_iov->addr, msg->rma_iov->key);
}

static bool is_word(size_t count, enum fi_datatype type)
{
	return count == 1 && type == FI_UINT64;
}

static ssize_t ep_fetch(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
			enum fi_datatype type, enum fi_op what, void *context)
{
	if (!is_word(count, type) || what != FI_SUM)
		return -FI_EOPNOTSUPP;
	fake_eps.operand = buf;
	return note_remote(op_flat(FAKE_FETCH_ADD, result, 8, context), addr, key);
}

static ssize_t ep_compare(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			  const void *compare, void *compare_desc, void *result, void *result_desc,
			  fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type,
			  enum fi_op what, void *context)
{
	if (!is_word(count, type) || what != FI_CSWAP)
		return -FI_EOPNOTSUPP;
	fake_eps.operand = buf;
	fake_eps.compare = compare;
	return note_remote(op_flat(FAKE_CMP_SWAP, result, 8, context), addr, key);
}

static ssize_t ep_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = fake_eps.fault.sendmsg;

	if (!ret)
		ret = op(FAKE_SENDMSG, msg->msg_iov, msg->iov_count, msg->context);
	if (ret)
		return ret;
	if (msg->iov_count)
		keep(&fake_eps.iov[0]);
	fake_eps.flags = flags;
	fake_eps.cq_data = msg->data;
	return ret;
}

static ssize_t ep_letter(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			 fi_addr_t to, uint64_t addr, uint64_t key)
{
	ssize_t ret = fake_eps.fault.letter;

	if (!ret)
		ret = op_flat(FAKE_LETTER, buf, len, NULL);
	if (ret)
		return ret;
	memcpy(fake_eps.letter, buf, len);
	fake_eps.cq_data = data;
	return note_remote(ret, addr, key);
}

/* Passive endpoints */

static bool is_busy(uint16_t port)
{
	size_t i;

	if (fake_eps.fault.busy_family && fake_eps.fault.busy_family != fake_eps.listened.ss_family)
		return false;
	for (i = 0; i < sizeof(fake_eps.fault.busy) / sizeof(fake_eps.fault.busy[0]); i++)
		if (port && fake_eps.fault.busy[i] == port)
			return true;
	return false;
}

static int pep_close(struct fid *fid)
{
	fake.open--;
	fake_eps.peps_open--;
	free((struct fake_pep *)fid);
	return 0;
}

static int pep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	((struct fake_pep *)fid)->bound = to == &fake.eq.fid || to == &fake.second_eq.fid;
	fake_eps.pep_eq = to;
	return fake_eps.fault.pep_bind;
}

static int pep_listen(struct fid_pep *fid)
{
	struct fake_pep *pep = (struct fake_pep *)fid;

	if (!pep->bound)
		return -FI_EOPBADSTATE;
	if (fake_eps.fault.listen)
		return fake_eps.fault.listen;
	if (is_busy(pep->port))
		return fake_eps.fault.busy_listen;
	pep->listens = true;
	return 0;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *data, size_t len)
{
	if (!((struct fake_pep *)fid)->listens)
		return -FI_EOPBADSTATE;
	note_data(data, len);
	fake_eps.handle = handle;
	fake_eps.rejects++;
	return fake_eps.fault.reject;
}

static int pep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	memcpy(value, &fake.cm_data_size, *len);
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(ep_fid_ops), .close = ep_close, .bind = ep_bind, .control = ep_control,
};
static struct fi_ops_cm cm_ops = {
	.size = sizeof(cm_ops), .getname = get_name, .connect = ep_connect, .accept = ep_accept,
	.shutdown = ep_shutdown, .listen = pep_listen, .reject = pep_reject,
};
static struct fi_ops_msg msg_ops = {
	.size = sizeof(msg_ops),
	.send = ep_send,
	.sendv = ep_sendv,
	.recv = ep_recv,
	.recvv = ep_recvv,
	.inject = ep_inject,
	.sendmsg = ep_sendmsg,
};

/* A cancelled receive completes with FI_ECANCELED. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	fake_guarded();
	fake_eps.cancels++;
	fake_complete(context, FI_ECANCELED);
	return 0;
}

static struct fi_ops_ep ep_ops = { .size = sizeof(ep_ops), .cancel = ep_cancel };
static struct fi_ops_rma rma_ops = {
	.size = sizeof(rma_ops), .read = ep_read, .readv = ep_readv, .write = ep_write,
	.writemsg = ep_writemsg,
	.injectdata = ep_letter, .readmsg = ep_readmsg,
};
static struct fi_ops_atomic atomic_ops = {
	.size = sizeof(atomic_ops), .readwrite = ep_fetch, .compwrite = ep_compare,
};
static struct fi_ops pep_fid_ops = { .size = sizeof(pep_fid_ops),
				     .close = pep_close,
				     .bind = pep_bind };
static struct fi_ops_ep pep_ops = { .size = sizeof(pep_ops), .getopt = pep_getopt };

static int endpoint(struct fi_info *info, struct fid_ep **out)
{
	struct fake_ep *ep;

	if (fake_eps.fault.endpoint_waits) {
		sem_post(&fake_eps.waits);
		while (sem_wait(&fake_eps.go))
			;
	}
	pthread_mutex_lock(&lock);
	fake_eps.source_len = info->src_addrlen;
	fake_eps.tclass = info->tx_attr ? info->tx_attr->tclass : 0;
	pthread_mutex_unlock(&lock);
	if (fake_eps.fault.endpoint)
		return fake_eps.fault.endpoint;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->fid = (struct fid_ep){
		.fid = { .fclass = FI_CLASS_EP, .ops = &ep_fid_ops }, .ops = &ep_ops,
		.cm = &cm_ops, .msg = &msg_ops, .rma = &rma_ops, .atomic = &atomic_ops,
	};
	fake.open++;
	fake_eps.open++;
	fake_eps.opened++;
	pthread_mutex_lock(&lock);
	fake_eps.last = *out = &ep->fid;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int passive_ep(struct fi_info *info, struct fid_pep **out)
{
	uint16_t port = port_of(info->src_addr);
	struct fake_pep *pep;

	fake_eps.tried[fake_eps.peps_opened++ % 32] = port;
	memset(&fake_eps.listened, 0, sizeof(fake_eps.listened));
	if (info->src_addr && info->src_addrlen <= sizeof(fake_eps.listened))
		memcpy(&fake_eps.listened, info->src_addr, info->src_addrlen);
	if (is_busy(port) && fake_eps.fault.busy_passive_ep)
		return fake_eps.fault.busy_passive_ep;
	if (port && port == fake_eps.fault.forbidden)
		return -FI_EACCES;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->fid = (struct fid_pep){
		.fid = { .fclass = FI_CLASS_PEP, .ops = &pep_fid_ops },
		.ops = &pep_ops,
		.cm = &cm_ops,
	};
	pep->port = port ? port : fake_eps.any_port;
	fake.open++;
	fake_eps.peps_open++;
	fake_eps.last_pep = *out = &pep->fid;
	return 0;
}

void fake_ep_init(void)
{
	fake.endpoint = endpoint;
	fake.passive_ep = passive_ep;
	sem_init(&fake_eps.waits, 0, 0);
	sem_init(&fake_eps.go, 0, 0);
}
