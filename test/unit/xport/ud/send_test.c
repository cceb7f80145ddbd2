/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends, and the copies that wait. */

#include "xport/ud/parts.h"

/* Address handles of near. */
static struct ud_peer *far_ah, *third_ah;

static void init(void)
{
	ud_init();
	ud_side_open(&ud_third);
	far_ah = ud_meet(&ud_near, &ud_far);
	third_ah = ud_meet(&ud_near, &ud_third);
	/* shm makes its connection to a peer with the first message */
	ud_works(&ud_near, far_ah, &ud_far, 1);
	ud_works(&ud_near, third_ah, &ud_third, 1);
	ud_fault_open();
}

TestSuite(xport_ud_send, .init = init, .fini = ud_fini, .timeout = 60);

/* From here on the fabric refuses sends to @ah, or to all peers if that is NULL. */
static void refuse(const struct ud_peer *ah, int ret)
{
	ud_fault.only = ah ? ah->to : FI_ADDR_UNSPEC;
	ud_fault.ret = ret;
}

static unsigned waiting(struct ud_peer *ah)
{
	struct ud_pz *upz = ud_part(&ud_near);
	unsigned n;

	dofi_mutex_lock(&upz->lock);
	n = ah->n_waiting;
	dofi_mutex_unlock(&upz->lock);
	return n;
}

static bool is_stalled(DAT_EP_HANDLE ep)
{
	struct dofi_ep *e = ep;
	bool stalled;

	dofi_mutex_lock(&e->cq->stalls_lock);
	stalled = e->stall.queued;
	dofi_mutex_unlock(&e->cq->stalls_lock);
	return stalled;
}

/* A sweep takes the EP from the list, tries again, and puts it back. */
static bool stalls(DAT_EP_HANDLE ep)
{
	const int64_t until = dofi_now() + 30 * 1000000000LL;

	while (!is_stalled(ep) && dofi_now() < until)
		settle();
	return dofi_now() < until;
}

/* Sends one byte, its number, which completes at once. */
static void send_number(struct ud_peer *ah, const struct ud_side *to, unsigned n)
{
	ud_near.memory[n] = (unsigned char)n;
	ud_send(&ud_near, ah, to, n, 1, n);
}

static void numbers_sent(unsigned from, unsigned to)
{
	for (; from < to; from++)
		ud_sent_one(&ud_near, from);
}

/* @side gets bytes from @from up to @to, in order. */
static void numbers_arrive(const struct ud_side *side, unsigned from, unsigned to)
{
	for (; from < to; from++) {
		ud_received(side, from, 1);
		cr_expect_eq(side->memory[64 * from + UD_GRH], (unsigned char)from);
	}
}

static void receive_numbers(const struct ud_side *side, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		ud_recv(side, 64 * i, 64, i);
}

/* Datagrams */

Test(xport_ud_send, carries_any_size)
{
	const size_t most = ia->datagram_size;
	const size_t inject = ud_part(&ud_near)->inject - UD_FRAME_HEADER;
	const size_t size[] = { 0, 1, 100, inject - 1, inject, inject + 1, most - 1, most };
	unsigned i;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		if (size[i] <= most)
			ud_works(&ud_near, far_ah, &ud_far, size[i]);
}

Test(xport_ud_send, of_more_is_refused)
{
	DAT_LMR_TRIPLET iov = ud_segment(&ud_near, 0, ia->datagram_size + 1);
	const struct dofi_post p = ud_post(&ud_near, far_ah, ud_far.ep, &iov);

	expect_type(dofi_ep_post_send_ud(ud_near.ep, &p), DAT_LENGTH_ERROR);
}

/* Two ends of one fabric may have different limits, by libfabric's settings. */
Test(xport_ud_send, of_more_than_the_peer_takes_fails)
{
	far_ah->frame_size = UD_FRAME_HEADER + 100;
	ud_send(&ud_near, far_ah, &ud_far, 0, 101, 7);
	ud_done(&ud_near, 7, DAT_DTO_ERR_LOCAL_LENGTH, DAT_IB_DTO_SEND_UD);
	ud_works(&ud_near, far_ah, &ud_far, 100);
}

