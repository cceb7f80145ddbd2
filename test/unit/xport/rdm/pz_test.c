/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport's part of a PZ: its endpoints, and its table of connections. */

#include "xport/peer.h"

static DAT_EP_HANDLE ep;

static void init(void)
{
	rdm_init();
	ep = ep_make();
}

TestSuite(rdm_pz_state, .init = init, .fini = rdm_fini, .timeout = 60);

static const struct rdm_pz *rpz_of(DAT_PZ_HANDLE handle)
{
	const struct dofi_pz *of = handle;

	return of->xport_pz;
}

Test(rdm_pz_state, is_made_with_its_first_connection)
{
	DAT_EP_HANDLE other = ep_make();
	const struct rdm_pz *rpz;

	cr_expect(!rpz_of(pz));
	pair_connect(ep, other);
	rpz = rpz_of(pz);
	cr_assert(rpz && rpz->rdm.fid);
	succeed(dofi_ep_free(ep));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_free(other));
	cr_expect_eq(rpz_of(pz), rpz, "it stays for the next");
	ep = ep_make();
	other = ep_make();
	pair_connect(ep, other);
	pair_works(ep, other);
}

Test(rdm_pz_state, has_room_for_many_connections)
{
	enum { N = 40 };		/* more than the first table has entries */
	DAT_EP_HANDLE many[N];
	int i;

	for (i = 0; i < N; i++)
		many[i] = ep_make();
	for (i = 0; i < N; i += 2)
		pair_connect(many[i], many[i + 1]);
	cr_expect_eq(rpz_of(pz)->n_conns, 64);
	for (i = 0; i < N; i += 2)
		pair_works(many[i], many[i + 1]);
	/* entries are reused, and the old id does not find the new connection */
	succeed(dofi_ep_free(many[2]));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(many[3]));
	many[2] = ep_make();
	pair_connect(many[3], many[2]);
	pair_works(many[2], many[3]);
	pair_works(many[0], many[1]);
	cr_expect_eq(rpz_of(pz)->n_conns, 64);
}

static uint64_t id_of(DAT_EP_HANDLE handle)
{
	return atomic_load(&rdm_conn_of(handle)->id);
}

/* A late frame for an earlier connection of the entry must not find the next one. */
Test(rdm_pz_state, an_entry_has_another_id_for_each_connection)
{
	DAT_EP_HANDLE other = ep_make();
	uint64_t id[3];
	int i;

	for (i = 0; i < 3; i++) {
		pair_connect(ep, other);
		id[i] = id_of(ep);
		cr_expect(id[i] >> 63, "no id is a small number");
		succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
		event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		settle();
		succeed(dofi_ep_reset(ep));
		succeed(dofi_ep_reset(other));
	}
	for (i = 1; i < 3; i++) {
		cr_expect_eq((uint32_t)id[i], (uint32_t)id[0], "the entry is used again");
		cr_expect(id[i] != id[i - 1]);
	}
}

/* The connections of a PZ share an endpoint, those of two PZs use two. The IA is its own peer. */
Test(rdm_pz_state, reaches_another)
{
	DAT_PZ_HANDLE other_pz;
	DAT_EP_HANDLE other;
	DAT_LMR_HANDLE handle;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	static char bytes[10];
	DAT_LMR_TRIPLET in = { .virtual_address = (uintptr_t)bytes,
			       .segment_length = sizeof(bytes) };
	DAT_LMR_TRIPLET out = segment(0, 5);
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	succeed(dofi_pz_create(ia, &other_pz));
	succeed(dofi_ep_create(ia, other_pz, evd, evd, evd, NULL, &other));
	succeed(lmr_make(other_pz, bytes, sizeof(bytes), DAT_MEM_PRIV_ALL_FLAG, &handle, &local,
			 &remote));
	in.lmr_context = local;
	pair_connect(ep, other);
	cr_expect(rpz_of(other_pz) && rpz_of(other_pz) != rpz_of(pz));
	memcpy(memory, "hello", 5);
	succeed(dofi_ep_post_recv(other, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	done_await(evd, DAT_DTO_SUCCESS);
	done_await(evd, DAT_DTO_SUCCESS);
	cr_expect(!memcmp(bytes, "hello", 5));
}
