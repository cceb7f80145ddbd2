/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies endpoints: their state and their queues; and the queues of SRQs. */

#include "check/check.h"
#include "fab/quirks.h"
#include "obj/ep/ep.h"
#include "xport/msg/msg.h"

#define RECEIVES (DOFI_DTO_RECVS | 1u << DOFI_DTO_PREAMBLE)

#define CHECK_QUEUE(condition)                                                                \
	CHECK(kind, owner, condition,                                                         \
	      "%s: head %u, next %u, tail %u, soft limit %u, limit %u, %u slots", name,       \
	      q->head, q->next, q->tail, q->soft_limit, q->limit, q->mask + 1)

#define CHECK_SLOT(condition)                                                                 \
	CHECK(kind, owner, condition,                                                         \
	      "%s: slot %p of %u: number %u, kind %u, at fabric %d, done %d; "                \
	      "head %u, next %u, tail %u", name, (const void *)dto, i, dto->number,           \
	      dto->kind, dto->at_fabric, dto->done, q->head, q->next, q->tail)

/* Of @owner, a @kind; @ep is NULL for an SRQ. Operations behind next are pending. */
static void queue_check(const char *kind, const void *owner, const char *name,
			const struct dofi_queue *q, const struct dofi_ep *ep)
{
	const struct dofi_dto *dto;
	bool submitted;
	uint32_t i;

	CHECK_QUEUE(q->slots);
	CHECK_QUEUE(!ep || q->next - q->head <= q->tail - q->head);
	CHECK_QUEUE(dofi_queue_used(q) <= q->mask + 1);
	CHECK_QUEUE(dofi_queue_used(q) <= q->limit);
	CHECK_QUEUE(q->soft_limit <= q->mask + 1 && q->soft_limit <= q->limit);
	CHECK_QUEUE(q->first << q->steps == q->mask + 1 && !(q->mask & (q->mask + 1)));
	for (i = q->head; i != q->tail; i++) {
		dto = dofi_queue_at(q, i);
		submitted = ep && dofi_queue_in_flight(q, i);
		CHECK_SLOT(!((uintptr_t)dto & (DOFI_DTO_GENERATIONS - 1)));
		CHECK_SLOT(dto->number == i);
		CHECK_SLOT(dto->ep == ep);
		CHECK_SLOT(dto->kind < DOFI_DTO_KINDS);
		CHECK_SLOT(!ep || dofi_dto_is(dto->kind, RECEIVES) == (q == &ep->rq));
		CHECK_SLOT(!dto->done || !dto->at_fabric);
		CHECK_SLOT(submitted || !dto->done);
		CHECK_SLOT(submitted || !dto->at_fabric || dto->parts);
	}
}

#define CHECK_EP(ep, condition, fmt, ...)                                                  \
	CHECK("ep", ep, condition, "state %s, fabric endpoint %p, closing %d; " fmt,       \
	      dofi_ep_states[(ep)->state].name, (void *)(ep)->fid, (ep)->closing, __VA_ARGS__)

/* The fields that dofi_ep_open_queues() and dofi_fast_renew() derive from other fields. */
static void derived_check(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	const bool open = ep->fid && !ep->closing,
		   trying = ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
		   early = !ep->obj.ia->fabric.quirk->late_receives_cost;
	const bool plain = ep->sq.open && ep->state == DAT_EP_STATE_CONNECTED && !ep->preambles &&
			   !dofi_queue_waits(&ep->sq) && !dofi_queue_waits(&ep->rq) &&
			   !ep->rq.held && !ep->resume_pending;

	CHECK_EP(ep, ep->rq.open == (open && !(trying && early)), "%d", ep->rq.open);
	CHECK_EP(ep,
		 ep->sq.open == (open && !trying && ep->state != DAT_EP_STATE_COMPLETION_PENDING),
		 "%d", ep->sq.open);
	CHECK_EP(ep, plain || !(ep->fast.send || ep->fast.recv),
		 "resume %d, receives held %d", ep->resume_pending, ep->rq.held);
}

