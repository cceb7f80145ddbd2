/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections by rings, with a peer of the test: its messages, and its writes to the ring. */

#include "xport/rdm/rdm.h"

#include "obj/cq_data.h"
#include "xport/rdm/send.h"
#include "xport/rdm/rings_fault.h"
#include "xport/rdm/rings_peer.h"

#include <errno.h>
#include <sys/mman.h>

/* The system, by the linker's --wrap */

_Atomic int link_memfd_fault;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	if (!link_memfd_fault)
		return __real_memfd_create(name, flags);
	errno = link_memfd_fault;
	return -1;
}

TestSuite(rdm_link, .init = init, .fini = fini, .timeout = 60);

static void expect_refused(const struct dofi_cm_msg *m)
{
	peer_sends(m);
	cr_expect_eq(hear(DOFI_CM_REFUSE).reason, DOFI_CM_NO_PATH);
	settle();
	cr_expect(event_none(evd), "the program hears of it");
}

/* The peer had no free descriptor, or our process could not receive it. */
Test(rdm_link, a_request_without_memory_is_sent_the_other_way)
{
	struct dofi_cm_msg m = request();

	m.n_fds = 0;
	expect_refused(&m);
}

Test(rdm_link, a_request_without_a_doorbell_is_sent_the_other_way)
{
	struct dofi_cm_msg m = request();

	m.n_fds = 1;
	expect_refused(&m);
}

Test(rdm_link, the_grants_of_a_request_with_other_memory_are_not_learnt)
{
	struct dofi_cm_msg m = request();

	m.fd[0] = m.fd[2] = peer.rings->doorbell_fd;
	m.n_fds = 3;
	expect_refused(&m);
}

Test(rdm_link, a_request_with_other_memory_is_sent_the_other_way)
{
	struct dofi_cm_msg m = request();

	m.fd[0] = peer.rings->doorbell_fd;
	expect_refused(&m);
}

Test(rdm_link, a_request_of_another_layout_is_sent_the_other_way)
{
	struct dofi_cm_msg m = request();

	m.addr = "rings/0";
	expect_refused(&m);
}

Test(rdm_link, a_request_of_another_fabric_is_sent_the_other_way)
{
	struct dofi_cm_msg m = request();

	strcpy(m.fabric, "shm");
	expect_refused(&m);
}

/* The peer then asks over the network. */
Test(rdm_link, an_acceptor_without_a_descriptor_refuses_for_want_of_a_path)
{
	const struct dofi_cm_msg m = request();
	DAT_CR_HANDLE cr;

	peer_sends(&m);
	cr = request_await();
	link_memfd_fault = EMFILE;
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	cr_expect_eq(hear(DOFI_CM_REFUSE).reason, DOFI_CM_NO_PATH);
	event_await(evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	link_memfd_fault = 0;
}

static void receive(void)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 7 };
	DAT_LMR_TRIPLET in = segment(0, 64);

	succeed(dofi_ep_post_recv(ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

Test(rdm_link, messages_go_both_ways)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	send_frame(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
	cr_expect_eq(done_length, 5);
	cr_expect(!memcmp(memory, "hello", 5));
	succeed(post_send(segment(64, 5)));
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 8);
	cr_expect_eq(take_frame().length, 5);
}

/* The fast path of arrivals */

static struct dofi_sink sink;
static DAT_EVENT sunk;
static int polled;

/* Sends @f, and polls before another thread can read it. Returns the poll's result. */
static bool sent_and_polled(const struct rdm_frame *f, const void *data, size_t size)
{
	struct dofi_cq *cq = ((struct dofi_ep *)ep)->cq;
	bool ret;

	sink = (struct dofi_sink){ .evd = evd, .event = &sunk };
	dofi_mutex_lock(&cq->lock);
	send_frame(f, data, size);
	ret = dofi_rings_poll(cq, &sink);
	dofi_mutex_unlock(&cq->lock);
	return ret;
}

Test(rdm_link, a_poll_completes_the_oldest_receive)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &sunk.event_data.dto_completion_event_data;
	struct rdm_frame f;
	int i;

	couple();
	/* more than the credits, and than the lines before a SKIP */
	for (i = 0; i < 300; i++) {
		receive();
		f = frame(RDM_FRAME_SEND);
		if (!sent_and_polled(&f, "hello", 5)) {
			cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
			continue;
		}
		cr_assert(!sink.evd);
		cr_expect_eq(sunk.event_number, DAT_DTO_COMPLETION_EVENT);
		cr_expect_eq(sunk.evd_handle, evd);
		cr_expect_eq(d->ep_handle, ep);
		cr_expect_eq(d->user_cookie.as_64, 7);
		cr_expect_eq(d->status, DAT_DTO_SUCCESS);
		cr_expect_eq(d->transfered_length, 5);
		cr_expect(!memcmp(memory, "hello", 5));
		memory[0] = 0;
		polled++;
	}
	cr_expect(polled > 270, "%d", polled);
	cr_expect_eq(take_frame().credits, RDM_RING_WINDOW / 2);
}

