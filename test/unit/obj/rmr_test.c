/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RMRs: what a bind grants, when it takes effect, and how every grant ends. */

#include "obj/cno.h"
#include "obj/ep_bind.h"
#include "obj/fixture.h"

static DAT_EP_HANDLE ep;
static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT old, new;	/* contexts of binds */

static void init(void)
{
	objects_init();
	ep = ep_make();
	make_connected(ep);
	succeed(dofi_rmr_create(pz, &rmr));
}

TestSuite(rmr, .init = init, .fini = ia_fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

#define READ DAT_MEM_PRIV_REMOTE_READ_FLAG
#define WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define BOTH (READ | WRITE)

/* The versions have these arguments at different positions. */
#define BAD(one, two) DOFI_RET(DAT_INVALID_PARAMETER, DAT_VERSION_MAJOR >= 2 ? two : one)
#define BAD_TRIPLET BAD(DAT_INVALID_ARG2, DAT_INVALID_ARG3)
#define BAD_PRIVILEGE BAD(DAT_INVALID_ARG3, DAT_INVALID_ARG4)
#define BAD_FLAGS BAD(DAT_INVALID_ARG6, DAT_INVALID_ARG8)
#define BAD_CONTEXT BAD(DAT_INVALID_ARG7, DAT_INVALID_ARG9)

/* A bind in a form for both versions. */
struct bind {
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET part;
	int priv;
	DAT_EP_HANDLE ep;
	uint64_t cookie;
	int flags;
	DAT_RMR_CONTEXT *context;
};

static DAT_RETURN post(const struct bind *b)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = b->cookie };

#if DAT_VERSION_MAJOR >= 2
	return dofi_rmr_bind(b->rmr, b->lmr, &b->part, (DAT_MEM_PRIV_FLAGS)b->priv, DAT_VA_TYPE_VA,
			     b->ep, cookie, (DAT_COMPLETION_FLAGS)b->flags, b->context);
#else
	return dofi_rmr_bind(b->rmr, &b->part, (DAT_MEM_PRIV_FLAGS)b->priv, b->ep, cookie,
			     (DAT_COMPLETION_FLAGS)b->flags, b->context);
#endif
}

/* A valid bind, for tests to change. */
static struct bind good(void)
{
	return (struct bind){ rmr, lmr, segment(16, 64), BOTH, ep, 1, 0, &new };
}

static DAT_RETURN bind_n(uint64_t n, DAT_RMR_CONTEXT *context)
{
	struct bind b = good();

	b.cookie = n;
	b.context = context;
	return post(&b);
}

static DAT_RETURN unbind_n(uint64_t n)
{
	struct bind b = good();

	b.cookie = n;
	b.part = (DAT_LMR_TRIPLET){ 0 };
	b.lmr = NULL;
	b.context = NULL;
	return post(&b);
}

static DAT_RETURN send_n(uint64_t n, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	return dofi_ep_post_send(ep, 1, &s, (DAT_DTO_COOKIE){ .as_64 = n },
				 (DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN read_n(uint64_t n)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);

	return dofi_ep_post_rdma_read(ep, 1, &s, (DAT_DTO_COOKIE){ .as_64 = n }, &r, 0);
}

static void take_bind(uint64_t n, DAT_RMR_BIND_COMPLETION_STATUS status)
{
	const DAT_EVENT event = event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *d = &event.event_data.rmr_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, n, "%llu", (unsigned long long)d->user_cookie.as_64);
	cr_expect_eq(d->status, status, "%d", d->status);
	cr_expect_eq(d->rmr_handle, rmr);
}

static void take_dto(uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->user_cookie.as_64, n);
	cr_expect_eq(d->status, status, "%d", d->status);
}

/* Binds rmr, for tests of what follows. */
static void bind_first(void)
{
	succeed(bind_n(0, &old));
	take_bind(0, DAT_DTO_SUCCESS);
	cr_assert(fake_mr_live(old));
}

static DAT_RMR_PARAM query(void)
{
	DAT_RMR_PARAM p;

	succeed(dofi_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL &
							  ~DAT_RMR_FIELD_LMR_TRIPLET), &p));
	return p;
}

/* The context in force, or 0 while unbound. */
static DAT_RMR_CONTEXT in_force(void)
{
	return query().rmr_context;
}

static void end_connection(DAT_EP_HANDLE of)
{
	dofi_ep_end_with(of, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
}

/* Creating and freeing */

Test(rmr, is_an_object)
{
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;

	succeed(dofi_get_handle_type(rmr, &type));
	cr_expect_eq(type, DAT_HANDLE_TYPE_RMR);
	succeed(dofi_get_consumer_context(rmr, &context));
	cr_expect_eq(context.as_64, 0);
}

Test(rmr, needs_a_pz_and_a_pointer_for_its_handle)
{
	DAT_RMR_HANDLE other;

	expect_handle(dofi_rmr_create(NULL, &other), PZ);
	expect_handle(dofi_rmr_create(evd, &other), PZ);
	expect_handle(dofi_rmr_create(NOWHERE, &other), PZ);
	expect_arg(dofi_rmr_create(pz, NULL), 2);
}

Test(rmr, holds_its_pz_and_its_ia)
{
	DAT_PZ_HANDLE zone;
	DAT_RMR_HANDLE other;

	succeed(dofi_pz_create(ia, &zone));
	succeed(dofi_rmr_create(zone, &other));
	expect_state(dofi_pz_free(zone), PZ_IN_USE);
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	succeed(dofi_rmr_free(other));
	succeed(dofi_pz_free(zone));
}

Test(rmr, there_are_as_many_as_the_attribute_says)
{
	DAT_RMR_HANDLE other;
	DAT_COUNT i;

	ia->limits.max_lmrs = 3;
	for (i = 1; i < 3; i++)
		succeed(dofi_rmr_create(pz, &other));
	expect_type(dofi_rmr_create(pz, &other), DAT_INSUFFICIENT_RESOURCES);
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_rmr_create(pz, &other));
}

