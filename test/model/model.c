/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The model: one function for each call. Its first part permits the error of each clause that the
 * call violates; its second part applies a call that violates none.
 */
#include "model.h"

#include <string.h>

#define ANY_SUBTYPE 0xffff

/* Privileges, and flags of requests, some of which only DAT 2.0 has. */
#define PRIVILEGES (DAT_MEM_PRIV_ALL_FLAG | (DAT_VERSION_MAJOR >= 2 ? 0x40 : 0))
#define REQUEST_FLAGS                                                                \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |         \
	 DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |       \
	 (DAT_VERSION_MAJOR >= 2 ? 0x20 : 0))

/* Sets of EP states. A service point has an EP in a passive state. */
#define STATE(name) (1u << DAT_EP_STATE_##name)
#define PASSIVE                                                                      \
	(STATE(RESERVED) | STATE(PASSIVE_CONNECTION_PENDING) |                       \
	 STATE(TENTATIVE_CONNECTION_PENDING))

struct model model;

/* Clauses */

static void fails(struct outcome *o, unsigned type, unsigned subtype, bool violated)
{
	if (violated)
		o->permitted[o->n++] = (DAT_RETURN)(type | subtype);
}

static void bad_handle(struct outcome *o, unsigned subtype, bool violated)
{
	fails(o, DAT_INVALID_HANDLE, subtype, violated);
}

/* The @n-th argument. */
static void bad_argument(struct outcome *o, unsigned n, bool violated)
{
	fails(o, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + n - 1, violated);
}