Test(xport_ud_send, gathers_segments)
{
	const DAT_LMR_TRIPLET iov[3] = {
		ud_segment(&ud_near, 10, 3), ud_segment(&ud_near, 500, 0),
		ud_segment(&ud_near, 1000, 5),
	};
	struct dofi_post p = ud_post(&ud_near, far_ah, ud_far.ep, iov);

	p.n = 3;
	ud_recv(&ud_far, 0, 100, 1);
	succeed(dofi_ep_post_send_ud(ud_near.ep, &p));
	ud_sent_one(&ud_near, 0);
	ud_received(&ud_far, 1, 8);
	cr_expect(!memcmp(ud_far.memory + UD_GRH, ud_near.memory + 10, 3));
	cr_expect(!memcmp(ud_far.memory + UD_GRH + 3, ud_near.memory + 1000, 5));
}

Test(xport_ud_send, may_have_no_segment)
{
	struct dofi_post p = ud_post(&ud_near, far_ah, ud_far.ep, NULL);

	p.n = 0;
	ud_recv(&ud_far, 0, UD_GRH, 1);
	succeed(dofi_ep_post_send_ud(ud_near.ep, &p));
	ud_sent_one(&ud_near, 0);
	ud_received(&ud_far, 1, 0);
}

/* The data is copied when it is posted. */
Test(xport_ud_send, may_change_its_memory_at_once)
{
	ud_recv(&ud_far, 0, 100, 1);
	memcpy(ud_near.memory, "hello", 5);
	refuse(NULL, -FI_EAGAIN);
	ud_send(&ud_near, far_ah, &ud_far, 0, 5, 2);
	ud_sent_one(&ud_near, 2);
	memcpy(ud_near.memory, "later", 5);
	refuse(NULL, 0);
	ud_received(&ud_far, 1, 5);
	cr_expect(!memcmp(ud_far.memory + UD_GRH, "hello", 5));
}

Test(xport_ud_send, has_immediate_data)
{
	const DAT_LMR_TRIPLET iov = ud_segment(&ud_near, 0, 10);
	struct dofi_post p = ud_post(&ud_near, far_ah, ud_far.ep, &iov);
	DAT_EVENT event;

	p.immed = 0xabcdef01;
	ud_recv(&ud_far, 0, 100, 1);
	succeed(dofi_ep_post_send_ud_immed(ud_near.ep, &p));
	ud_sent_one(&ud_near, 0);
	event = ud_done(&ud_far, 1, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_UD_IMMED);
	cr_expect_eq(ud_extension(&event)->val.immed.data, 0xabcdef01);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, UD_GRH + 10);
}

/* A peer that is busy, such as one to which the fabric makes its connection */

Test(xport_ud_send, waits_until_the_fabric_takes_it)
{
	receive_numbers(&ud_far, 10);
	refuse(NULL, -FI_EAGAIN);
	for (unsigned i = 0; i < 10; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, 10);
	cr_expect_eq(waiting(far_ah), 10);
	cr_expect(event_none(ud_far.evd));
	refuse(NULL, 0);
	numbers_arrive(&ud_far, 0, 10);
	cr_expect_eq(waiting(far_ah), 0);
	cr_expect(!far_ah->stuck_since);
	cr_expect_eq(ia->count.dropped_sends, 0);
}

/* Datagrams longer than the fabric injects. */
Test(xport_ud_send, waits_with_much_data)
{
	const size_t size = ia->datagram_size;

	ud_recv(&ud_far, 0, UD_GRH + size, 1);
	refuse(NULL, -FI_EAGAIN);
	ud_send(&ud_near, far_ah, &ud_far, 3, size, 2);
	ud_sent_one(&ud_near, 2);
	cr_expect_eq(waiting(far_ah), 1);
	refuse(NULL, 0);
	ud_received(&ud_far, 1, size);
	cr_expect(!memcmp(ud_far.memory + UD_GRH, ud_near.memory + 3, size));
}

Test(xport_ud_send, to_other_peers_passes_a_stuck_one)
{
	refuse(far_ah, -FI_EAGAIN);
	ud_send(&ud_near, far_ah, &ud_far, 0, 1, 1);
	ud_sent_one(&ud_near, 1);
	ud_works(&ud_near, third_ah, &ud_third, 100);
	ud_works(&ud_near, third_ah, &ud_third, ia->datagram_size);
	cr_expect_eq(waiting(far_ah), 1);
	cr_expect_eq(waiting(third_ah), 0);
}

/* Order is not promised, but the service does not change it. */
Test(xport_ud_send, does_not_pass_those_that_wait)
{
	receive_numbers(&ud_far, 3);
	refuse(NULL, -FI_EAGAIN);
	send_number(far_ah, &ud_far, 0);
	numbers_sent(0, 1);
	dofi_mutex_lock(&ud_part(&ud_near)->net.domain->cq.lock);	/* nothing sweeps */
	refuse(NULL, 0);
	dofi_mutex_unlock(&ud_part(&ud_near)->net.domain->cq.lock);
	send_number(far_ah, &ud_far, 1);
	send_number(far_ah, &ud_far, 2);
	numbers_sent(1, 3);
	numbers_arrive(&ud_far, 0, 3);
}

