/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the counters of IAs, EPs and EVDs: the meaning of the extension's numbers here. */

#include "obj/counters.h"

#include "base/mutex.h"
#include "obj/ep/ep.h"

#include <inttypes.h>
#include <stddef.h>

/* A counter is a field of its object, or a sum of fields less another field. */
struct counter {
	const char *name;
	size_t less, at[3];		/* offsets; 0 is none */
};

#define IA(name_, member) { name_, 0, { offsetof(struct dofi_ia, member) } }
#define MADE(name_, type) IA(name_, made[DOFI_KIND(DAT_HANDLE_TYPE_##type)])
#define FREED(name_, type) IA(name_, freed[DOFI_KIND(DAT_HANDLE_TYPE_##type)])

/*
 * By the numbers of DAT_IA_COUNTERS, which 1.2 does not have. A number without a row counts what
 * only InfiniBand has, and is 0.
 */
static const struct counter ia_counters[DOFI_IA_COUNTERS] = {
	[0] = MADE("pz_create", PZ),
	[1] = FREED("pz_free", PZ),
	[2] = MADE("lmr_create", LMR),
	[3] = FREED("lmr_free", LMR),
	[4] = MADE("rmr_create", RMR),
	[5] = FREED("rmr_free", RMR),
	[6] = { "psp_create", offsetof(struct dofi_ia, count.psp_any),
		{ offsetof(struct dofi_ia, made[DOFI_KIND(DAT_HANDLE_TYPE_PSP)]) } },
	[7] = IA("psp_create_any", count.psp_any),
	[8] = FREED("psp_free", PSP),
	[9] = MADE("rsp_create", RSP),
	[10] = FREED("rsp_free", RSP),
	[11] = MADE("evd_create", EVD),
	[12] = FREED("evd_free", EVD),
	[13] = MADE("ep_create", EP),
	[14] = FREED("ep_free", EP),
	[15] = MADE("srq_create", SRQ),
	[16] = FREED("srq_free", SRQ),
	[17] = MADE("cr", CR),
	[18] = IA("cr_accepted", count.cr_accepted),
	[19] = IA("cr_rejected", count.cr_rejected),
	[23] = IA("async_error", count.async_error),
	[27] = IA("cm_req_tx", count.connect),
	[28] = { "cm_req_rx", offsetof(struct dofi_ia, count.ah_request_arrived),
		 { offsetof(struct dofi_ia, made[DOFI_KIND(DAT_HANDLE_TYPE_CR)]) } },
	[29] = IA("cm_rep_tx", count.cr_accepted),
	[30] = IA("cm_rep_rx", count.active),
	[33] = IA("cm_user_rej_tx", count.cr_rejected),
	[34] = IA("cm_user_rej_rx", count.rejected),
	[35] = IA("cm_active_est", count.active),
	[36] = IA("cm_passive_est", count.passive),
	[37] = IA("cm_ah_req_tx", count.ah_requested),
	[38] = IA("cm_ah_req_rx", count.ah_request_arrived),
	[39] = IA("cm_ah_resolved", count.ah_resolved),
	[40] = IA("cm_dreq_tx", count.disconnect),
	[41] = IA("cm_dreq_rx", count.disconnected),
	[47] = IA("cm_err", count.broken),
	[55] = IA("cm_err_refused", count.refused),
	[57] = IA("cm_err_timeout", count.timeout),
	[69] = IA("lnk_err_rcv_constraint", count.dropped_foreign),
	[70] = IA("lnk_err_xmt_discards", count.dropped_sends),
	[79] = IA("diag_err_rq_udsdprd", count.dropped_no_receive),
};

/* Counters of connections, which can be stopped. */
#define CM_FIRST 26
#define CM_END 67

