/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA on the fake fabric with a transport that only records requests. */

#include "fixture.h"

#include "base/env.h"
#include "check/check.h"
#include "xport/msg/msg.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

struct transport transport = { .taken = SUBMITS };
const struct dofi_datagrams *datagrams;
struct dofi_ia *ia;
DAT_PZ_HANDLE pz;
DAT_EVD_HANDLE evd;
DAT_LMR_HANDLE lmr;
DAT_LMR_CONTEXT lmr_context;
DAT_RMR_CONTEXT rmr_context;
char memory[4096];

/* An endpoint without a name, so that its socket is not searched for. */
static int no_name(fid_t fid, void *address, size_t *len)
{
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = { .size = sizeof(cm_ops), .getname = no_name };
static struct fid_ep fabric_ep = { .fid.fclass = FI_CLASS_EP, .cm = &cm_ops };

static int t_ia_init(struct dofi_ia *of)
{
	transport.ia_inits++;
	cr_expect(dofi_progress_on_thread(&of->progress));
	return transport.ia_init_result;
}

static void t_ia_fini(struct dofi_ia *of)
{
	transport.ia_finis++;
	cr_expect(dofi_progress_on_thread(&of->progress));
}

static int t_listen(struct dofi_sp *sp)
{
	transport.listens++;
	cr_expect(dofi_progress_on_thread(&sp->obj.ia->progress));
	/* it is published by now, but must not be found */
	cr_expect(!dofi_sp_find(sp->obj.ia, sp->conn_qual));
	if (!transport.listen_result && !sp->conn_qual)
		sp->conn_qual = transport.any_qual;
	return transport.listen_result;
}

static void t_unlisten(struct dofi_sp *sp)
{
	transport.unlistens++;
	cr_expect(dofi_progress_on_thread(&sp->obj.ia->progress));
}

static void fabric_ep_open(struct dofi_ep *ep)
{
	cr_expect(dofi_progress_on_thread(&ep->obj.ia->progress));
	dofi_mutex_lock(&ep->lock);
	ep->fid = &fabric_ep;
	ep->conn = &transport;
	dofi_ep_set_cq(ep, ep->cq);
	dofi_ep_open_queues(ep);
	dofi_dto_submit_pending(ep);
	dofi_mutex_unlock(&ep->lock);
	transport.connecting = ep;
}

static void t_connect(struct dofi_ep *ep)
{
	transport.connects++;
	fabric_ep_open(ep);
}

static void t_accept(struct dofi_ep *ep)
{
	transport.accepts++;
	ep->accepting = NULL;
	fabric_ep_open(ep);
}

static void t_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	cr_expect(dofi_progress_on_thread(&cr->obj.ia->progress));
	transport.rejects++;
	transport.why = why;
	transport.reject_size = size;
	if (size)
		memcpy(transport.reject_data, data, size);
	cr->request = NULL;
}

static void t_close(struct dofi_ep *ep)
{
	cr_expect(dofi_progress_on_thread(&ep->obj.ia->progress));
	dofi_mutex_lock(&ep->lock);
	transport.closes += ep->fid != NULL;
	ep->fid = NULL;
	ep->conn = NULL;
	dofi_ep_set_cq(ep, ep->cq);
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
}

static int t_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	int fail = transport.fail;

	transport.fail = 0;
	if (fail)
		return fail;
	if (!transport.taken)
		return -FI_EAGAIN;
	transport.taken--;
	transport.dto[transport.n] = dto;
	transport.remote_addr[transport.n] = dto->remote_addr;
	transport.remote_key[transport.n] = dto->remote_key;
	transport.context[transport.n++] = dofi_dto_context(dto);
	cr_assert(transport.n < SUBMITS);
	return 0;
}

static bool is_locked(struct dofi_mutex *mutex)
{
	return atomic_load(&mutex->locked);
}

/* Records a plain operation as t_submit() does, with its buffer as the segment. */
static ssize_t submit_plain(struct dofi_ep *ep, enum dofi_dto_kind kind, const void *buf,
			    size_t len, void *desc, void *context)
{
	struct dofi_dto *dto = dofi_dto_of(context);
	ssize_t ret;

	cr_expect_eq(dto->kind, kind);
	/* a refused operation is submitted again on the slow path */
	if (transport.fail || !transport.taken)
		return transport.fail ? transport.fail : -FI_EAGAIN;
	ret = t_submit(ep, dto);
	dto->n_iov = 1;
	dto->iov[0] = (struct iovec){ (void *)(uintptr_t)buf, len };
	dto->desc[0] = desc;
	transport.plain++;
	transport.at_ep = is_locked(&ep->lock);
	return ret;
}