/* The EP stalls: UD_WAITING_MAX copies wait for the peer. */
Test(xport_ud_send, of_more_than_wait_for_a_peer_waits_in_its_ep)
{
	enum { N = UD_WAITING_MAX + 20 };
	unsigned i;

	receive_numbers(&ud_far, N);
	refuse(NULL, -FI_EAGAIN);
	for (i = 0; i < N; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, UD_WAITING_MAX);
	cr_expect(event_none(ud_near.evd));
	cr_expect_eq(waiting(far_ah), UD_WAITING_MAX);
	ud_sweep(&ud_near);
	cr_expect(event_none(ud_near.evd));
	cr_expect_eq(waiting(far_ah), UD_WAITING_MAX);
	refuse(NULL, 0);
	numbers_sent(UD_WAITING_MAX, N);
	numbers_arrive(&ud_far, 0, N);
	cr_expect(!is_stalled(ud_near.ep));
}

/* The sends of an EP stay in order, but a second EP is not held up. */
Test(xport_ud_send, of_another_ep_passes_a_stalled_one)
{
	struct ud_side sibling = ud_near;
	unsigned i;

	sibling.ep = ud_ep_make(&ud_near);
	sibling.evd = ud_near.evd;
	refuse(far_ah, -FI_EAGAIN);
	for (i = 0; i <= UD_WAITING_MAX; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, UD_WAITING_MAX);
	cr_expect(stalls(ud_near.ep));
	ud_works(&sibling, third_ah, &ud_third, 50);
	cr_expect(!is_stalled(sibling.ep));
}

Test(xport_ud_send, of_a_stalled_ep_ends_with_the_ep)
{
	DAT_EP_HANDLE ep;
	unsigned i;

	refuse(far_ah, -FI_EAGAIN);
	for (i = 0; i < UD_WAITING_MAX + 5; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, UD_WAITING_MAX);
	ep = ud_near.ep;
	ud_near.ep = ud_ep_make(&ud_near);
	succeed(dofi_ep_free(ep));
	for (i = UD_WAITING_MAX; i < UD_WAITING_MAX + 5; i++)
		ud_flushed(&ud_near, ep, i);
	refuse(NULL, 0);
	ud_sweep(&ud_near);
	ud_counts(&ud_far, &ia->count.dropped_no_receive, UD_WAITING_MAX);
	ud_works(&ud_near, far_ah, &ud_far, 200);
	cr_expect_eq(waiting(far_ah), 0);
}

/* Peers of the test have far's address and keys of their own. */
static struct ud_peer *embryo(unsigned i)
{
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *peer;

	intro.key += i + 1;
	cr_assert_eq(ud_get(&ud_near, &intro, &peer), 0);
	return peer;
}

/* The copies of the PZ are shared by its peers. */
Test(xport_ud_send, stalls_without_a_copy)
{
	const size_t size = ia->datagram_size;
	struct ud_peer *peer;
	unsigned i, n = 0;

	refuse(NULL, -FI_EAGAIN);
	for (i = 0; i < UD_SENDS / UD_WAITING_MAX; i++) {
		peer = embryo(i);
		for (unsigned k = 0; k < UD_WAITING_MAX; k++, n++)
			send_number(peer, &ud_far, n);
	}
	numbers_sent(0, UD_SENDS);
	ud_recv(&ud_third, 0, UD_GRH + size, 1);
	ud_send(&ud_near, third_ah, &ud_third, 0, size, 1000);
	cr_expect(event_none(ud_near.evd));
	cr_expect(stalls(ud_near.ep));
	refuse(NULL, 0);
	ud_sent_one(&ud_near, 1000);
	ud_received(&ud_third, 1, size);
	ud_counts(&ud_far, &ia->count.dropped_foreign, UD_SENDS);
}

/* A peer that is gone */

