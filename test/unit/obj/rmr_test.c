/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RMRs: the grants of binds, and their ends. */

#include "obj/rmr_one.h"

#include <rdma/fi_errno.h>

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
	cr_expect_eq(ones & zeros, ~DOFI_KEY_SCOPED, "bits that never change: %#x",
		     ~(ones & zeros));
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

/* Ends of a grant */

/* The fabric does not close the old registration, so its context would stay valid. */
Test(rmr, a_grant_that_cannot_be_ended_fails_the_bind)
{
	struct dofi_rmr_memory m;

	bind_first();
	fake.fault.mr_close = -FI_EBUSY;
	succeed(bind_n(1, &new));
	settle();
	fake.fault.mr_close = 0;
	take_bind(1, DAT_RMR_OPERATION_FAILED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(in_force(), old);
	expect_type(dofi_rmr_find(pz, ep, new, (uintptr_t)memory, 1, &m), DAT_PROTECTION_VIOLATION);
	/* the fabric leaks a registration that even freeing does not close */
	cr_expect(fake_mr_live(new));
	fake.open--;
	succeed(dofi_rmr_free(rmr));
	succeed(dofi_lmr_free(lmr));
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
	cr_expect_eq(atomic_load(&((struct dofi_obj *)lmr)->users), 0);
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

/* ia_fini() finds leftovers. */
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
	cr_expect_eq(atomic_load(&((struct dofi_obj *)lmr)->users), 0);
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

TestSuite(rmr, .init = init, .fini = ia_fini);
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