static ssize_t t_send(struct fid_ep *to, const void *buf, size_t len, void *desc, uint64_t unused,
		      void *context)
{
	return submit_plain(dofi_fast_ep(to), DOFI_DTO_SEND, buf, len, desc, context);
}

/* A receive is recorded without its buffer, so that a test finds a use of it. */
static ssize_t t_recv(struct fid_ep *to, void *buf, size_t len, void *desc, uint64_t unused,
		      void *context)
{
	struct dofi_dto *dto = dofi_dto_of(context);
	const ssize_t ret = submit_plain(dofi_fast_ep(to), DOFI_DTO_RECV, buf, len, desc, context);

	dto->n_iov = 0;
	return ret;
}

static ssize_t submit_rdma(struct dofi_ep *ep, enum dofi_dto_kind kind, void *buf, size_t len,
			   void *desc, uint64_t addr, uint64_t key, void *context)
{
	const unsigned i = transport.n;
	const ssize_t ret = submit_plain(ep, kind, buf, len, desc, context);

	transport.remote_addr[i] = addr;
	transport.remote_key[i] = (uint32_t)key;
	return ret;
}

static ssize_t t_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		       uint64_t key, void *context)
{
	return submit_rdma(ep, DOFI_DTO_WRITE, buf, len, desc, addr, key, context);
}

static ssize_t t_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		      uint64_t key, void *context)
{
	return submit_rdma(ep, DOFI_DTO_READ, buf, len, desc, addr, key, context);
}

static bool t_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	return dto->at_fabric;
}

static void t_cancel(struct dofi_ep *ep, struct dofi_dto *dto)
{
	transport.cancels++;
	if (!transport.keeps)
		fake_complete(dofi_dto_context(dto), FI_ECANCELED);
}

static const struct dofi_progress_ops progress_ops = { .completed = dofi_dto_complete };

static void t_fast(struct dofi_ep *of, struct dofi_fast *fast)
{
	fast->send = t_send;
	fast->recv = t_recv;
	fast->to = dofi_fast_to(of);
}

static const struct dofi_xport_srq srq_ops = {
	.open = msg_srq_open,
	.close = msg_srq_close,
	.listen = msg_srq_listen,
	.arrived = msg_srq_arrived,
	.clear = msg_srq_clear,
};

const struct dofi_xport transport_ops = {
	.name = "test",
	.progress_ops = &progress_ops,
	.header_size = 12,
	.ia_init = t_ia_init,
	.ia_fini = t_ia_fini,
	.listen = t_listen,
	.unlisten = t_unlisten,
	.connect = t_connect,
	.accept = t_accept,
	.reject = t_reject,
	.close = t_close,
	.submit = t_submit,
	.fast = t_fast,
	.write = t_write,
	.read = t_read,
	.holds = t_holds,
	.cancel = t_cancel,
	.srq = &srq_ops,
	.srq_fed = msg_srq_fed,
};

static int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	*info = fake_info("tcp", "127.0.0.1");
	(*info)->ep_attr->max_msg_size = 1 << 20;
	(*info)->tx_attr->iov_limit = 6;
	(*info)->tx_attr->inject_size = 128;
	(*info)->rx_attr->iov_limit = 5;
	return 0;
}

void fabric_init(void)
{
	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	fake.getinfo = getinfo;
}

int ia_try_open(struct dofi_ia **out)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };
	const struct dofi_xports xports = {
		.connected = &transport_ops, .datagrams = datagrams,
	};
	const struct dofi_params any = { .provider = "" };
	int ret = dofi_ia_open(&provider, &any, &xports, true, out);

	if (!ret)
		dofi_caps_named_attrs(*out);
	return ret;
}

void ia_open_real(const struct dofi_xports *xports, const struct dofi_params *params)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };

	dofi_settings_read();
	dofi_settings.tick_us = 100;
	if (dofi_ia_open(&provider, params, xports, true, &ia)) {
		fprintf(stderr, "skipped: libfabric has no %s here\n", params->provider);
		exit(0);
	}
}

void ia_init(void)
{
	fabric_init();
	cr_assert_eq(ia_try_open(&ia), 0);
}

/* Where requests come from. */
static struct sockaddr_storage request_peer;

