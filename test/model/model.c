/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The model: one function for each call. Its first part permits the error of each clause that the
 * call violates; its second part applies a call that violates none.
 */
#include "model.h"

#include <string.h>

#define ANY_SUBTYPE 0xffff
#define FOR_EACH(object, kind_)                                                      \
	for (object = model.objects[kind_];                                          \
	     object < model.objects[kind_] + MOST_OBJECTS; object++)                 \
		if ((object)->live)

struct model model;

/* Clauses */

static void fails(struct outcome *o, bool violated, unsigned type, unsigned subtype)
{
	if (violated)
		o->permitted[o->n++] = (DAT_RETURN)(type | subtype);
}

static const unsigned state_subtypes[] = {
	[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
	[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
	[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
	[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
};

static void fails_in_state(struct outcome *o, bool violated, const struct object *ep)
{
	fails(o, violated, DAT_INVALID_STATE, state_subtypes[ep->state]);
}

/* Whether the handle is one of a live object of the kind, on which all other clauses depend. */
static bool valid(struct outcome *o, const struct ref *ref, unsigned subtype)
{
	fails(o, !ref->object, DAT_INVALID_HANDLE, subtype);
	return ref->object;
}

/* Whether a service point has the EP, which has not been connected yet. */
static bool is_passive(const struct object *ep)
{
	return ep->state == DAT_EP_STATE_RESERVED ||
	       ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
	       ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
}

static bool is_lost(const struct ref *ref)
{
	return ref->handle && !ref->object;
}

static bool lacks(const struct ref *evd, int flag)
{
	return is_lost(evd) || (evd->object && !(evd->object->flags & flag));
}

static void private_checked(struct outcome *o, const struct call *c, unsigned size, unsigned data)
{
	fails(o, c->private.size < 0 || c->private.size > model.limits.max_private,
	      DAT_INVALID_PARAMETER, size);
	fails(o, c->private.size && c->no_data, DAT_INVALID_PARAMETER, data);
}

/* Objects */

struct object *object_make(enum kind kind)
{
	struct object *object;

	for (object = model.objects[kind]; object < model.objects[kind] + MOST_OBJECTS; object++) {
		const unsigned generation = object->generation;

		if (object->live)
			continue;
		memset(object, 0, sizeof(*object));
		object->kind = kind;
		object->generation = generation + 1;
		object->live = object->known = true;
		return object;
	}
	return NULL;
}

/* Makes @user's member @at refer to @to, which then cannot be freed. */
static void use(struct object **at, struct object *to)
{
	if (*at)
		(*at)->users--;
	*at = to;
	if (to)
		to->users++;
}

static struct object *made(struct outcome *o, enum kind kind)
{
	o->made = object_make(kind);
	o->untimely = !o->made;
	return o->made;
}

/* Events */

static bool is_of(const struct event *event, const struct object *object)
{
	return event->object == object && event->generation == object->generation;
}

bool event_precedes(const struct event *a, const struct event *b)
{
	return a->object == b->object && a->generation == b->generation &&
	       (a->what & CONNECTIONS || b->what & CONNECTIONS || a->receive == b->receive);
}

static void triggers(struct object *cno, enum trigger trigger)
{
	if (cno && cno->trigger < trigger)
		cno->trigger = trigger;
}

/* An event that arrives while the driver waits for it at the EVD need not trigger the CNO. */
static struct event *event_add(struct object *evd, unsigned what, struct object *object)
{
	struct event *event = &evd->q[evd->n < MOST_EVENTS ? evd->n++ : MOST_EVENTS - 1];

	*event = (struct event){ .what = what, .batch = model.calls, .object = object };
	if (object) {
		event->generation = object->generation;
		event->handle = object->handle;
	}
	if (!evd->disabled)
		triggers(evd->cno, what == SOFTWARE ? YES : MAYBE);
	return event;
}

void event_remove(struct object *evd, unsigned i)
{
	const struct event event = evd->q[i];

	memmove(&evd->q[i], &evd->q[i + 1], (--evd->n - i) * sizeof(event));
	if (event.object && is_of(&event, event.object)) {
		if (event.what & (DTO | BIND) && event.object->kind == EP)
			*(event.receive ? &event.object->held_recvs :
					  &event.object->held_requests) -= 1;
	}
	triggers(evd->cno, MAYBE);
}

bool model_may_overflow(void)
{
	struct object *evd, *ep;

	FOR_EACH(evd, EVD) {
		int n = (int)evd->n;
		unsigned i;

		for (i = 0; i < evd->n; i++)	/* the driver finds out whether the queue is full */
			n += evd->q[i].optional;
		FOR_EACH(ep, EP) {
			if (ep->recv_evd == evd)
				n += (int)ep->recvs;
			if (ep->connect_evd == evd && (ep->state == DAT_EP_STATE_CONNECTED ||
			    ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING))
				n += 2;
		}
		if (n > evd->qlen)
			return true;
		if (n > (int)MOST_EVENTS - 8)
			return true;
	}
	return false;
}

static struct event *complete(struct object *ep, bool receive, uint64_t cookie, unsigned status,
			      uint64_t length)
{
	struct object *evd = receive ? ep->recv_evd : ep->request_evd;
	struct event *event;

	if (!evd) {
		*(receive ? &ep->held_recvs : &ep->held_requests) -= 1;
		return NULL;
	}
	event = event_add(evd, DTO, ep);
	event->receive = receive;
	event->cookie = cookie;
	event->status = status;
	event->length = length;
	return event;
}

/* Endpoints */

static void ep_flush(struct object *ep)
{
	unsigned i;

	for (i = 0; i < ep->recvs; i++)
		complete(ep, true, ep->recv[i].cookie, STATUS(ERR_FLUSHED), 0);
	ep->recvs = 0;
}

static struct event *ep_end(struct object *ep, unsigned what)
{
	ep_flush(ep);
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->peer = ep->cr = NULL;
	return event_add(ep->connect_evd, what, ep);
}

/* The end of a connection after an error. */
static void ep_break(struct object *ep)
{
	struct object *peer = ep->peer;
	const unsigned what = model.limits.goodbye ? BROKEN : BROKEN | DISCONNECTED;

	ep_end(ep, what);
	ep_end(peer, what);
}

static void ep_vanish(struct object *ep)
{
	use(&ep->pz, NULL);
	use(&ep->recv_evd, NULL);
	use(&ep->request_evd, NULL);
	use(&ep->connect_evd, NULL);
	ep->live = false;
}

static int or_default(int64_t value, int standard, int limit)
{
	return value ? (int)value : standard < limit ? standard : limit;
}

/* What is in force for an EP that asks for @attr, or NULL. */
static DAT_EP_ATTR attr_effective(const DAT_EP_ATTR *attr)
{
	static const DAT_EP_ATTR none;
	const struct limits *l = &model.limits;
	DAT_EP_ATTR a = attr ? *attr : none;

	if (!attr) {
		a.max_recv_dtos = a.max_request_dtos = 64;
	}
	if (!a.max_message_size)
		a.max_message_size = l->max_message;
	a.max_recv_iov = or_default(a.max_recv_iov, 4, l->max_iov);
	a.max_request_iov = or_default(a.max_request_iov, 4, l->max_iov);
	if (!a.max_rdma_read_iov)
		a.max_rdma_read_iov = a.max_request_iov > 4 ? a.max_request_iov : 4;
	if (!a.max_rdma_write_iov)
		a.max_rdma_write_iov = a.max_request_iov > 4 ? a.max_request_iov : 4;
	if (a.max_rdma_read_iov > l->max_read_iov)
		a.max_rdma_read_iov = l->max_read_iov;
	if (a.max_rdma_write_iov > l->max_write_iov)
		a.max_rdma_write_iov = l->max_write_iov;
	return a;
}

static bool attr_exceeds(const DAT_EP_ATTR *a)
{
	const struct limits *l = &model.limits;

	return a->service_type != DAT_SERVICE_TYPE_RC || a->max_recv_dtos < 0 ||
	       a->max_recv_dtos > l->max_dtos || a->max_request_dtos < 0 ||
	       a->max_request_dtos > l->max_dtos || a->max_recv_iov < 0 ||
	       a->max_recv_iov > l->max_iov || a->max_request_iov < 0 ||
	       a->max_request_iov > l->max_iov || a->max_message_size > l->max_message ||
	       a->ep_transport_specific_count;
}

static void ep_create(const struct call *c, struct outcome *o)
{
	struct object *ep;

	fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	fails(o, is_lost(&c->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	fails(o, lacks(&c->recv_evd, DAT_EVD_DTO_FLAG), DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_EVD_RECV);
	fails(o, lacks(&c->request_evd, DAT_EVD_DTO_FLAG), DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_EVD_REQUEST);
	fails(o, lacks(&c->connect_evd, DAT_EVD_CONNECTION_FLAG), DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_EVD_CONN);
	fails(o, !c->no_data && attr_exceeds(&c->attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	fails(o, !c->no_data && c->attr.qos & ~15u, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (o->n || !made(o, EP))
		return;

	ep = o->made;
	use(&ep->pz, c->pz.object);
	use(&ep->recv_evd, c->recv_evd.object);
	use(&ep->request_evd, c->request_evd.object);
	use(&ep->connect_evd, c->connect_evd.object);
	ep->attr = attr_effective(c->no_data ? NULL : &c->attr);
	ep->state = DAT_EP_STATE_UNCONNECTED;
}

#define EP_EVDS                                                                      \
	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |            \
	 DAT_EP_FIELD_CONNECT_EVD_HANDLE)
#define EP_ATTRS                                                                     \
	(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | \
	 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)

static void ep_modify(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object;
	const int64_t mask = c->mask;
	DAT_EP_ATTR attr;
	bool bad;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails(o, mask & ~(int64_t)(DAT_EP_FIELD_PZ_HANDLE | EP_EVDS | EP_ATTRS),
	      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails_in_state(o, mask && ep->state != DAT_EP_STATE_UNCONNECTED && !is_passive(ep), ep);
	fails_in_state(o, mask & DAT_EP_FIELD_PZ_HANDLE &&
			  (ep->state == DAT_EP_STATE_RESERVED ||
			   ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING), ep);
	fails(o, mask && c->no_data, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	bad = mask & DAT_EP_FIELD_PZ_HANDLE && !c->pz.object;
	bad |= mask & DAT_EP_FIELD_RECV_EVD_HANDLE && lacks(&c->recv_evd, DAT_EVD_DTO_FLAG);
	bad |= mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE && lacks(&c->request_evd, DAT_EVD_DTO_FLAG);
	bad |= mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE &&
	       lacks(&c->connect_evd, DAT_EVD_CONNECTION_FLAG);
	bad |= mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE &&
	       c->attr.max_message_size > model.limits.max_message;
	bad |= mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS &&
	       (c->attr.max_recv_dtos < (int)ep->recvs ||
		c->attr.max_recv_dtos > model.limits.max_dtos);
	bad |= mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS &&
	       (c->attr.max_request_dtos < 0 || c->attr.max_request_dtos > model.limits.max_dtos);
	fails(o, bad, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (o->n)
		return;

	attr = attr_effective(&c->attr);
	if (mask & DAT_EP_FIELD_PZ_HANDLE)
		use(&ep->pz, c->pz.object);
	if (mask & DAT_EP_FIELD_RECV_EVD_HANDLE)
		use(&ep->recv_evd, c->recv_evd.object);
	if (mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE)
		use(&ep->request_evd, c->request_evd.object);
	if (mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE)
		use(&ep->connect_evd, c->connect_evd.object);
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)
		ep->attr.max_message_size = attr.max_message_size;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
		ep->attr.max_recv_dtos = attr.max_recv_dtos;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)
		ep->attr.max_request_dtos = attr.max_request_dtos;
}

/* Connections */

static void cr_vanish(struct object *cr)
{
	if (cr->local)
		cr->local->cr = NULL;
	if (cr->requester)
		cr->requester->cr = NULL;
	cr->live = false;
}

/* A request is rejected. An EP that the provider made for it vanishes. */
static void cr_decline(struct object *cr)
{
	struct object *local = cr->local;

	cr_vanish(cr);
	if (local && local->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
		local->state = DAT_EP_STATE_UNCONNECTED;
	else if (local)
		ep_vanish(local);
}

static struct object *listening(DAT_CONN_QUAL qual)
{
	struct object *sp;

	FOR_EACH(sp, PSP)
		if (sp->qual == qual)
			return sp;
	FOR_EACH(sp, RSP)
		if (sp->qual == qual)
			return sp;
	return NULL;
}

/* A request arrives. A service point with a full EVD rejects it as if none listened. */
static void request_arrive(struct object *sp, struct object *ep, DAT_CONN_QUAL qual,
			   const struct private *private, struct outcome *o)
{
	struct object *cr;

	if (!sp || sp->spent || sp->evd->n >= (unsigned)sp->evd->qlen) {
		ep_end(ep, NON_PEER_REJECTED);
		return;
	}
	cr = object_make(CR);
	o->untimely = !cr;
	if (!cr)
		return;
	cr->known = false;
	cr->qual = qual;
	cr->private = *private;
	cr->requester = ep;
	cr->sp = sp;
	ep->cr = cr;
	event_add(sp->evd, REQUEST, cr)->handle = sp->handle;
	sp->spent = sp->kind == RSP;
	if (sp->kind == RSP && sp->local) {
		cr->local = sp->local;
		cr->local->state = DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
		sp->local = NULL;
	} else if (sp->kind == RSP || sp->flags == DAT_PSP_PROVIDER_FLAG) {
		cr->local = object_make(EP);
		o->untimely = !cr->local;
		if (!cr->local)
			return;
		cr->local->known = false;
		cr->local->state = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
		cr->local->attr = attr_effective(NULL);
	}
}

static void ep_request(struct object *ep, DAT_CONN_QUAL qual, const struct private *private,
		       struct outcome *o)
{
	ep->qual = qual;
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	request_arrive(listening(qual), ep, qual, private, o);
}

static void ep_ready(const struct object *ep, struct outcome *o)
{
	fails(o, !ep->pz || !ep->connect_evd, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
}

static void ep_connect(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails(o, c->no_address, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	fails(o, c->bad_family, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	fails(o, !c->qual, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	fails(o, !c->timeout, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	private_checked(o, c, DAT_INVALID_ARG5, DAT_INVALID_ARG6);
	fails(o, c->qos & ~15 || c->flags, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE);
	fails_in_state(o, ep->state != DAT_EP_STATE_UNCONNECTED, ep);
	ep_ready(ep, o);
	if (!o->n)
		ep_request(ep, (DAT_CONN_QUAL)c->qual, &c->private, o);
}

/* The origin of a request is no service point: the driver duplicates requesters only. */
static void ep_dup_connect(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object, *dup = c->ep.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails(o, !c->timeout, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	private_checked(o, c, DAT_INVALID_ARG4, DAT_INVALID_ARG5);
	fails(o, c->qos & ~15, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE);
	fails_in_state(o, ep->state != DAT_EP_STATE_UNCONNECTED, ep);
	ep_ready(ep, o);
	if (valid(o, &c->ep, DAT_INVALID_HANDLE_EP))
		fails_in_state(o, dup->state != DAT_EP_STATE_CONNECTED, dup);
	if (o->n)
		return;

	o->untimely = !dup->qual;
	if (!o->untimely)
		ep_request(ep, dup->qual, &c->private, o);
}

static void established(struct object *ep, struct object *peer, const struct private *private)
{
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->peer = peer;
	ep->cr = NULL;
	event_add(ep->connect_evd, ESTABLISHED, ep)->private = *private;
}

static void cr_accept(const struct call *c, struct outcome *o)
{
	static const struct private none;
	struct object *cr = c->object.object, *ep, *requester;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_CR))
		return;
	ep = cr->local ? cr->local : c->ep.object;
	requester = cr->requester;
	fails(o, cr->local ? c->ep.handle != DAT_HANDLE_NULL : !ep, DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_EP);
	private_checked(o, c, DAT_INVALID_ARG3, DAT_INVALID_ARG4);
	if (ep) {
		fails_in_state(o, !cr->local && ep->state != DAT_EP_STATE_UNCONNECTED, ep);
		ep_ready(ep, o);
	}
	if (o->n)
		return;

	cr_vanish(cr);
	ep->qual = 0;
	if (requester) {
		established(ep, requester, &none);
		established(requester, ep, &c->private);
		return;
	}
	/* the fabric may detect late that the requester has gone */
	event_add(ep->connect_evd, ESTABLISHED, ep)->optional = true;
	ep_end(ep, ACCEPT_ERROR | DISCONNECTED | BROKEN);
}

static void cr_reject(const struct call *c, struct outcome *o)
{
	struct object *cr = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_CR))
		return;
	if (DAT_VERSION_MAJOR >= 2)
		private_checked(o, c, DAT_INVALID_ARG2, DAT_INVALID_ARG3);
	if (o->n)
		return;

	if (cr->requester) {
		struct event *event = ep_end(cr->requester, PEER_REJECTED);

		if (DAT_VERSION_MAJOR >= 2)
			event->private = c->private;
	}
	cr_decline(cr);
}

/* Whether a request is still passed on after the requester has gone is up to the fabric. */
static void cr_handoff(const struct call *c, struct outcome *o)
{
	const DAT_CONN_QUAL qual = (DAT_CONN_QUAL)c->qual;
	struct object *cr = c->object.object, *sp = listening(qual), *requester, *first;
	struct private private;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_CR))
		return;
	fails(o, !sp || sp->spent, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (o->n)
		return;

	requester = cr->requester;
	o->untimely = !requester;
	if (o->untimely)
		return;
	private = cr->private;
	first = cr->sp;
	cr_decline(cr);
	request_arrive(sp, requester, qual, &private, o);
	if (requester->cr)
		requester->cr->sp = first;
}

static void ep_disconnect(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object, *peer;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails(o, c->flags & ~1, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails_in_state(o, ep->state == DAT_EP_STATE_UNCONNECTED || is_passive(ep), ep);
	if (o->n || ep->state == DAT_EP_STATE_DISCONNECTED)
		return;

	peer = ep->peer;
	if (ep->cr)
		ep->cr->requester = NULL;
	ep_end(ep, DISCONNECTED);
	if (peer)
		ep_end(peer, DISCONNECTED);
}

static void ep_reset(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object, *evd;
	unsigned i;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails_in_state(o, ep->state != DAT_EP_STATE_UNCONNECTED &&
			  ep->state != DAT_EP_STATE_DISCONNECTED, ep);
	if (o->n || ep->state == DAT_EP_STATE_UNCONNECTED)
		return;

	ep->state = DAT_EP_STATE_UNCONNECTED;
	FOR_EACH(evd, EVD)
		for (i = 0; i < evd->n; i++)
			evd->q[i].private.lost |= is_of(&evd->q[i], ep);
}

static void sp_create(const struct call *c, struct outcome *o)
{
	const bool reserved = c->op == RSP_CREATE;
	struct object *ep = c->ep.object;

	fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	fails(o, !c->object.object || lacks(&c->object, DAT_EVD_CR_FLAG), DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_EVD_CR);
	fails(o, !reserved && c->flags & ~1, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (c->op == PSP_CREATE_ANY) {
		fails(o, c->no_data, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else {
		fails(o, !c->qual, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		fails(o, listening((DAT_CONN_QUAL)c->qual), DAT_CONN_QUAL_IN_USE, ANY_SUBTYPE);
	}
	fails(o, reserved && is_lost(&c->ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (reserved && ep)
		fails_in_state(o, ep->state != DAT_EP_STATE_UNCONNECTED, ep);
	if (o->n || !made(o, reserved ? RSP : PSP))
		return;

	o->made->qual = (DAT_CONN_QUAL)c->qual;
	o->made->flags = (int)c->flags;
	use(&o->made->evd, c->object.object);
	if (reserved && ep) {
		o->made->local = ep;
		ep->state = DAT_EP_STATE_RESERVED;
	}
}

/* Requests that have arrived stay valid. */
static void sp_forget(struct object *sp)
{
	struct object *cr;

	FOR_EACH(cr, CR)
		if (cr->sp == sp)
			cr->sp = NULL;
	if (sp->local)
		sp->local->state = DAT_EP_STATE_UNCONNECTED;
}

/* Memory */

static void pz_create(const struct call *c, struct outcome *o)
{
	fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!o->n)
		made(o, PZ);
}

static void lmr_create(const struct call *c, struct outcome *o)
{
	const int known = DAT_MEM_PRIV_ALL_FLAG | (DAT_VERSION_MAJOR >= 2 ? 0x40 : 0);
	const bool derived = c->type == DAT_MEM_TYPE_LMR;

	fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	fails(o, !c->pz.object, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	fails(o, !derived && c->type != DAT_MEM_TYPE_VIRTUAL, DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	fails(o, derived && !c->lmr.object, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	fails(o, !derived && !c->length, DAT_LENGTH_ERROR, ANY_SUBTYPE);
	fails(o, !derived && c->no_address, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	fails(o, c->privileges & ~known ||
	      (c->privileges & (DAT_MEM_PRIV_REMOTE_WRITE_FLAG | 0x40) &&
	       !(c->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG6);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, ANY_SUBTYPE);
	if (o->n || !made(o, LMR))
		return;

	use(&o->made->pz, c->pz.object);
	o->made->at = derived ? c->lmr.object->at : c->at;
	o->made->length = derived ? c->lmr.object->length : c->length;
	o->made->privileges = (int)c->privileges;
	if (c->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		o->made->privileges |= DAT_MEM_PRIV_LOCAL_READ_FLAG;
}

static void rmr_create(const struct call *c, struct outcome *o)
{
	if (valid(o, &c->object, DAT_INVALID_HANDLE_PZ))
		fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!o->n && made(o, RMR))
		use(&o->made->pz, c->object.object);
}

static bool is_within(const struct object *memory, int64_t at, int64_t length)
{
	return at >= memory->at && at + length <= memory->at + memory->length;
}

/* Whether all segments name memory of @pz that permits @privilege. */
static bool segs_checked(struct outcome *o, const struct call *c, const struct object *pz,
			 bool writes)
{
	const int privilege = writes ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG :
				       DAT_MEM_PRIV_LOCAL_READ_FLAG;
	int i;

	for (i = 0; i < c->segs && i < (int)MOST_SEGS; i++) {
		const struct seg *s = &c->seg[i];

		if (!s->length)
			continue;
		fails(o, !s->lmr || s->lmr->pz != pz, DAT_PROTECTION_VIOLATION,
		      writes ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
		if (!s->lmr)
			continue;
		fails(o, !is_within(s->lmr, s->at, s->length), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		fails(o, !(s->lmr->privileges & privilege), DAT_PRIVILEGES_VIOLATION,
		      writes ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	}
	return !o->n;
}

static int64_t segs_length(const struct seg *seg, int64_t n)
{
	int64_t length = 0;

	for (n = n < (int64_t)MOST_SEGS ? n : (int64_t)MOST_SEGS; n-- > 0; seg++)
		length += seg->length;
	return length;
}

/* Whether the program may still use the memory of a receive. */
static bool seg_is_usable(const struct seg *s, const struct object *pz)
{
	return !s->length || (s->lmr->live && s->lmr->generation == s->generation &&
			      s->lmr->pz == pz);
}

static unsigned char byte_at(int64_t at)
{
	return at < (int64_t)HALF ? model.source[at] : model.memory[at - HALF];
}

/* Copies the bytes of one list of segments to the second half of the memory. */
static void segs_copy(const struct seg *to, const struct seg *from, int64_t length,
		      struct outcome *o)
{
	int64_t i = 0, j = 0;

	while (length-- > 0) {
		while (i == from->length)
			from++, i = 0;
		while (j == to->length)
			to++, j = 0;
		o->data_lost |= from->at + i >= (int64_t)HALF;
		if (to->at + j < (int64_t)HALF)
			o->untimely = true;
		else
			model.memory[to->at + j - HALF] = byte_at(from->at + i);
		i++, j++;
	}
}

/* Operations */

#define FENCES (DAT_COMPLETION_BARRIER_FENCE_FLAG | (DAT_VERSION_MAJOR >= 2 ? 0x20 : 0))
#define REQUEST_FLAGS                                                                \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |         \
	 DAT_COMPLETION_UNSIGNALLED_FLAG | FENCES)

/* No EP of the model has UNSIGNALLED among its attributes. */
static bool are_flags_bad(int64_t flags, bool receive)
{
	const int64_t strict = receive ? flags : flags & DAT_COMPLETION_UNSIGNALLED_FLAG;

	return flags & ~(int64_t)REQUEST_FLAGS || (model.limits.strict && strict);
}

static void post_recv(const struct call *c, struct outcome *o)
{
	struct object *ep = c->object.object;
	struct receive *r;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	fails(o, c->segs < 0 || c->segs > ep->attr.max_recv_iov, DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	fails(o, c->segs && c->no_data, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	fails(o, are_flags_bad(c->flags, true), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	fails(o, ep->held_recvs >= ep->attr.max_recv_dtos, DAT_INSUFFICIENT_RESOURCES,
	      DAT_RESOURCE_TEP);
	segs_checked(o, c, ep->pz, true);
	if (o->n)
		return;

	ep->held_recvs++;
	if (ep->state == DAT_EP_STATE_DISCONNECTED) {
		complete(ep, true, c->cookie, STATUS(ERR_FLUSHED), 0);
		return;
	}
	o->untimely = ep->recvs == MOST_RECVS;
	if (o->untimely)
		return;
	r = &ep->recv[ep->recvs++];
	memcpy(r->seg, c->seg, sizeof(r->seg));
	r->segs = (int)c->segs;
	r->cookie = c->cookie;
}

/* The clauses that all requests share. */
static void request_checked(const struct call *c, struct outcome *o, int most, bool writes,
			    unsigned flags)
{
	const struct object *ep = c->object.object;

	fails(o, c->segs < 0 || c->segs > most, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails(o, c->segs && c->no_data, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	fails(o, are_flags_bad(c->flags, false), DAT_INVALID_PARAMETER, flags);
	fails(o, ep->held_requests >= ep->attr.max_request_dtos, DAT_INSUFFICIENT_RESOURCES,
	      DAT_RESOURCE_TEP);
	fails_in_state(o, ep->state != DAT_EP_STATE_CONNECTED &&
			  ep->state != DAT_EP_STATE_DISCONNECTED, ep);
	segs_checked(o, c, ep->pz, writes);
}

/* A suppressed request has an event only if it fails. */
static void request_complete(const struct call *c, unsigned status, uint64_t length)
{
	struct object *ep = c->object.object;
	const bool suppressed = c->flags & DAT_COMPLETION_SUPPRESS_FLAG;
	struct event *event;

	if (suppressed && status == STATUS(SUCCESS)) {
		ep->held_requests--;
		return;
	}
	event = complete(ep, false, c->cookie, suppressed ? status & ~STATUS(SUCCESS) : status,
			 length);
	if (event)
		event->optional = suppressed && status & STATUS(SUCCESS);
}

/* Whether the request is executed: in DISCONNECTED it is flushed. */
static bool request_posted(const struct call *c)
{
	struct object *ep = c->object.object;

	ep->held_requests++;
	if (ep->state == DAT_EP_STATE_CONNECTED)
		return true;
	request_complete(c, STATUS(ERR_FLUSHED), 0);
	return false;
}

static void post_send(const struct call *c, struct outcome *o)
{
	const int64_t length = segs_length(c->seg, c->segs);
	struct object *ep = c->object.object, *peer;
	struct receive r;
	bool usable = true, fits;
	int64_t i, rest;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	request_checked(c, o, ep->attr.max_request_iov, false, DAT_INVALID_ARG5);
	fails(o, (uint64_t)length > ep->attr.max_message_size, DAT_LENGTH_ERROR, ANY_SUBTYPE);
	if (o->n || !request_posted(c))
		return;

	peer = ep->peer;
	o->untimely = !peer->recvs;	/* the message would wait for a receive */
	if (o->untimely)
		return;
	r = peer->recv[0];
	memmove(peer->recv, peer->recv + 1, --peer->recvs * sizeof(r));
	fits = length <= segs_length(r.seg, r.segs);
	for (i = 0, rest = length; i < r.segs; rest -= r.seg[i++].length) {
		if (seg_is_usable(&r.seg[i], peer->pz))
			continue;
		usable = false;
		o->untimely |= rest <= 0 && length;	/* DAT does not say what it needs */
	}
	if (fits && (usable || !length)) {
		segs_copy(r.seg, c->seg, length, o);
		complete(peer, true, r.cookie, STATUS(SUCCESS), (uint64_t)length);
		request_complete(c, STATUS(SUCCESS), (uint64_t)length);
		return;
	}
	o->data_lost = true;
	complete(peer, true, r.cookie, (fits ? 0 : STATUS(ERR_LOCAL_LENGTH)) |
				       (usable ? 0 : STATUS(ERR_LOCAL_PROTECTION)), 0);
	request_complete(c, STATUS(SUCCESS) | ANY_FAILURE, (uint64_t)length);
	ep_break(ep);
}

/* Whether @pz grants the peer the memory that an RDMA operation names. */
static bool is_granted(const struct call *c, const struct object *pz)
{
	const struct object *t = c->target;
	const int privilege = c->op == POST_READ ? DAT_MEM_PRIV_REMOTE_READ_FLAG :
						   DAT_MEM_PRIV_REMOTE_WRITE_FLAG;

	return t && (t->kind == LMR || t->lmr) && t->pz == pz && t->privileges & privilege &&
	       is_within(t, c->remote_at, c->remote_length);
}

static void post_rdma(const struct call *c, struct outcome *o)
{
	const bool read = c->op == POST_READ;
	const int64_t local = segs_length(c->seg, c->segs);
	const int64_t length = read ? c->remote_length : local;
	struct object *ep = c->object.object;
	struct seg remote = { .at = c->remote_at, .length = c->remote_length };

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EP))
		return;
	request_checked(c, o, read ? ep->attr.max_rdma_read_iov : ep->attr.max_rdma_write_iov,
			read, DAT_INVALID_ARG6);
	fails(o, c->no_remote, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	fails(o, read ? c->remote_length > local : local > c->remote_length, DAT_LENGTH_ERROR,
	      ANY_SUBTYPE);
	if (o->n || !request_posted(c))
		return;

	if (is_granted(c, ep->peer->pz)) {
		if (read)
			segs_copy(c->seg, &remote, length, o);
		else
			segs_copy(&remote, c->seg, length, o);
		request_complete(c, STATUS(SUCCESS), (uint64_t)length);
		return;
	}
	/* a fabric may check less if no byte is moved, or only the bytes that are */
	o->untimely = length != c->remote_length || !length;
	o->data_lost = read;
	request_complete(c, model.limits.refusal_unnamed ? STATUS(ERR_FLUSHED) :
							   STATUS(ERR_REMOTE_ACCESS), 0);
	ep_break(ep);
}

static void rmr_bind(const struct call *c, struct outcome *o)
{
	const bool two = DAT_VERSION_MAJOR >= 2;
	struct object *rmr = c->object.object, *ep = c->ep.object, *lmr = c->seg[0].lmr;
	const bool binds = c->no_more || c->seg[0].length;
	struct event *event;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_RMR))
		return;
	fails(o, two && (is_lost(&c->lmr) || (binds && !c->lmr.object)), DAT_INVALID_HANDLE,
	      DAT_INVALID_HANDLE_LMR);
	fails(o, c->no_more || (binds && (!lmr || (two && lmr != c->lmr.object) ||
				!is_within(lmr, c->seg[0].at, c->seg[0].length))),
	      DAT_INVALID_PARAMETER, two ? DAT_INVALID_ARG3 : DAT_INVALID_ARG2);
	fails(o, c->privileges & ~(DAT_MEM_PRIV_ALL_FLAG | (two ? 0x40 : 0)) && binds,
	      DAT_INVALID_PARAMETER, two ? DAT_INVALID_ARG4 : DAT_INVALID_ARG3);
	fails(o, are_flags_bad(c->flags, false), DAT_INVALID_PARAMETER,
	      two ? DAT_INVALID_ARG8 : DAT_INVALID_ARG6);
	fails(o, c->no_out && binds, DAT_INVALID_PARAMETER,
	      two ? DAT_INVALID_ARG9 : DAT_INVALID_ARG7);
	fails(o, (ep && rmr->pz != ep->pz) || (binds && lmr && lmr->pz != rmr->pz),
	      DAT_PROTECTION_VIOLATION, ANY_SUBTYPE);
	if (binds && lmr) {
		fails(o, c->privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG &&
		      !(lmr->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
		fails(o, c->privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG &&
		      !(lmr->privileges & DAT_MEM_PRIV_LOCAL_READ_FLAG),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_READ);
	}
	if (!valid(o, &c->ep, DAT_INVALID_HANDLE_EP))
		return;
	fails_in_state(o, ep->state != DAT_EP_STATE_CONNECTED &&
			  ep->state != DAT_EP_STATE_DISCONNECTED, ep);
	fails(o, ep->request_evd && !(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG),
	      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
	fails(o, ep->held_requests >= ep->attr.max_request_dtos, DAT_INSUFFICIENT_RESOURCES,
	      DAT_RESOURCE_TEP);
	if (o->n)
		return;

	if (ep->state == DAT_EP_STATE_CONNECTED) {
		use(&rmr->lmr, binds ? lmr : NULL);
		rmr->at = c->seg[0].at;
		rmr->length = c->seg[0].length;
		rmr->privileges = binds ? (int)c->privileges : 0;
		o->made = rmr;	/* has a new context */
		if (c->flags & DAT_COMPLETION_SUPPRESS_FLAG)
			return;
	}
	ep->held_requests++;
	event = complete(ep, false, c->cookie, ep->state == DAT_EP_STATE_CONNECTED ?
			 STATUS(SUCCESS) : STATUS(ERR_FLUSHED), 0);
	if (event) {
		event->what = BIND;
		event->handle = rmr->handle;
	}
}

/* EVDs and CNOs */

static void evd_create(const struct call *c, struct outcome *o)
{
	fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	fails(o, is_lost(&c->cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	fails(o, c->qlen < 1, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails(o, c->qlen > model.limits.max_evd_qlen, DAT_INSUFFICIENT_RESOURCES,
	      DAT_RESOURCE_TEVD);
	fails(o, !c->flags || c->flags & ~(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG),
	      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (o->n || !made(o, EVD))
		return;

	o->made->flags = (int)c->flags;
	o->made->qlen = (int)c->qlen;
	use(&o->made->cno, c->cno.object);
}

static void evd_take(const struct call *c, struct outcome *o)
{
	struct object *evd = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EVD_REQUEST))
		return;
	if (c->op == EVD_WAIT) {
		fails(o, c->threshold < 1 || c->threshold > evd->qlen, DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
		fails(o, c->no_more, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		fails(o, evd->unwaitable, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
		if (!o->n)
			fails(o, (int64_t)evd->n < c->threshold, DAT_TIMEOUT_EXPIRED, ANY_SUBTYPE);
	} else {
		fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		fails(o, !evd->n, DAT_QUEUE_EMPTY, 0);
	}
	o->takes = !o->n;
}

static void evd_post_se(const struct call *c, struct outcome *o)
{
	struct object *evd = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EVD_REQUEST))
		return;
	fails(o, !(evd->flags & DAT_EVD_SOFTWARE_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	fails(o, c->no_data || c->number != DAT_SOFTWARE_EVENT, DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	fails(o, (int)evd->n >= evd->qlen, DAT_QUEUE_FULL, ANY_SUBTYPE);
	if (!o->n)
		event_add(evd, SOFTWARE, NULL)->cookie = c->cookie;
}

static void evd_resize(const struct call *c, struct outcome *o)
{
	struct object *evd = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EVD_REQUEST))
		return;
	fails(o, c->qlen < 1 || c->qlen > model.limits.max_evd_qlen, DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	fails(o, c->qlen < (int64_t)evd->n, DAT_INVALID_STATE, 0);
	if (!o->n)
		evd->qlen = (int)c->qlen;
}

static void evd_switch(const struct call *c, struct outcome *o)
{
	struct object *evd = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EVD_REQUEST))
		return;
	if (c->op == EVD_ENABLE && evd->disabled && evd->n)
		triggers(evd->cno, YES);
	if (c->op == EVD_ENABLE || c->op == EVD_DISABLE)
		evd->disabled = c->op == EVD_DISABLE;
	else
		evd->unwaitable = c->op == EVD_SET_UNWAITABLE;
}

static void evd_modify_cno(const struct call *c, struct outcome *o)
{
	struct object *evd = c->object.object;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_EVD_REQUEST))
		return;
	fails(o, is_lost(&c->cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (o->n)
		return;

	if (evd->cno && evd->cno != c->cno.object)
		triggers(evd->cno, MAYBE);
	if (evd->n && !evd->disabled)
		triggers(c->cno.object, evd->cno == c->cno.object ? MAYBE : YES);
	use(&evd->cno, c->cno.object);
}

static void cno_create(const struct call *c, struct outcome *o)
{
	if (c->op == CNO_CREATE) {
		fails(o, c->bad_ia, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
		fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	} else if (!valid(o, &c->object, DAT_INVALID_HANDLE_CNO)) {
		return;
	}
	fails(o, c->no_function, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!o->n && c->op == CNO_CREATE)
		made(o, CNO);
}

/* While an EVD has events, calls on the EVD may trigger the CNO again. */
static void cno_wait(const struct call *c, struct outcome *o)
{
	struct object *cno = c->object.object, *evd;

	if (!valid(o, &c->object, DAT_INVALID_HANDLE_CNO))
		return;
	FOR_EACH(evd, EVD)
		if (evd->cno == cno && evd->n)
			triggers(cno, MAYBE);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (o->n)
		return;

	fails(o, cno->trigger != YES, DAT_QUEUE_EMPTY, 0);
	fails(o, cno->trigger == MAYBE, DAT_SUCCESS, 0);
	cno->trigger = NO;
}

/* The calls that every kind of object has */

static const unsigned handle_subtypes[KINDS] = {
	[PZ] = DAT_INVALID_HANDLE_PZ,	[CNO] = DAT_INVALID_HANDLE_CNO,
	[EVD] = DAT_INVALID_HANDLE_EVD_REQUEST, [LMR] = DAT_INVALID_HANDLE_LMR,
	[RMR] = DAT_INVALID_HANDLE_RMR, [EP] = DAT_INVALID_HANDLE_EP,
	[PSP] = DAT_INVALID_HANDLE_PSP, [RSP] = DAT_INVALID_HANDLE_RSP,
	[CR] = DAT_INVALID_HANDLE_CR,
};

/* Requests that the program has not seen are rejected as if no service point listened. */
static void evd_empty(struct object *evd)
{
	while (evd->n) {
		struct object *cr = evd->q[0].what == REQUEST ? evd->q[0].object : NULL;

		event_remove(evd, 0);
		if (!cr)
			continue;
		if (cr->requester)
			ep_end(cr->requester, NON_PEER_REJECTED);
		cr_decline(cr);
	}
	if (evd->cno)
		triggers(evd->cno, MAYBE);
	use(&evd->cno, NULL);
}

static void ep_free(struct object *ep)
{
	struct object *evd, *peer = ep->peer;
	unsigned i;

	FOR_EACH(evd, EVD)
		for (i = evd->n; i-- > 0;)
			if (evd->q[i].what & CONNECTIONS && is_of(&evd->q[i], ep))
				event_remove(evd, i);
	if (ep->state != DAT_EP_STATE_UNCONNECTED)
		ep_flush(ep);
	if (ep->cr)
		ep->cr->requester = NULL;
	if (peer)
		ep_end(peer, DISCONNECTED);
	ep_vanish(ep);
}

/* A receive that the fabric has may have to end its connection when its memory is freed. */
static bool is_posted(const struct object *lmr)
{
	struct object *ep;
	unsigned i;
	int j;

	FOR_EACH(ep, EP)
		for (i = 0; i < ep->recvs; i++)
			for (j = 0; j < ep->recv[i].segs; j++)
				if (ep->state != DAT_EP_STATE_UNCONNECTED &&
				    ep->recv[i].seg[j].lmr == lmr)
					return true;
	return false;
}

static void object_free(const struct call *c, struct outcome *o)
{
	static const unsigned in_use[KINDS] = {
		[PZ] = DAT_INVALID_STATE_PZ_IN_USE,   [CNO] = DAT_INVALID_STATE_CNO_IN_USE,
		[EVD] = DAT_INVALID_STATE_EVD_IN_USE, [LMR] = DAT_INVALID_STATE_LMR_IN_USE,
	};
	struct object *object = c->object.object;

	if (!valid(o, &c->object, handle_subtypes[c->kind]))
		return;
	fails(o, object->users, DAT_INVALID_STATE, in_use[c->kind]);
	if (c->kind == EP)
		fails_in_state(o, is_passive(object), object);
	if (o->n)
		return;

	o->untimely = c->kind == LMR && is_posted(object);
	if (o->untimely)
		return;
	if (c->kind == EVD)
		evd_empty(object);
	if (c->kind == PSP || c->kind == RSP)
		sp_forget(object);
	if (c->kind == EP) {
		ep_free(object);
	} else {
		use(&object->pz, NULL);
		use(&object->evd, NULL);
		use(&object->lmr, NULL);
	}
	object->live = false;
}

static void object_query(const struct call *c, struct outcome *o)
{
	static const int64_t all[KINDS] = {
		[PZ] = DAT_PZ_FIELD_ALL, [CNO] = 7, [EVD] = DAT_EVD_FIELD_ALL,
		[LMR] = DAT_LMR_FIELD_ALL, [RMR] = DAT_RMR_FIELD_ALL, [EP] = DAT_EP_FIELD_ALL,
		[PSP] = DAT_PSP_FIELD_ALL, [RSP] = DAT_RSP_FIELD_ALL,
		[CR] = DAT_CR_FIELD_ALL,
	};

	if (!valid(o, &c->object, handle_subtypes[c->kind]))
		return;
	fails(o, c->mask & ~all[c->kind], DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails(o, c->kind == RMR && c->mask & DAT_RMR_FIELD_LMR_TRIPLET && !c->object.object->lmr,
	      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	fails(o, c->no_out, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

void model_call(const struct call *c, struct outcome *o)
{
	static void (*const calls[OPS])(const struct call *c, struct outcome *o) = {
		[PZ_CREATE] = pz_create, [CNO_CREATE] = cno_create, [CNO_WAIT] = cno_wait,
		[CNO_MODIFY_AGENT] = cno_create, [EVD_CREATE] = evd_create,
		[EVD_DEQUEUE] = evd_take, [EVD_WAIT] = evd_take, [EVD_POST_SE] = evd_post_se,
		[EVD_RESIZE] = evd_resize, [EVD_ENABLE] = evd_switch, [EVD_DISABLE] = evd_switch,
		[EVD_SET_UNWAITABLE] = evd_switch, [EVD_CLEAR_UNWAITABLE] = evd_switch,
		[EVD_MODIFY_CNO] = evd_modify_cno, [LMR_CREATE] = lmr_create,
		[RMR_CREATE] = rmr_create, [RMR_BIND] = rmr_bind, [PSP_CREATE] = sp_create,
		[PSP_CREATE_ANY] = sp_create, [RSP_CREATE] = sp_create,
		[EP_CREATE] = ep_create, [EP_MODIFY] = ep_modify,
		[EP_CONNECT] = ep_connect, [EP_DUP_CONNECT] = ep_dup_connect,
		[EP_DISCONNECT] = ep_disconnect, [EP_RESET] = ep_reset, [POST_RECV] = post_recv,
		[POST_SEND] = post_send, [POST_WRITE] = post_rdma, [POST_READ] = post_rdma,
		[CR_ACCEPT] = cr_accept, [CR_REJECT] = cr_reject, [CR_HANDOFF] = cr_handoff,
		[FREE] = object_free,
		[QUERY] = object_query,
	};

	memset(o, 0, sizeof(*o));
	model.calls++;
	calls[c->op](c, o);
}