Test(rmr, is_freed_once)
{
	succeed(dofi_rmr_free(rmr));
	expect_handle(dofi_rmr_free(rmr), RMR);
	expect_handle(dofi_rmr_free(NULL), RMR);
	expect_handle(dofi_rmr_free(lmr), RMR);
	expect_handle(dofi_rmr_free(NOWHERE), RMR);
}

Test(rmr, query_returns_an_unbound_rmr)
{
	const DAT_RMR_PARAM p = query();

	cr_expect_eq(p.ia_handle, ia);
	cr_expect_eq(p.pz_handle, pz);
	cr_expect_eq(p.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
	cr_expect_eq(p.rmr_context, 0);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(p.rmr_scope, DAT_RMR_SCOPE_PZ);
	cr_expect_eq(p.va_type, DAT_VA_TYPE_VA);
#endif
}

Test(rmr, query_checks_its_arguments)
{
	DAT_RMR_PARAM p;

	expect_handle(dofi_rmr_query(pz, 0, &p), RMR);
	expect_arg(dofi_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_ALL + 1), &p), 2);
	expect_arg(dofi_rmr_query(rmr, 0, NULL), 3);
	/* an unbound RMR has no triplet */
	expect_arg(dofi_rmr_query(rmr, DAT_RMR_FIELD_ALL, &p), 2);
	expect_arg(dofi_rmr_query(rmr, DAT_RMR_FIELD_LMR_TRIPLET, &p), 2);
}

/* Binding */

Test(rmr, a_bind_grants_what_it_says_and_no_more)
{
	DAT_RMR_PARAM p;

	bind_first();
	cr_expect_eq(fake.mr_addr, memory + 16);
	cr_expect_eq(fake.mr_len, 64);
	cr_expect_eq(fake.mr_access & (FI_REMOTE_READ | FI_REMOTE_WRITE),
		     FI_REMOTE_READ | FI_REMOTE_WRITE);
	cr_expect_eq(transport.n, 0);		/* the fabric posts no operation for it */
	succeed(dofi_rmr_query(rmr, DAT_RMR_FIELD_ALL, &p));
	cr_expect_eq(p.rmr_context, old);
	cr_expect_eq(p.mem_priv, BOTH);
	cr_expect_eq(p.lmr_triplet.lmr_context, lmr_context);
	cr_expect_eq(p.lmr_triplet.virtual_address, (uintptr_t)memory + 16);
	cr_expect_eq(p.lmr_triplet.segment_length, 64);
}

Test(rmr, privileges_are_granted_one_by_one)
{
	static const struct {
		int priv;
		uint64_t access;
	} rows[] = {
		{ READ, FI_REMOTE_READ }, { WRITE, FI_REMOTE_WRITE },
		{ DAT_MEM_PRIV_NONE_FLAG, 0 },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, 0 },
		{ DAT_MEM_PRIV_ALL_FLAG, FI_REMOTE_READ | FI_REMOTE_WRITE },
	};
	struct bind b = good();
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		b.priv = rows[i].priv;
		succeed(post(&b));
		take_bind(1, DAT_DTO_SUCCESS);
		cr_expect_eq(fake.mr_access & (FI_REMOTE_READ | FI_REMOTE_WRITE), rows[i].access,
			     "%zu", i);
		cr_expect(new);
	}
}

/* A context reveals neither the next one nor the LMR's. */
Test(rmr, contexts_are_random_and_never_zero)
{
	enum { N = 64 };
	DAT_RMR_CONTEXT seen[N];
	uint32_t ones = 0, zeros = 0;
	int i, j;

	for (i = 0; i < N; i++) {
		succeed(bind_n(i, &seen[i]));
		take_bind(i, DAT_DTO_SUCCESS);
		cr_expect(seen[i] && seen[i] != rmr_context);
		for (j = 0; j < i; j++)
			cr_expect(seen[i] != seen[j]);
		ones |= seen[i];
		zeros |= ~seen[i];
	}
	cr_expect_eq(ones & zeros, ~DOFI_KEY_SCOPED, "bits that never change: %#x", ~(ones & zeros));
}

