/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport's part of an IA and of a PZ, and completions there. */

#include "xport/peer.h"

#include "base/log.h"
#include "capture.h"
#include "nomem.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

static struct peer peer;
static DAT_EP_HANDLE ep, pair[2];

static void init(void)
{
	rdm_init();
	ep = ep_make();
}

/* init(), and a connection in the tests' PZ that must not be disturbed. */
static void init_pair(void)
{
	init();
	pair[0] = ep_make();
	pair[1] = ep_make();
	pair_connect(pair[0], pair[1]);
}

TestSuite(rdm_pz_state, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_stray, .init = init_pair, .fini = rdm_fini, .timeout = 60);

static const struct rdm_pz *rpz_of(DAT_PZ_HANDLE handle)
{
	const struct dofi_pz *of = handle;

	return of->xport_pz;
}

/* Counts the files of this IA in /dev/shm. */
static int files(void)
{
	DIR *folder = opendir(DOFI_SHM_FOLDER);
	const struct dofi_shm *shm = &rdm_ia_of(ia)->shm;
	const struct dirent *e;
	int n = 0;

	while ((e = readdir(folder)))
		n += !strncmp(e->d_name, shm->name, strlen(shm->name));
	closedir(folder);
	return n;
}

Test(rdm_pz_state, is_made_with_its_first_connection)
{
	DAT_EP_HANDLE other = ep_make();
	const struct rdm_pz *rpz;

	cr_expect(!rpz_of(pz));
	cr_expect_eq(files(), 1, "the IA's page");
	pair_connect(ep, other);
	rpz = rpz_of(pz);
	cr_assert(rpz && LIST_FIRST(&rpz->endpoints)->rdm.fid);
	cr_expect_eq(files(), 2, "and the PZ's endpoint");
	succeed(dofi_ep_free(ep));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_free(other));
	cr_expect_eq(rpz_of(pz), rpz, "it stays for the next");
	ep = ep_make();
	other = ep_make();
	pair_connect(ep, other);
	pair_works(ep, other);
	cr_expect_eq(files(), 2);
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

/* Connections of two PZs use two endpoints. The IA is its own peer. */
Test(rdm_pz_state, reaches_another)
{
	DAT_PZ_HANDLE other_pz;
	DAT_EP_HANDLE other;
	DAT_LMR_HANDLE handle;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	static char bytes[10];
	DAT_LMR_TRIPLET in = { .virtual_address = (uintptr_t)bytes, .segment_length = sizeof(bytes) };
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

Test(rdm_pz_state, an_ia_opens_as_far_as_there_is_memory, .init = fabric_init, .fini = NULL)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };
	static const struct dofi_xports xports = { .connectionless = &dofi_rdm_xport };
	const struct dofi_params params = { .provider = "shm", .endpoint = "rdm" };
	struct dofi_ia *opened;
	int n, ret;

	fake.getinfo = NULL;
	fake.replace_fabric = false;
	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = dofi_ia_open(&provider, &params, &xports, true, &opened);
		if (!nomem_failed())
			break;
		/* without the machine's topology the IA opens nevertheless */
		if (!ret)
			succeed(dofi_ia_close(opened, DAT_CLOSE_ABRUPT_FLAG));
		else
			cr_expect_eq(ret, -ENOMEM, "%d: %d", n, ret);
	}
	cr_assert_eq(ret, 0);
	succeed(dofi_ia_close(opened, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect(n < NOMEM_MOST);
	cr_expect_eq(dofi_ia_pool.used, 0);
}

/* Frames for no connection */

static uint64_t strays(void)
{
	return atomic_load(&rdm_ia_of(ia)->strays);
}

/* All frames that were sent have been handled. */
static void is_seen(void)
{
	cr_expect(peer_has_none(&peer));
}

Test(rdm_stray, for_a_connection_that_is_none)
{
	static const uint64_t others[] = { 0, 1, 0xffffffff, 1ULL << 32, UINT64_MAX };
	struct capture c;
	struct rdm_frame f;
	const char *text;
	size_t i;

	peer_couple(&peer, ep);
	f = peer_frame(&peer, RDM_FRAME_SEND);
	dofi_log_max = DOFI_WARN;
	capture_begin(&c);
	for (i = 0; i < 2 * sizeof(others) / sizeof(others[0]); i++) {
		/* arbitrary ids, and ids near the valid one */
		f.conn = i % 2 ? others[i / 2] : peer.conn ^ others[i / 2];
		if (f.conn != peer.conn)
			peer_send(&peer, &f, "hello", 5);
	}
	is_seen();
	text = capture_end(&c);
	cr_expect_eq(strays(), 9);
	text = strstr(text, "no connection");
	cr_expect(text && !strstr(text + 1, "no connection"), "once: %s", c.text);
	cr_expect(event_none(evd));
	pair_works(pair[0], pair[1]);
	peer.sent = 1;
	f = peer_frame(&peer, RDM_FRAME_READ);
	f.key = big_remote;
	f.addr = (uintptr_t)big;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_ACK)->frame.key, RDM_OK, "its own stands, too");
}

Test(rdm_stray, for_one_that_has_ended)
{
	struct rdm_frame f;

	peer_couple(&peer, ep);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	f = peer_frame(&peer, RDM_FRAME_SEND);
	peer_send(&peer, &f, "hello", 5);
	is_seen();
	cr_expect_eq(strays(), 1);
	/* nor does the frame reach the next connection in that entry */
	succeed(dofi_ep_reset(ep));
	pair_connect(ep, ep_make());
	peer_send(&peer, &f, "hello", 5);
	is_seen();
	cr_expect_eq(strays(), 2);
	pair_works(pair[0], pair[1]);
}

Test(rdm_stray, that_is_no_frame)
{
	static const unsigned char bytes[200];
	size_t n;

	peer_couple(&peer, ep);
	for (n = 1; n < sizeof(bytes); n += 13)
		peer_send_bytes(&peer, bytes, n);
	is_seen();
	cr_expect_eq(strays(), n / 13);
	pair_works(pair[0], pair[1]);
}