static void state_check(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	const struct dofi_pz *pz = ep->pz;
	bool of_pz = !pz == !ep->cq;
	unsigned i;

	if (pz) {
		of_pz = ep->cq == &pz->domain.cq || ep->cq == &pz->local.cq ||
			ep->cq == &pz->datagram.cq;
		for (i = 0; i < pz->domain.n_more; i++)
			of_pz |= pz->domain.more[i] == ep->cq;
	}
	CHECK_EP(ep, of_pz, "PZ %p, CQ %p", (const void *)pz, (void *)ep->cq);
	CHECK_EP(ep, !ep->graceful || ep->state == DAT_EP_STATE_DISCONNECT_PENDING, "graceful %d",
		 ep->graceful);
	CHECK_EP(ep, !ep->todo || ep->work.queued, "work %#x is not queued", ep->todo);
	CHECK_EP(ep, ep->state != DAT_EP_STATE_CONNECTED || ep->fid || ep->closing, "transport %s",
		 ep->xport->name);
	CHECK_EP(ep, !ep->srq_user.waiting || ep->srq, "waits for no SRQ: %d",
		 ep->srq_user.waiting);
	if (dofi_ep_is_live(ep))
		return;
	/* an EP without a connection has none of these */
	CHECK_EP(ep, !ep->closing, "end %#x", ep->end);
	CHECK_EP(ep, !ep->fid, "transport %s", ep->xport->name);
	CHECK_EP(ep, !ep->conn, "connection %p", ep->conn);
	CHECK_EP(ep, msg_watched(ep) < 0, "descriptor %d", msg_watched(ep));
	CHECK_EP(ep, ep->obj.ia->xport->ep_init != msg_ep_init || !msg_part(ep)->opening,
		 "opening %p", (void *)msg_part(ep)->opening);
	CHECK_EP(ep, !ep->shard, "shard %p", (void *)ep->shard);
	CHECK_EP(ep, ep->xport == ep->obj.ia->xport, "transport %s", ep->xport->name);
	CHECK_EP(ep, !ep->timer.at, "timer %lld", (long long)ep->timer.at);
	CHECK_EP(ep, ep->sq.next == ep->sq.head, "%u requests are submitted",
		 ep->sq.next - ep->sq.head);
	CHECK_EP(ep, ep->rq.next == ep->rq.head, "%u receives are submitted",
		 ep->rq.next - ep->rq.head);
}

/* Returns the length of @list. */
static unsigned list_check(const struct dofi_ep *ep, const struct dofi_exchanges *list,
			   bool reported) DOFI_NEEDS(ep->lock)
{
	const struct dofi_exchange *x;
	unsigned n = 0;

	TAILQ_FOREACH(x, list, link) {
		CHECK("exchange", x, x->ep == ep && x->list == list, "%p, %p", (void *)x->ep,
		      (void *)x->list);
		CHECK_SAME("exchange", x, x->reported, reported);
		CHECK_SAME("exchange", x, dofi_pool_tag(x), DOFI_EXCHANGE_LIVE);
		n++;
	}
	return n;
}

static void ep_check(struct dofi_ep *ep) DOFI_NEEDS_NOT(ep->lock)
{
	const struct dofi_queue *q = &ep->sq;
	unsigned n;
	uint32_t i;
	int reads = 0;

	dofi_mutex_lock(&ep->lock);
	state_check(ep);
	derived_check(ep);
	queue_check("ep", ep, "requests", &ep->sq, ep);
	queue_check("ep", ep, "receives", &ep->rq, ep);
	/* the requests of a connection that has not failed end in order, and reads are counted */
	if (dofi_ep_is_live(ep) && !ep->closing) {
		for (i = q->head; i != q->next; i++)
			reads += !dofi_queue_at(q, i)->done &&
				 dofi_dto_is(dofi_queue_at(q, i)->kind, DOFI_DTO_READS);
		CHECK_EP(ep, ep->reads == reads, "%d, %d", ep->reads, reads);
		CHECK_EP(ep, ep->atomics >= 0 && ep->atomics <= ep->reads, "%d, %d",
			 ep->atomics, ep->reads);
		CHECK_EP(ep, q->head == q->next || !dofi_queue_oldest(q)->done,
			 "request %u is done", q->head);
	}
	n = list_check(ep, &ep->exchanges_failed, true);
	CHECK_EP(ep, ep->n_failed == n, "%u, %u failed exchanges", ep->n_failed, n);
	n += list_check(ep, &ep->exchanges, false) + list_check(ep, &ep->exchanges_new, false) +
	     list_check(ep, &ep->exchanges_kept, true);
	CHECK_EP(ep, ep->datagrams || !n, "%u exchanges", n);
	CHECK_EP(ep, !ep->datagrams || (ep->state == DAT_EP_STATE_CONNECTED && !ep->fast.send),
		 "datagrams %d", ep->datagrams);
	dofi_mutex_unlock(&ep->lock);
}

void check_endpoints(struct dofi_ia *ia)
{
	struct dofi_srq_user *user;
	uint32_t used, given;
	struct dofi_obj *obj;

	CHECK_EACH(obj, ia, EP)
	ep_check((struct dofi_ep *)obj);
	CHECK_EACH(obj, ia, SRQ)
	{
		struct dofi_srq *srq = (struct dofi_srq *)obj;

		dofi_mutex_lock(&srq->lock);
		queue_check("srq", srq, "buffers", &srq->queue, NULL);
		used = dofi_queue_used(&srq->queue);
		given = dofi_unread_count(&srq->given);
		CHECK("srq", srq, used + given <= srq->queue.limit,
		      "%u buffers, %u given, limit %u", used, given, srq->queue.limit);
		TAILQ_FOREACH(user, &srq->line, link)
			CHECK("srq", srq, user->waiting, "user %p is in the line", (void *)user);
		dofi_mutex_unlock(&srq->lock);
	}
}