/* Closing the IA frees every object, of the fabric and of ours. */
void ia_fini(void)
{
#ifdef DOFI_CHECKS
	dofi_check_invariants();
#endif
	if (dofi_ia_check(ia))
		succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(dofi_ia_pool.used, 0);
	cr_expect_eq(dofi_pz_pool.used, 0);
	cr_expect_eq(dofi_lmr_pool.used, 0);
	cr_expect_eq(dofi_rmr_pool.used, 0);
	cr_expect_eq(dofi_cno_pool.used, 0);
	cr_expect_eq(dofi_evd_pool.used, 0);
	cr_expect_eq(dofi_ep_pool.used, 0);
	cr_expect_eq(dofi_psp_pool.used, 0);
	cr_expect_eq(dofi_rsp_pool.used, 0);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(dofi_csp_pool.used, 0);
#endif
	cr_expect_eq(dofi_cr_pool.used, 0);
	cr_expect_eq(dofi_exchange_pool.used, 0);
	memset(&request_peer, 0, sizeof(request_peer));
}

void objects_make(DAT_COUNT qlen)
{
	succeed(dofi_pz_create(ia, &pz));
	evd = evd_make(qlen, EVD_ALL_FLAGS);
	succeed(lmr_make(pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &lmr, &lmr_context,
			 &rmr_context));
}

void objects_init(void)
{
	ia_init();
	objects_make(64);
}

void objects_init_granting(void)
{
	ia_init();
	ia->fabric.target_rdma = true;
	objects_make(64);
}

void objects_init_serial(void)
{
	ia_init();
	ia->fabric.info->domain_attr->threading = FI_THREAD_COMPLETION;
	objects_make(64);
}

bool peer_may(DAT_RMR_CONTEXT context, uint32_t secret, uint64_t addr, uint64_t len,
		uint64_t access)
{
	struct dofi_grants *grants = &((struct dofi_pz *)pz)->domain.grants;
	const struct dofi_access use = {
		.key = context, .secret = secret, .addr = addr, .len = len, .access = access,
	};
	void *where;

	if (dofi_grant_enter(grants, &use, &where))
		return false;
	dofi_grant_leave(grants);
	return true;
}

DAT_EVD_HANDLE evd_make(DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE handle;

	succeed(dofi_evd_create(ia, qlen, DAT_HANDLE_NULL, flags, &handle));
	return handle;
}

void async_set(DAT_EVD_HANDLE handle)
{
	if (ia->async_evd)
		dofi_obj_put(&ia->async_evd->obj);
	ia->async_evd = handle;
	if (handle)
		dofi_obj_get(&ia->async_evd->obj);
}

DAT_EP_HANDLE ep_make(void)
{
	DAT_EP_HANDLE handle;

	succeed(dofi_ep_create(ia, pz, evd, evd, evd, NULL, &handle));
	return handle;
}

DAT_RETURN lmr_make(DAT_PZ_HANDLE in_pz, void *addr, DAT_VLEN len, DAT_MEM_PRIV_FLAGS priv,
		    DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *local, DAT_RMR_CONTEXT *remote)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = addr };

#if DAT_VERSION_MAJOR >= 2
	return dofi_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, len, in_pz, priv, DAT_VA_TYPE_VA,
			       out, local, remote, NULL, NULL);
#else
	return dofi_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, len, in_pz, priv, out, local,
			       remote, NULL, NULL);
#endif
}

static void nothing(void *arg)
{
}

void settle(void)
{
	dofi_progress_call(&ia->progress, nothing, NULL);
}

DAT_IA_ADDRESS_PTR some_address(void)
{
	static struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_port = htons(99);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return (DAT_IA_ADDRESS_PTR)&in;
}