#define EP(name_, member) { name_, 0, { offsetof(struct dofi_ep, member) } }
#define POSTS(name_, kind) EP(name_, posted[DOFI_DTO_##kind].ops)
#define POSTED(name_, kind)                                                               \
	POSTS(name_, kind), EP(name_ "_data", posted[DOFI_DTO_##kind].bytes)
#define RECEIVED(name_, kind)                                                             \
	EP(name_, receipts[DOFI_DTO_##kind].ops),                                         \
	EP(name_ "_data", receipts[DOFI_DTO_##kind].bytes)
/* With and without immediate data. */
#define BOTH(name_, tally, kind)                                                          \
	{ name_, 0, { offsetof(struct dofi_ep, tally[DOFI_DTO_##kind].ops),               \
		      offsetof(struct dofi_ep, tally[DOFI_DTO_##kind##_IMMED].ops) } },   \
	{ name_ "_data", 0, { offsetof(struct dofi_ep, tally[DOFI_DTO_##kind].bytes),     \
			      offsetof(struct dofi_ep, tally[DOFI_DTO_##kind##_IMMED].bytes) } }

/* In the order of DAT_EP_COUNTERS. */
static const struct counter ep_counters[DOFI_EP_COUNTERS] = {
	EP("connect", n_connect),
	EP("disconnect", n_disconnect),
	POSTED("post_send", SEND),
	BOTH("post_send_ud", posted, SEND_UD),
	POSTED("post_recv", RECV),
	POSTED("post_write", WRITE),
	POSTED("post_write_imm", WRITE_IMMED),
	POSTED("post_read", READ),
	POSTS("post_cmp_swap", CMP_SWAP),
	POSTS("post_fetch_add", FETCH_ADD),
	RECEIVED("recv", RECV),
	BOTH("recv_ud", receipts, RECV_UD),
	RECEIVED("recv_imm", RECV_IMMED),
	RECEIVED("recv_rdma_imm", RECV_WRITE_IMMED),
};

#define COUNT_OF(member) offsetof(struct dofi_evd, count_of.member)
#define EVD(name_, member) { name_, 0, { COUNT_OF(member) } }

/* In the order of DAT_EVD_COUNTERS. */
static const struct counter evd_counters[DOFI_EVD_COUNTERS] = {
	EVD("wait", wait),
	EVD("wait_blocked", blocked),
	EVD("wait_notify", notify),
	{ "dequeue", 0, { COUNT_OF(found), COUNT_OF(straight), COUNT_OF(not_found) } },
	{ "dequeue_found", 0, { COUNT_OF(found), COUNT_OF(straight) } },
	EVD("dequeue_not_found", not_found),
	{ "dequeue_poll", 0, { COUNT_OF(poll), COUNT_OF(straight) } },
	EVD("dequeue_poll_found", straight),
	EVD("conn_callback", connection),
	EVD("dto_callback", completion),
};

#if DAT_VERSION_MAJOR >= 2
_Static_assert((int)DOFI_IA_COUNTERS == (int)DCNT_IA_ALL_COUNTERS &&
	       (int)DOFI_EP_COUNTERS == (int)DCNT_EP_ALL_COUNTERS &&
	       (int)DOFI_EVD_COUNTERS == (int)DCNT_EVD_ALL_COUNTERS, "as the extension has them");
_Static_assert(DCNT_IA_SP_CR == 17 && DCNT_IA_ASYNC_ERROR == 23 && DCNT_IA_CM_REQ_TX == 27 &&
	       DCNT_IA_CM_USER_REJ_TX == 33 && DCNT_IA_CM_DREQ_TX == 40 && DCNT_IA_CM_ERR == 47 &&
	       DCNT_IA_CM_ERR_REFUSED == 55 && DCNT_IA_CM_ERR_TIMEOUT == 57, "and numbers them");
_Static_assert(DCNT_IA_CM_AH_REQ_TX == 37 && DCNT_IA_CM_AH_RESOLVED == 39 &&
	       DCNT_IA_LNK_ERR_RCV_CONSTRAINT == 69 && DCNT_IA_LNK_ERR_XMT_DISCARDS == 70 &&
	       DCNT_IA_DIAG_ERR_RQ_UDSDPRD == 79, "those of datagrams");
_Static_assert(CM_FIRST == DCNT_IA_CM_LISTEN &&
	       CM_END == DCNT_IA_CM_ERR_UNEXPECTED + 1, "those of connections");
#endif

/* An object that has counters. */
struct counted {
	const char *kind;
	void *obj;
	const struct counter *counter;
	int n;
	struct dofi_mutex *lock;	/* of the object */
	uint64_t *base;			/* values of the counters at the last reset */
};

static bool counted_as(struct dofi_obj *obj, int kind, struct counted *c)
{
	struct dofi_ia *ia = (struct dofi_ia *)obj;
	struct dofi_ep *ep = (struct dofi_ep *)obj;
	struct dofi_evd *evd = (struct dofi_evd *)obj;

	switch (kind) {
	case DOFI_KIND(DAT_HANDLE_TYPE_IA):
		*c = (struct counted){ "ia", obj, ia_counters, DOFI_IA_COUNTERS, &ia->lock,
				       ia->base };
		return true;
	case DOFI_KIND(DAT_HANDLE_TYPE_EP):
		*c = (struct counted){ "ep", obj, ep_counters, DOFI_EP_COUNTERS, &ep->lock,
				       ep->base };
		return true;
	case DOFI_KIND(DAT_HANDLE_TYPE_EVD):
		*c = (struct counted){ "evd", obj, evd_counters, DOFI_EVD_COUNTERS, &evd->lock,
				       evd->base };
		return true;
	default:
		return false;
	}
}

static bool counted_of(struct dofi_obj *obj, struct counted *c)
{
	return counted_as(obj, obj ? dofi_obj_kind(obj) : 0, c);
}

static uint64_t field(const struct counted *c, size_t at)
{
	return at ? __atomic_load_n((uint64_t *)(uintptr_t)((char *)c->obj + at),
				    __ATOMIC_RELAXED) :
		    0;
}

static uint64_t total(const struct counted *c, int i)
{
	const struct counter *counter = &c->counter[i];

	return field(c, counter->at[0]) + field(c, counter->at[1]) + field(c, counter->at[2]) -
	       field(c, counter->less);
}

/*
 * Counter @i since the reset; the base of a stopped counter is its value. Requires the object's
 * lock.
 */
static uint64_t value(const struct counted *c, int i, bool reset)
{
	const struct dofi_ia *ia = c->counter == ia_counters ? c->obj : NULL;
	const bool stopped = ia && ia->cm_stopped && i >= CM_FIRST && i < CM_END;
	uint64_t now = stopped ? 0 : total(c, i);
	uint64_t v = stopped ? c->base[i] : now - c->base[i];

	if (reset)
		c->base[i] = now;
	return v;
}

static void line_write(FILE *to, const struct counted *c, int i, uint64_t v)
{
	fprintf(to, "%s %p %s %" PRIu64 "\n", c->kind, c->obj, c->counter[i].name, v);
}

/* Stores the values in @out, or writes them to @to if that is not NULL. */
static DAT_RETURN read_out(DAT_HANDLE handle, int which, DAT_UINT64 *out, FILE *to, bool reset)
{
	struct dofi_obj *obj DOFI_CALL = dofi_obj_enter_any(handle);
	struct counted c;
	int i, first, end;

	if (!counted_of(obj, &c))
		return DOFI_INVALID_HANDLE;
	if (which < 0 || which > c.n)
		return DOFI_BAD_ARG(3);
	if (!to && !out)
		return DOFI_BAD_ARG(4);
	first = which == c.n ? 0 : which;
	end = which == c.n ? c.n : which + 1;
	dofi_mutex_lock(c.lock);
	for (i = first; i < end; i++) {
		const uint64_t v = value(&c, i, reset);

		if (!to)
			out[i - first] = v;
		else if (c.counter[i].name)
			line_write(to, &c, i, v);
	}
	dofi_mutex_unlock(c.lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_counters_query(DAT_HANDLE handle, int which, DAT_UINT64 *out, bool reset)
{
	return read_out(handle, which, out, NULL, reset);
}

DAT_RETURN dofi_counters_print(FILE *to, DAT_HANDLE handle, int which, bool reset)
{
	return read_out(handle, which, NULL, to, reset);
}

DAT_RETURN dofi_counters_run(DAT_IA_HANDLE ia_handle, int group, bool run)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct counted c;
	int i;

	if (!ia || !counted_of(&ia->obj, &c))
		return DOFI_BAD_HANDLE(IA);
	/* 0 is DCNT_IA_CM, 1 DCNT_IA_LNK, 2 DCNT_IA_DIAG */
	if (group)
		return group == 1 || group == 2 ? DOFI_NOT_SUPPORTED : DOFI_BAD_ARG(3);
	dofi_mutex_lock(&ia->lock);
	for (i = CM_FIRST; i < CM_END; i++)
		c.base[i] = run ? total(&c, i) : value(&c, i, false);
	ia->cm_stopped = !run;
	dofi_mutex_unlock(&ia->lock);
	return DAT_SUCCESS;
}

static void render(FILE *to, const struct counted *c)
{
	int i;

	for (i = 0; i < c->n; i++) {
		uint64_t v = value(c, i, false);

		if (v)
			line_write(to, c, i, v);
	}
}

void dofi_counters_log(struct dofi_obj *obj, DAT_HANDLE_TYPE type)
{
	struct counted c;

	if (!counted_as(obj, DOFI_KIND(type), &c))
		return;
	flockfile(stderr);
	if (type == DAT_HANDLE_TYPE_IA)
		fprintf(stderr, "ia %p name %s\n", (void *)obj, obj->provider->device_name);
	render(stderr, &c);
	funlockfile(stderr);
}

/* Writes the EP's state and its peer's address and port, which identify the connection. */
static void render_state(FILE *to, const struct dofi_ep *ep)
{
	char peer[INET6_ADDRSTRLEN];

	dofi_mutex_assert_held(&ep->lock);
	fprintf(to, "ep %p state %s\n", (const void *)ep, dofi_ep_states[ep->state].name);
	if (!dofi_ep_has_peer(ep))
		return;
	fprintf(to, "ep %p peer %s\n", (const void *)ep,
		dofi_address_text(&ep->request.peer, peer));
	fprintf(to, "ep %p peer_port %llu\n", (const void *)ep,
		(unsigned long long)ep->remote_port);
}

/* The IA's lock keeps its objects from going away. */
static void render_children(FILE *to, struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	struct dofi_obj *obj;
	struct counted c;

	TAILQ_FOREACH(obj, &ia->children[DOFI_KIND(type)], sibling) {
		if (!counted_of(obj, &c))
			continue;
		dofi_mutex_lock(c.lock);
		if (type == DAT_HANDLE_TYPE_EP)
			render_state(to, c.obj);
		render(to, &c);
		dofi_mutex_unlock(c.lock);
	}
}

void dofi_counters_render(FILE *to, void *arg)
{
	struct dofi_ia *ia = arg;
	struct counted c;

	dofi_mutex_lock(&ia->lock);
	fprintf(to, "ia %p name %s\n", (void *)ia, ia->obj.provider->device_name);
	if (counted_of(&ia->obj, &c))
		render(to, &c);
	render_children(to, ia, DAT_HANDLE_TYPE_EP);
	render_children(to, ia, DAT_HANDLE_TYPE_EVD);
	dofi_mutex_unlock(&ia->lock);
}