Test(xport_ud_send, to_a_peer_that_stays_stuck_is_dropped)
{
	unsigned i;

	refuse(far_ah, -FI_EAGAIN);
	for (i = 0; i < 5; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, 5);
	ud_make_patience_end(far_ah);
	ud_counts(&ud_near, &ia->count.dropped_sends, 5);
	cr_expect_eq(waiting(far_ah), 0);
	/* each further one is dropped at once */
	send_number(far_ah, &ud_far, 5);
	numbers_sent(5, 6);
	cr_expect_eq(ia->count.dropped_sends, 6);
	cr_expect_eq(waiting(far_ah), 0);
	ud_works(&ud_near, third_ah, &ud_third, 10);
	/* unless the fabric takes it, and the peer is no longer stuck */
	refuse(NULL, 0);
	ud_works(&ud_near, far_ah, &ud_far, 10);
	cr_expect(!far_ah->stuck_since);
	refuse(far_ah, -FI_EAGAIN);
	send_number(far_ah, &ud_far, 6);
	numbers_sent(6, 7);
	cr_expect_eq(waiting(far_ah), 1);
	cr_expect_eq(ia->count.dropped_sends, 6);
}

Test(xport_ud_send, stalled_behind_a_peer_that_is_gone_goes_on)
{
	unsigned i;

	refuse(far_ah, -FI_EAGAIN);
	for (i = 0; i < UD_WAITING_MAX + 10; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, UD_WAITING_MAX);
	ud_make_patience_end(far_ah);
	numbers_sent(UD_WAITING_MAX, UD_WAITING_MAX + 10);
	ud_works(&ud_near, third_ah, &ud_third, 10);
	ud_counts(&ud_near, &ia->count.dropped_sends, UD_WAITING_MAX + 10);
}

/* Errors of the fabric */

Test(xport_ud_send, a_send_that_fails_is_dropped)
{
	refuse(NULL, -FI_EIO);
	ud_send(&ud_near, far_ah, &ud_far, 0, 10, 1);
	ud_send(&ud_near, far_ah, &ud_far, 0, ia->datagram_size, 2);
	numbers_sent(1, 3);
	cr_expect_eq(ia->count.dropped_sends, 2);
	cr_expect_eq(waiting(far_ah), 0);
	cr_expect_eq(state_of_ep(ud_near.ep), DAT_EP_STATE_CONNECTED);
	refuse(NULL, 0);
	ud_works(&ud_near, far_ah, &ud_far, 10);
}

Test(xport_ud_send, a_send_that_fails_while_it_waits_is_dropped)
{
	refuse(NULL, -FI_EAGAIN);
	ud_send(&ud_near, far_ah, &ud_far, 0, 10, 1);
	ud_send(&ud_near, far_ah, &ud_far, 0, ia->datagram_size, 2);
	numbers_sent(1, 3);
	refuse(NULL, -FI_EIO);
	ud_counts(&ud_near, &ia->count.dropped_sends, 2);
	cr_expect_eq(waiting(far_ah), 0);
	refuse(NULL, 0);
	ud_works(&ud_near, far_ah, &ud_far, 10);
}

Test(xport_ud_send, a_send_that_is_not_injected_and_fails_is_counted)
{
	struct ud_pz *upz = ud_part(&ud_near);

	dofi_mutex_lock(&upz->lock);
	upz->inject = UD_FRAME_HEADER + 10;
	dofi_mutex_unlock(&upz->lock);
	refuse(NULL, -FI_EIO);
	ud_send(&ud_near, far_ah, &ud_far, 0, 11, 1);
	ud_sent_one(&ud_near, 1);
	cr_expect_eq(ia->count.dropped_sends, 1);
}

struct done_call {
	struct ud_send *copy;
	int err;
};

static void done_on_thread(void *arg)
{
	const struct done_call *c = arg;
	struct ud_pz *upz = ud_part(&ud_near);

	dofi_mutex_lock(&upz->net.domain->cq.lock);
	ud_sent(&c->copy->buffer, c->err);
	dofi_mutex_unlock(&upz->net.domain->cq.lock);
}

/* Takes a free copy as if the fabric had it. */
static struct ud_send *copy_take(void)
{
	struct ud_pz *upz = ud_part(&ud_near);
	struct ud_send *copy;

	dofi_mutex_lock(&upz->lock);
	copy = STAILQ_FIRST(&upz->free);
	STAILQ_REMOVE_HEAD(&upz->free, link);
	copy->peer = far_ah;
	far_ah->in_flight++;
	dofi_mutex_unlock(&upz->lock);
	cr_expect(ud_is_copy(upz, &copy->buffer));
	return copy;
}

static void complete_copy(int err)
{
	struct ud_pz *upz = ud_part(&ud_near);
	struct done_call call = { copy_take(), err };

	dofi_progress_call(&ia->progress, done_on_thread, &call);
	cr_expect_eq(STAILQ_FIRST(&upz->free), call.copy);
	cr_expect_eq(far_ah->in_flight, 0);
}

