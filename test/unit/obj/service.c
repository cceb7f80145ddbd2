/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A datagram service that only records requests. */

#include "obj/service.h"

#include <rdma/fi_errno.h>

struct service service;

static struct fid_ep fabric_ep = { .fid.fclass = FI_CLASS_EP };

static int s_ia_init(struct dofi_ia *of)
{
	service.ia_inits++;
	cr_expect(dofi_progress_on_thread(&of->progress));
	of->datagram_size = SERVICE_SIZE;
	of->datagrams_ia = &service;
	return service.ia_init_result;
}

static void s_ia_fini(struct dofi_ia *of)
{
	service.ia_finis++;
	cr_expect(dofi_progress_on_thread(&of->progress));
}

static void s_pz_close(struct dofi_pz *of)
{
	service.pz_closes++;
	cr_expect(dofi_progress_on_thread(&of->obj.ia->progress));
	cr_expect_eq(of->datagrams_pz, &service);
}

static int s_open(struct dofi_ep *ep)
{
	service.opens++;
	cr_expect(dofi_progress_on_thread(&ep->obj.ia->progress));
	cr_expect(!dofi_ep_check(ep), "it is not published");
	if (service.open_result)
		return service.open_result;
	dofi_mutex_lock(&ep->lock);
	ep->fid = &fabric_ep;
	ep->conn = &service;
	dofi_ep_set_cq(ep, ep->cq);
	ep->pz->datagrams_pz = &service;
	dofi_mutex_unlock(&ep->lock);
	return 0;
}

static void s_listen(struct dofi_sp *sp)
{
	service.listens++;
	cr_expect(sp->listening);
	cr_expect(dofi_progress_on_thread(&sp->obj.ia->progress));
}

static void s_unlisten(struct dofi_sp *sp)
{
	service.unlistens++;
	cr_expect(dofi_progress_on_thread(&sp->obj.ia->progress));
}

static void s_connect(struct dofi_exchange *x)
{
	cr_expect(dofi_progress_on_thread(&x->ep->obj.ia->progress));
	cr_assert(service.n_connect < SERVICE_OPS);
	service.connect[service.n_connect++] = x;
	if (service.answer)
		dofi_exchange_end(x, service.answer);
}

static void s_accept(struct dofi_exchange *x, void *request)
{
	cr_expect(dofi_progress_on_thread(&x->ep->obj.ia->progress));
	cr_assert(service.n_accept < SERVICE_OPS);
	service.request[service.n_accept] = request;
	service.accept[service.n_accept++] = x;
	if (service.answer)
		dofi_exchange_end(x, service.answer);
}

static struct service_ah *ah_find(const struct dofi_ep *ep, const void *p)
{
	unsigned i;

	for (i = 0; i < SERVICE_AHS; i++)
		if (&service.ah[i] == p && service.ah[i].references && service.ah[i].pz == ep->pz)
			return &service.ah[i];
	return NULL;
}

static bool s_ah_valid(const struct dofi_ep *ep, const void *ah)
{
	return ah_find(ep, ah);
}

static bool s_ah_free(struct dofi_ep *ep, void *p)
{
	struct service_ah *ah = ah_find(ep, p);

	cr_expect(dofi_progress_on_thread(&ep->obj.ia->progress));
	if (ah)
		ah->references--;
	return ah;
}

/* The transport */

static void s_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size)
{
	cr_expect(dofi_progress_on_thread(&cr->obj.ia->progress));
	service.rejects++;
	service.why = why;
	cr->request = NULL;
}

static void s_close(struct dofi_ep *ep)
{
	cr_expect(dofi_progress_on_thread(&ep->obj.ia->progress));
	service.closes++;
	dofi_mutex_lock(&ep->lock);
	ep->fid = NULL;
	ep->conn = NULL;
	dofi_ep_set_cq(ep, ep->cq);
	dofi_ep_open_queues(ep);
	dofi_mutex_unlock(&ep->lock);
}

static int s_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	if (service.full)
		return -FI_EAGAIN;
	cr_assert(service.n < SERVICE_OPS);
	service.dto[service.n++] = dto;
	return dofi_dto_is(dto->kind, DOFI_DTO_DATAGRAMS) ? DOFI_DONE : 0;
}