static void needs_state(struct outcome *o, const struct object *ep, unsigned states)
{
	static const unsigned subtypes[] = {
		[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
		[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
		[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
		[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
	};

	fails(o, DAT_INVALID_STATE, subtypes[ep->state], !(states & 1u << ep->state));
}

/* Whether the handle is one of a live object of the kind, on which all other clauses depend. */
static bool valid(struct outcome *o, const struct ref *ref, enum kind kind)
{
	static const unsigned subtypes[KINDS] = {
		[PZ] = DAT_INVALID_HANDLE_PZ, [EVD] = DAT_INVALID_HANDLE_EVD_REQUEST,
		[CNO] = DAT_INVALID_HANDLE_CNO, [LMR] = DAT_INVALID_HANDLE_LMR,
		[RMR] = DAT_INVALID_HANDLE_RMR, [EP] = DAT_INVALID_HANDLE_EP,
		[PSP] = DAT_INVALID_HANDLE_PSP, [RSP] = DAT_INVALID_HANDLE_RSP,
		[CR] = DAT_INVALID_HANDLE_CR,
	};

	bad_handle(o, subtypes[kind], !ref->object);
	return ref->object;
}

static bool is_lost(const struct ref *ref)
{
	return ref->handle && !ref->object;
}

static bool lacks(const struct ref *evd, int flag)
{
	return is_lost(evd) || (evd->object && !(evd->object->flags & flag));
}

static bool is_outside(int64_t value, int64_t least, int64_t most)
{
	return value < least || value > most;
}

/* The size of private data is the @n-th argument, its address the next one. */
static void private_checked(struct outcome *o, const struct call *c, unsigned n)
{
	bad_argument(o, n, is_outside(c->private.size, 0, model.limits.max_private));
	bad_argument(o, n + 1, c->private.size && c->no_data);
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

/* The object that a call makes; NULL if the call fails. */
static struct object *made(struct outcome *o, enum kind kind)
{
	if (o->n)
		return NULL;
	o->made = object_make(kind);
	o->untimely = !o->made;
	return o->made;
}

static void object_end(struct object *object)
{
	unsigned i;

	use(&object->pz, NULL);
	use(&object->cno, NULL);
	use(&object->evd, NULL);
	use(&object->lmr, NULL);
	for (i = 0; i < EP_EVDS; i++)
		use(&object->evds[i], NULL);
	object->live = false;
}

/* Events */

static bool is_of(const struct event *event, const struct object *object)
{
	return event->object == object && event->generation == object->generation;
}

bool event_precedes(const struct event *a, const struct event *b)
{
	return a->object == b->object && a->generation == b->generation &&
	       (a->what & CONNECTIONS || b->what & CONNECTIONS || a->of == b->of);
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
	if (event.what & (DTO | BIND) && is_of(&event, event.object))
		event.object->held[event.of]--;
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
			if (ep->evds[RECVS] == evd)
				n += (int)ep->recvs;
			if (ep->evds[CONNECTS] == evd && 1u << ep->state &
			    (STATE(CONNECTED) | STATE(ACTIVE_CONNECTION_PENDING)))
				n += 2;
		}
		if (n > evd->qlen || n > (int)MOST_EVENTS - 8)
			return true;
	}
	return false;
}

/* Completes an operation. Without an EVD it has no event. */
static struct event *complete(struct object *ep, enum ep_evd of, uint64_t cookie, unsigned status,
			      uint64_t length)
{
	struct event *event;

	if (!ep->evds[of]) {
		ep->held[of]--;
		return NULL;
	}
	event = event_add(ep->evds[of], DTO, ep);
	event->of = of;
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
		complete(ep, RECVS, ep->recv[i].cookie, STATUS(ERR_FLUSHED), 0);
	ep->recvs = 0;
}

static struct event *ep_end(struct object *ep, unsigned what)
{
	ep_flush(ep);
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->peer = ep->cr = NULL;
	return event_add(ep->evds[CONNECTS], what, ep);
}

/* The end of a connection after an error. */
static void ep_break(struct object *ep)
{
	struct object *peer = ep->peer;
	const unsigned what = model.limits.goodbye ? BROKEN : BROKEN | DISCONNECTED;

	ep_end(ep, what);
	ep_end(peer, what);
}

/* An attribute that is 0 has the value @standard; the limit applies to both. */
static int or_default(int64_t value, int standard, int limit)
{
	const int wanted = value ? (int)value : standard;

	return wanted < limit ? wanted : limit;
}

/* The attributes of an EP that asks for @attr, or NULL. */
static DAT_EP_ATTR attr_effective(const DAT_EP_ATTR *attr)
{
	static const DAT_EP_ATTR none = { .max_recv_dtos = 64, .max_request_dtos = 64 };
	const struct limits *l = &model.limits;
	DAT_EP_ATTR a = attr ? *attr : none;
	int rdma_iov;

	if (!a.max_message_size)
		a.max_message_size = l->max_message;
	a.max_recv_iov = or_default(a.max_recv_iov, 4, l->max_iov);
	a.max_request_iov = or_default(a.max_request_iov, 4, l->max_iov);
	rdma_iov = a.max_request_iov > 4 ? a.max_request_iov : 4;
	a.max_rdma_read_iov = or_default(a.max_rdma_read_iov, rdma_iov, l->max_read_iov);
	a.max_rdma_write_iov = or_default(a.max_rdma_write_iov, rdma_iov, l->max_write_iov);
	return a;
}

static bool attr_exceeds(const DAT_EP_ATTR *a)
{
	const struct limits *l = &model.limits;

	return a->service_type != DAT_SERVICE_TYPE_RC || a->ep_transport_specific_count ||
	       is_outside(a->max_recv_dtos, 0, l->max_dtos) ||
	       is_outside(a->max_request_dtos, 0, l->max_dtos) ||
	       is_outside(a->max_recv_iov, 0, l->max_iov) ||
	       is_outside(a->max_request_iov, 0, l->max_iov) ||
	       a->max_message_size > l->max_message;
}

static const struct { int flag; unsigned subtype; int64_t field; } ep_evds[EP_EVDS] = {
	[RECVS] = { DAT_EVD_DTO_FLAG, DAT_INVALID_HANDLE_EVD_RECV, DAT_EP_FIELD_RECV_EVD_HANDLE },
	[REQUESTS] = { DAT_EVD_DTO_FLAG, DAT_INVALID_HANDLE_EVD_REQUEST,
		       DAT_EP_FIELD_REQUEST_EVD_HANDLE },
	[CONNECTS] = { DAT_EVD_CONNECTION_FLAG, DAT_INVALID_HANDLE_EVD_CONN,
		       DAT_EP_FIELD_CONNECT_EVD_HANDLE },
};

static void ep_create(const struct call *c, struct outcome *o)
{
	struct object *ep;
	unsigned i;

	bad_handle(o, DAT_INVALID_HANDLE_PZ, is_lost(&c->pz));
	for (i = 0; i < EP_EVDS; i++)
		bad_handle(o, ep_evds[i].subtype, lacks(&c->evds[i], ep_evds[i].flag));
	bad_argument(o, 7, !c->no_data && attr_exceeds(&c->attr));
	fails(o, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE, !c->no_data && c->attr.qos & ~15u);
	ep = made(o, EP);
	if (!ep)
		return;

	use(&ep->pz, c->pz.object);
	for (i = 0; i < EP_EVDS; i++)
		use(&ep->evds[i], c->evds[i].object);
	ep->attr = attr_effective(c->no_data ? NULL : &c->attr);
	ep->state = DAT_EP_STATE_UNCONNECTED;
}

static void ep_modify(struct object *ep, const struct call *c, struct outcome *o)
{
	const bool size = c->mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE;
	const bool recvs = c->mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS;
	const bool requests = c->mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS;
	const bool pz = c->mask & DAT_EP_FIELD_PZ_HANDLE;
	const DAT_EP_ATTR attr = attr_effective(&c->attr);
	int64_t known = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE |
			DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS;
	unsigned i;

	if (c->mask)
		needs_state(o, ep, STATE(UNCONNECTED) | PASSIVE);
	if (pz)
		needs_state(o, ep, ~(STATE(RESERVED) | STATE(PASSIVE_CONNECTION_PENDING)));
	bad_argument(o, 3, (c->mask && c->no_data) || (pz && !c->pz.object) ||
		     (size && c->attr.max_message_size > model.limits.max_message) ||
		     (recvs && is_outside(c->attr.max_recv_dtos, ep->recvs,
					  model.limits.max_dtos)) ||
		     (requests && is_outside(c->attr.max_request_dtos, 0, model.limits.max_dtos)));
	for (i = 0; i < EP_EVDS; i++) {
		known |= ep_evds[i].field;
		bad_argument(o, 3, c->mask & ep_evds[i].field &&
			     lacks(&c->evds[i], ep_evds[i].flag));
	}
	bad_argument(o, 2, c->mask & ~known);
	if (o->n)
		return;

	if (pz)
		use(&ep->pz, c->pz.object);
	for (i = 0; i < EP_EVDS; i++)
		if (c->mask & ep_evds[i].field)
			use(&ep->evds[i], c->evds[i].object);
	if (size)
		ep->attr.max_message_size = attr.max_message_size;
	if (recvs)
		ep->attr.max_recv_dtos = attr.max_recv_dtos;
	if (requests)
		ep->attr.max_request_dtos = attr.max_request_dtos;
}

/* Connections */

static void cr_vanish(struct object *cr)
{
	if (cr->local)
		cr->local->cr = NULL;
	if (cr->requester)
		cr->requester->cr = NULL;
	object_end(cr);
}

/* A request is rejected. An EP that the provider made for it vanishes. */
static void cr_decline(struct object *cr)
{
	struct object *local = cr->local;

	cr_vanish(cr);
	if (local && local->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
		local->state = DAT_EP_STATE_UNCONNECTED;
	else if (local)
		object_end(local);
}

static struct object *listening(int64_t qual)
{
	struct object *sp;
	int kind;

	for (kind = PSP; kind <= RSP; kind++)
		FOR_EACH(sp, kind)
			if (sp->qual == (DAT_CONN_QUAL)qual)
				return sp;
	return NULL;
}

/* A request arrives. A service point with a full EVD rejects it as if none listened. */
static void request_arrive(struct object *ep, int64_t qual, const struct private *private,
			   struct outcome *o)
{
	struct object *sp = listening(qual), *cr;

	if (!sp || sp->spent || sp->evd->n >= (unsigned)sp->evd->qlen) {
		ep_end(ep, NON_PEER_REJECTED);
		return;
	}
	cr = object_make(CR);
	o->untimely |= !cr;
	if (!cr)
		return;
	cr->known = false;
	cr->qual = (DAT_CONN_QUAL)qual;
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
		o->untimely |= !cr->local;
		if (!cr->local)
			return;
		cr->local->known = false;
		cr->local->state = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
		cr->local->attr = attr_effective(NULL);
	}
}

static void needs_ready(struct outcome *o, const struct object *ep)
{
	fails(o, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY, !ep->pz || !ep->evds[CONNECTS]);
}

/* A connection, or a duplicate of one: to the qualifier to which its requester connected. */
static void ep_connect(struct object *ep, const struct call *c, struct outcome *o)
{
	const bool duplicates = c->op == EP_DUP_CONNECT;
	const unsigned timeout = duplicates ? 3 : 4;	/* among the arguments */
	int64_t qual = c->qual;

	if (!duplicates) {
		fails(o, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED, c->no_address);
		fails(o, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED, c->bad_family);
		bad_argument(o, 3, !c->qual);
		fails(o, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE, c->flags);
	} else if (valid(o, &c->ep, EP)) {
		needs_state(o, c->ep.object, STATE(CONNECTED));
		qual = (int64_t)c->ep.object->qual;
	}
	bad_argument(o, timeout, !c->timeout);
	private_checked(o, c, timeout + 1);
	fails(o, DAT_MODEL_NOT_SUPPORTED, ANY_SUBTYPE, c->qos & ~15);
	needs_state(o, ep, STATE(UNCONNECTED));
	needs_ready(o, ep);
	if (o->n)
		return;

	o->untimely = !qual;	/* the EP accepted its connection */
	ep->qual = (DAT_CONN_QUAL)qual;
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	request_arrive(ep, qual, &c->private, o);
}

static struct event *established(struct object *ep, struct object *peer)
{
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->peer = peer;
	ep->cr = NULL;
	return event_add(ep->evds[CONNECTS], ESTABLISHED, ep);
}

static void cr_accept(struct object *cr, const struct call *c, struct outcome *o)
{
	struct object *ep = cr->local ? cr->local : c->ep.object, *requester = cr->requester;

	bad_handle(o, DAT_INVALID_HANDLE_EP, cr->local ? c->ep.handle != DAT_HANDLE_NULL : !ep);
	private_checked(o, c, 3);
	if (ep && !cr->local)
		needs_state(o, ep, STATE(UNCONNECTED));
	if (ep)
		needs_ready(o, ep);
	if (o->n)
		return;

	cr_vanish(cr);
	ep->qual = 0;
	if (requester) {
		established(ep, requester);
		established(requester, ep)->private = c->private;
		return;
	}
	/* the fabric may detect late that the requester has gone */
	event_add(ep->evds[CONNECTS], ESTABLISHED, ep)->optional = true;
	ep_end(ep, ACCEPT_ERROR | DISCONNECTED | BROKEN);
}

static void cr_reject(struct object *cr, const struct call *c, struct outcome *o)
{
	struct event *event;

	if (DAT_VERSION_MAJOR >= 2)
		private_checked(o, c, 2);
	if (o->n)
		return;

	if (cr->requester) {
		event = ep_end(cr->requester, PEER_REJECTED);
		if (DAT_VERSION_MAJOR >= 2)
			event->private = c->private;
	}
	cr_decline(cr);
}

/* Whether a request is still passed on after the requester has gone is up to the fabric. */
static void cr_handoff(struct object *cr, const struct call *c, struct outcome *o)
{
	const struct object *sp = listening(c->qual);
	struct object *requester = cr->requester, *first = cr->sp;
	const struct private private = cr->private;

	bad_argument(o, 2, !sp || sp->spent);
	o->untimely = !o->n && !requester;
	if (o->n || o->untimely)
		return;

	cr_decline(cr);
	request_arrive(requester, c->qual, &private, o);
	if (requester->cr)
		requester->cr->sp = first;
}

static void ep_disconnect(struct object *ep, const struct call *c, struct outcome *o)
{
	struct object *peer = ep->peer;

	bad_argument(o, 2, c->flags & ~1);
	needs_state(o, ep, ~(STATE(UNCONNECTED) | PASSIVE));
	if (o->n || ep->state == DAT_EP_STATE_DISCONNECTED)
		return;

	if (ep->cr)
		ep->cr->requester = NULL;
	ep_end(ep, DISCONNECTED);
	if (peer)
		ep_end(peer, DISCONNECTED);
}

static void ep_reset(struct object *ep, const struct call *c, struct outcome *o)
{
	struct object *evd;
	unsigned i;

	needs_state(o, ep, STATE(UNCONNECTED) | STATE(DISCONNECTED));
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
	struct object *evd = c->object.object, *ep = reserved ? c->ep.object : NULL, *sp;

	bad_handle(o, DAT_INVALID_HANDLE_EVD_CR, !evd || !(evd->flags & DAT_EVD_CR_FLAG));
	bad_argument(o, 2, c->op == PSP_CREATE_ANY ? c->no_data : !c->qual);
	fails(o, DAT_CONN_QUAL_IN_USE, ANY_SUBTYPE, c->op != PSP_CREATE_ANY && listening(c->qual));
	bad_argument(o, 4, !reserved && c->flags & ~1);
	bad_handle(o, DAT_INVALID_HANDLE_EP, reserved && is_lost(&c->ep));
	if (ep)
		needs_state(o, ep, STATE(UNCONNECTED));
	sp = made(o, reserved ? RSP : PSP);
	if (!sp)
		return;

	sp->qual = (DAT_CONN_QUAL)c->qual;
	sp->flags = (int)c->flags;
	use(&sp->evd, evd);
	sp->local = ep;
	if (ep)
		ep->state = DAT_EP_STATE_RESERVED;
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
	made(o, PZ);
}

static void lmr_create(const struct call *c, struct outcome *o)
{
	const bool derived = c->type == DAT_MEM_TYPE_LMR;
	const int writing = DAT_MEM_PRIV_REMOTE_WRITE_FLAG | 0x40;
	struct object *lmr;

	bad_handle(o, DAT_INVALID_HANDLE_PZ, !c->pz.object);
	bad_argument(o, 2, !derived && c->type != DAT_MEM_TYPE_VIRTUAL);
	bad_handle(o, DAT_INVALID_HANDLE_LMR, derived && !c->lmr.object);
	fails(o, DAT_LENGTH_ERROR, ANY_SUBTYPE, !derived && !c->length);
	bad_argument(o, 3, !derived && c->no_address);
	bad_argument(o, 6, c->privileges & ~PRIVILEGES || (c->privileges & writing &&
			   !(c->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)));
	fails(o, DAT_INVALID_PARAMETER, ANY_SUBTYPE, c->no_out);
	lmr = made(o, LMR);
	if (!lmr)
		return;

	use(&lmr->pz, c->pz.object);
	lmr->at = derived ? c->lmr.object->at : c->at;
	lmr->length = derived ? c->lmr.object->length : c->length;
	lmr->privileges = (int)c->privileges;
	if (c->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		lmr->privileges |= DAT_MEM_PRIV_LOCAL_READ_FLAG;
}

static void rmr_create(const struct call *c, struct outcome *o)
{
	if (made(o, RMR))
		use(&o->made->pz, c->object.object);
}

static bool is_within(const struct object *memory, int64_t at, int64_t length)
{
	return at >= memory->at && at + length <= memory->at + memory->length;
}

/* The clauses on the segments of an operation, at most @most, with memory of the EP's PZ. */
static void segs_checked(struct outcome *o, const struct call *c, const struct object *ep, int most,
			 bool writes)
{
	const int privilege = writes ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG :
				       DAT_MEM_PRIV_LOCAL_READ_FLAG;
	const struct seg *s;

	bad_argument(o, 2, is_outside(c->segs, 0, most));
	bad_argument(o, 3, c->segs && c->no_data);
	for (s = c->seg; s - c->seg < c->segs && s < c->seg + MOST_SEGS; s++) {
		if (!s->length)
			continue;
		fails(o, DAT_PROTECTION_VIOLATION,
		      writes ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ,
		      !s->lmr || s->lmr->pz != ep->pz);
		bad_argument(o, 3, s->lmr && !is_within(s->lmr, s->at, s->length));
		fails(o, DAT_PRIVILEGES_VIOLATION,
		      writes ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ,
		      s->lmr && !(s->lmr->privileges & privilege));
	}
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

/* Copies the bytes of one list of segments to the second half of the memory. */
static void segs_copy(const struct seg *to, const struct seg *from, int64_t length,
		      struct outcome *o)
{
	int64_t i = 0, j = 0;

	for (; length > 0; length--, i++, j++) {
		while (i == from->length)
			from++, i = 0;
		while (j == to->length)
			to++, j = 0;
		o->data_lost |= from->at + i >= (int64_t)HALF;
		o->untimely |= to->at + j < (int64_t)HALF;
		model.memory[to->at + j] = model.memory[from->at + i];
	}
}

/* Operations */

/* No EP of the model has UNSIGNALLED among its attributes. */
static bool are_flags_bad(int64_t flags, bool receive)
{
	const int64_t strict = receive ? flags : flags & DAT_COMPLETION_UNSIGNALLED_FLAG;

	return flags & ~(int64_t)REQUEST_FLAGS || (model.limits.strict && strict);
}

static void post_recv(struct object *ep, const struct call *c, struct outcome *o)
{
	segs_checked(o, c, ep, ep->attr.max_recv_iov, true);
	bad_argument(o, 5, are_flags_bad(c->flags, true));
	fails(o, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP,
	      ep->held[RECVS] >= ep->attr.max_recv_dtos);
	o->untimely = !o->n && ep->recvs == MOST_RECVS;
	if (o->n || o->untimely)
		return;

	ep->held[RECVS]++;
	if (ep->state == DAT_EP_STATE_DISCONNECTED) {
		complete(ep, RECVS, c->cookie, STATUS(ERR_FLUSHED), 0);
		return;
	}
	ep->recv[ep->recvs] = (struct receive){ .segs = (int)c->segs, .cookie = c->cookie };
	memcpy(ep->recv[ep->recvs++].seg, c->seg, sizeof(c->seg));
}

/* The clauses on the EP that all requests share. */
static void request_checked(struct outcome *o, const struct object *ep)
{
	needs_state(o, ep, STATE(CONNECTED) | STATE(DISCONNECTED));
	fails(o, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP,
	      ep->held[REQUESTS] >= ep->attr.max_request_dtos);
}

/* A suppressed request has an event only if it fails. */
static struct event *request_complete(struct object *ep, const struct call *c, unsigned status,
				      uint64_t length)
{
	const bool suppressed = c->flags & DAT_COMPLETION_SUPPRESS_FLAG;
	struct event *event;

	if (suppressed && status == STATUS(SUCCESS)) {
		ep->held[REQUESTS]--;
		return NULL;
	}
	event = complete(ep, REQUESTS, c->cookie, suppressed ? status & ~STATUS(SUCCESS) : status,
			 length);
	if (event)
		event->optional = suppressed && status & STATUS(SUCCESS);
	return event;
}

/* Whether the request is executed: in DISCONNECTED it is flushed. */
static bool request_posted(struct object *ep, const struct call *c)
{
	ep->held[REQUESTS]++;
	if (ep->state == DAT_EP_STATE_CONNECTED)
		return true;
	request_complete(ep, c, STATUS(ERR_FLUSHED), 0);
	return false;
}

static void post_send(struct object *ep, const struct call *c, struct outcome *o)
{
	const int64_t length = segs_length(c->seg, c->segs);
	struct object *peer = ep->peer;
	struct receive r;
	bool usable = true, fits;
	int64_t i, rest;

	segs_checked(o, c, ep, ep->attr.max_request_iov, false);
	bad_argument(o, 5, are_flags_bad(c->flags, false));
	request_checked(o, ep);
	fails(o, DAT_LENGTH_ERROR, ANY_SUBTYPE, (uint64_t)length > ep->attr.max_message_size);
	if (o->n || !request_posted(ep, c))
		return;

	o->untimely = !peer->recvs;	/* the message would wait for a receive */
	if (o->untimely)
		return;
	r = peer->recv[0];
	memmove(peer->recv, peer->recv + 1, --peer->recvs * sizeof(r));
	fits = length <= segs_length(r.seg, r.segs);
	for (i = 0, rest = length; i < r.segs; rest -= r.seg[i++].length)
		if (!seg_is_usable(&r.seg[i], peer->pz)) {
			usable = false;
			o->untimely |= rest <= 0 && length;	/* DAT does not say */
		}
	if (fits && (usable || !length)) {
		segs_copy(r.seg, c->seg, length, o);
		complete(peer, RECVS, r.cookie, STATUS(SUCCESS), (uint64_t)length);
		request_complete(ep, c, STATUS(SUCCESS), (uint64_t)length);
		return;
	}
	o->data_lost = true;
	complete(peer, RECVS, r.cookie, (fits ? 0 : STATUS(ERR_LOCAL_LENGTH)) |
					(usable ? 0 : STATUS(ERR_LOCAL_PROTECTION)), 0);
	request_complete(ep, c, STATUS(SUCCESS) | ANY_FAILURE, (uint64_t)length);
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

static void post_rdma(struct object *ep, const struct call *c, struct outcome *o)
{
	const bool read = c->op == POST_READ;
	const int64_t local = segs_length(c->seg, c->segs), remote = c->remote_length;
	const int64_t length = read ? remote : local;
	const struct seg target = { .at = c->remote_at, .length = remote };

	segs_checked(o, c, ep, read ? ep->attr.max_rdma_read_iov : ep->attr.max_rdma_write_iov,
		     read);
	bad_argument(o, 5, c->no_remote);
	bad_argument(o, 6, are_flags_bad(c->flags, false));
	request_checked(o, ep);
	fails(o, DAT_LENGTH_ERROR, ANY_SUBTYPE, length > (read ? local : remote));
	if (o->n || !request_posted(ep, c))
		return;

	if (is_granted(c, ep->peer->pz)) {
		segs_copy(read ? c->seg : &target, read ? &target : c->seg, length, o);
		request_complete(ep, c, STATUS(SUCCESS), (uint64_t)length);
		return;
	}
	/* a fabric may check less if no byte is moved, or only the bytes that are */
	o->untimely = length != remote || !length;
	o->data_lost = read;
	request_complete(ep, c, model.limits.refusal_unnamed ? STATUS(ERR_FLUSHED) :
							       STATUS(ERR_REMOTE_ACCESS), 0);
	ep_break(ep);
}

/* DAT 2.0 has two more arguments: the LMR before the triplet, and a type before the EP. */
static void rmr_bind(struct object *rmr, const struct call *c, struct outcome *o)
{
	const unsigned two = DAT_VERSION_MAJOR >= 2;
	const bool binds = c->no_more || c->seg[0].length;
	struct object *ep = c->ep.object, *lmr = binds ? c->seg[0].lmr : NULL;
	struct event *event;

	bad_handle(o, DAT_INVALID_HANDLE_LMR,
		   two && (is_lost(&c->lmr) || (binds && !c->lmr.object)));
	bad_argument(o, 2 + two, c->no_more ||
		     (binds && (!lmr || (two && lmr != c->lmr.object) ||
				!is_within(lmr, c->seg[0].at, c->seg[0].length))));
	bad_argument(o, 3 + two, binds && c->privileges & ~PRIVILEGES);
	bad_argument(o, 7 + 2 * two, binds && c->no_out);
	fails(o, DAT_PROTECTION_VIOLATION, ANY_SUBTYPE,
	      (ep && rmr->pz != ep->pz) || (lmr && lmr->pz != rmr->pz));
	fails(o, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE,
	      lmr && c->privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG &&
	      !(lmr->privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
	fails(o, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_READ,
	      lmr && c->privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG &&
	      !(lmr->privileges & DAT_MEM_PRIV_LOCAL_READ_FLAG));
	bad_argument(o, 6 + 2 * two, are_flags_bad(c->flags, false));
	if (!valid(o, &c->ep, EP))
		return;
	request_checked(o, ep);
	fails(o, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST, ep->evds[REQUESTS] &&
	      !(ep->evds[REQUESTS]->flags & DAT_EVD_RMR_BIND_FLAG));
	if (o->n)
		return;

	if (ep->state == DAT_EP_STATE_CONNECTED) {
		use(&rmr->lmr, lmr);
		rmr->at = c->seg[0].at;
		rmr->length = c->seg[0].length;
		rmr->privileges = binds ? (int)c->privileges : 0;
		o->made = rmr;	/* has a new context */
	}
	ep->held[REQUESTS]++;
	event = request_complete(ep, c, ep->state == DAT_EP_STATE_CONNECTED ? STATUS(SUCCESS) :
				 STATUS(ERR_FLUSHED), 0);
	if (event) {
		event->what = BIND;
		event->handle = rmr->handle;
	}
}

/* EVDs and CNOs */

static void evd_create(const struct call *c, struct outcome *o)
{
	bad_handle(o, DAT_INVALID_HANDLE_CNO, is_lost(&c->cno));
	bad_argument(o, 2, c->qlen < 1);
	fails(o, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD,
	      c->qlen > model.limits.max_evd_qlen);
	bad_argument(o, 4, !c->flags || c->flags & ~(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG));
	if (!made(o, EVD))
		return;

	o->made->flags = (int)c->flags;
	o->made->qlen = (int)c->qlen;
	use(&o->made->cno, c->cno.object);
}

static void evd_take(struct object *evd, const struct call *c, struct outcome *o)
{
	fails(o, DAT_QUEUE_EMPTY, 0, c->op == EVD_DEQUEUE && !evd->n);
	if (c->op == EVD_WAIT) {
		bad_argument(o, 3, is_outside(c->threshold, 1, evd->qlen));
		bad_argument(o, 5, c->no_more);
		fails(o, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, evd->unwaitable);
		fails(o, DAT_TIMEOUT_EXPIRED, ANY_SUBTYPE, !o->n && evd->n < c->threshold);
	}
	o->takes = !o->n;
}

static void evd_post_se(struct object *evd, const struct call *c, struct outcome *o)
{
	bad_argument(o, 1, !(evd->flags & DAT_EVD_SOFTWARE_FLAG));
	bad_argument(o, 2, c->no_data || c->number != DAT_SOFTWARE_EVENT);
	fails(o, DAT_QUEUE_FULL, ANY_SUBTYPE, (int)evd->n >= evd->qlen);
	if (!o->n)
		event_add(evd, SOFTWARE, NULL)->cookie = c->cookie;
}

static void evd_resize(struct object *evd, const struct call *c, struct outcome *o)
{
	bad_argument(o, 2, is_outside(c->qlen, 1, model.limits.max_evd_qlen));
	fails(o, DAT_INVALID_STATE, 0, c->qlen < evd->n);
	if (!o->n)
		evd->qlen = (int)c->qlen;
}

static void evd_switch(struct object *evd, const struct call *c, struct outcome *o)
{
	if (c->op == EVD_ENABLE && evd->disabled && evd->n)
		triggers(evd->cno, YES);
	if (c->op == EVD_ENABLE || c->op == EVD_DISABLE)
		evd->disabled = c->op == EVD_DISABLE;
	else
		evd->unwaitable = c->op == EVD_SET_UNWAITABLE;
}

static void evd_modify_cno(struct object *evd, const struct call *c, struct outcome *o)
{
	bad_handle(o, DAT_INVALID_HANDLE_CNO, is_lost(&c->cno));
	if (o->n)
		return;

	if (evd->cno != c->cno.object)
		triggers(evd->cno, MAYBE);
	if (evd->n && !evd->disabled)
		triggers(c->cno.object, evd->cno == c->cno.object ? MAYBE : YES);
	use(&evd->cno, c->cno.object);
}

/* Makes a CNO, or changes the agent of one, which has no effect that the program sees. */
static void cno_create(const struct call *c, struct outcome *o)
{
	bad_argument(o, 2, c->no_function);
	if (c->op == CNO_CREATE)
		made(o, CNO);
}

/* While an EVD has events, calls on the EVD may trigger the CNO again. */
static void cno_wait(struct object *cno, const struct call *c, struct outcome *o)
{
	struct object *evd;

	FOR_EACH(evd, EVD)
		if (evd->cno == cno && evd->n)
			triggers(cno, MAYBE);
	if (o->n)
		return;

	fails(o, DAT_QUEUE_EMPTY, 0, cno->trigger != YES);
	fails(o, DAT_SUCCESS, 0, cno->trigger == MAYBE);
	cno->trigger = NO;
}

/* The calls that every kind of object has */

/* Requests that the program has not seen are rejected as if no service point listened. */
static void evd_empty(struct object *evd)
{
	while (evd->n) {
		const struct event event = evd->q[0];

		event_remove(evd, 0);
		if (event.what != REQUEST)
			continue;
		if (event.object->requester)
			ep_end(event.object->requester, NON_PEER_REJECTED);
		cr_decline(event.object);
	}
	triggers(evd->cno, MAYBE);
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

static void object_free(struct object *object, const struct call *c, struct outcome *o)
{
	static const unsigned in_use[KINDS] = {
		[PZ] = DAT_INVALID_STATE_PZ_IN_USE,   [CNO] = DAT_INVALID_STATE_CNO_IN_USE,
		[EVD] = DAT_INVALID_STATE_EVD_IN_USE, [LMR] = DAT_INVALID_STATE_LMR_IN_USE,
	};

	fails(o, DAT_INVALID_STATE, in_use[c->kind], object->users);
	if (c->kind == EP)
		needs_state(o, object, ~PASSIVE);
	if (o->n)
		return;

	o->untimely = c->kind == LMR && is_posted(object);
	if (c->kind == EVD)
		evd_empty(object);
	if (c->kind == PSP || c->kind == RSP)
		sp_forget(object);
	if (c->kind == EP)
		ep_free(object);
	object_end(object);
}

static void object_query(struct object *object, const struct call *c, struct outcome *o)
{
	static const int64_t all[KINDS] = {
		[PZ] = DAT_PZ_FIELD_ALL, [CNO] = 7, [EVD] = DAT_EVD_FIELD_ALL,
		[LMR] = DAT_LMR_FIELD_ALL, [RMR] = DAT_RMR_FIELD_ALL, [EP] = DAT_EP_FIELD_ALL,
		[PSP] = DAT_PSP_FIELD_ALL, [RSP] = DAT_RSP_FIELD_ALL, [CR] = DAT_CR_FIELD_ALL,
	};

	bad_argument(o, 2, c->mask & ~all[c->kind] ||
		     (c->kind == RMR && c->mask & DAT_RMR_FIELD_LMR_TRIPLET && !object->lmr));
}

/*
 * The calls. @kind is the kind of the object on which a call is made. The @out-th argument, if not
 * 0, is the address of the result. @change changes the object, @make makes another one.
 */
static const struct {
	enum kind kind;
	unsigned out;
	void (*change)(struct object *object, const struct call *c, struct outcome *o);
	void (*make)(const struct call *c, struct outcome *o);
} calls[OPS] = {
	[PZ_CREATE] = { IA, 2, NULL, pz_create }, [CNO_CREATE] = { IA, 3, NULL, cno_create },
	[EVD_CREATE] = { IA, 5, NULL, evd_create }, [EP_CREATE] = { IA, 7, NULL, ep_create },
	[LMR_CREATE] = { IA, 0, NULL, lmr_create }, [PSP_CREATE] = { IA, 5, NULL, sp_create },
	[PSP_CREATE_ANY] = { IA, 5, NULL, sp_create }, [RSP_CREATE] = { IA, 5, NULL, sp_create },
	[CNO_WAIT] = { CNO, 3, cno_wait, NULL }, [CNO_MODIFY_AGENT] = { CNO, 0, NULL, cno_create },
	[EVD_DEQUEUE] = { EVD, 2, evd_take, NULL }, [EVD_WAIT] = { EVD, 4, evd_take, NULL },
	[EVD_POST_SE] = { EVD, 0, evd_post_se, NULL }, [EVD_RESIZE] = { EVD, 0, evd_resize, NULL },
	[EVD_ENABLE] = { EVD, 0, evd_switch, NULL }, [EVD_DISABLE] = { EVD, 0, evd_switch, NULL },
	[EVD_SET_UNWAITABLE] = { EVD, 0, evd_switch, NULL },
	[EVD_CLEAR_UNWAITABLE] = { EVD, 0, evd_switch, NULL },
	[EVD_MODIFY_CNO] = { EVD, 0, evd_modify_cno, NULL },
	[RMR_CREATE] = { PZ, 2, NULL, rmr_create }, [RMR_BIND] = { RMR, 0, rmr_bind, NULL },
	[EP_MODIFY] = { EP, 0, ep_modify, NULL }, [EP_CONNECT] = { EP, 0, ep_connect, NULL },
	[EP_DUP_CONNECT] = { EP, 0, ep_connect, NULL },
	[EP_DISCONNECT] = { EP, 0, ep_disconnect, NULL }, [EP_RESET] = { EP, 0, ep_reset, NULL },
	[POST_RECV] = { EP, 0, post_recv, NULL }, [POST_SEND] = { EP, 0, post_send, NULL },
	[POST_WRITE] = { EP, 0, post_rdma, NULL }, [POST_READ] = { EP, 0, post_rdma, NULL },
	[CR_ACCEPT] = { CR, 0, cr_accept, NULL }, [CR_REJECT] = { CR, 0, cr_reject, NULL },
	[CR_HANDOFF] = { CR, 0, cr_handoff, NULL }, [FREE] = { KINDS, 0, object_free, NULL },
	[QUERY] = { KINDS, 3, object_query, NULL },
};

void model_call(const struct call *c, struct outcome *o)
{
	const bool any = c->op == FREE || c->op == QUERY;
	const enum kind kind = any ? c->kind : calls[c->op].kind;

	memset(o, 0, sizeof(*o));
	model.calls++;
	if (kind == IA)
		bad_handle(o, DAT_INVALID_HANDLE_IA, c->bad_ia);
	else if (!valid(o, &c->object, kind))
		return;
	if (calls[c->op].out)
		bad_argument(o, calls[c->op].out, c->no_out);
	if (calls[c->op].make)
		calls[c->op].make(c, o);
	else
		calls[c->op].change(c->object.object, c, o);
}
