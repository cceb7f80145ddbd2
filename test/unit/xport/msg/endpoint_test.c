/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric's endpoints: how they are made, and how they are closed. */

#include "xport/msg/one.h"

#include "fab/quirks.h"
#include "nomem.h"
#include "obj/mem/srq.h"
#include "xport/msg/msg.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(msg_endpoint, .init = init, .fini = xport_fini);
TestSuite(msg_endpoint_accept, .init = init_request, .fini = xport_fini);
TestSuite(msg_endpoint_end, .init = init_established, .fini = xport_fini);

/* Opening */

Test(msg_endpoint, connect_without_an_endpoint)
{
	fake_eps.fault.endpoint = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(msg_endpoint, connect_without_the_event_queue)
{
	fake_eps.fault.bind_eq = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

Test(msg_endpoint, connect_without_the_completion_queue)
{
	fake_eps.fault.bind_cq = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

Test(msg_endpoint, connect_without_enabling)
{
	fake_eps.fault.enable = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	cr_expect_eq(fake_eps.opened, 1);
}

/* The first allocation fails, then the second, and so on. */
Test(msg_endpoint, connect_without_memory)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		connect_to(ep, PORT);
		if (!nomem_failed())
			break;
		ended_with(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		succeed(dofi_ep_reset(ep));
	}
	cr_expect_eq(n, 5, "fi_info, its address, the endpoint, and twice to find it: %d", n);
	cr_expect_eq(fake_eps.open, 1);
}

/* Quality of service: the call's or the endpoint's, as libfabric's traffic class */

static void connect_as(DAT_QOS qos)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	succeed(dofi_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&peer, PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				qos, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
}

static void make_ep_of(DAT_QOS qos)
{
	DAT_EP_PARAM param;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.qos = qos;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_QOS, &param));
}

Test(msg_endpoint, quality_of_a_connection)
{
	connect_as(DAT_QOS_LOW_LATENCY);
	cr_expect_eq(fake_eps.tclass, FI_TC_LOW_LATENCY);
}

Test(msg_endpoint, quality_of_an_endpoint)
{
	make_ep_of(DAT_QOS_ECONOMY);
	connect_as(DAT_QOS_BEST_EFFORT);
	cr_expect_eq(fake_eps.tclass, FI_TC_SCAVENGER);
}

Test(msg_endpoint, quality_of_a_connection_comes_before_its_endpoints)
{
	make_ep_of(DAT_QOS_ECONOMY);
	connect_as(DAT_QOS_PREMIUM);
	cr_expect_eq(fake_eps.tclass, FI_TC_DEDICATED_ACCESS);
}

Test(msg_endpoint, no_quality_is_no_class)
{
	connect_as(DAT_QOS_BEST_EFFORT);
	cr_expect_eq(fake_eps.tclass, FI_TC_UNSPEC);
}

Test(msg_endpoint, a_failed_endpoint_can_be_used_again)
{
	fake_eps.fault.enable = -FI_ENOMEM;
	connecting_fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	fake_eps.fault.enable = 0;
	succeed(dofi_ep_reset(ep));
	make_established();
}

/* The end of an established connection */

Test(msg_endpoint, a_disconnect_shuts_the_endpoint_down)
{
	const struct dofi_shard *shard;

	make_established();
	shard = &inside()->cq->first;
	cr_expect_eq(shard->endpoints, 1);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.shutdowns, 1);
	cr_expect_eq(shard->endpoints, 0);
}

Test(msg_endpoint, no_shutdown_where_that_closes_a_descriptor_twice, .init = init_sockets)
{
	make_established();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.shutdowns, 0);
}