Test(rmr, a_rebind_revokes_the_former_context)
{
	bind_first();
	succeed(bind_n(1, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect(!fake_mr_live(old));
	cr_expect(fake_mr_live(new));
	cr_expect(fake_mr_live(rmr_context));	/* the LMR's own registration stays */
	cr_expect_eq(in_force(), new);
}

Test(rmr, an_unbind_revokes_and_grants_nothing)
{
	DAT_RMR_PARAM p;

	bind_first();
	succeed(unbind_n(1));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect(!fake_mr_live(old));
	expect_arg(dofi_rmr_query(rmr, DAT_RMR_FIELD_ALL, &p), 2);
	cr_expect_eq(in_force(), 0);
	succeed(dofi_lmr_free(lmr));
}

Test(rmr, an_unbound_one_may_be_unbound)
{
	succeed(unbind_n(1));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(in_force(), 0);
}

/* Only the length of an unbind counts. */
Test(rmr, an_unbind_looks_at_neither_memory_nor_privileges)
{
	struct bind b = good();

	bind_first();
	b.part = (DAT_LMR_TRIPLET){ .lmr_context = 0x12345, .virtual_address = 1 };
	b.lmr = NOWHERE;
	b.priv = 0x7000;
	new = 7;
	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(new, 0);
	cr_expect(!fake_mr_live(old));
}

/* Order among the requests */

Test(rmr, its_event_comes_after_those_of_earlier_requests)
{
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
	succeed(send_n(3, 0));
	complete(1);
	cr_expect(event_none(evd));
	complete(0);
	take_dto(1, DAT_DTO_SUCCESS);
	take_bind(2, DAT_DTO_SUCCESS);
	take_dto(3, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
}

Test(rmr, it_waits_behind_what_finds_no_room)
{
	bind_first();
	transport.taken = 1;
	succeed(send_n(1, 0));
	succeed(send_n(2, 0));
	succeed(bind_n(3, &new));
	cr_expect(fake_mr_live(old));
	cr_expect_eq(in_force(), old);
	transport.taken = 2;
	complete(0);
	cr_expect(!fake_mr_live(old));
	cr_expect_eq(in_force(), new);
	take_dto(1, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	complete(1);
	take_dto(2, DAT_DTO_SUCCESS);
	take_bind(3, DAT_DTO_SUCCESS);
}

Test(rmr, a_fence_holds_it_and_what_is_behind_it)
{
	struct bind b = good();

	bind_first();
	succeed(read_n(1));
	b.flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	succeed(post(&b));
	succeed(send_n(2, 0));
	cr_expect_eq(transport.n, 1);
	cr_expect(fake_mr_live(old));
	complete(0);
	cr_expect(!fake_mr_live(old));
	cr_expect_eq(transport.n, 2);
	complete(1);
	take_dto(1, DAT_DTO_SUCCESS);
	take_bind(1, DAT_DTO_SUCCESS);
	take_dto(2, DAT_DTO_SUCCESS);
}

Test(rmr, several_take_effect_in_their_order)
{
	DAT_RMR_CONTEXT c[3];
	int i;

	transport.taken = 1;
	succeed(send_n(9, 0));
	succeed(send_n(10, 0));
	for (i = 0; i < 3; i++)
		succeed(bind_n(i, &c[i]));
	for (i = 0; i < 3; i++)
		cr_expect(fake_mr_live(c[i]));
	transport.taken = 1;
	complete(0);
	cr_expect_eq(in_force(), c[2]);
	cr_expect(!fake_mr_live(c[0]) && !fake_mr_live(c[1]) && fake_mr_live(c[2]));
	complete(1);
	take_dto(9, DAT_DTO_SUCCESS);
	take_dto(10, DAT_DTO_SUCCESS);
	for (i = 0; i < 3; i++)
		take_bind(i, DAT_DTO_SUCCESS);
}

Test(rmr, a_graceful_disconnect_waits_for_it)
{
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	cr_expect_eq(inside()->state, DAT_EP_STATE_DISCONNECT_PENDING);
	complete(0);
	settle();
	take_dto(1, DAT_DTO_SUCCESS);
	take_bind(2, DAT_DTO_SUCCESS);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(in_force(), new);
}

/* A graceful disconnect may wait for a bind that is queued itself. */
Test(rmr, it_may_be_the_last_that_a_graceful_disconnect_waits_for)
{
	struct bind b = good();

	succeed(read_n(1));
	b.flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	succeed(post(&b));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	complete(0);
	settle();
	take_dto(1, DAT_DTO_SUCCESS);
	take_bind(1, DAT_DTO_SUCCESS);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Completion flags */

Test(rmr, a_suppressed_success_is_silent)
{
	struct bind b = good();

	b.flags = DAT_COMPLETION_SUPPRESS_FLAG;
	succeed(post(&b));
	cr_expect(event_none(evd));
	cr_expect_eq(in_force(), new);
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(rmr, a_suppressed_failure_is_not)
{
	struct bind b = good();

	b.flags = DAT_COMPLETION_SUPPRESS_FLAG;
	transport.taken = 0;
	succeed(send_n(0, 0));
	succeed(post(&b));
	end_connection(ep);
	take_dto(0, DAT_DTO_ERR_FLUSHED);
	take_bind(1, DAT_RMR_BIND_FAILURE);
}

Test(rmr, flags_are_checked)
{
	struct bind b = good();

	b.flags = 0x8000;
	expect_ret(post(&b), BAD_FLAGS);
}

/* Creates an EP with requests of the class UNSIGNALLED, on an EVD of their own. */
static DAT_EVD_HANDLE unsignalled_ep(void)
{
	DAT_EVD_HANDLE out = evd_make(8, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	DAT_EP_PARAM param;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	succeed(dofi_ep_create(ia, pz, evd, out, evd, &param.ep_attr, &ep));
	make_connected(ep);
	return out;
}

static bool cno_triggered(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE from;

	return dofi_cno_wait(cno, 0, &from) == DAT_SUCCESS;
}

Test(rmr, an_unsignalled_success_wakes_no_thread)
{
	struct bind b = good();
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE out;

	b.flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	expect_ret(post(&b), BAD_FLAGS);
	out = unsignalled_ep();
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(out, cno));
	b.ep = ep;
	succeed(post(&b));
	cr_expect(!cno_triggered(cno));
	b.flags = 0;
	succeed(post(&b));
	cr_expect(cno_triggered(cno));
	event_take(out, DAT_RMR_BIND_COMPLETION_EVENT);
	event_take(out, DAT_RMR_BIND_COMPLETION_EVENT);
}

/* Binds that are refused */

/* A refused bind leaves nothing behind: no registration, no use of the LMR or a slot. */
#define refused(call, expected)                                                  \
	do {                                                                     \
		const int refused_before = fake.open;                            \
		expected;                                                        \
		cr_expect_eq(fake.open, refused_before, #call);                  \
		cr_expect(!dofi_obj_in_use(&((struct dofi_lmr *)lmr)->obj));     \
		cr_expect(dofi_queue_empty(&inside()->sq));                      \
		cr_expect(event_none(evd));                                      \
	} while (0)

Test(rmr, handles_are_checked)
{
	struct bind b = good();

	b.rmr = lmr;
	refused(rmr, expect_handle(post(&b), RMR));
	b.rmr = NULL;
	refused(rmr, expect_handle(post(&b), RMR));
	b = good();
	b.ep = rmr;
	refused(ep, expect_handle(post(&b), EP));
	b.ep = NULL;
	refused(ep, expect_handle(post(&b), EP));
}

Test(rmr, its_lmr_must_be_the_one_that_the_triplet_names)
{
	struct bind b = good();

	b.part.lmr_context ^= 1;
	refused(context, expect_ret(post(&b), BAD_TRIPLET));
#if DAT_VERSION_MAJOR >= 2
	b = good();
	b.lmr = rmr;
	refused(lmr, expect_handle(post(&b), LMR));
	b.lmr = NULL;
	refused(lmr, expect_handle(post(&b), LMR));
#endif
}

Test(rmr, a_freed_lmr_is_refused)
{
	struct bind b = good();

	succeed(dofi_lmr_free(lmr));
#if DAT_VERSION_MAJOR >= 2
	expect_handle(post(&b), LMR);
#else
	expect_arg(post(&b), 2);
#endif
}

Test(rmr, needs_a_triplet_and_a_place_for_its_context)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	struct bind b = good();

	b.context = NULL;
	refused(context, expect_ret(post(&b), BAD_CONTEXT));
#if DAT_VERSION_MAJOR >= 2
	expect_ret(dofi_rmr_bind(rmr, lmr, NULL, 0, DAT_VA_TYPE_VA, ep, cookie, 0, &new), BAD_TRIPLET);
#else
	expect_ret(dofi_rmr_bind(rmr, NULL, 0, ep, cookie, 0, &new), BAD_TRIPLET);
#endif
}

#if DAT_VERSION_MAJOR >= 2
Test(rmr, addresses_are_virtual_or_offsets_where_the_fabric_can)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET part = segment(16, 64);

	refused(va, expect_arg(dofi_rmr_bind(rmr, lmr, &part, 0, (DAT_VA_TYPE)9, ep, cookie, 0, &new), 5));
	ia->fabric.zero_based = false;
	refused(zb, expect_type(dofi_rmr_bind(rmr, lmr, &part, 0, DAT_VA_TYPE_ZB, ep, cookie, 0, &new),
				DAT_MODEL_NOT_SUPPORTED));
	ia->fabric.zero_based = true;
	succeed(dofi_rmr_bind(rmr, lmr, &part, 0, DAT_VA_TYPE_ZB, ep, cookie, 0, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.mr_addr, memory + 16);
	cr_expect_eq(fake.mr_offset, (uintptr_t)memory + 16);
	cr_expect_eq(query().va_type, DAT_VA_TYPE_ZB);
	cr_expect_eq(query().lmr_triplet.virtual_address, part.virtual_address);
	bind_first();
	cr_expect_eq(fake.mr_offset, 0);
	cr_expect_eq(query().va_type, DAT_VA_TYPE_VA);
}

/* Binds part of an LMR that has offsets as its own addresses. */
Test(rmr, a_part_is_named_as_its_lmr_counts)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = memory };
	const DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET part = { .virtual_address = 100, .segment_length = 50 };
	DAT_LMR_HANDLE of;

	succeed(dofi_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 150, pz, DAT_MEM_PRIV_ALL_FLAG,
				DAT_VA_TYPE_ZB, &of, &part.lmr_context, NULL, NULL, NULL));
	succeed(dofi_rmr_bind(rmr, of, &part, 0, DAT_VA_TYPE_VA, ep, cookie, 0, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.mr_addr, memory + 100);
	cr_expect_eq(fake.mr_offset, 0);
	succeed(dofi_rmr_bind(rmr, of, &part, 0, DAT_VA_TYPE_ZB, ep, cookie, 0, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.mr_offset, (uintptr_t)memory + 100);
	part.virtual_address++;
	expect_arg(dofi_rmr_bind(rmr, of, &part, 0, DAT_VA_TYPE_VA, ep, cookie, 0, &new), 3);
	part.virtual_address = (uintptr_t)memory;
	expect_arg(dofi_rmr_bind(rmr, of, &part, 0, DAT_VA_TYPE_VA, ep, cookie, 0, &new), 3);
}
#endif

Test(rmr, unknown_privileges_are_refused)
{
	struct bind b = good();

	b.priv = 0x4000;
	refused(priv, expect_ret(post(&b), BAD_PRIVILEGE));
}

Test(rmr, it_must_lie_in_its_lmr)
{
	static const struct {
		int64_t offset;
		uint64_t len;
		bool inside;
	} rows[] = {
		{ 0, sizeof(memory), true }, { 0, 1, true }, { sizeof(memory) - 1, 1, true },
		{ -1, 1, false }, { -1, 2, false }, { 0, sizeof(memory) + 1, false },
		{ 1, sizeof(memory), false }, { sizeof(memory), 1, false },
		{ sizeof(memory) - 1, 2, false }, { 8, (dofi_seg_length)-8, false },
		{ -4096, sizeof(memory) + 8192, false },
	};
	struct bind b = good();
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		b.part = segment(0, rows[i].len);
		b.part.virtual_address += rows[i].offset;
		if (!rows[i].inside) {
			refused(range, expect_ret(post(&b), BAD_TRIPLET));
			continue;
		}
		succeed(post(&b));
		take_bind(1, DAT_DTO_SUCCESS);
		succeed(unbind_n(1));
		take_bind(1, DAT_DTO_SUCCESS);
	}
}

static char other_memory[64];

/* A bind of an LMR of its own, in @zone. */
static struct bind elsewhere(DAT_PZ_HANDLE zone, int priv)
{
	struct bind b = good();

	succeed(lmr_make(zone, other_memory, sizeof(other_memory), (DAT_MEM_PRIV_FLAGS)priv, &b.lmr,
			 &b.part.lmr_context, NULL));
	b.part.virtual_address = (uintptr_t)other_memory;
	b.part.segment_length = sizeof(other_memory);
	return b;
}

/* A peer may be allowed to write only where the program may write itself. */
Test(rmr, remote_privileges_need_the_local_ones)
{
	struct bind b = elsewhere(pz, DAT_MEM_PRIV_LOCAL_READ_FLAG);

	b.priv = WRITE;
	refused(write, expect_ret(post(&b), DOFI_RET(DAT_PRIVILEGES_VIOLATION,
						     DAT_PRIVILEGES_RDMA_WRITE)));
	b.priv = BOTH;
	refused(both, expect_type(post(&b), DAT_PRIVILEGES_VIOLATION));
	b.priv = READ;
	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
}

/* The LMR needs no remote privilege of its own: RMRs exist for that. */
Test(rmr, an_lmr_that_peers_cannot_reach_may_be_granted)
{
	struct bind b = elsewhere(pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.mr_access & (FI_REMOTE_READ | FI_REMOTE_WRITE),
		     FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* RMR, LMR and EP must be of one PZ. */
Test(rmr, all_must_be_of_one_pz)
{
	DAT_PZ_HANDLE zone;
	struct bind b[2], mixed;
	int i;

	succeed(dofi_pz_create(ia, &zone));
	b[0] = good();
	b[1] = elsewhere(zone, DAT_MEM_PRIV_ALL_FLAG);
	succeed(dofi_rmr_create(zone, &b[1].rmr));
	succeed(dofi_ep_create(ia, zone, evd, evd, evd, NULL, &b[1].ep));
	make_connected(b[1].ep);
	for (i = 1; i < 7; i++) {
		mixed = b[i & 1];
		mixed.rmr = b[i >> 1 & 1].rmr;
		mixed.ep = b[i >> 2 & 1].ep;
		refused(mixed, expect_type(post(&mixed), DAT_PROTECTION_VIOLATION));
		mixed.part = (DAT_LMR_TRIPLET){ 0 };
		if ((i >> 1 & 1) != (i >> 2 & 1))
			refused(unbind, expect_type(post(&mixed), DAT_PROTECTION_VIOLATION));
	}
	for (i = 0; i < 2; i++) {
		succeed(post(&b[i]));
		event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	}
}

Test(rmr, needs_a_connection)
{
	struct bind b = good();

	b.ep = ep_make();
	refused(unconnected, expect_state(post(&b), EP_UNCONNECTED));
	start_connecting(b.ep);
	refused(connecting, expect_state(post(&b), EP_ACTCONNPENDING));
	establish(b.ep, NULL, 0);
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
}

Test(rmr, the_request_queue_has_its_depth)
{
	const DAT_COUNT depth = inside()->attr.max_request_dtos;
	const DAT_COUNT before = fake.open;
	DAT_COUNT i;

	for (i = 0; i < depth; i++)
		succeed(send_n(i, 0));
	expect_ret(bind_n(1, &new), DOFI_NO_RESOURCE(TEP));
	cr_expect_eq(fake.open, before);
	complete(0);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	succeed(bind_n(1, &new));
	expect_ret(bind_n(2, &new), DOFI_NO_RESOURCE(TEP));
	cr_expect_eq(fake.open, before + 1);
	cr_expect_eq(transport.n, (unsigned)depth);
}

Test(rmr, the_request_evd_must_take_binds)
{
	DAT_EVD_HANDLE plain = evd_make(8, DAT_EVD_DTO_FLAG);
	struct bind b = good();

	succeed(dofi_ep_create(ia, pz, evd, plain, evd, NULL, &b.ep));
	make_connected(b.ep);
	refused(evd, expect_state(post(&b), EP_EVD_REQUEST));
}

Test(rmr, without_an_event_queue_there_is_no_event)
{
	struct bind b = good();

	succeed(dofi_ep_create(ia, pz, evd, NULL, evd, NULL, &b.ep));
	make_connected(b.ep);
	succeed(post(&b));
	cr_expect(event_none(evd));
	cr_expect_eq(in_force(), new);
}

Test(rmr, without_resources_of_the_fabric_nothing_is_bound)
{
	bind_first();
	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_ENOMEM;
	expect_type(bind_n(1, &new), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(in_force(), old);
	cr_expect(event_none(evd));
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
}

/* Ends of a grant */

/* The fabric does not close the old registration, so its context would stay valid. */
Test(rmr, a_grant_that_cannot_be_ended_fails_the_bind)
{
	bind_first();
	fake.fault.mr_close = -FI_EBUSY;
	succeed(bind_n(1, &new));
	settle();
	fake.fault.mr_close = 0;
	take_bind(1, DAT_RMR_OPERATION_FAILED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(in_force(), old);
	/* the fabric leaks a registration that even freeing does not close */
	cr_expect(fake_mr_live(new));
	fake.open--;
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_lmr_free(lmr));
}

Test(rmr, a_flushed_bind_changes_nothing)
{
	bind_first();
	transport.taken = 0;
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
	succeed(unbind_n(3));
	cr_expect(fake_mr_live(new));
	end_connection(ep);
	take_dto(1, DAT_DTO_ERR_FLUSHED);
	take_bind(2, DAT_RMR_BIND_FAILURE);
	take_bind(3, DAT_RMR_BIND_FAILURE);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(!fake_mr_live(new));
	cr_expect(fake_mr_live(old));
	cr_expect_eq(in_force(), old);
}

Test(rmr, on_a_disconnected_endpoint_it_is_flushed_at_once)
{
	bind_first();
	end_connection(ep);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(in_force(), old);		/* a grant belongs to the PZ */
	succeed(bind_n(1, &new));
	take_bind(1, DAT_RMR_BIND_FAILURE);
	succeed(unbind_n(2));
	take_bind(2, DAT_RMR_BIND_FAILURE);
	cr_expect(!fake_mr_live(new));
	cr_expect_eq(in_force(), old);
}

Test(rmr, a_freed_endpoint_takes_its_pending_binds_along)
{
	bind_first();
	transport.taken = 0;
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
	succeed(dofi_ep_free(ep));
	cr_expect(!fake_mr_live(new));
	cr_expect_eq(in_force(), old);
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
}

Test(rmr, freeing_revokes_without_an_event)
{
	bind_first();
	succeed(dofi_rmr_free(rmr));
	cr_expect(!fake_mr_live(old));
	cr_expect(event_none(evd));
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_ep_free(ep));
	succeed(dofi_pz_free(pz));
}

/* The bind completes as if it had been done just before the RMR was freed. */
Test(rmr, may_be_freed_while_binds_wait)
{
	DAT_RMR_HANDLE second;

	bind_first();
	transport.taken = 1;
	succeed(send_n(1, 0));
	succeed(send_n(2, 0));
	succeed(bind_n(3, &new));
	succeed(unbind_n(4));
	succeed(dofi_rmr_free(rmr));
	cr_expect(!fake_mr_live(old) && !fake_mr_live(new));
	cr_expect(!dofi_obj_in_use(lmr));
	succeed(dofi_rmr_create(pz, &second));
	transport.taken = 1;
	complete(0);
	complete(1);
	take_dto(1, DAT_DTO_SUCCESS);
	take_dto(2, DAT_DTO_SUCCESS);
	take_bind(3, DAT_DTO_SUCCESS);
	take_bind(4, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
}

Test(rmr, freed_while_binds_wait_that_are_flushed_then)
{
	transport.taken = 0;
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
	succeed(dofi_rmr_free(rmr));
	end_connection(ep);
	take_dto(1, DAT_DTO_ERR_FLUSHED);
	take_bind(2, DAT_RMR_BIND_FAILURE);
}

Test(rmr, an_lmr_is_in_use_while_something_is_bound_to_it)
{
	bind_first();
	expect_state(dofi_lmr_free(lmr), LMR_IN_USE);
	succeed(unbind_n(1));
	take_bind(1, DAT_DTO_SUCCESS);
	transport.taken = 0;
	succeed(send_n(2, 0));
	succeed(bind_n(3, &new));
	expect_state(dofi_lmr_free(lmr), LMR_IN_USE);
	end_connection(ep);
	succeed(dofi_lmr_free(lmr));
}

/* ia_fini() finds what is left. */
Test(rmr, an_abrupt_close_ends_grants_and_pending_binds)
{
	bind_first();
	transport.taken = 0;
	succeed(send_n(1, 0));
	succeed(bind_n(2, &new));
}

/* By its context */

Test(rmr, invalidating_revokes_and_unbinds)
{
	bind_first();
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, old), 0);
	cr_expect(!fake_mr_live(old));
	cr_expect_eq(in_force(), 0);
	cr_expect(!dofi_obj_in_use(&((struct dofi_lmr *)lmr)->obj));
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, old), -EACCES);
	cr_expect(event_none(evd));
	succeed(bind_n(2, &new));
	take_bind(2, DAT_DTO_SUCCESS);
	cr_expect_eq(in_force(), new);
}

Test(rmr, only_what_is_bound_is_invalidated)
{
	const DAT_RMR_CONTEXT none[] = { 0, rmr_context, 12345, UINT32_MAX };
	DAT_PZ_HANDLE elsewhere_pz;
	size_t i;

	bind_first();
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect_eq(dofi_rmr_invalidate(pz, ep, none[i]), -EACCES, "%zu", i);
	succeed(dofi_pz_create(ia, &elsewhere_pz));
	cr_expect_eq(dofi_rmr_invalidate(elsewhere_pz, ep, old), -EACCES);
	transport.taken = 0;
	succeed(send_n(2, 0));
	succeed(bind_n(3, &new));	/* the bind is still queued */
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, new), -EACCES);
	cr_expect_eq(in_force(), old);
	cr_expect(fake_mr_live(new));
}

Test(rmr, a_grant_that_cannot_be_ended_is_not_invalidated)
{
	bind_first();
	fake.fault.mr_close = -FI_EBUSY;
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, old), -FI_EBUSY);
	cr_expect_eq(in_force(), old);
	fake.fault.mr_close = 0;
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, old), 0);
}