Test(xport_ud_send, a_send_that_completes_with_an_error_is_counted)
{
	complete_copy(0);
	complete_copy(FI_ECANCELED);
	cr_expect_eq(ia->count.dropped_sends, 0);
	complete_copy(FI_EHOSTUNREACH);
	cr_expect_eq(ia->count.dropped_sends, 1);
	cr_expect(!ud_is_copy(ud_part(&ud_near), &ud_part(&ud_near)->rdm.buffer[0]));
}

/* Address handles that are freed early */

static bool in_table(const struct ud_peer *ah)
{
	const struct dofi_table *table = &ud_part(&ud_near)->table;
	const struct dofi_table_link *link;

	settle();
	link = dofi_table_find(table, ah->in_table.hash);
	while (link && link != &ah->in_table)
		link = dofi_table_next(link);
	return link;
}

static void handle_refused(struct ud_peer *ah)
{
	const DAT_LMR_TRIPLET iov = ud_segment(&ud_near, 0, 10);
	const struct dofi_post p = ud_post(&ud_near, ah, ud_far.ep, &iov);

	expect_arg(dofi_ep_post_send_ud(ud_near.ep, &p), 5);
}

Test(xport_ud_send, waits_beyond_its_address_handle)
{
	receive_numbers(&ud_far, 3);
	refuse(far_ah, -FI_EAGAIN);
	for (unsigned i = 0; i < 3; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, 3);
	ud_put(far_ah);
	cr_expect(in_table(far_ah), "copies wait for it");
	handle_refused(far_ah);
	refuse(NULL, 0);
	numbers_arrive(&ud_far, 0, 3);
	ud_sweep(&ud_near);
	cr_expect(!in_table(far_ah));
	ud_works(&ud_near, ud_meet(&ud_near, &ud_far), &ud_far, 10);
}

Test(xport_ud_send, is_dropped_beyond_its_address_handle)
{
	refuse(far_ah, -FI_EAGAIN);
	send_number(far_ah, &ud_far, 1);
	numbers_sent(1, 2);
	ud_put(far_ah);
	ud_make_patience_end(far_ah);
	ud_counts(&ud_near, &ia->count.dropped_sends, 1);
	ud_sweep(&ud_near);
	cr_expect(!in_table(far_ah));
}

Test(xport_ud_send, an_address_handle_is_removed_when_the_fabric_has_sent_its_last_copy)
{
	struct done_call call = { .copy = copy_take() };

	ud_put(far_ah);
	cr_expect(in_table(far_ah));
	dofi_progress_call(&ia->progress, done_on_thread, &call);
	cr_expect(!in_table(far_ah));
}

/* The peer is met again while copies wait for it. */
Test(xport_ud_send, finds_its_address_handle_again)
{
	receive_numbers(&ud_far, 2);
	refuse(far_ah, -FI_EAGAIN);
	send_number(far_ah, &ud_far, 0);
	numbers_sent(0, 1);
	ud_put(far_ah);
	cr_expect_eq(ud_meet(&ud_near, &ud_far), far_ah);
	send_number(far_ah, &ud_far, 1);
	numbers_sent(1, 2);
	refuse(NULL, 0);
	numbers_arrive(&ud_far, 0, 2);
	ud_sweep(&ud_near);
	cr_expect(in_table(far_ah));
	ud_works(&ud_near, far_ah, &ud_far, 10);
}

/* A send that waits in its EP has nothing to be sent to. */
Test(xport_ud_send, fails_if_its_address_handle_was_freed)
{
	unsigned i;

	refuse(far_ah, -FI_EAGAIN);
	for (i = 0; i < UD_WAITING_MAX + 2; i++)
		send_number(far_ah, &ud_far, i);
	numbers_sent(0, UD_WAITING_MAX);
	ud_put(far_ah);
	refuse(NULL, 0);
	ud_done(&ud_near, UD_WAITING_MAX, DAT_DTO_ERR_FLUSHED, DAT_IB_DTO_SEND_UD);
	ud_done(&ud_near, UD_WAITING_MAX + 1, DAT_DTO_ERR_FLUSHED, DAT_IB_DTO_SEND_UD);
	cr_expect_eq(state_of_ep(ud_near.ep), DAT_EP_STATE_CONNECTED);
	ud_works(&ud_near, third_ah, &ud_third, 10);
}
