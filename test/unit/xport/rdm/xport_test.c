/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport's part of an IA, and completions there. */

#include "xport/peer.h"

#include "base/log.h"
#include "capture.h"
#include "nomem.h"

#include <errno.h>

static struct peer peer;
static DAT_EP_HANDLE ep, pair[2];

/* A connection in the tests' PZ must not be disturbed. */
static void init_pair(void)
{
	rdm_init();
	ep = ep_make();
	pair[0] = ep_make();
	pair[1] = ep_make();
	pair_connect(pair[0], pair[1]);
}

TestSuite(rdm_ia_state, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_stray, .init = init_pair, .fini = rdm_fini, .timeout = 60);

Test(rdm_ia_state, an_ia_opens_as_far_as_there_is_memory, .init = fabric_init, .fini = NULL)
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

Test(rdm_stray, bytes_that_are_no_frame_are_counted_as_strays)
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

static ssize_t recv_refused(struct fid_ep *of, void *buf, size_t len, void *desc, fi_addr_t from,
			    void *context)
{
	return -FI_EAGAIN;
}

static struct fi_ops_msg *taking, refusing;

static struct dofi_rdm *endpoint(void)
{
	return &((struct rdm_pz *)((struct dofi_pz *)pz)->xport_pz)->rdm;
}

static void set_receives(void *msg_ops)
{
	struct dofi_mutex *lock = &((struct dofi_pz *)pz)->domain.cq.lock;

	dofi_mutex_lock(lock);
	endpoint()->fid->msg = msg_ops;
	dofi_mutex_unlock(lock);
}

/* Without a buffer no frame arrives: only a sweep posts the buffers again. */
Test(rdm_stray, connections_go_on_when_the_fabric_takes_buffers_again)
{
	const unsigned n = endpoint()->n_buffers;
	unsigned i;

	peer_couple(&peer, ep);
	taking = endpoint()->fid->msg;
	refusing = *taking;
	refusing.recv = recv_refused;
	dofi_progress_call(&ia->progress, set_receives, &refusing);
	for (i = 0; i < n; i++)
		peer_send_bytes(&peer, "?", 1);
	is_seen();
	dofi_progress_call(&ia->progress, set_receives, taking);
	pair_works(pair[0], pair[1]);
	is_seen();
	cr_expect_eq(strays(), n);
}