/*
 * More RMRs than DOFI_PZ_GRANTS, so that some share an entry. Every way to end a grant removes it.
 */
Test(rmr, many_are_distinguished_by_their_contexts)
{
	enum { N = 4 * DOFI_PZ_GRANTS };
	static DAT_RMR_HANDLE many[N];
	static DAT_RMR_CONTEXT context[N];
	struct bind b = good();
	int i, j;

	for (i = 0; i < N; i++) {
		succeed(dofi_rmr_create(pz, &many[i]));
		b.rmr = many[i];
		b.context = &context[i];
		succeed(post(&b));
		event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	}
	for (i = 0; i < N; i++) {
		if (i % 3 == 0) {
			cr_expect_eq(dofi_rmr_invalidate(pz, ep, context[i]), 0);
		} else if (i % 3 == 1) {
			succeed(dofi_rmr_free(many[i]));
		} else {
			b.rmr = many[i];
			b.context = NULL;
			b.part.segment_length = 0;
			succeed(post(&b));
			event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
		}
		for (j = 0; j < N; j += 7)
			cr_assert_eq(dofi_rmr_in_force(pz, ep, context[j]), j > i, "%d %d", i, j);
	}
}

Test(rmr, memory_is_found_by_the_context)
{
	struct dofi_rmr_memory m;
	const uint64_t at = (uintptr_t)memory + 16;	/* see good() */

	bind_first();
	succeed(dofi_rmr_find(pz, ep, old, at, 64, &m));
	cr_expect_eq(m.base, memory + 16);
	cr_expect_eq(m.desc, ((struct dofi_lmr *)lmr)->desc);
	succeed(dofi_rmr_find(pz, ep, old, at + 63, 1, &m));
	cr_expect_eq(m.base, memory + 79);
	expect_type(dofi_rmr_find(pz, ep, old, at - 1, 8, &m), DAT_PROTECTION_VIOLATION);
	expect_type(dofi_rmr_find(pz, ep, old, at + 60, 5, &m), DAT_PROTECTION_VIOLATION);
	expect_type(dofi_rmr_find(pz, ep, old, at, UINT64_MAX, &m), DAT_PROTECTION_VIOLATION);
	expect_type(dofi_rmr_find(pz, ep, rmr_context, at, 8, &m), DAT_PROTECTION_VIOLATION);
}