void start_connecting(DAT_EP_HANDLE ep_handle)
{
	int before = transport.connects;

	succeed(dofi_ep_connect(ep_handle, some_address(), 4711, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	cr_assert_eq(transport.connects, before + 1);
}

struct establish_call {
	struct dofi_ep *ep;
	const void *data;
	size_t size;
};

static void establish_on_thread(void *arg)
{
	struct establish_call *c = arg;

	dofi_ep_established(c->ep, c->data, c->size);
}

void establish(DAT_EP_HANDLE ep_handle, const void *data, size_t size)
{
	struct establish_call call = { ep_handle, data, size };

	dofi_progress_call(&ia->progress, establish_on_thread, &call);
}

void make_connected(DAT_EP_HANDLE ep_handle)
{
	struct dofi_ep *ep = ep_handle;

	start_connecting(ep_handle);
	establish(ep_handle, NULL, 0);
	event_take(ep->connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Connection requests */

void come_from(const char *ip, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&request_peer;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, ip, &in->sin_addr);
}

struct arrival_call {
	struct dofi_sp *sp;
	struct dofi_arrival arrival;
	int ret;
};

static void arrive_on_thread(void *arg)
{
	struct arrival_call *c = arg;

	c->ret = dofi_cr_arrived(c->sp, &c->arrival);
}

int arrive_at(DAT_HANDLE sp, const void *data, size_t size)
{
	struct arrival_call call = {
		.sp = sp, .ret = 1,
		.arrival = {
			.request = &transport, .peer = request_peer, .secret = PEER_SECRET,
			.data = data, .data_size = size,
		},
	};

	dofi_progress_call(&ia->progress, arrive_on_thread, &call);
	return call.ret;
}

DAT_CR_HANDLE request_at(DAT_HANDLE sp)
{
	cr_assert_eq(arrive_at(sp, "hello", 5), 0);
	return event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
		.event_data.cr_arrival_event_data.cr_handle;
}

DAT_RETURN turn_down(DAT_CR_HANDLE cr)
{
#if DAT_VERSION_MAJOR >= 2
	return dofi_cr_reject(cr, 0, NULL);
#else
	return dofi_cr_reject(cr);
#endif
}

DAT_EP_STATE state_of_ep(DAT_EP_HANDLE ep_handle)
{
	DAT_EP_STATE state;

	succeed(dofi_ep_get_status(ep_handle, &state, NULL, NULL));
	return state;
}

void furnish(DAT_EP_HANDLE ep_handle)
{
	const DAT_EP_PARAM wanted = { .pz_handle = pz, .connect_evd_handle = evd };

	succeed(dofi_ep_modify(ep_handle, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			       &wanted));
}

void complete_with(unsigned i, int err, size_t len)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i], .len = len };

	cr_assert(i < transport.n);
	dofi_dto_complete(&entry, err, NULL);
}

void complete(unsigned i)
{
	complete_with(i, 0, 0);
}

DAT_EVENT event_take(DAT_EVD_HANDLE from, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_RETURN ret = dofi_evd_dequeue(from, &event);

	/* the progress thread may have read the completion and not delivered it yet */
	if (ret == DAT_QUEUE_EMPTY) {
		settle();
		ret = dofi_evd_dequeue(from, &event);
	}
	succeed(ret);
	cr_assert_eq(event.event_number, number, "%#x", event.event_number);
	cr_assert_eq(event.evd_handle, from);
	return event;
}

bool event_none(DAT_EVD_HANDLE from)
{
	DAT_EVENT event;

	return dofi_evd_dequeue(from, &event) == DAT_QUEUE_EMPTY;
}

DAT_RETURN post_number(DAT_EVD_HANDLE to, uintptr_t n)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = (DAT_PVOID)n;
	return dofi_evd_post_se(to, &event);
}

uintptr_t number_of(const DAT_EVENT *event)
{
	return (uintptr_t)event->event_data.software_event_data.pointer;
}

DAT_DTO_COOKIE cookie_of(uint64_t n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

DAT_LMR_TRIPLET segment_of(DAT_LMR_CONTEXT context, const void *at, size_t length)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = context, .virtual_address = (uintptr_t)at, .segment_length = length,
	};
}

DAT_RMR_TRIPLET remote_of(DAT_RMR_CONTEXT context, uint64_t at, size_t length)
{
	return (DAT_RMR_TRIPLET){
		.rmr_context = context,
#if DAT_VERSION_MAJOR >= 2
		.virtual_address = at,
#else
		.target_address = at,
#endif
		.segment_length = length,
	};
}

DAT_LMR_TRIPLET segment(size_t offset, size_t length)
{
	return segment_of(lmr_context, memory + offset, length);
}

DAT_RETURN srq_post_at(DAT_SRQ_HANDLE srq, size_t offset, size_t length, uint64_t n)
{
	DAT_LMR_TRIPLET s = segment(offset, length);

	return dofi_srq_post_recv(srq, 1, &s, cookie_of(n));
}

DAT_RMR_TRIPLET remote_segment(size_t length)
{
	return remote_of(0x1234, 0x5000, length);
}