#define OTHERS 8			/* with one more ring, peers mark their rings */

/* Adds inboxes of peers that send nothing, and reads the CQ, which covers all of them once. */
static void others_add(void *arg)
{
	struct dofi_inbox **others = arg;
	struct dofi_cq *cq = ((struct dofi_ep *)ep)->cq;
	int i;

	for (i = 0; i < OTHERS; i++)
		cr_assert_eq(dofi_inbox_open(dofi_rings_of(cq), &others[i]), 0);
	dofi_cq_drain(cq);
}

static void others_remove(void *arg)
{
	struct dofi_inbox **others = arg;
	int i;

	for (i = 0; i < OTHERS; i++)
		dofi_inbox_offer_end(others[i]);
}

Test(rdm_link, a_poll_completes_a_receive_from_one_of_many_rings)
{
	struct dofi_inbox *others[OTHERS];
	struct rdm_frame f;
	int i;

	couple();
	dofi_progress_call(&ia->progress, others_add, others);
	for (i = 0; i < 10; i++) {
		receive();
		f = frame(RDM_FRAME_SEND);
		cr_expect(sent_and_polled(&f, "hello", 5));
		cr_expect(!sink.evd);
		cr_expect(!memcmp(memory, "hello", 5));
		memory[0] = 0;
	}
	dofi_progress_call(&ia->progress, others_remove, others);
}

Test(rdm_link, a_poll_finds_nothing)
{
	struct dofi_cq *cq;

	couple();
	cq = ((struct dofi_ep *)ep)->cq;
	sink = (struct dofi_sink){ .evd = evd, .event = &sunk };
	dofi_mutex_lock(&cq->lock);
	cr_expect(dofi_rings_poll(cq, &sink));
	dofi_mutex_unlock(&cq->lock);
	cr_expect_eq(sink.evd, evd);
}

static void expect_slow(const struct rdm_frame *f, const void *data, size_t size)
{
	cr_expect(!sent_and_polled(f, data, size));
	cr_expect_eq(sink.evd, evd, "an event was written");
}

Test(rdm_link, a_poll_leaves_a_message_without_a_receive)
{
	struct rdm_frame f;

	couple();
	f = frame(RDM_FRAME_SEND);
	expect_slow(&f, "hello", 5);
	receive();
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
}

Test(rdm_link, a_poll_leaves_a_message_with_cq_data)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	f.cq_data = dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0);
	expect_slow(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
}

Test(rdm_link, a_poll_leaves_a_message_that_is_too_long)
{
	static const char message[65];
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	expect_slow(&f, message, sizeof(message));
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_LENGTH), 7);
}

Test(rdm_link, a_poll_leaves_what_is_no_message)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_CREDIT);
	expect_slow(&f, NULL, 0);
	f = frame(RDM_FRAME_SEND);
	send_frame(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
}

/* It may have ended; the ring is all connections'. */
Test(rdm_link, a_frame_for_another_connection_is_ignored)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	f.conn++;
	expect_slow(&f, "hello", 5);
	sent--;
	f = frame(RDM_FRAME_SEND);
	send_frame(&f, "world", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
	cr_expect(!memcmp(memory, "world", 5));
}