Test(rmr, may_be_rebound_through_any_endpoint_of_its_pz)
{
	struct bind b = good();

	bind_first();
	b.ep = ep_make();
	make_connected(b.ep);
	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(in_force(), new);
	cr_expect(!fake_mr_live(old));
	succeed(dofi_ep_free(b.ep));
	cr_expect_eq(in_force(), new);
}

#if DAT_VERSION_MAJOR >= 2
/* RMRs of EP scope */

static DAT_EP_HANDLE second;

static void init_scoped(void)
{
	init();
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_rmr_create_for_ep(pz, &rmr));
	second = ep_make();
	make_connected(second);
}

static DAT_RETURN bind_through(DAT_EP_HANDLE through)
{
	struct bind b = good();

	b.ep = through;
	return post(&b);
}

TestSuite(rmr_of_ep, .init = init_scoped, .fini = ia_fini);

Test(rmr_of_ep, says_so)
{
	DAT_RMR_HANDLE other;

	cr_expect_eq(query().rmr_scope, DAT_RMR_SCOPE_EP);
	expect_handle(dofi_rmr_create_for_ep(NULL, &other), PZ);
	expect_arg(dofi_rmr_create_for_ep(pz, NULL), 2);
}

/*
 * The fabric's key is longer than the context: its other half is a secret known to one peer only.
 */
