/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with two fabrics, on real ones: which fabric a connection takes. */

#include "xport/local_or_net.h"

#include "base/env.h"
#include "base/log.h"
#include "capture.h"
#include "nomem.h"
#include "obj/caps.h"
#include "xport/rdm/rings_fault.h"
#include "xport/msg/msg.h"
#include "xport/peer.h"
#include "xport/rdm/peer.h"
#include "xport/cm/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const DAT_PROVIDER provider = { .device_name = "test-ia" };
static const struct dofi_xports xports = {
	.connected = &dofi_msg_xport, .connectionless = &dofi_rdm_xport,
	.add_local = dofi_local_or_net_add,
};
static const struct dofi_params nothing = { .provider = "" };

static DAT_EP_HANDLE active, passive;
static DAT_CONN_QUAL qual;
static DAT_PSP_HANDLE psp;

static void need_both(void)
{
	const struct dofi_params tcp = { .provider = "tcp", .endpoint = "msg" };
	struct dofi_fabric_choice choice;

	if (!dofi_fabric_choose(&tcp, &choice)) {
		dofi_fabric_release(&choice);
		return;
	}
	fprintf(stderr, "skipped: libfabric has no tcp here\n");
	exit(0);
}

static void init(void)
{
	need_both();
	ia_open_real(&xports, &nothing);
	objects_make(256);
	active = ep_make();
	passive = ep_make();
}

TestSuite(local_or_net, .init = init, .fini = ia_fini);

static struct dofi_ep *inside(DAT_EP_HANDLE ep)
{
	return ep;
}

static struct dofi_cq *remote_cq(void)
{
	return &((struct dofi_pz *)pz)->domain.cq;
}

static struct dofi_cq *local_cq(void)
{
	return &((struct dofi_pz *)pz)->local.cq;
}

/* How many times @cq feeds evd. */
static int feeds(const struct dofi_cq *cq)
{
	const struct dofi_evd *e = evd;
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (atomic_load(&e->feed[i]) == cq)
			return e->feed_users[i];
	return 0;
}

static bool is_local(DAT_EP_HANDLE ep)
{
	return inside(ep)->xport == &dofi_rings_xport && inside(ep)->cq == local_cq();
}

static bool is_remote(DAT_EP_HANDLE ep)
{
	return inside(ep)->xport != &dofi_rings_xport && inside(ep)->cq == remote_cq();
}