Test(rdm_link, a_poll_leaves_a_frame_out_of_order)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	f.sequence++;
	expect_slow(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 7);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_link, a_poll_leaves_a_message_with_too_many_credits)
{
	struct rdm_frame f;

	couple();
	receive();
	f = frame(RDM_FRAME_SEND);
	f.credits = 1;			/* none was used */
	expect_slow(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 7);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(rdm_link, a_poll_leaves_a_message_for_another_evd)
{
	DAT_EVD_HANDLE other = evd_make(8, DAT_EVD_DTO_FLAG);
	struct dofi_cq *cq;
	struct rdm_frame f;

	couple();
	receive();
	cq = ((struct dofi_ep *)ep)->cq;
	f = frame(RDM_FRAME_SEND);
	sink = (struct dofi_sink){ .evd = other, .event = &sunk };
	dofi_mutex_lock(&cq->lock);
	send_frame(&f, "hello", 5);
	cr_expect(!dofi_rings_poll(cq, &sink));
	dofi_mutex_unlock(&cq->lock);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
	succeed(dofi_evd_free(other));
}

/* The slot of a plain receive has no segments: they are added before its exclusion. */
Test(rdm_link, a_receive_posted_fast_loses_the_memory_of_a_freed_lmr)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 7 };
	DAT_LMR_TRIPLET in = {
		.lmr_context = big_context, .virtual_address = (uintptr_t)big, .segment_length = 64,
	};
	struct rdm_frame f;

	couple();
	succeed(dofi_ep_post_recv(ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_lmr_free(big_lmr));
	f = frame(RDM_FRAME_SEND);
	expect_slow(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION), 7);
	cr_expect_eq(big[0], 0);
}

/* The message is longer than a frame of the ring, and is sent without an RTS. */
Test(rdm_link, two_frames_make_a_longer_message)
{
	struct rdm_frame f;
	size_t came;

	couple();
	succeed(post_send(big_segment(0, RDM_EAGER_RING_MAX)));
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 8);
	f = take_frame();
	cr_expect_eq(f.kind, RDM_FRAME_FIRST);
	cr_expect_eq(f.length, RDM_EAGER_RING_MAX);
	for (came = f.data_size; came < RDM_EAGER_RING_MAX; came += f.data_size) {
		f = take_frame();
		cr_assert_eq(f.kind, RDM_FRAME_MORE);
	}
	cr_expect_eq(came, RDM_EAGER_RING_MAX);
}

Test(rdm_link, what_is_longer_still_is_announced)
{
	struct rdm_frame f;

	couple();
	succeed(post_send(big_segment(0, RDM_EAGER_RING_MAX + 1)));
	f = take_frame();
	cr_expect_eq(f.kind, RDM_FRAME_RTS);
	cr_expect_eq(f.length, RDM_EAGER_RING_MAX + 1);
}

/* The frames take three times the length of the ring, so its records must be released. */
Test(rdm_link, the_ring_does_not_fill_up)
{
	static unsigned char bytes[64];
	struct rdm_frame f;
	int i;

	couple();
	for (i = 0; i < 3 * DOFI_RING_LINES; i++) {
		receive();
		f = frame(RDM_FRAME_SEND);
		send_frame(&f, bytes, sizeof(bytes));
		cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
	}
}

static void event_wait_any(DAT_EVENT *event)
{
	DAT_COUNT more;

	succeed(dofi_evd_wait(evd, 30000000, 1, event, &more));
}

static void breaks(void)
{
	dofi_outbox_notify(outbox, &peer.bell);
	dofi_progress_wake(&ia->progress);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 7);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(hear(DOFI_CM_BYE).reason);
}

Test(rdm_link, a_word_of_no_meaning_ends_the_connection)
{
	couple();
	receive();
	atomic_store(dofi_ring_word(outbox->out.ring, outbox->out.tail), UINT64_MAX - 7);
	breaks();
}