Test(rmr_of_ep, its_key_is_for_one_peer)
{
	((struct dofi_ep *)ep)->secret = 0xabcdef01;
	succeed(bind_n(1, &old));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect(old & DOFI_KEY_SCOPED);
	cr_expect(fake_mr_live(0xabcdef0100000000ULL | old));
	cr_expect(!fake_mr_live(old));
	succeed(unbind_n(2));
	cr_expect(!fake_mr_live(0xabcdef0100000000ULL | old));
}

Test(rmr_of_ep, is_not_there_where_keys_are_everybodys)
{
	DAT_RMR_HANDLE other;

	ia->fabric.scoped_keys = false;
	expect_type(dofi_rmr_create_for_ep(pz, &other), DAT_MODEL_NOT_SUPPORTED);
	expect_handle(dofi_rmr_create_for_ep(NULL, &other), PZ);
}

Test(rmr_of_ep, only_its_own_peer_may_end_it)
{
	bind_first();
	cr_expect_eq(dofi_rmr_invalidate(pz, second, old), -EACCES);
	cr_expect_eq(in_force(), old);
	cr_expect(!dofi_rmr_in_force(pz, second, old));
	cr_expect(dofi_rmr_in_force(pz, ep, old));
	cr_expect_eq(dofi_rmr_invalidate(pz, ep, old), 0);
	cr_expect_eq(in_force(), 0);
	/* so it may be bound through another endpoint */
	succeed(bind_through(second));
}