static void disconnect(void)
{
	succeed(dofi_ep_disconnect(active, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void begin_to_connect(void)
{
	succeed(dofi_ep_connect(active, some_address(), qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void take_request(void)
{
	succeed(dofi_cr_accept(request_await(), passive, 0, NULL));
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_psp_free(psp));
}

Test(local_or_net, peers_on_this_host_share_memory)
{
	pair_connect(active, passive);
	cr_expect(is_local(active));
	cr_expect(is_local(passive));
	pair_works(active, passive);
	pair_works(passive, active);
	disconnect();
	cr_expect(is_remote(active));
	cr_expect(is_remote(passive));
	cr_expect_eq(inside(active)->xport, ia->xport);
}

Test(local_or_net, an_endpoint_may_go_either_way_in_turn)
{
	int i;

	for (i = 0; i < 4; i++) {
		psp = listen_any(&qual);
		if (i % 2)
			dofi_progress_call(&ia->progress,
					   (void (*)(void *))dofi_rings_xport.unlisten,
					   psp);
		begin_to_connect();
		take_request();
		cr_expect(i % 2 ? is_remote(active) && is_remote(passive) :
				  is_local(active) && is_local(passive));
		pair_works(active, passive);
		disconnect();
		succeed(dofi_ep_reset(active));
		succeed(dofi_ep_reset(passive));
	}
}

/*
 * The memory that a connection shares needs a descriptor. Without one the connection takes the
 * fabric.
 */
Test(local_or_net, without_descriptors_it_is_the_fabric)
{
	link_memfd_fault = EMFILE;
	pair_connect(active, passive);
	cr_expect(is_remote(active));
	cr_expect(is_remote(passive));
	pair_works(active, passive);
	disconnect();
	link_memfd_fault = 0;
	succeed(dofi_ep_reset(active));
	succeed(dofi_ep_reset(passive));
	pair_connect(active, passive);
	cr_expect(is_local(active));
	cr_expect(is_local(passive));
	pair_works(active, passive);
	disconnect();
}

Test(local_or_net, queues_are_fed_from_where_their_endpoints_are)
{
	cr_expect_eq(feeds(remote_cq()), 0);
	cr_expect_eq(feeds(local_cq()), 0);
	pair_connect(active, passive);
	cr_expect_eq(feeds(remote_cq()), 0);
	cr_expect_eq(feeds(local_cq()), 4);
	cr_expect_eq(((struct dofi_evd *)evd)->sole_cq, local_cq());
	disconnect();
	cr_expect_eq(feeds(remote_cq()), 0);
	cr_expect_eq(feeds(local_cq()), 0);
	cr_expect_eq(((struct dofi_evd *)evd)->sole_cq, NULL);
}

static bool has_unused_offer(DAT_EP_HANDLE ep)
{
	return rdm_conn_of(inside(ep))->peer->offer;
}

/* Each connection's ends offer an inbox; the later ones' are not needed. */
Test(local_or_net, a_second_connection_keeps_no_mapping)
{
	DAT_EP_HANDLE more[2] = { ep_make(), ep_make() };

	pair_connect(active, passive);
	pair_connect(more[0], more[1]);
	pair_works(more[0], more[1]);
	cr_expect_eq(rdm_conn_of(inside(more[0]))->out, rdm_conn_of(inside(active))->out);
	cr_expect(!has_unused_offer(more[0]));
	cr_expect(!has_unused_offer(more[1]));
}

Test(local_or_net, a_freed_pz_closes_its_domain_of_rings)
{
	const struct dofi_pz *of = pz;

	pair_connect(active, passive);
	cr_assert(of->local.fid);
	disconnect();
	succeed(dofi_ep_free(active));
	succeed(dofi_ep_free(passive));
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	cr_expect(!of->local.fid);
}

Test(local_or_net, a_key_is_for_both)
{
	const struct dofi_lmr *inner = lmr;

	cr_expect(inner->mr.fid && inner->mr.grant);
	cr_expect_eq(fi_mr_key(inner->mr.fid), rmr_context);
	cr_expect(peer_may(rmr_context, 0, (uintptr_t)memory, 1, FI_REMOTE_WRITE));
}

Test(local_or_net, the_request_has_its_source)
{
	const struct sockaddr_in *peer;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	psp = listen_any(&qual);
	begin_to_connect();
	cr = request_await();
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	peer = (const struct sockaddr_in *)param.remote_ia_address_ptr;
	cr_expect_eq(peer->sin_family, AF_INET);
	cr_expect_eq(peer->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect(param.remote_port_qual);
	succeed(turn_down(cr));
	event_await(evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
	cr_expect(event_none(evd), "a rejection is the last word");
	cr_expect(is_remote(active));
}

/* A peer of the test that listens in place of the IA */

static int listener;
static struct peer other;

/*
 * Binds the socket name of a qualifier. The IA then listens on that qualifier through the fabric
 * alone.
 */
static void take_name(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	succeed(dofi_psp_free(listen_any(&qual)));
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-ofi/side/%" PRIu64,
		 (uint64_t)qual);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&name,
			  dofi_cm_address_len((struct sockaddr *)&name)),
		     0);
	cr_assert_eq(listen(listener, 1), 0);
	succeed(dofi_psp_create(ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_expect(!((struct dofi_sp *)psp)->local_listener);
	begin_to_connect();
	peer_adopt(&other, accept(listener, NULL, NULL));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_REQUEST);
	cr_expect_eq(other.received.conn_qual, qual);
}

static void expect_remote(void)
{
	take_request();
	cr_expect(is_remote(active));
	cr_expect(is_remote(passive));
	pair_works(active, passive);
	close(listener);
}

static void answer(enum dofi_cm_kind kind, enum dofi_cm_reason reason)
{
	const struct dofi_cm_msg msg = { .kind = kind, .reason = reason };

	peer_send_cm(&other, &msg);
}

static unsigned count(const char *log, const char *text)
{
	unsigned n = 0;

	while ((log = strstr(log, text))) {
		log += strlen(text);
		n++;
	}
	return n;
}

Test(local_or_net, a_name_that_is_taken_is_warned_of_once)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct capture capture;
	const char *log;

	succeed(dofi_psp_free(listen_any(&qual)));
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-ofi/side/%" PRIu64,
		 (uint64_t)qual);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&name,
			  dofi_cm_address_len((struct sockaddr *)&name)),
		     0);
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	succeed(dofi_psp_create(ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_psp_free(psp));
	succeed(dofi_psp_create(ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	log = capture_end(&capture);
	cr_expect_eq(count(log, "use the network, not shared memory"), 1, "%s", log);
	cr_expect(strstr(log, "warning: qualifier"), "%s", log);
	close(listener);
}

static void listen_by_name(void *arg)
{
	struct dofi_sp *sp = arg;
	const DAT_CONN_QUAL before = sp->conn_qual;

	dofi_rings_xport.unlisten(sp);
	sp->conn_qual = 0;
	cr_expect_eq(dofi_rings_xport.listen(sp), 0);
	cr_expect(sp->conn_qual > 60999 && sp->conn_qual < 65536, "%llu",
		  (unsigned long long)sp->conn_qual);
	dofi_rings_xport.unlisten(sp);
	sp->conn_qual = before;
	cr_expect_eq(dofi_rings_xport.listen(sp), 0);
}

/* ofi-shm has no ports, and its names must differ from a port's that Linux gives to ofi. */
Test(local_or_net, a_name_without_a_port_is_no_port_that_others_get)
{
	DAT_PSP_HANDLE psp = listen_any(&qual);
	int i;

	for (i = 0; i < 100; i++)
		dofi_progress_call(&ia->progress, listen_by_name, psp);
	succeed(dofi_psp_free(psp));
}

Test(local_or_net, a_peer_that_closes_without_a_reply_is_skipped)
{
	take_name();
	peer_hang_up(&other);
	expect_remote();
}

Test(local_or_net, a_peer_without_shared_memory_is_skipped)
{
	take_name();
	answer(DOFI_CM_REFUSE, DOFI_CM_NO_PATH);
	expect_remote();
	peer_hang_up(&other);
}

Test(local_or_net, a_peer_with_another_protocol_is_skipped)
{
	static const char words[] = "220 mail.example.org ESMTP\r\n";

	take_name();
	cr_assert_eq(send(other.fd, words, strlen(words), MSG_NOSIGNAL), (ssize_t)strlen(words));
	expect_remote();
	peer_hang_up(&other);
}

/* An accept message with false contents. */
Test(local_or_net, a_peer_with_a_false_reply_is_skipped)
{
	const struct dofi_cm_msg msg = {
		.kind = DOFI_CM_ACCEPT, .conn_id = 1, .window = 1, .frame_size = 4096,
		.fabric = "rings", .addr = "rings/0", .addr_len = sizeof("rings/0"),
	};

	take_name();
	peer_send_cm(&other, &msg);
	expect_remote();
	peer_hang_up(&other);
}

/* Over tcp a connection would be established, and then carry nothing. */
Test(local_or_net, without_memory_it_is_no_connection)
{
	psp = listen_any(&qual);
	link_memfd_fault = ENOMEM;
	begin_to_connect();
	event_await(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	link_memfd_fault = 0;
	settle();
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(active));
	begin_to_connect();
	take_request();
	cr_expect(is_local(active) && is_local(passive));
}

/* Otherwise the peer would get the request twice. */
Test(local_or_net, the_peer_that_took_the_request_decides)
{
	take_name();
	answer(DOFI_CM_READY, 0);
	peer_hang_up(&other);
	event_await(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	settle();
	cr_expect(event_none(evd));
	close(listener);
}

Test(local_or_net, a_busy_peer_decides)
{
	take_name();
	answer(DOFI_CM_REFUSE, DOFI_CM_BUSY);
	event_await(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	settle();
	cr_expect(event_none(evd));
	peer_hang_up(&other);
	close(listener);
}

Test(local_or_net, without_a_peer_neither_way_connects)
{
	psp = listen_any(&qual);
	succeed(dofi_psp_free(psp));
	begin_to_connect();
	event_await(evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect(is_remote(active));
}

/* IAs */

static bool reports_local(struct dofi_ia *of)
{
	int i;

	dofi_caps_named_attrs(of);
	for (i = 0; i < of->n_named; i++)
		if (!strcmp(of->named[i].name, "OFI_LOCAL"))
			return true;
	return false;
}

static void expect_one_way(const struct dofi_params *params, const struct dofi_xports *with)
{
	struct dofi_ia *one;

	cr_assert_eq(dofi_ia_open(&provider, params, with, true, &one), 0);
	cr_expect(!one->local.info);
	cr_expect(!one->local_ia);
	cr_expect(!one->fabric.also_granted);
	cr_expect(!reports_local(one));
	dofi_ia_destroy(one);
}

Test(local_or_net, the_other_way_is_reported)
{
	cr_expect(reports_local(ia));
}

Test(local_or_net, a_named_fabric_is_used)
{
	const struct dofi_params tcp = { .provider = "tcp" }, msg = { .endpoint = "msg" },
				 here = { .address = "127.0.0.1" };

	expect_one_way(&tcp, &xports);
	expect_one_way(&msg, &xports);
	expect_one_way(&here, &xports);
}

Test(local_or_net, a_setting_turns_rings_off)
{
	dofi_settings.local = 0;
	expect_one_way(&nothing, &xports);
}

static int add_none(struct dofi_ia *to)
{
	return -ENOENT;
}

Test(local_or_net, without_shared_memory_there_is_the_fabric)
{
	struct dofi_xports without = xports;

	without.add_local = add_none;
	expect_one_way(&nothing, &without);
}

Test(local_or_net, memory_may_run_out_while_it_opens)
{
	struct dofi_ia *one;
	int i, ret;

	for (i = 0; i < NOMEM_MOST; i++) {
		nomem_after(i);
		ret = dofi_ia_open(&provider, &nothing, &xports, true, &one);
		if (!ret)
			dofi_ia_destroy(one);
		if (!nomem_failed())
			break;
	}
	cr_expect(i > 2 && i < NOMEM_MOST);
	cr_expect_eq(ret, 0);
}
