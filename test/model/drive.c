/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes random calls on an IA, and compares their returns, the states of the objects and the events
 * with the model's. Each sequence of calls has a seed, and frees all of its objects at its end.
 *
 * Environment: MODEL_SEED       the seed of the first sequence (1)
 *              MODEL_SEQUENCES  sequences (20); each takes the next seed
 *              MODEL_CALLS      calls in a sequence (200)
 *              MODEL_TRACE      prints each call
 *              MODEL_WRONG      the model has a wrong limit, so a difference must be found
 */
#include "model.h"

#include "../pair/pair.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define HISTORY 20u
#define LIMIT 20000	/* milliseconds for events that must come, on a busy machine */

static const char *const kind_names[KINDS] = {
	"pz", "cno", "evd", "lmr", "rmr", "ep", "psp", "rsp", "cr"
};

static struct {
	struct node n;
	unsigned char *memory;
	uint64_t seed, state, base;	/* of the qualifiers of this process */
	unsigned calls;
	struct object *async;
	DAT_COUNT async_qlen;
	DAT_HANDLE dead[KINDS][4];
	char history[HISTORY][400];
	bool trace;
} d;

static void report(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void report(const char *format, ...)
{
	va_list args;
	unsigned i;

	printf("seed %llu, call %u of %s: ", (unsigned long long)d.seed, model.calls,
	       pair_ia_name());
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nthe calls before, the last one of these:\n");
	for (i = model.calls < HISTORY ? 0 : model.calls - HISTORY + 1; i <= model.calls; i++)
		printf("%u: %s\n", i, d.history[i % HISTORY]);
	fflush(stdout);
	_exit(EXIT_FAILURE);
}

static const char *name_of(const struct object *object)
{
	static char names[8][32];
	static unsigned next;
	char *name = names[next++ % 8];

	if (!object)
		return "none";
	snprintf(name, sizeof(names[0]), "%s%d.%u", kind_names[object->kind],
		 (int)(object - model.objects[object->kind]), object->generation);
	return name;
}

/* Drawing (splitmix64) */

static unsigned draw(unsigned n)
{
	uint64_t x = d.state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (unsigned)((x ^ x >> 31) >> 32) % n;
}

static bool rarely(void)
{
	return !draw(24);
}

static unsigned count(enum kind kind)
{
	struct object *object;
	unsigned n = 0;

	FOR_EACH(object, kind)
		n += object->known;
	return n;
}

static struct object *pick(enum kind kind)
{
	unsigned n = count(kind);
	struct object *object;

	n = n ? draw(n) : 0;
	FOR_EACH(object, kind)
		if (object->known && !n--)
			return object;
	return NULL;
}

static bool is_alive(DAT_HANDLE handle)
{
	struct object *object;
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		FOR_EACH(object, kind)
			if (object->handle == handle)
				return true;
	return false;
}

static struct ref ref_to(struct object *object)
{
	return (struct ref){ object, object ? object->handle : DAT_HANDLE_NULL };
}

/* A handle that is none of a live object of the kind: null, one of a freed object, or another. */
static struct ref wrong(enum kind kind)
{
	const enum kind other = (kind + 1 + draw(KINDS - 1)) % KINDS;
	const unsigned how = draw(3);
	const DAT_HANDLE dead = d.dead[kind][draw(4)];
	const struct object *object = pick(other);
	struct ref ref = ref_to(NULL);

	if (how == 0 && object)
		ref.handle = object->handle;
	if (how == 1 && !is_alive(dead))	/* an object may have the handle of a freed one */
		ref.handle = dead;
	return ref;
}

static struct ref ref_of(enum kind kind)
{
	return rarely() ? wrong(kind) : ref_to(pick(kind));
}

/* Mostly the first PZ, so that objects of one PZ meet. */
static struct ref pz_ref(void)
{
	unsigned i;

	for (i = 0; i < MOST_OBJECTS && draw(6); i++)
		if (model.objects[PZ][i].live)
			return ref_to(&model.objects[PZ][i]);
	return ref_of(PZ);
}

static struct ref ref_or_null(enum kind kind)
{
	return draw(12) ? ref_of(kind) : ref_to(NULL);
}

/* Mostly an EVD with the flag. */
static struct ref evd_with(int flag)
{
	struct ref ref;
	int i = 0;

	do
		ref = ref_or_null(EVD);
	while (++i < 5 && (!ref.object || !(ref.object->flags & flag)));
	return ref;
}

static void draw_evds(struct call *c)
{
	c->evds[RECVS] = evd_with(DAT_EVD_DTO_FLAG);
	c->evds[REQUESTS] = evd_with(DAT_EVD_DTO_FLAG);
	c->evds[CONNECTS] = evd_with(DAT_EVD_CONNECTION_FLAG);
}

/* Mostly an EP in the state. */
static struct ref ep_in(DAT_EP_STATE state)
{
	struct ref ref;
	int i = 0;

	do
		ref = ref_of(EP);
	while (++i < 6 && (!ref.object || ref.object->state != state));
	return ref;
}

static void draw_private(struct call *c)
{
	c->private.size = draw(3) ? draw(49) : draw((unsigned)model.limits.max_private + 1);
	c->private.seed = draw(1000);
	if (rarely())
		c->private.size = draw(2) ? -1 : model.limits.max_private + 1;
	c->no_data = rarely();
}

static int64_t draw_length(void)
{
	static const unsigned most[] = { 1, 64, 512, 9000, 20000, HALF / 4 };

	return draw(most[draw(6)]);
}

/* Segments, with memory of the first half or of the second. */
static void draw_segs(struct call *c, bool second)
{
	struct object *ep = c->object.object, *lmr;
	struct seg *s;
	int tries;

	c->segs = rarely() ? (int64_t)draw(7) - 1 : draw(4);
	for (s = c->seg; s < c->seg + MOST_SEGS; s++) {
		s->length = draw_length();
		for (lmr = NULL, tries = 0; tries < 6; tries++) {
			lmr = pick(LMR);
			if (lmr && ep && lmr->pz == ep->pz &&
			    (lmr->at >= (int64_t)HALF) == second)
				break;
		}
		s->at = second ? HALF : 0;
		if (lmr) {
			s->at = lmr->at + draw((unsigned)lmr->length);
			if (!rarely() && s->length > lmr->at + lmr->length - s->at)
				s->length = lmr->at + lmr->length - s->at;
			s->context = lmr->context;
			s->generation = lmr->generation;
		}
		if (!lmr || rarely())
			s->context = lmr ? lmr->context ^ 0x40000000u : 0xdeadbeef, lmr = NULL;
		s->lmr = lmr;
	}
}

static void draw_request(struct call *c)
{
	static const int64_t flags[] = { DAT_COMPLETION_SUPPRESS_FLAG,
					 DAT_COMPLETION_BARRIER_FENCE_FLAG,
					 DAT_COMPLETION_UNSIGNALLED_FLAG, 0x100 };

	c->object = ep_in(draw(8) ? DAT_EP_STATE_CONNECTED : DAT_EP_STATE_DISCONNECTED);
	draw_segs(c, c->op == POST_READ);
	if (!draw(4))
		c->flags = flags[draw(8) ? draw(2) : draw(4)];
	c->no_data = rarely();
}

static void draw_target(struct call *c)
{
	struct object *ep = c->object.object, *t;
	const bool second = c->op == POST_WRITE;
	int tries, i;

	for (tries = 0; tries < 8; tries++) {
		t = pick(draw(3) ? LMR : RMR);
		if (t && ep && ep->peer && t->pz == ep->peer->pz && t->length &&
		    (t->at >= (int64_t)HALF) == second)
			break;
	}
	c->remote_length = draw_length();
	c->remote_at = second ? HALF : 0;
	if (t && t->length) {
		c->remote_at = t->at + draw((unsigned)t->length);
		if (!rarely() && c->remote_length > t->at + t->length - c->remote_at)
			c->remote_length = t->at + t->length - c->remote_at;
	}
	c->remote_context = t ? t->rmr_context : 0;
	if (rarely())
		c->remote_context ^= 0x5a5a5a5a, t = NULL;
	c->target = t && (t->kind == LMR || t->lmr) && t->rmr_context ? t : NULL;
	if (c->op == POST_WRITE && draw(12))	/* mostly no more than the target takes */
		for (i = 0; i < c->segs && i < (int)MOST_SEGS; i++)
			if (c->seg[i].length > c->remote_length / (c->segs + 1))
				c->seg[i].length = c->remote_length / (c->segs + 1);
	c->no_remote = rarely();
}

static void draw_attr(struct call *c)
{
	c->no_data = !draw(4);
	c->attr.max_recv_dtos = (DAT_COUNT)draw(9);
	c->attr.max_request_dtos = (DAT_COUNT)draw(16);
	c->attr.max_recv_iov = (DAT_COUNT)draw(5);
	c->attr.max_request_iov = (DAT_COUNT)draw(5);
	c->attr.max_message_size = draw(3) ? 0 : 1 + draw(10000);
	if (!rarely())
		return;
	switch (draw(6)) {
	case 0: c->attr.max_recv_dtos = -1; break;
	case 1: c->attr.max_request_dtos = model.limits.max_dtos + 1; break;
	case 2: c->attr.max_recv_iov = model.limits.max_iov + 1; break;
	case 3: c->attr.service_type = (DAT_SERVICE_TYPE)77; break;
	case 4: c->attr.qos = (DAT_QOS)0x100; break;
	default: c->attr.ep_transport_specific_count = 1; break;
	}
}

static uint64_t draw_qual(void)
{
	struct object *sp = pick(draw(3) ? PSP : RSP);

	return rarely() ? 0 : sp && draw(8) ? sp->qual : d.base + 4 + draw(4);
}

static void draw_lmr(struct call *c)
{
	static const int64_t usual[] = { 0x33, 0x33, 0x33, 0x33, 0x11, 1, 0x10, 0x13, 0x31, 0, 3 };

	c->pz = pz_ref();
	c->length = draw(2) ? HALF : draw(HALF);
	c->at = (draw(2) ? HALF : 0) + draw((unsigned)(HALF - c->length + 1));
	c->privileges = usual[draw(11)];
	if (rarely())
		c->privileges = draw(2) ? 0x20 : 0x133;
	c->type = rarely() ? 99 : draw(6) ? DAT_MEM_TYPE_VIRTUAL : DAT_MEM_TYPE_LMR;
	c->lmr = ref_of(LMR);
	c->no_address = rarely();
}

static void draw_bind(struct call *c)
{
	struct object *rmr, *lmr;

	c->object = ref_of(RMR);
	rmr = c->object.object;
	c->ep = ep_in(draw(8) ? DAT_EP_STATE_CONNECTED : DAT_EP_STATE_DISCONNECTED);
	c->lmr = ref_of(LMR);
	if (rmr && c->lmr.object && c->lmr.object->pz != rmr->pz)
		c->lmr = ref_of(LMR);
	lmr = c->lmr.object ? c->lmr.object : pick(LMR);
	if (lmr) {
		c->seg[0] = (struct seg){ .lmr = lmr, .context = lmr->context,
					  .at = lmr->at + draw((unsigned)lmr->length) };
		c->seg[0].length = draw(5) ? 1 + draw((unsigned)lmr->length) : 0;
		if (!rarely() && c->seg[0].length > lmr->at + lmr->length - c->seg[0].at)
			c->seg[0].length = lmr->at + lmr->length - c->seg[0].at;
	}
	c->privileges = draw(4) ? 0x22 : draw(2) ? 2 : rarely() ? 0x100 : 0x20;
	c->flags = draw(6) ? 0 : draw(4) ? DAT_COMPLETION_SUPPRESS_FLAG : 0x100;
	c->no_more = rarely();
}

static void draw_modify(struct call *c)
{
	static const int64_t fields[] = {
		DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE,
		DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
		DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
		DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE,
	};
	struct object *ep;

	c->object = ep_in(draw(3) ? DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING :
			  draw(3) ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_RESERVED);
	ep = c->object.object;
	draw_attr(c);
	c->no_data = rarely();
	c->attr.service_type = DAT_SERVICE_TYPE_RC;
	if (ep && ep->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
		c->mask = fields[0] | fields[1] | fields[2] | fields[3];
	else
		c->mask = fields[draw(7)] | (draw(2) ? 0 : fields[draw(7)]);
	if (rarely())
		c->mask = draw(2) ? DAT_EP_FIELD_EP_STATE : 0;
	c->pz = pz_ref();
	draw_evds(c);
}

/*
 * How often a call is drawn. A call that makes objects is drawn more often while there are few. A
 * call with the member @on is made on any object of the kind.
 */
static const struct {
	const char *name;
	unsigned weight;
	enum kind makes;
	unsigned few, most;
	bool rare;		/* without a CR, or an EP in this state */
	DAT_EP_STATE state;
	enum kind on;
} ops[OPS] = {
	[PZ_CREATE] = { "pz_create", 1, .makes = PZ, .few = 2, .most = 3 },
	[CNO_CREATE] = { "cno_create", 1, .makes = CNO, .few = 1, .most = 3 },
	[CNO_WAIT] = { "cno_wait", .weight = 8, .on = CNO },
	[CNO_MODIFY_AGENT] = { "cno_modify_agent", .weight = 1, .on = CNO },
	[EVD_CREATE] = { "evd_create", 2, .makes = EVD, .few = 4, .most = 6 },
	[EVD_DEQUEUE] = { "evd_dequeue", .weight = 60 },
	[EVD_WAIT] = { "evd_wait", .weight = 30 },
	[EVD_POST_SE] = { "evd_post_se", .weight = 3 },
	[EVD_RESIZE] = { "evd_resize", .weight = 1, .on = EVD },
	[EVD_ENABLE] = { "evd_enable", .weight = 1, .on = EVD },
	[EVD_DISABLE] = { "evd_disable", .weight = 1, .on = EVD },
	[EVD_SET_UNWAITABLE] = { "evd_set_unwaitable", .weight = 1, .on = EVD },
	[EVD_CLEAR_UNWAITABLE] = { "evd_clear_unwaitable", .weight = 1, .on = EVD },
	[EVD_MODIFY_CNO] = { "evd_modify_cno", .weight = 2, .on = EVD },
	[LMR_CREATE] = { "lmr_create", 2, .makes = LMR, .few = 4, .most = 7 },
	[RMR_CREATE] = { "rmr_create", 1, .makes = RMR, .few = 2, .most = 4 },
	[RMR_BIND] = { "rmr_bind", 5, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[PSP_CREATE] = { "psp_create", 1, .makes = PSP, .few = 1, .most = 4 },
	[PSP_CREATE_ANY] = { "psp_create_any", 1, .makes = PSP, .few = 2, .most = 4 },
	[RSP_CREATE] = { "rsp_create", 1, .makes = RSP, .few = 1, .most = 3 },
	[EP_CREATE] = { "ep_create", 3, .makes = EP, .few = 4, .most = 7 },
	[EP_MODIFY] = { "ep_modify", .weight = 5 },
	[EP_CONNECT] = { "ep_connect", .weight = 30 },
	[EP_DUP_CONNECT] = { "ep_dup_connect", 2, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[EP_DISCONNECT] = { "ep_disconnect", 3, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[EP_RESET] = { "ep_reset", 8, .rare = true, .state = DAT_EP_STATE_DISCONNECTED },
	[POST_RECV] = { "ep_post_recv", .weight = 60 },
	[POST_SEND] = { "ep_post_send", 16, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[POST_WRITE] = { "ep_post_rdma_write", 10, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[POST_READ] = { "ep_post_rdma_read", 10, .rare = true, .state = DAT_EP_STATE_CONNECTED },
	[CR_ACCEPT] = { "cr_accept", 16, .rare = true, .on = CR },
	[CR_REJECT] = { "cr_reject", 2, .rare = true, .on = CR },
	[CR_HANDOFF] = { "cr_handoff", 2, .rare = true, .on = CR },
	[FREE] = { "free", .weight = 8 },
	[QUERY] = { "query", .weight = 8 },
};

static unsigned weight_of(enum op op)
{
	const unsigned n = ops[op].most ? count(ops[op].makes) : 0;
	const bool of_cr = ops[op].on == CR;
	struct object *object;

	if (ops[op].rare) {
		FOR_EACH(object, of_cr ? CR : EP)
			if (of_cr ? object->known : object->state == ops[op].state)
				return ops[op].weight * 4;
		return 1;
	}
	if (!ops[op].most)
		return ops[op].weight;
	return n < ops[op].few ? ops[op].weight * 16 : n < ops[op].most ? ops[op].weight : 0;
}

static enum op draw_op(void)
{
	unsigned sum = 0, op, at;

	for (op = 0; op < OPS; op++)
		sum += weight_of((enum op)op);
	at = draw(sum);
	for (op = 0; at >= weight_of((enum op)op); op++)
		at -= weight_of((enum op)op);
	return (enum op)op;
}

static void call_draw(struct call *c)
{
	static const int flags[] = { 0x1f0, 0x1f1, 0x1f1, 0x1f1, 1, 0x10, 0x20, 0xa0, 0x40, 0x61 };
	unsigned i;

	memset(c, 0, sizeof(*c));
	c->op = draw_op();
	c->bad_ia = rarely();
	c->no_out = rarely();
	c->cookie = (uint64_t)draw(~0u) << 32 | model.calls;
	if (ops[c->op].on)
		c->object = ref_of(ops[c->op].on);
	switch (c->op) {
	case CNO_CREATE:
	case CNO_MODIFY_AGENT:
		c->no_function = rarely();
		break;
	case EVD_CREATE:
		c->cno = draw(2) ? ref_of(CNO) : ref_to(NULL);
		c->qlen = draw(4) ? 40 : 1 + draw(8);
		if (rarely())
			c->qlen = draw(2) ? 0 : model.limits.max_evd_qlen + 1;
		c->flags = rarely() ? draw(2) ? 0 : 0x8000 : flags[draw(10)];
		break;
	case EVD_WAIT:
	case EVD_DEQUEUE:
	case EVD_POST_SE:
		c->object = draw(3) ? evd_with(c->op == EVD_POST_SE ? 1 : 0x10) : ref_of(EVD);
		for (i = 0; c->op != EVD_POST_SE && i < 4 && c->object.object; i++)
			if (!c->object.object->n)
				c->object = ref_of(EVD);
		c->threshold = draw(4) ? 1 : (int64_t)draw(8) - 1;
		c->number = rarely() ? DAT_DTO_COMPLETION_EVENT : DAT_SOFTWARE_EVENT;
		c->no_more = c->no_data = rarely();
		break;
	case EVD_RESIZE:
	case EVD_ENABLE:
	case EVD_DISABLE:
	case EVD_SET_UNWAITABLE:
	case EVD_CLEAR_UNWAITABLE:
		c->qlen = draw(3) ? 24 + draw(24) : (int64_t)draw(12) - 1;
		break;
	case EVD_MODIFY_CNO:
		c->cno = draw(3) ? ref_of(CNO) : ref_to(NULL);
		break;
	case LMR_CREATE:
		draw_lmr(c);
		break;
	case RMR_CREATE:
		c->object = pz_ref();
		break;
	case RMR_BIND:
		draw_bind(c);
		break;
	case PSP_CREATE:
	case PSP_CREATE_ANY:
	case RSP_CREATE:
		if (c->op == RSP_CREATE && draw(4))
			c->ep = ep_in(DAT_EP_STATE_UNCONNECTED);
		c->object = evd_with(DAT_EVD_CR_FLAG);
		c->flags = rarely() ? 2 : !draw(4);
		c->qual = rarely() ? 0 : (int64_t)(d.base + draw(4));
		c->no_data = rarely();
		break;
	case EP_CREATE:
		draw_attr(c);
		c->pz = draw(12) ? pz_ref() : ref_or_null(PZ);
		draw_evds(c);
		break;
	case EP_MODIFY:
		draw_modify(c);
		break;
	case EP_CONNECT:
	case EP_DUP_CONNECT:
		c->object = ep_in(DAT_EP_STATE_UNCONNECTED);
		c->ep = ep_in(DAT_EP_STATE_CONNECTED);
		draw_private(c);
		c->qual = (int64_t)draw_qual();
		c->timeout = rarely() ? 0 : DAT_TIMEOUT_INFINITE;
		c->qos = rarely() ? 0x100 : 0;
		c->flags = rarely() ? 0x40 : 0;
		c->no_address = rarely();
		c->bad_family = !c->no_address && rarely();
		break;
	case EP_DISCONNECT:
		c->object = ep_in(draw(4) ? DAT_EP_STATE_CONNECTED :
					    DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		c->flags = rarely() ? 2 : draw(2);
		break;
	case EP_RESET:
		c->object = ep_in(DAT_EP_STATE_DISCONNECTED);
		break;
	case POST_RECV:
		c->object = draw(3) ? ep_in(DAT_EP_STATE_CONNECTED) : ref_of(EP);
		draw_segs(c, true);
		c->flags = rarely() ? draw(2) ? DAT_COMPLETION_SUPPRESS_FLAG : 0x100 : 0;
		c->no_data = rarely();
		break;
	case POST_SEND:
	case POST_WRITE:
	case POST_READ:
		draw_request(c);
		draw_target(c);
		break;
	case CR_HANDOFF:
		c->qual = (int64_t)draw_qual();
		break;
	case CR_ACCEPT:
	case CR_REJECT:
		for (i = 0; i < 3; i++)
			if (rarely() || (c->object.object && !c->object.object->local &&
					 (!c->ep.object || !c->ep.object->evds[CONNECTS])))
				c->ep = ep_in(DAT_EP_STATE_UNCONNECTED);
		draw_private(c);
		break;
	case FREE:
	case QUERY:
		c->kind = draw(KINDS);
		while (c->op == FREE && c->kind == CR)
			c->kind = draw(KINDS);
		c->object = ref_of(c->kind);
		c->mask = rarely() ? 0x7fff0000 : 0;
		break;
	default:
		break;
	}
}

/* Printing */

static void call_describe(const struct call *c, char *text, size_t size)
{
	FILE *out = fmemopen(text, size - 1, "w");
	unsigned i;
	const struct { const char *name; const struct ref *ref; } refs[] = {
		{ "", &c->object }, { "pz=", &c->pz }, { "cno=", &c->cno }, { "ep=", &c->ep },
		{ "recv_evd=", &c->evds[RECVS] }, { "request_evd=", &c->evds[REQUESTS] },
		{ "connect_evd=", &c->evds[CONNECTS] }, { "lmr=", &c->lmr } };
	const struct { const char *name; int64_t value; } numbers[] = {
		{ "flags", c->flags }, { "mask", c->mask }, { "qlen", c->qlen },
		{ "threshold", c->threshold }, { "qual", c->qual }, { "type", c->type },
		{ "privileges", c->privileges }, { "at", c->at }, { "length", c->length },
		{ "qos", c->qos }, { "private", c->private.size }, { "bad_ia", c->bad_ia },
		{ "no_out", c->no_out }, { "no_more", c->no_more }, { "no_data", c->no_data },
		{ "no_address", c->no_address }, { "bad_family", c->bad_family },
		{ "no_function", c->no_function }, { "no_remote", c->no_remote },
		{ "max_recv_dtos", c->attr.max_recv_dtos },
		{ "max_request_dtos", c->attr.max_request_dtos },
		{ "max_message_size", (int64_t)c->attr.max_message_size } };

	if (!out)
		report("no memory");
	if (c->op >= FREE)
		fprintf(out, "%s_", kind_names[c->kind]);
	fprintf(out, "%s(", ops[c->op].name);
	for (i = 0; i < SIZE(refs); i++)
		if (refs[i].ref->handle || !i)
			fprintf(out, "%s%s%s ", refs[i].name, refs[i].ref->object ||
				!refs[i].ref->handle ? "" : "wrong ", name_of(refs[i].ref->object));
	for (i = 0; i < SIZE(numbers); i++)
		if (numbers[i].value)
			fprintf(out, "%s=%#llx ", numbers[i].name,
				(unsigned long long)numbers[i].value);
	if (c->op >= POST_RECV && c->op <= POST_READ)
		for (i = 0; i < c->segs && i < MOST_SEGS; i++)
			fprintf(out, "{%s %#llx+%lld} ", name_of(c->seg[i].lmr),
				(unsigned long long)c->seg[i].at, (long long)c->seg[i].length);
	if (c->op == POST_WRITE || c->op == POST_READ)
		fprintf(out, "remote {%s %#llx+%lld}", name_of(c->target),
			(unsigned long long)c->remote_at, (long long)c->remote_length);
	fprintf(out, ")");
	fclose(out);
}

/* Performing */

static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
}

/* Further results of a call. */
struct result {
	DAT_HANDLE handle;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qual;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

static DAT_RETURN perform_rdma(const struct call *c, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	DAT_RMR_TRIPLET remote = {
		.rmr_context = (DAT_RMR_CONTEXT)c->remote_context,
#if DAT_VERSION_MAJOR >= 2
		.virtual_address = (uintptr_t)d.memory + (uint64_t)c->remote_at,
#else
		.target_address = (uintptr_t)d.memory + (uint64_t)c->remote_at,
#endif
		.segment_length = (uint32_t)c->remote_length,
	};

	return (c->op == POST_READ ? dat_ep_post_rdma_read : dat_ep_post_rdma_write)(
		c->object.handle, (DAT_COUNT)c->segs, iov, cookie,
		c->no_remote ? NULL : &remote, (DAT_COMPLETION_FLAGS)c->flags);
}

static DAT_RETURN perform_bind(const struct call *c, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			       struct result *r)
{
	DAT_RMR_CONTEXT *context = c->no_out ? NULL : &r->rmr_context;
	const DAT_MEM_PRIV_FLAGS privileges = (DAT_MEM_PRIV_FLAGS)c->privileges;

#if DAT_VERSION_MAJOR >= 2
	return dat_rmr_bind(c->object.handle, c->lmr.handle, iov, privileges,
			    DAT_VA_TYPE_VA, c->ep.handle, cookie, (DAT_COMPLETION_FLAGS)c->flags,
			    context);
#else
	return dat_rmr_bind(c->object.handle, iov, privileges, c->ep.handle, cookie,
			    (DAT_COMPLETION_FLAGS)c->flags, context);
#endif
}

static DAT_RETURN perform_lmr_create(const struct call *c, DAT_IA_HANDLE ia, DAT_HANDLE *out,
				     struct result *r)
{
	DAT_REGION_DESCRIPTION region = { .for_va = c->no_address ? NULL : d.memory + c->at };
	DAT_VADDR address;
	DAT_VLEN size;

	if (c->type == DAT_MEM_TYPE_LMR)
		region.for_lmr_handle = c->lmr.handle;
	return dat_lmr_create(ia, (DAT_MEM_TYPE)c->type, region, (DAT_VLEN)c->length, c->pz.handle,
			      (DAT_MEM_PRIV_FLAGS)c->privileges,
#if DAT_VERSION_MAJOR >= 2
			      DAT_VA_TYPE_VA,
#endif
			      out, &r->lmr_context, &r->rmr_context, &size, &address);
}

static DAT_RETURN perform_connect(const struct call *c, DAT_COUNT size, unsigned char *data)
{
	struct sockaddr_storage address = d.n.address;

	if (c->bad_family)
		address.ss_family = 99;
	if (c->op == EP_DUP_CONNECT)
		return dat_ep_dup_connect(c->object.handle, c->ep.handle, (DAT_TIMEOUT)c->timeout,
					  size, data, (DAT_QOS)c->qos);
	return dat_ep_connect(c->object.handle,
			      c->no_address ? NULL : (DAT_IA_ADDRESS_PTR)&address,
			      (DAT_CONN_QUAL)c->qual, (DAT_TIMEOUT)c->timeout, size, data,
			      (DAT_QOS)c->qos, (DAT_CONNECT_FLAGS)c->flags);
}

static void same(const char *what, uint64_t got, uint64_t expected)
{
	if (got != expected)
		report("%s is %#llx, not %#llx", what, (unsigned long long)got,
		       (unsigned long long)expected);
}

#define SAME_NUMBER(got, expected) same(#got, (uint64_t)(got), (uint64_t)(expected))

static void same_object(const char *what, DAT_HANDLE got, const struct object *expected)
{
	same(what, (uintptr_t)got, expected ? (uintptr_t)expected->handle : 0);
}

static void ep_query(const struct object *o, const DAT_EP_PARAM *p)
{
	const DAT_EP_ATTR *a = &p->ep_attr, *b = &o->attr;

	SAME_NUMBER(p->ep_state, o->state);
	same_object("pz_handle", p->pz_handle, o->pz);
	same_object("recv_evd_handle", p->recv_evd_handle, o->evds[RECVS]);
	same_object("request_evd_handle", p->request_evd_handle, o->evds[REQUESTS]);
	same_object("connect_evd_handle", p->connect_evd_handle, o->evds[CONNECTS]);
	SAME_NUMBER(a->max_message_size, b->max_message_size);
	SAME_NUMBER(a->max_recv_dtos, b->max_recv_dtos);
	SAME_NUMBER(a->max_request_dtos, b->max_request_dtos);
	SAME_NUMBER(a->max_recv_iov, b->max_recv_iov);
	SAME_NUMBER(a->max_request_iov, b->max_request_iov);
	SAME_NUMBER(a->max_rdma_read_iov, b->max_rdma_read_iov);
	SAME_NUMBER(a->max_rdma_write_iov, b->max_rdma_write_iov);
	same("whether there is a remote address", !!p->remote_ia_address_ptr,
	     o->state != DAT_EP_STATE_UNCONNECTED && o->state != DAT_EP_STATE_RESERVED &&
	     o->state != DAT_EP_STATE_DISCONNECTED);
}

static void private_check(const struct private *expected, DAT_COUNT size, const void *data)
{
	unsigned char bytes[1024];

	same("private_data_size", (uint64_t)size, (uint64_t)expected->size);
	fill(bytes, (size_t)size, expected->seed);
	if (size && !expected->lost && memcmp(bytes, data, (size_t)size))
		report("other private data");
}

static DAT_RETURN perform_query(const struct call *c)
{
	union {
		DAT_PZ_PARAM pz;
		DAT_CNO_PARAM cno;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_EP_PARAM ep;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_CR_PARAM cr;
	} p;
	const struct object *o = c->object.object;
	const DAT_HANDLE h = c->object.handle;
	void *const out = c->no_out ? NULL : &p;
	const int mask = (int)c->mask;
	DAT_RETURN ret;

	switch (c->kind) {
	case PZ: ret = dat_pz_query(h, (DAT_PZ_PARAM_MASK)mask, out); break;
	case CNO: ret = dat_cno_query(h, (DAT_CNO_PARAM_MASK)mask, out); break;
	case EVD: ret = dat_evd_query(h, (DAT_EVD_PARAM_MASK)mask, out); break;
	case LMR: ret = dat_lmr_query(h, (DAT_LMR_PARAM_MASK)mask, out); break;
	case RMR: ret = dat_rmr_query(h, (DAT_RMR_PARAM_MASK)mask, out); break;
	case EP: ret = dat_ep_query(h, (DAT_EP_PARAM_MASK)mask, out); break;
	case PSP: ret = dat_psp_query(h, (DAT_PSP_PARAM_MASK)mask, out); break;
	case RSP: ret = dat_rsp_query(h, (DAT_RSP_PARAM_MASK)mask, out); break;
	default: ret = dat_cr_query(h, (DAT_CR_PARAM_MASK)mask, out); break;
	}
	if (ret)
		return ret;
	switch (c->kind) {
	case EVD:
		SAME_NUMBER(p.evd.evd_qlen, o->qlen);
		SAME_NUMBER(p.evd.evd_flags, o->flags);
		SAME_NUMBER(p.evd.evd_state, (o->disabled ? 2 : 1) | (o->unwaitable ? 8 : 4));
		same_object("cno_handle", p.evd.cno_handle, o->cno);
		break;
	case LMR:
		same_object("pz_handle", p.lmr.pz_handle, o->pz);
		SAME_NUMBER(p.lmr.length, o->length);
		SAME_NUMBER(p.lmr.mem_priv, o->privileges);
		SAME_NUMBER(p.lmr.lmr_context, o->context);
		SAME_NUMBER(p.lmr.rmr_context, o->rmr_context);
		break;
	case RMR:
		same_object("pz_handle", p.rmr.pz_handle, o->pz);
		SAME_NUMBER(p.rmr.lmr_triplet.segment_length, o->lmr ? o->length : 0);
		SAME_NUMBER(p.rmr.mem_priv, o->privileges);
		SAME_NUMBER(p.rmr.rmr_context, o->lmr ? o->rmr_context : 0);
		break;
	case EP:
		ep_query(o, &p.ep);
		break;
	case PSP:
		SAME_NUMBER(p.psp.conn_qual, o->qual);
		SAME_NUMBER(p.psp.psp_flags, o->flags);
		same_object("evd_handle", p.psp.evd_handle, o->evd);
		break;
	case RSP:
		SAME_NUMBER(p.rsp.conn_qual, o->qual);
		same_object("evd_handle", p.rsp.evd_handle, o->evd);
		break;
	case CR:
		private_check(&o->private, p.cr.private_data_size, p.cr.private_data);
		same_object("local_ep_handle", p.cr.local_ep_handle, o->local);
		break;
	default:
		break;
	}
	return ret;
}

static DAT_RETURN call_perform(const struct call *c, struct result *r)
{
	static DAT_RETURN (*const frees[KINDS])(DAT_HANDLE handle) = {
		[PZ] = dat_pz_free, [CNO] = dat_cno_free, [EVD] = dat_evd_free,
		[LMR] = dat_lmr_free, [RMR] = dat_rmr_free, [EP] = dat_ep_free,
		[PSP] = dat_psp_free, [RSP] = dat_rsp_free,
	};
	const DAT_HANDLE h = c->object.handle;
	const DAT_IA_HANDLE ia = c->bad_ia ? DAT_HANDLE_NULL : d.n.ia;
	DAT_HANDLE *out = c->no_out ? NULL : &r->handle;
	DAT_EVENT *event = c->no_out ? NULL : &r->event;
	DAT_OS_WAIT_PROXY_AGENT proxy = { NULL, NULL };
	const DAT_DTO_COOKIE cookie = { .as_64 = c->cookie };
	DAT_LMR_TRIPLET segs[MOST_SEGS], *iov = c->no_data ? NULL : segs;
	const DAT_COMPLETION_FLAGS flags = (DAT_COMPLETION_FLAGS)c->flags;
	const DAT_COUNT size = (DAT_COUNT)c->private.size;
	unsigned char bytes[1024], *data = c->no_data ? NULL : bytes;
	DAT_EVENT software = { .event_number = (DAT_EVENT_NUMBER)c->number };
	DAT_EP_PARAM param = { .ep_attr = c->attr, .pz_handle = c->pz.handle,
			       .recv_evd_handle = c->evds[RECVS].handle,
			       .request_evd_handle = c->evds[REQUESTS].handle,
			       .connect_evd_handle = c->evds[CONNECTS].handle };
	unsigned i;

	for (i = 0; i < MOST_SEGS; i++)
		segs[i] = (DAT_LMR_TRIPLET){
			.lmr_context = (DAT_LMR_CONTEXT)c->seg[i].context,
			.virtual_address = (uintptr_t)d.memory + (uint64_t)c->seg[i].at,
			.segment_length = (uint32_t)c->seg[i].length,
		};
	if (size > 0)
		fill(bytes, (size_t)size, c->private.seed);
	if (c->no_function)
		proxy.instance_data = &d;
	else if (c->cookie & 1)
		proxy.proxy_agent_func = agent;
	software.event_data.software_event_data.pointer = (DAT_PVOID)(uintptr_t)c->cookie;
	switch (c->op) {
	case PZ_CREATE: return dat_pz_create(ia, out);
	case CNO_CREATE: return dat_cno_create(ia, proxy, out);
	case CNO_WAIT: return dat_cno_wait(h, 0, c->no_out ? NULL : &r->evd);
	case CNO_MODIFY_AGENT: return dat_cno_modify_agent(h, proxy);
	case EVD_CREATE:
		return dat_evd_create(ia, (DAT_COUNT)c->qlen, c->cno.handle,
				      (DAT_EVD_FLAGS)c->flags, out);
	case EVD_DEQUEUE: return dat_evd_dequeue(h, event);
	case EVD_WAIT:
		return dat_evd_wait(h, 0, (DAT_COUNT)c->threshold, event,
				    c->no_more ? NULL : &r->more);
	case EVD_POST_SE: return dat_evd_post_se(h, c->no_data ? NULL : &software);
	case EVD_RESIZE: return dat_evd_resize(h, (DAT_COUNT)c->qlen);
	case EVD_ENABLE: return dat_evd_enable(h);
	case EVD_DISABLE: return dat_evd_disable(h);
	case EVD_SET_UNWAITABLE: return dat_evd_set_unwaitable(h);
	case EVD_CLEAR_UNWAITABLE: return dat_evd_clear_unwaitable(h);
	case EVD_MODIFY_CNO: return dat_evd_modify_cno(h, c->cno.handle);
	case LMR_CREATE: return perform_lmr_create(c, ia, out, r);
	case RMR_CREATE: return dat_rmr_create(h, out);
	case RMR_BIND: return perform_bind(c, c->no_more ? NULL : segs, cookie, r);
	case PSP_CREATE:
		return dat_psp_create(ia, (DAT_CONN_QUAL)c->qual, h, (DAT_PSP_FLAGS)c->flags, out);
	case PSP_CREATE_ANY:
		return dat_psp_create_any(ia, c->no_data ? NULL : &r->qual, h,
					  (DAT_PSP_FLAGS)c->flags, out);
	case RSP_CREATE:
		return dat_rsp_create(ia, (DAT_CONN_QUAL)c->qual, c->ep.handle, h, out);
	case EP_CREATE:
		return dat_ep_create(ia, c->pz.handle, c->evds[RECVS].handle,
				     c->evds[REQUESTS].handle, c->evds[CONNECTS].handle,
				     c->no_data ? NULL : &c->attr, out);
	case EP_MODIFY:
		return dat_ep_modify(h, (DAT_EP_PARAM_MASK)c->mask, c->no_data ? NULL : &param);
	case EP_CONNECT:
	case EP_DUP_CONNECT: return perform_connect(c, size, data);
	case EP_DISCONNECT: return dat_ep_disconnect(h, (DAT_CLOSE_FLAGS)c->flags);
	case EP_RESET: return dat_ep_reset(h);
	case POST_RECV:
		return dat_ep_post_recv(h, (DAT_COUNT)c->segs, iov, cookie, flags);
	case POST_SEND:
		return dat_ep_post_send(h, (DAT_COUNT)c->segs, iov, cookie, flags);
	case POST_WRITE:
	case POST_READ: return perform_rdma(c, iov, cookie);
	case CR_ACCEPT: return dat_cr_accept(h, c->ep.handle, size, data);
	case CR_REJECT: return cr_reject(h, size, data);
	case CR_HANDOFF: return dat_cr_handoff(h, (DAT_CONN_QUAL)c->qual);
	case FREE: return frees[c->kind](h);
	default: return perform_query(c);
	}
}

/* Events */

static const struct { DAT_EVENT_NUMBER number; unsigned what; } whats[] = {
	{ DAT_SOFTWARE_EVENT, SOFTWARE },
	{ DAT_CONNECTION_REQUEST_EVENT, REQUEST },
	{ DAT_DTO_COMPLETION_EVENT, DTO },
	{ DAT_RMR_BIND_COMPLETION_EVENT, BIND },
	{ DAT_CONNECTION_EVENT_ESTABLISHED, ESTABLISHED },
	{ DAT_CONNECTION_EVENT_PEER_REJECTED, PEER_REJECTED },
	{ DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NON_PEER_REJECTED },
	{ DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, ACCEPT_ERROR },
	{ DAT_CONNECTION_EVENT_DISCONNECTED, DISCONNECTED },
	{ DAT_CONNECTION_EVENT_BROKEN, BROKEN },
};

static bool matches(const struct event *e, const DAT_EVENT *got)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &got->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&got->event_data.rmr_completion_event_data;
	const DAT_CONNECTION_EVENT_DATA *conn = &got->event_data.connect_event_data;
	unsigned i;

	for (i = 0; whats[i].number != got->event_number || !(whats[i].what & e->what); i++)
		if (i == SIZE(whats) - 1)
			return false;
	if (e->what == SOFTWARE)
		return (uintptr_t)got->event_data.software_event_data.pointer ==
		       (uintptr_t)e->cookie;
	if (e->what == DTO)
		return dto->ep_handle == e->handle && dto->user_cookie.as_64 == e->cookie &&
		       e->status & 1u << dto->status &&
		       (dto->status || dto->transfered_length == e->length);
	if (e->what == BIND)
		return bind->rmr_handle == e->handle && bind->user_cookie.as_64 == e->cookie &&
		       e->status & 1u << bind->status;
	if (e->what == REQUEST)
		return got->event_data.cr_arrival_event_data.sp_handle.psp_handle == e->handle;
	return conn->ep_handle == e->handle;
}

static void cr_known(struct object *cr, const DAT_EVENT *event)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event->event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	same("conn_qual", arrival->conn_qual, cr->qual);
	cr->handle = arrival->cr_handle;
	cr->known = true;
	OK(dat_cr_query(cr->handle, DAT_CR_FIELD_ALL, &param));
	same("whether an EP came with the request", !!param.local_ep_handle, !!cr->local);
	if (cr->local) {
		cr->local->handle = param.local_ep_handle;
		cr->local->known = true;
	}
	private_check(&cr->private, param.private_data_size, param.private_data);
}

/* Takes an event of the model that @got may be. */
static void event_take(struct object *evd, const DAT_EVENT *got)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &got->event_data.dto_completion_event_data;
	const DAT_CONNECTION_EVENT_DATA *conn = &got->event_data.connect_event_data;
	unsigned i, j;

	if (got->evd_handle != evd->handle)
		report("the event has another EVD");
	for (i = 0; i < evd->n && evd->q[i].batch == evd->q[0].batch; i++) {
		const struct event *e = &evd->q[i];

		for (j = 0; j < i && !event_precedes(&evd->q[j], e); j++)
			;
		if (j < i || !matches(e, got))
			continue;
		if (e->what == REQUEST)
			cr_known(e->object, got);
		if (e->what & (ESTABLISHED | PEER_REJECTED))
			private_check(&e->private, conn->private_data_size, conn->private_data);
		if (d.trace)
			printf("%s: %s, status %d\n", name_of(evd), event_name(got->event_number),
			       e->what == DTO ? dto->status : 0);
		event_remove(evd, i);
		return;
	}
	report("%s has %s (cookie %#llx, status %d, length %llu), not %s", name_of(evd),
	       event_name(got->event_number), (unsigned long long)dto->user_cookie.as_64,
	       dto->status, (unsigned long long)dto->transfered_length,
	       evd->n ? "what the model expects" : "empty");
}

/* A wait on an EVD that may be unwaitable. */
static DAT_RETURN evd_wait(const struct object *evd, DAT_TIMEOUT timeout, unsigned threshold,
			   DAT_EVENT *event, DAT_COUNT *more)
{
	DAT_RETURN ret;

	if (evd->unwaitable)
		OK(dat_evd_clear_unwaitable(evd->handle));
	ret = dat_evd_wait(evd->handle, timeout, (DAT_COUNT)threshold, event, more);
	if (evd->unwaitable)
		OK(dat_evd_set_unwaitable(evd->handle));
	return ret;
}

/*
 * Compares the length of the queue. A wait for more events than there are takes none; a full
 * queue does not permit this wait, so fulls_settle() takes an event.
 */
static bool evd_agrees(struct object *evd, unsigned *got)
{
	DAT_EVENT event;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
	unsigned i, optional = 0;
	DAT_COUNT more = -1;
	DAT_RETURN ret;

	for (i = 0; i < evd->n; i++)
		optional += evd->q[i].optional;
	*got = evd->n;
	if ((int)evd->n >= evd->qlen)
		return true;
	ret = evd_wait(evd, 0, evd->n + 1, &event, &more);
	if (!ret)
		report("%s has more events than the model's %u: %s, cookie %#llx, status %d",
		       name_of(evd), evd->n, event_name(event.event_number),
		       (unsigned long long)dto->user_cookie.as_64, dto->status);
	if (DAT_GET_TYPE(ret) != DAT_TIMEOUT_EXPIRED)
		report("dat_evd_wait returns %#x", ret);
	*got = (unsigned)more;
	return *got + optional >= evd->n;
}

static bool ep_agrees(const struct object *ep, DAT_EP_STATE *state, DAT_BOOLEAN *recvs,
		      DAT_BOOLEAN *requests)
{
	OK(dat_ep_get_status(ep->handle, state, recvs, requests));
	return *state == ep->state && *recvs == !ep->recvs && *requests;
}

/* With the state of all EPs settled, an optional event has come, or does not come. */
static void optional_settle(struct object *evd, unsigned got)
{
	unsigned i;

	for (i = 0; i < evd->n; i++) {
		struct event *e = &evd->q[i];

		if (!e->optional)
			continue;
		e->optional = false;
		if (got == evd->n) {
			if (e->what == ESTABLISHED)
				evd->q[i + 1].what &= ~(unsigned)ACCEPT_ERROR;
			continue;
		}
		event_remove(evd, i);
		if (e->what & ACCEPT_ERROR)
			e->what = ACCEPT_ERROR;
		return;
	}
}

/* Waits until an EVD that this call filled is full, which takes an event. */
static void full_settle(struct object *evd)
{
	DAT_COUNT more = -1;
	DAT_EVENT event;

	if ((int)evd->n != evd->qlen || evd->q[evd->n - 1].batch != model.calls ||
	    evd->q[evd->n - 1].what == SOFTWARE)
		return;
	if (evd_wait(evd, LIMIT * 1000u, evd->n, &event, &more))
		report("%s has %d events, not %u", name_of(evd), more, evd->n);
	event_take(evd, &event);
}

/* Waits until the states and the number of events are the model's. */
static void settle(void)
{
	const int64_t deadline = pair_deadline(LIMIT);
	DAT_EP_STATE state = 0;
	DAT_BOOLEAN recvs = 0, requests = 0;
	unsigned got[MOST_OBJECTS], i, rounds = 0;
	struct object *wrong, *ep, *evd;

	do {
		wrong = NULL;
		FOR_EACH(ep, EP)
			if (!wrong && ep->known && !ep_agrees(ep, &state, &recvs, &requests))
				wrong = ep;
		FOR_EACH(evd, EVD)
			if (!wrong && !evd_agrees(evd, &got[evd - model.objects[EVD]]))
				wrong = evd;
		if (wrong)
			sched_yield();
	} while (wrong && (++rounds < 1000 || pair_now() < deadline));
	if (wrong && wrong->kind == EP)
		report("%s has state %d, recv_idle %d, request_idle %d, not %d, %d, 1",
		       name_of(wrong), state, recvs, requests, wrong->state, !wrong->recvs);
	for (i = 0; wrong && i < wrong->n; i++)
		printf("expected: %#x of %s, batch %u%s\n", wrong->q[i].what,
		       name_of(wrong->q[i].object), wrong->q[i].batch,
		       wrong->q[i].optional ? ", optional" : "");
	if (wrong)
		report("%s has %u events, not %u", name_of(wrong),
		       got[wrong - model.objects[EVD]], wrong->n);
	FOR_EACH(evd, EVD)
		optional_settle(evd, got[evd - model.objects[EVD]]);
	FOR_EACH(evd, EVD)
		full_settle(evd);
}

/*
 * libfabric's sockets drop a rejection when nothing listens any more (CAVEATS of dat_ofi(7)), so
 * the call is not made.
 */
static bool rejects_orphan(const struct call *c)
{
	const struct object *cr = c->object.object, *evd = cr;
	unsigned i;

	if (c->op == CR_REJECT || c->op == CR_HANDOFF)
		return cr && !cr->sp && cr->requester;
	for (i = 0; c->op == FREE && c->kind == EVD && evd && i < evd->n; i++)
		if (evd->q[i].what == REQUEST && !evd->q[i].object->sp &&
		    evd->q[i].object->requester)
			return true;
	return false;
}

/* RDMA hardware carries less with a request for a qualifier that is no port. */
static bool fills_request(const struct call *c)
{
	return (c->op == EP_CONNECT || c->op == EP_DUP_CONNECT) &&
	       c->private.size > model.limits.max_private - 8 &&
	       c->private.size <= model.limits.max_private;
}

/* Calls that are not made on a fabric; dat_ofi(7) has the reasons. */
static bool is_left_out(const struct call *c)
{
	return (pair_fabric_is("sockets") && rejects_orphan(c)) ||
	       (pair_fabric_is("verbs") && fills_request(c));
}

/* One call */

static void object_made(const struct call *c, struct object *o, const struct result *r)
{
	o->rmr_context = r->rmr_context;
	if (c->op == RMR_BIND)
		return;
	o->handle = r->handle;
	o->context = r->lmr_context;
	if (c->op == PSP_CREATE_ANY)
		o->qual = r->qual;
}

static void compare(const struct call *c, const struct outcome *o, DAT_RETURN ret)
{
	const unsigned type = DAT_GET_TYPE(ret), subtype = DAT_GET_SUBTYPE(ret);
	const char *major = "?", *minor = "?";
	unsigned i;

	for (i = 0; i < o->n; i++) {
		const unsigned sub = DAT_GET_SUBTYPE(o->permitted[i]);

		if (type == DAT_GET_TYPE(o->permitted[i]) && (sub == subtype || sub == 0xffff))
			return;
	}
	if (!ret && !o->n)
		return;
	dat_strerror(ret, &major, &minor);
	printf("%s returns %#x (%s %s); the model permits", ops[c->op].name, ret, major, minor);
	for (i = 0; i < o->n; i++) {
		major = minor = "?";
		dat_strerror(DAT_CLASS_ERROR | o->permitted[i], &major, &minor);
		printf(" %#x (%s %s)", o->permitted[i], major, minor);
	}
	report("%s", o->n ? "another return" : " only success");
}

/*
 * Whether a post found a full queue that the model has freed. Without an EVD the driver cannot wait
 * for the event of an operation, so the operation may still be in flight.
 */
static bool is_early(const struct call *c, const struct outcome *o, DAT_RETURN ret)
{
	const enum ep_evd of = c->op == POST_RECV ? RECVS : REQUESTS;

	return !o->n && c->op >= POST_RECV && c->op <= POST_READ &&
	       DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES && !c->object.object->evds[of];
}

static void call_make(const struct call *c)
{
	static struct model before;
	const bool may_undo = c->op >= RMR_BIND || c->op == EVD_RESIZE;
	struct result r = { 0 };
	struct outcome o;
	DAT_RETURN ret;
	int64_t until;

	if (is_left_out(c))
		return;
	if (may_undo)
		before = model;
	model_call(c, &o);
	call_describe(c, d.history[model.calls % HISTORY], sizeof(d.history[0]));
	if (o.untimely || (may_undo && model_may_overflow())) {
		if (may_undo)
			model = before;
		return;
	}
	ret = call_perform(c, &r);
	until = pair_deadline(LIMIT);
	while (is_early(c, &o, ret) && pair_now() < until) {
		sched_yield();
		ret = call_perform(c, &r);
	}
	if (d.trace)
		printf("%llu.%u: %#x = %s\n", (unsigned long long)d.seed, model.calls, ret,
		       d.history[model.calls % HISTORY]);
	compare(c, &o, ret);
	if (!ret && o.made)
		object_made(c, o.made, &r);
	if (!ret && c->op == FREE)
		d.dead[c->kind][draw(4)] = c->object.handle;
	if (!ret && c->op == CNO_WAIT && r.evd && !is_alive(r.evd))
		report("the EVD is none of the CNO's");
	if (o.takes)
		event_take(c->object.object, &r.event);
	if (c->op == EVD_WAIT && (!ret || DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED))
		same("n_more_events", (unsigned)r.more, c->object.object->n);
	settle();
	if (o.data_lost)
		memcpy(model.memory, d.memory, 2 * HALF);
	if (c->op >= POST_RECV && memcmp(model.memory, d.memory, 2 * HALF))
		report("memory has other bytes");
}

/* Sequences */

static void free_all(enum kind kind)
{
	while (count(kind) > (kind == EVD)) {
		struct call c = { .op = kind == CR ? CR_REJECT : FREE, .kind = kind };

		do
			c.object = ref_to(pick(kind));
		while (c.object.object == d.async);
		call_make(&c);
		if (!c.object.object->live || kind != CR)
			continue;
		/* left out on this fabric */
		c.op = FREE;
		c.kind = EP;
		c.object = ref_to(c.object.object->requester);
		call_make(&c);
	}
}

static void evds_empty(void)
{
	struct object *evd;

	FOR_EACH(evd, EVD)
		while (evd->n) {
			const struct call c = { .op = EVD_DEQUEUE, .object = ref_to(evd) };

			call_make(&c);
		}
}

static void async_restore(void)
{
	struct call c = { .object = ref_to(d.async), .qlen = d.async_qlen };

	for (c.op = EVD_RESIZE; c.op <= EVD_MODIFY_CNO; c.op++)
		if (c.op != EVD_DISABLE && c.op != EVD_SET_UNWAITABLE)
			call_make(&c);
}

static void sequence(void)
{
	const struct limits limits = model.limits;
	unsigned i;

	d.state = d.seed;
	memset(d.dead, 0, sizeof(d.dead));
	memset(&model, 0, sizeof(model));
	model.limits = limits;
	memcpy(model.memory, d.memory, 2 * HALF);
	d.async = object_make(EVD);
	d.async->handle = d.n.async;
	d.async->flags = DAT_EVD_ASYNC_FLAG;
	d.async->qlen = d.async_qlen;
	d.async->users = 1;
	for (i = 0; i < d.calls; i++) {
		struct call c;

		call_draw(&c);
		call_make(&c);
	}
	evds_empty();
	free_all(CR);
	free_all(RSP);
	free_all(EP);
	evds_empty();
	free_all(PSP);
	free_all(RMR);
	free_all(LMR);
	free_all(EVD);
	async_restore();
	free_all(CNO);
	free_all(PZ);
}

static unsigned number_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);
	unsigned n = text ? (unsigned)strtoul(text, NULL, 0) : usual;

	return n ? n : 1;
}

int main(void)
{
	struct limits *l = &model.limits;
	DAT_EVD_PARAM async;
	sigset_t mask;
	unsigned i, sequences = number_of("MODEL_SEQUENCES", 20);
	const char *refused;

	d.calls = number_of("MODEL_CALLS", 200);
	d.trace = getenv("MODEL_TRACE");
	d.base = 0x100000000u + (uint64_t)getpid() * 16;
	d.memory = aligned_alloc(4096, 2 * HALF);
	if (!d.memory || !pair_init(&mask))
		return 2;
	if (pair_fabric_missing()) {
		printf("SKIP: no fabric for %s\n", pair_ia_name());
		return 77;
	}
	fill(d.memory, 2 * HALF, 1);
	node_open(&d.n);
	OK(dat_evd_query(d.n.async, DAT_EVD_FIELD_ALL, &async));
	d.async_qlen = async.evd_qlen;
	refused = named_attr(&d.n, "OFI_RDMA_REFUSED");
	*l = (struct limits){
		.strict = node_is_strict(&d.n),
		.goodbye = node_reports_broken(&d.n),
		.refusal_unnamed = refused && !strcmp(refused, "DAT_DTO_ERR_FLUSHED") &&
				   !named_attr(&d.n, "OFI_LOCAL"),
		.max_evd_qlen = d.n.attr.max_evd_qlen,
		.max_private = d.n.prov.max_private_data_size,
		.max_dtos = d.n.attr.max_dto_per_ep,
		.max_iov = d.n.attr.max_iov_segments_per_dto,
		.max_read_iov = d.n.attr.max_iov_segments_per_rdma_read,
		.max_write_iov = d.n.attr.max_iov_segments_per_rdma_write,
		.max_message = d.n.attr.max_message_size - !!getenv("MODEL_WRONG"),
	};
	for (i = 0; i < sequences; i++) {
		d.seed = number_of("MODEL_SEED", 1) + i;
		sequence();
	}
	node_close(&d.n);
	printf("%u sequences\n", i);
	return 0;
}
