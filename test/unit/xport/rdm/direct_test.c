/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Long messages through the direct endpoints of a connection, on the tcp provider. Skipped with
 * libfabric 1.17: its tcp has no connectionless endpoints.
 */

#include "xport/coupled.h"

#define LONG 300000			/* more than a frame carries */

static unsigned char from[LONG], to[LONG];
static DAT_LMR_CONTEXT from_context, to_context;
static DAT_LMR_HANDLE from_lmr, to_lmr;
static DAT_EP_HANDLE sender, receiver;

static void init(void)
{
	DAT_RMR_CONTEXT remote;
	size_t i;

	rdm_init_on("tcp");
	succeed(lmr_make(pz, from, LONG, DAT_MEM_PRIV_ALL_FLAG, &from_lmr, &from_context, &remote));
	succeed(lmr_make(pz, to, LONG, DAT_MEM_PRIV_ALL_FLAG, &to_lmr, &to_context, &remote));
	for (i = 0; i < LONG; i++)
		from[i] = (unsigned char)(i * 7 + i / 256);
	sender = ep_make();
	receiver = ep_make();
	pair_connect(sender, receiver);
}

static void init_shm(void)
{
	coupled_init_apart();
}

TestSuite(rdm_direct, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_direct_none, .init = init_shm, .fini = rdm_fini, .timeout = 60);

static DAT_LMR_TRIPLET segment_of(DAT_LMR_CONTEXT context, const void *at)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = context, .virtual_address = (uintptr_t)at, .segment_length = LONG,
	};
}

static struct rdm_conn *conn_of(DAT_EP_HANDLE handle)
{
	return rdm_conn_of(handle);
}

static void receive_long(uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = segment_of(to_context, to);

	succeed(dofi_ep_post_recv(receiver, 1, &iov, cookie_of(cookie), plain));
}

static void send_long(uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = segment_of(from_context, from);

	succeed(dofi_ep_post_send(sender, 1, &iov, cookie_of(cookie), plain));
}

/* Sends one message. Returns the number of frames that the sender used. */
static uint32_t one_message(void)
{
	const uint32_t before = conn_of(sender)->sent;
	uint64_t sum;

	memset(to, 0, LONG);
	receive_long(1);
	send_long(2);
	sum = done_await(evd, DAT_DTO_SUCCESS);
	sum += done_await(evd, DAT_DTO_SUCCESS);
	cr_expect_eq(sum, 3);
	cr_expect(!memcmp(to, from, LONG));
	return conn_of(sender)->sent - before;
}

Test(rdm_direct, the_first_message_goes_in_frames_and_opens_the_way)
{
	cr_expect(!conn_of(sender)->direct && !conn_of(receiver)->direct);
	cr_expect(one_message() > 1 + LONG / 65536);
	settle();
	cr_assert(conn_of(sender)->direct && conn_of(receiver)->direct);
	cr_expect_eq(one_message(), 1, "the announcement alone is a frame");
	cr_expect_eq(one_message(), 1);
}

Test(rdm_direct, end_with_their_connection)
{
	struct rdm_pz *rpz = conn_of(sender)->rpz;

	one_message();
	settle();
	cr_expect_eq(rpz->n_directs, 2);
	succeed(dofi_ep_disconnect(sender, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	settle();
	cr_expect_eq(rpz->n_directs, 0);
}

/*
 * The RTS was sent and there is no receive. When the connection has ended, the sender's memory is
 * free.
 */
Test(rdm_direct, give_back_what_is_on_its_way)
{
	one_message();
	settle();
	send_long(5);
	succeed(dofi_lmr_free(from_lmr));
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 5);
}

static void lose(struct rdm_conn *conn)
{
	dofi_ep_lock(conn->ep);
	rdm_lost(conn);
	dofi_ep_unlock(conn->ep);
}

/* The direct endpoints' connection has failed, and the CM socket gives no reason. */
Test(rdm_direct, without_its_messages_a_connection_is_broken)
{
	one_message();
	settle();
	lose(conn_of(sender));
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

static void clear_with(const void *address, size_t len)
{
	struct rdm_frame clear;

	post_send(0, BIG, 1);
	clear = about(RDM_FRAME_CTS, peer_take(&peer, RDM_FRAME_RTS)->frame.number);
	peer_send(&peer, &clear, address, len);
}

Test(rdm_direct_none, a_peer_that_wants_a_message_there_is_broken)
{
	clear_with("127.0.0.1", 10);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_direct_none, an_announcement_that_offers_it_is_cleared_for_frames)
{
	struct rdm_frame f = about(RDM_FRAME_RTS, 1);

	f.length = BIG;
	f.value[0] = 1;
	receive(0, BIG, 9);
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_CTS)->frame.data_size, 0);
}
