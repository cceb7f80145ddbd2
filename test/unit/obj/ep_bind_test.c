/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posting binds: their order among the requests, their events, and binds that are refused. */

#include "obj/rmr_one.h"

#include "obj/evd/cno.h"

#include <pthread.h>
#include <rdma/fi_errno.h>

TestSuite(ep_bind, .init = init, .fini = ia_fini);

/* The versions have these arguments at different positions. */
#define BAD(one, two) DOFI_RET(DAT_INVALID_PARAMETER, DAT_VERSION_MAJOR >= 2 ? two : one)
#define BAD_TRIPLET BAD(DAT_INVALID_ARG2, DAT_INVALID_ARG3)
#define BAD_PRIVILEGE BAD(DAT_INVALID_ARG3, DAT_INVALID_ARG4)
#define BAD_FLAGS BAD(DAT_INVALID_ARG6, DAT_INVALID_ARG8)
#define BAD_CONTEXT BAD(DAT_INVALID_ARG7, DAT_INVALID_ARG9)

/* Order among the requests */

Test(ep_bind, its_event_comes_after_those_of_earlier_requests)
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

Test(ep_bind, a_bind_waits_behind_requests_without_room)
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

Test(ep_bind, a_fence_holds_it_and_what_is_behind_it)
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

Test(ep_bind, several_take_effect_in_their_order)
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

Test(ep_bind, a_graceful_disconnect_waits_for_it)
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
Test(ep_bind, a_queued_bind_may_be_what_a_graceful_disconnect_waits_for)
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

Test(ep_bind, a_suppressed_success_is_silent)
{
	struct bind b = good();

	b.flags = DAT_COMPLETION_SUPPRESS_FLAG;
	succeed(post(&b));
	cr_expect(event_none(evd));
	cr_expect_eq(in_force(), new);
	cr_expect(dofi_queue_empty(&inside()->sq));
}

Test(ep_bind, a_suppressed_failure_is_not)
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

Test(ep_bind, flags_are_checked)
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

Test(ep_bind, an_unsignalled_success_wakes_no_thread)
{
	struct bind b = good();
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE out;

	ia->strict = true;
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
		cr_expect_eq(atomic_load(&((struct dofi_obj *)lmr)->users), 0);  \
		cr_expect(dofi_queue_empty(&inside()->sq));                      \
		cr_expect(event_none(evd));                                      \
	} while (0)

Test(ep_bind, handles_are_checked)
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

Test(ep_bind, its_lmr_must_be_the_one_that_the_triplet_names)
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

Test(ep_bind, a_freed_lmr_is_refused)
{
	struct bind b = good();

	succeed(dofi_lmr_free(lmr));
#if DAT_VERSION_MAJOR >= 2
	expect_handle(post(&b), LMR);
#else
	expect_arg(post(&b), 2);
#endif
}

Test(ep_bind, needs_a_triplet_and_a_place_for_its_context)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	struct bind b = good();

	b.context = NULL;
	refused(context, expect_ret(post(&b), BAD_CONTEXT));
#if DAT_VERSION_MAJOR >= 2
	expect_ret(dofi_rmr_bind(rmr, lmr, NULL, 0, DAT_VA_TYPE_VA, ep, cookie, 0, &new),
		   BAD_TRIPLET);
#else
	expect_ret(dofi_rmr_bind(rmr, NULL, 0, ep, cookie, 0, &new), BAD_TRIPLET);
#endif
}

#if DAT_VERSION_MAJOR >= 2
Test(ep_bind, addresses_are_virtual_or_offsets_where_the_fabric_can)
{
	const DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET part = segment(16, 64);

	refused(va,
		expect_arg(dofi_rmr_bind(rmr, lmr, &part, 0, (DAT_VA_TYPE)9, ep, cookie, 0, &new),
			   5));
	ia->fabric.zero_based = false;
	refused(zb,
		expect_type(dofi_rmr_bind(rmr, lmr, &part, 0, DAT_VA_TYPE_ZB, ep, cookie, 0, &new),
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
Test(ep_bind, a_part_is_named_as_its_lmr_counts)
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

Test(ep_bind, unknown_privileges_are_refused)
{
	struct bind b = good();

	b.priv = 0x4000;
	refused(priv, expect_ret(post(&b), BAD_PRIVILEGE));
}

Test(ep_bind, an_rmr_must_lie_in_its_lmr)
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
Test(ep_bind, remote_privileges_need_the_local_ones)
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
Test(ep_bind, an_lmr_that_peers_cannot_reach_may_be_granted)
{
	struct bind b = elsewhere(pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

	succeed(post(&b));
	take_bind(1, DAT_DTO_SUCCESS);
	cr_expect_eq(fake.mr_access & (FI_REMOTE_READ | FI_REMOTE_WRITE),
		     FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* RMR, LMR and EP must be of one PZ. */
Test(ep_bind, all_must_be_of_one_pz)
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

Test(ep_bind, needs_a_connection)
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

Test(ep_bind, the_request_queue_has_its_depth)
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

Test(ep_bind, the_request_evd_must_take_binds)
{
	DAT_EVD_HANDLE plain = evd_make(8, DAT_EVD_DTO_FLAG);
	struct bind b = good();

	succeed(dofi_ep_create(ia, pz, evd, plain, evd, NULL, &b.ep));
	make_connected(b.ep);
	refused(evd, expect_state(post(&b), EP_EVD_REQUEST));
}

Test(ep_bind, without_an_event_queue_there_is_no_event)
{
	struct bind b = good();

	succeed(dofi_ep_create(ia, pz, evd, NULL, evd, NULL, &b.ep));
	make_connected(b.ep);
	succeed(post(&b));
	cr_expect(event_none(evd));
	cr_expect_eq(in_force(), new);
}

Test(ep_bind, without_resources_of_the_fabric_nothing_is_bound)
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

Test(ep_bind, a_flushed_bind_changes_nothing)
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

Test(ep_bind, on_a_disconnected_endpoint_it_is_flushed_at_once)
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

Test(ep_bind, a_freed_endpoint_takes_its_pending_binds_along)
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
Test(ep_bind, threads_bind_it_through_several_endpoints)
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
Test(ep_bind, a_connection_ends_under_binds)
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