Test(msg_endpoint, a_fabric_that_fails_to_close_does_not_stop_the_end)
{
	make_established();
	fake_eps.fault.close = -FI_EBUSY;
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_endpoint, a_disconnect_gives_the_attempt_up)
{
	connect_to(ep, PORT);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_endpoint, a_disconnect_before_the_attempt_opens_nothing)
{
	thread_hold();
	succeed(dofi_ep_connect(ep, some_address(), PORT, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.opened, 0);
}

Test(msg_endpoint, a_disconnect_between_two_ports_tries_no_more)
{
	connect_to(ep, MAPPED);
	thread_hold();
	fake_event_add(&(struct fake_event){
		.err = ECONNREFUSED, .entry.fid = &fake_eps.last->fid });
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	thread_release();
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	cr_expect_eq(fake_eps.connects, 1);
}

Test(msg_endpoint, freeing_a_connected_endpoint_is_silent)
{
	make_established();
	succeed(dofi_ep_free(ep));
	quiesce();
	cr_expect(event_none(evd));
	cr_expect_eq(fake_eps.open, 0);
}

Test(msg_endpoint, closing_the_ia_closes_what_is_connecting)
{
	connect_to(ep, PORT);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(fake.open, 0);
}

Test(msg_endpoint, many_connections_are_distinguished)
{
	enum { N = 20 };
	DAT_EP_HANDLE eps[N];
	struct fid_ep *fid[N];
	int i;

	for (i = 0; i < N; i++) {
		eps[i] = ep_make();
		connect_to(eps[i], PORT);
		fid[i] = fake_eps.last;
	}
	for (i = N - 1; i >= 0; i -= 2)
		cm_event(FI_CONNECTED, fid[i], wire(DOFI_WIRE_ACCEPT, 0, NULL, 0));
	for (i = N - 1; i >= 0; i -= 2) {
		DAT_EVENT event = event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

		cr_expect_eq(event.event_data.connect_event_data.ep_handle, eps[i]);
	}
	for (i = 0; i < N; i++)
		cr_expect_eq(state_of_ep(eps[i]), i % 2 ? DAT_EP_STATE_CONNECTED :
						       DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

Test(msg_endpoint_accept, quality_of_the_endpoint)
{
	make_ep_of(DAT_QOS_HIGH_THROUGHPUT);
	accept_request();
	cr_expect_eq(fake_eps.tclass, FI_TC_BULK_DATA);
}

/* Closing: outstanding operations */

Test(msg_endpoint_end, where_an_end_overtakes_what_was_sent_the_last_of_it_is_awaited,
     .init = init_sockets)
{
	make_shared();
	make_established();
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
	cr_expect(inside()->timer.at);
}

/* The event of the end may be read before the completion of the message. */
Test(msg_endpoint_end, a_message_that_waits_for_a_buffer_outlives_the_peers_end, .init = init)
{
	const struct msg_preamble preamble = { .length = 8, .whole = true };
	DAT_SRQ_HANDLE srq = make_shared();
	DAT_EVENT event;
	DAT_COUNT more;

	make_established();
	cr_assert_eq(fake_eps.op, FAKE_RECV);
	thread_hold();
	msg_preamble_pack(fake_eps.iov[0].iov_base, &preamble);
	fake_receive(fake_eps.context, 0, MSG_PREAMBLE_SIZE + 8);
	fake_event_add(
		&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fake_eps.last->fid });
	thread_release();
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
	succeed(dofi_srq_post_recv(srq, 1, segments(), cookie));
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(msg_endpoint_end, the_end_flushes_what_is_outstanding)
{
	int i;

	for (i = 0; i < 3; i++)
		succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cm_event(FI_SHUTDOWN, fake_eps.last, NO_BYTES);
	for (i = 0; i < 3; i++) {
		DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);

		cr_expect_eq(event.event_data.dto_completion_event_data.status,
			     DAT_DTO_ERR_FLUSHED);
	}
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/*
 * Operations that the fabric completed before the end count, even if the completions were not read.
 */
Test(msg_endpoint_end, the_end_finds_what_was_completed)
{
	DAT_EVENT event;

	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	thread_hold();
	fake_complete(fake_eps.context, 0);
	fake_event_add(
		&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fake_eps.last->fid });
	thread_release();
	quiesce();
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void shards_fill(void *arg)
{
	static const struct dofi_quirk each = { .reads_each = true };
	struct dofi_cq *cq = arg;
	int i;

	cq->quirk = &each;
	for (i = 0; i < DOFI_SHARD_ENDPOINTS; i++)
		dofi_cq_enter_shard(cq);
}

/* The descriptor of the shard, which the program does not read otherwise, reports nothing. */
Test(msg_endpoint_end, the_end_finds_what_a_silent_shard_completed)
{
	DAT_EVENT event;
	uint64_t n;

	dofi_progress_call(&ia->progress, shards_fill, inside()->cq);
	succeed(dofi_ep_post_recv(ep, 1, segments(), cookie, DAT_COMPLETION_DEFAULT_FLAG));
	quiesce();
	thread_hold();
	fake_complete(fake_eps.context, 0);
	cr_assert_eq(read(fake.cq_fd, &n, sizeof(n)), (ssize_t)sizeof(n));
	fake_event_add(
		&(struct fake_event){ .event = FI_SHUTDOWN, .entry.fid = &fake_eps.last->fid });
	thread_release();
	quiesce();
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Opens a socket, and sets *@peer to the other end, which stays open. */
static int socket_open(int *peer)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	*peer = accept(listener, NULL, NULL);
	cr_assert(*peer >= 0);
	close(listener);
	return fd;
}

static void socket_give(void *fd)
{
	msg_part(inside())->watch.fd = *(int *)fd;
}

Test(msg_endpoint_end, a_graceful_end_does_not_wait_for_the_socket_of_an_earlier_connection)
{
	int peer, fd = socket_open(&peer);

	dofi_progress_call(&ia->progress, socket_give, &fd);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	quiesce();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECT_PENDING);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	make_established();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	quiesce();
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	close(fd);
	close(peer);
}

/* Returns the result of recv() after the end of a connection with a read in flight. */
static ssize_t cut_by_end(bool frees_reads_twice)
{
	struct dofi_quirk quirk = *ia->fabric.quirk;
	DAT_RMR_TRIPLET remote = remote_segment(8);
	int peer, fd = socket_open(&peer);
	ssize_t ret;
	char byte;

	quirk.frees_reads_twice = frees_reads_twice;
	ia->fabric.quirk = &quirk;
	dofi_progress_call(&ia->progress, socket_give, &fd);
	succeed(dofi_ep_post_rdma_read(ep, 1, segments(), cookie, &remote,
				       DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	quiesce();
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	ended_with(DAT_CONNECTION_EVENT_DISCONNECTED);
	ret = recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
	close(fd);
	close(peer);
	xport_fini();
	return ret;
}

Test(msg_endpoint_end, a_socket_is_cut_within_a_read_where_need_be, .fini = NULL)
{
	cr_expect_eq(cut_by_end(true), 0);
}

Test(msg_endpoint_end, a_socket_is_not_cut_where_a_read_ends_well, .fini = NULL)
{
	cr_expect_eq(cut_by_end(false), -1);
}