Test(rmr_of_ep, is_bound_through_one_endpoint_at_a_time)
{
	bind_first();
	expect_type(bind_through(second), DAT_PROTECTION_VIOLATION);
	cr_expect_eq(in_force(), old);
	succeed(bind_through(ep));
	take_bind(1, DAT_DTO_SUCCESS);
	succeed(unbind_n(2));
	take_bind(2, DAT_DTO_SUCCESS);
	succeed(bind_through(second));
	take_bind(1, DAT_DTO_SUCCESS);
	expect_type(bind_through(ep), DAT_PROTECTION_VIOLATION);
}

Test(rmr_of_ep, a_pending_bind_holds_it_too)
{
	transport.taken = 0;
	succeed(send_n(0, 0));
	succeed(bind_through(ep));
	expect_type(bind_through(second), DAT_PROTECTION_VIOLATION);
	end_connection(ep);
	succeed(bind_through(second));
}

Test(rmr_of_ep, a_bind_behind_an_unbind_holds_it)
{
	struct bind b = good();

	bind_first();
	succeed(read_n(1));
	b.part.segment_length = 0;
	b.flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	succeed(post(&b));
	succeed(send_n(2, 0));
	succeed(bind_through(ep));
	transport.taken = 0;		/* for the send between the unbind and the bind */
	complete(0);
	cr_expect_eq(in_force(), 0);
	expect_type(bind_through(second), DAT_PROTECTION_VIOLATION);
}