static bool s_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	return false;
}

static void s_resume(struct dofi_ep *ep)
{
	ep->resume_pending = false;
}

static void s_srq_fed(struct dofi_ep *ep)
{
	dofi_srq_leave(ep->srq, &ep->srq_user);
}

static const struct dofi_xport xport = {
	.name = "test-ud",
	.reject = s_reject,
	.close = s_close,
	.submit = s_submit,
	.holds = s_holds,
	.resume = s_resume,
	.srq_fed = s_srq_fed,
};

const struct dofi_datagrams service_ops = {
	.xport = &xport,
	.ia_init = s_ia_init,
	.ia_fini = s_ia_fini,
	.pz_close = s_pz_close,
	.open = s_open,
	.listen = s_listen,
	.unlisten = s_unlisten,
	.connect = s_connect,
	.accept = s_accept,
	.ah_valid = s_ah_valid,
	.ah_free = s_ah_free,
};

/* For tests */

void service_init(void)
{
	datagrams = &service_ops;
	objects_init();
}

void service_fini(void)
{
	ia_fini();
}

#if DAT_VERSION_MAJOR >= 2
DAT_EP_ATTR datagram_attr(void)
{
	return (DAT_EP_ATTR){
		.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
		.max_recv_dtos = 8, .max_request_dtos = 8, .max_recv_iov = 2, .max_request_iov = 2,
	};
}

DAT_EP_HANDLE datagram_ep_with(DAT_EVD_HANDLE connect)
{
	const DAT_EP_ATTR attr = datagram_attr();
	DAT_EP_HANDLE handle;

	succeed(dofi_ep_create(ia, pz, evd, evd, connect, &attr, &handle));
	return handle;
}

DAT_EP_HANDLE datagram_ep(void)
{
	return datagram_ep_with(evd);
}

struct dofi_post datagram(unsigned i, uint64_t cookie)
{
	static DAT_IB_ADDR_HANDLE ah;
	static DAT_LMR_TRIPLET s;

	s = segment(0, 8);
	ah = (DAT_IB_ADDR_HANDLE){ .ah = (void *)&service.ah[i], .qpn = 77 };
	return (struct dofi_post){ .n = 1, .iov = &s, .cookie.as_64 = cookie, .ah = &ah };
}
#endif

void *ah_make(unsigned i)
{
	service.ah[i].references++;
	service.ah[i].pz = pz;
	return &service.ah[i];
}

static void receive_end(struct dofi_ep *ep, uint8_t kind, uint64_t len, uint32_t immed, int err)
{
	struct dofi_dto *dto;

	dofi_mutex_lock(&ep->lock);
	cr_assert(dofi_queue_has_flight(&ep->rq));
	dto = dofi_queue_oldest(&ep->rq);
	if (!err) {
		dto->kind = kind;
		dto->length = len;
		dto->immed = immed;
		dofi_tally_add(&ep->receipts[kind], len);
	}
	dofi_dto_end(ep, dto, err, NULL);
	dofi_mutex_unlock(&ep->lock);
}

void deliver(DAT_EP_HANDLE ep_handle, uint64_t len)
{
	receive_end(ep_handle, DOFI_DTO_RECV_UD, len, 0, 0);
}

void deliver_immed(DAT_EP_HANDLE ep_handle, uint64_t len, uint32_t immed)
{
	receive_end(ep_handle, DOFI_DTO_RECV_UD_IMMED, len, immed, 0);
}

void deliver_error(DAT_EP_HANDLE ep_handle, int err)
{
	receive_end(ep_handle, DOFI_DTO_RECV_UD, 0, 0, err);
}

struct end_call {
	struct dofi_exchange *x;
	const struct dofi_exchanged *how;
};

static void end_on_thread(void *arg)
{
	const struct end_call *c = arg;

	dofi_exchange_end(c->x, c->how);
}

void exchange_end(struct dofi_exchange *x, const struct dofi_exchanged *how)
{
	struct end_call call = { x, how };

	dofi_progress_call(&ia->progress, end_on_thread, &call);
}