/* Sends @len bytes with the value @byte in place of a frame. */
static void send_bytes(int byte, size_t len)
{
	unsigned char *at;

	dofi_mutex_lock(&outbox->lock);
	cr_assert_eq(dofi_outbox_reserve(outbox, len, &at), 0);
	memset(at, byte, len);
	dofi_outbox_send(outbox);
	dofi_mutex_unlock(&outbox->lock);
}

Test(rdm_link, what_is_no_frame_ends_the_connection)
{
	couple();
	receive();
	send_bytes(0xff, 8);
	breaks();
}

/* The datagram endpoints of the PZ have gone, or the peer is faulty. */
Test(rdm_link, a_datagram_without_an_endpoint_is_dropped)
{
	struct rdm_frame f;

	couple();
	receive();
	send_bytes(RDM_ID_FIRST - 1, 20);
	send_bytes(0, 100);
	f = frame(RDM_FRAME_SEND);
	send_frame(&f, "hello", 5);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 7);
	cr_expect_eq(done_length, 5);
	cr_expect_eq(rdm_ia_of(ia)->strays, 2);
}

/* A faulty peer writes a word into each line, so that the ring never gets empty. */
Test(rdm_link, a_ring_without_end_ends_the_connection, .timeout = 20)
{
	uint64_t line;

	couple();
	receive();
	for (line = 0; line < DOFI_RING_LINES; line++)
		atomic_store(dofi_ring_word(outbox->out.ring, line), 9);
	breaks();
}

/* The peer claims to have released more than was sent. The next write to the ring fails. */
Test(rdm_link, an_impossible_head_ends_the_connection)
{
	DAT_EVENT event;
	int i, sent_well = 0;

	couple();
	atomic_store(&theirs->in.ring->head, 1ull << 40);
	for (i = 0; i < 10; i++)
		post_send(big_segment(0, 8000));
	do {
		event_wait_any(&event);
		sent_well += event.event_number == DAT_DTO_COMPLETION_EVENT &&
			     !event.event_data.dto_completion_event_data.status;
	} while (event.event_number == DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_BROKEN, "%#x", event.event_number);
	cr_expect_eq(sent_well, DOFI_RING_LINES / (int)dofi_ring_lines(8000 + RDM_FRAME_HEADER));
}

/* The EP connects: the peer listens in place of a service point */

static void listen_instead(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	close(cm_fd);
	cm_name(&name);
	cr_assert_eq(bind(listener, (struct sockaddr *)&name,
			  dofi_cm_address_len((struct sockaddr *)&name)),
		     0);
	cr_assert_eq(listen(listener, 1), 0);
	succeed(dofi_ep_connect(ep, some_address(), qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	cm_fd = accept(listener, NULL, NULL);
	close(listener);
}

/* Answers the EP's request with an acceptance of @n_fds descriptors, which makes no connection. */
static void accept_in_vain(unsigned n_fds)
{
	struct dofi_cm_msg asked, answer;
	DAT_EVENT event;
	unsigned i;

	listen_instead();
	asked = hear(DOFI_CM_REQUEST);
	for (i = 0; i < asked.n_fds; i++)
		close(asked.fd[i]);
	answer = request();
	answer.kind = DOFI_CM_ACCEPT;
	answer.n_fds = n_fds;
	peer_sends(&answer);
	event_wait_any(&event);
	cr_expect_eq(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, "%#x",
		     event.event_number);
}

/*
 * The connecting process may have no descriptor left for the one in the answer. Nothing listens at
 * the network.
 */
Test(rdm_link, without_the_peers_doorbell_there_is_no_connection)
{
	succeed(dofi_psp_free(psp));
	accept_in_vain(0);
}

/* The program of the acceptor would get the request twice. */
Test(rdm_link, an_acceptor_that_has_withdrawn_its_inbox_is_not_asked_again)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)qual),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	int network = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;

	succeed(dofi_psp_free(psp));
	setsockopt(network, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	cr_assert_eq(bind(network, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(network, 1), 0);
	atomic_store(&theirs->link->use, DOFI_LINK_SHUT);
	accept_in_vain(2);
	settle();
	cr_expect_eq(accept(network, NULL, NULL), -1);
	close(network);
}