Test(rmr_of_ep, a_refused_bind_does_not_hold_it)
{
	const DAT_EP_HANDLE idle = ep_make();

	expect_state(bind_through(idle), EP_UNCONNECTED);
	succeed(bind_through(second));
	take_bind(1, DAT_DTO_SUCCESS);
}

Test(rmr_of_ep, its_grant_ends_with_the_connection)
{
	bind_first();
	end_connection(ep);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(!fake_mr_live(old));
	cr_expect_eq(in_force(), 0);
	succeed(bind_through(second));
	take_bind(1, DAT_DTO_SUCCESS);
	succeed(dofi_ep_free(second));
	cr_expect(!fake_mr_live(new));
	cr_expect_eq(in_force(), 0);
}

Test(rmr_of_ep, the_end_of_another_connection_does_it_no_harm)
{
	DAT_RMR_HANDLE wide;
	struct bind b = good();

	succeed(dofi_rmr_create(pz, &wide));
	b.rmr = wide;
	b.ep = second;
	succeed(post(&b));
	event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	bind_first();
	end_connection(second);
	cr_expect(fake_mr_live(old));
	cr_expect(fake_mr_live(new));
}

Test(rmr_of_ep, the_next_connection_may_bind_it_again)
{
	bind_first();
	end_connection(ep);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(bind_through(ep));
	take_bind(1, DAT_DTO_SUCCESS);
	end_connection(ep);
	cr_expect_eq(in_force(), 0);
}
#endif

/* Where the target of RDMA moves the bytes */

static void init_granting(void)
{
	objects_init_granting();
	ep = ep_make();
	make_connected(ep);
	succeed(dofi_rmr_create(pz, &rmr));
}

TestSuite(rmr_granting, .init = init_granting, .fini = ia_fini);

static bool part_granted(DAT_RMR_CONTEXT context, uint32_t secret)
{
	const uint64_t at = (uintptr_t)memory + 16;

	cr_expect(!peer_may(context, secret, at - 1, 1, FI_REMOTE_WRITE));
	cr_expect(!peer_may(context, secret, at, 65, FI_REMOTE_WRITE));
	return peer_may(context, secret, at, 64, FI_REMOTE_WRITE);
}

Test(rmr_granting, a_bind_grants_a_part_until_the_next)
{
	succeed(bind_n(1, &old));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect(part_granted(old, 0));
	succeed(bind_n(2, &new));
	take_bind(2, DAT_DTO_SUCCESS);
	cr_expect(part_granted(new, 0) && !part_granted(old, 0));
	succeed(unbind_n(3));
	take_bind(3, DAT_DTO_SUCCESS);
	cr_expect(!part_granted(new, 0));
	cr_expect_eq(fake.mrs, 0);
}

Test(rmr_granting, freeing_it_ends_its_grant)
{
	succeed(bind_n(1, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	succeed(dofi_rmr_free(rmr));
	cr_expect(!part_granted(new, 0));
	succeed(dofi_lmr_free(lmr));
}

#if DAT_VERSION_MAJOR >= 2
Test(rmr_granting, of_ep_scope_it_is_granted_to_that_peer)
{
	const uint32_t secret = 0xabcdef01;

	succeed(dofi_rmr_free(rmr));
	succeed(dofi_rmr_create_for_ep(pz, &rmr));
	inside()->secret = secret;
	succeed(bind_n(1, &new));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect(part_granted(new, secret));
	cr_expect(!part_granted(new, 0) && !part_granted(new, secret + 1));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect(!part_granted(new, secret));
}
#endif

/* Threads */

#define THREADS 4
#define BINDS 200

static void *binds(void *arg)
{
	struct bind b = good();
	DAT_RMR_CONTEXT context;
	int i;

	b.ep = arg;
	b.flags = DAT_COMPLETION_SUPPRESS_FLAG;
	b.context = &context;
	for (i = 0; i < BINDS; i++)
		succeed(post(&b));
	return NULL;
}

/* Whichever bind is last, one grant is in force and no other is left. */
Test(rmr, threads_bind_it_through_several_endpoints)
{
	pthread_t thread[THREADS];
	int i, before = fake.open;

	for (i = 0; i < THREADS; i++) {
		DAT_EP_HANDLE through = ep_make();

		make_connected(through);
		pthread_create(&thread[i], NULL, binds, through);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect(fake_mr_live(in_force()));
	cr_expect_eq(fake.open, before + 1);
	succeed(unbind_n(1));
	cr_expect_eq(fake.open, before);
	succeed(dofi_lmr_free(lmr));
}

/* A connection ends with queued binds, while another thread continues to bind. */
Test(rmr, a_connection_ends_under_binds)
{
	DAT_EP_HANDLE through = ep_make();
	pthread_t thread;
	int i;

	make_connected(through);
	transport.taken = 0;
	succeed(send_n(0, 0));
	pthread_create(&thread, NULL, binds, through);
	for (i = 0; i < 8; i++)
		succeed(bind_n(i, &new));
	end_connection(ep);
	pthread_join(thread, NULL);
	take_dto(0, DAT_DTO_ERR_FLUSHED);
	for (i = 0; i < 8; i++)
		take_bind(i, DAT_RMR_BIND_FAILURE);
	cr_expect(fake_mr_live(in_force()));
}
