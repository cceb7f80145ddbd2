/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams that arrive. */

#include "xport/ud/parts.h"

/* The address handle of far at near, which acts as any sender. */
static struct ud_peer *ah;

static void init(void)
{
	ud_init();
	ah = ud_meet(&ud_near, &ud_far);
}

TestSuite(xport_ud_recv, .init = init, .fini = ud_fini, .timeout = 60);

/* Messages from near to far. */
static struct ud_frame honest(void)
{
	return (struct ud_frame){ .number = ud_number(ud_far.ep), .key = ud_part(&ud_far)->key };
}

static void send_frame(const struct ud_frame *f, const void *data, size_t size)
{
	unsigned char bytes[512];

	cr_assert(size <= sizeof(bytes) - UD_FRAME_HEADER);
	ud_frame_pack(bytes, f);
	memcpy(bytes + UD_FRAME_HEADER, data, size);
	ud_send_bytes(&ud_near, ah, bytes, UD_FRAME_HEADER + size);
}

/* A datagram behind all others arrives, and nothing else has. */
static void only_this_arrives(uint64_t cookie)
{
	const struct ud_frame f = honest();

	send_frame(&f, "last", 4);
	ud_received(&ud_far, cookie, 4);
	cr_expect(event_none(ud_far.evd));
}

static bool has_text(size_t offset, const char *text)
{
	return !memcmp(ud_far.memory + offset + UD_GRH, text, strlen(text));
}

/* Receives */

Test(xport_ud_recv, is_behind_a_header_of_zeros)
{
	static const unsigned char zeros[UD_GRH];
	const struct ud_frame f = honest();

	memset(ud_far.memory, 0xee, 100);
	ud_recv(&ud_far, 0, 100, 1);
	send_frame(&f, "hello", 5);
	ud_received(&ud_far, 1, 5);
	cr_expect(!memcmp(ud_far.memory, zeros, UD_GRH));
	cr_expect(has_text(0, "hello"));
	cr_expect_eq(ud_far.memory[UD_GRH + 5], 0xee);
}

Test(xport_ud_recv, takes_receives_in_order)
{
	const struct ud_frame f = honest();

	ud_recv(&ud_far, 0, 100, 1);
	ud_recv(&ud_far, 100, 100, 2);
	send_frame(&f, "first", 5);
	send_frame(&f, "second", 6);
	ud_received(&ud_far, 1, 5);
	ud_received(&ud_far, 2, 6);
	cr_expect(has_text(0, "first"));
	cr_expect(has_text(100, "second"));
}

Test(xport_ud_recv, may_be_spread_over_segments)
{
	const struct ud_frame f = honest();
	DAT_LMR_TRIPLET iov[3] = {
		ud_segment(&ud_far, 0, UD_GRH - 10), ud_segment(&ud_far, 100, 13),
		ud_segment(&ud_far, 200, 10),
	};

	succeed(dofi_ep_post_recv(ud_far.ep, 3, iov, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	memset(ud_far.memory, 0xee, 300);
	send_frame(&f, "hello", 5);
	ud_received(&ud_far, 1, 5);
	cr_expect(!memcmp(ud_far.memory + 110, "hel", 3));
	cr_expect(!memcmp(ud_far.memory + 200, "lo", 2));
	cr_expect_eq(ud_far.memory[UD_GRH - 10], 0xee);
	cr_expect_eq(ud_far.memory[113], 0xee);
	cr_expect_eq(ud_far.memory[202], 0xee);
}

Test(xport_ud_recv, without_data_needs_room_for_the_header)
{
	const struct ud_frame f = honest();

	ud_recv(&ud_far, 0, UD_GRH, 1);
	send_frame(&f, "", 0);
	ud_received(&ud_far, 1, 0);
}

Test(xport_ud_recv, a_receive_that_is_too_short_fails_and_the_ep_goes_on)
{
	const struct ud_frame f = honest();

	memset(ud_far.memory, 0xee, 200);
	ud_recv(&ud_far, 0, UD_GRH + 4, 1);
	ud_recv(&ud_far, 100, 0, 2);
	ud_recv(&ud_far, 200, 100, 3);
	send_frame(&f, "hello", 5);
	send_frame(&f, "", 0);
	ud_done(&ud_far, 1, DAT_DTO_ERR_LOCAL_LENGTH, DAT_IB_DTO_RECV_UD);
	ud_done(&ud_far, 2, DAT_DTO_ERR_LOCAL_LENGTH, DAT_IB_DTO_RECV_UD);
	cr_expect_eq(ud_far.memory[0], 0xee);
	cr_expect_eq(ud_far.memory[UD_GRH], 0xee);
	only_this_arrives(3);
	cr_expect_eq(state_of_ep(ud_far.ep), DAT_EP_STATE_CONNECTED);
}

Test(xport_ud_recv, has_immediate_data)
{
	struct ud_frame f = honest();
	DAT_EVENT event;

	f.flags = UD_FRAME_IMMED;
	f.immed = 0xfeedbeef;
	ud_recv(&ud_far, 0, 100, 1);
	ud_recv(&ud_far, 100, 100, 2);
	send_frame(&f, "hello", 5);
	f.immed = 0;
	send_frame(&f, "", 0);
	event = ud_done(&ud_far, 1, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_UD_IMMED);
	cr_expect_eq(ud_extension(&event)->val.immed.data, 0xfeedbeef);
	event = ud_done(&ud_far, 2, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_UD_IMMED);
	cr_expect_eq(ud_extension(&event)->val.immed.data, 0);
}

Test(xport_ud_recv, is_counted_by_its_kind)
{
	const struct dofi_ep *ep = ud_far.ep;
	struct ud_frame f = honest();

	ud_recv(&ud_far, 0, 100, 1);
	send_frame(&f, "hello", 5);
	ud_received(&ud_far, 1, 5);
	cr_expect_eq(ep->receipts[DOFI_DTO_RECV_UD].ops, 1);
	cr_expect_eq(ep->receipts[DOFI_DTO_RECV_UD].bytes, UD_GRH + 5);
}

/* The LMR of a receive was freed. */
Test(xport_ud_recv, into_memory_that_was_given_up_fails)
{
	const struct ud_frame f = honest();

	memset(ud_far.memory, 0xee, 200);
	ud_recv(&ud_far, 0, 100, 1);
	succeed(dofi_lmr_free(ud_far.lmr));
	ud_far.lmr = NULL;
	send_frame(&f, "hello", 5);
	ud_done(&ud_far, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_IB_DTO_RECV_UD);
	cr_expect_eq(ud_far.memory[0], 0xee);
	cr_expect_eq(ud_far.memory[UD_GRH], 0xee);
	cr_expect_eq(state_of_ep(ud_far.ep), DAT_EP_STATE_CONNECTED);
}

/* Datagrams that are dropped */

Test(xport_ud_recv, finds_no_receive)
{
	const struct ud_frame f = honest();

	send_frame(&f, "lost", 4);
	send_frame(&f, "lost", 4);
	ud_counts(&ud_far, &ia->count.dropped_no_receive, 2);
	ud_recv(&ud_far, 0, 100, 1);
	only_this_arrives(1);
	cr_expect_eq(ia->count.dropped_no_receive, 2);
	cr_expect_eq(ia->count.dropped_foreign, 0);
}

static void is_dropped(const struct ud_frame *f, uint64_t n)
{
	ud_recv(&ud_far, 0, 100, n);
	send_frame(f, "evil", 4);
	only_this_arrives(n);
	cr_expect(has_text(0, "last"));
	cr_expect_eq(ia->count.dropped_foreign, n);
	cr_expect_eq(ia->count.dropped_no_receive, 0);
}

Test(xport_ud_recv, with_a_wrong_key_is_dropped)
{
	struct ud_frame f = honest();
	unsigned bit;

	for (bit = 0; bit < 64; bit += 9) {
		f.key = honest().key ^ 1ULL << bit;
		is_dropped(&f, bit / 9 + 1);
	}
	f.key = 0;
	is_dropped(&f, 9);
	f.key = ud_part(&ud_near)->key;
	is_dropped(&f, 10);
}

Test(xport_ud_recv, for_an_unknown_number_is_dropped)
{
	static const uint32_t change[] = {
		1, 8, 15, 16, 0x100, 0xffff, 0x10000, 0xff0000, 1u << 31
	};
	struct ud_frame f = honest();
	unsigned i;

	for (i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		f.number = honest().number ^ change[i];
		is_dropped(&f, i + 1);
	}
	f.number = 0;
	is_dropped(&f, i + 1);
	f.number = UINT32_MAX;
	is_dropped(&f, i + 2);
}

/* The number of the next EP in the slot of a freed one differs. */
Test(xport_ud_recv, for_a_freed_ep_is_dropped)
{
	struct ud_side other = ud_far;
	struct ud_frame f;

	other.ep = ud_ep_make(&ud_far);
	f = honest();
	f.number = ud_number(other.ep);
	succeed(dofi_ep_free(other.ep));
	is_dropped(&f, 1);
	other.ep = ud_ep_make(&ud_far);
	cr_expect_eq(ud_number(other.ep) & (UD_EP_SLOTS - 1), f.number & (UD_EP_SLOTS - 1));
	ud_recv(&other, 200, 100, 9);
	is_dropped(&f, 2);
}

Test(xport_ud_recv, a_malformed_datagram_is_dropped)
{
	const struct ud_frame f = honest();
	unsigned char bytes[UD_FRAME_HEADER + 4] = { 0 };
	unsigned n = 0;
	size_t len;

	ud_recv(&ud_far, 0, 100, 1);
	ud_frame_pack(bytes, &f);
	for (len = 1; len < UD_FRAME_HEADER; len++, n++)
		ud_send_bytes(&ud_near, ah, bytes, len);
	bytes[0] ^= 1;
	ud_send_bytes(&ud_near, ah, bytes, sizeof(bytes));
	bytes[0] ^= 1;
	bytes[1] = 0x80;
	ud_send_bytes(&ud_near, ah, bytes, sizeof(bytes));
	bytes[1] = 0;
	bytes[19] = 1;
	ud_send_bytes(&ud_near, ah, bytes, sizeof(bytes));
	n += 3;
	only_this_arrives(1);
	cr_expect_eq(ia->count.dropped_foreign, n);
}

/* Each buffer is posted again, whatever arrived in it. */
Test(xport_ud_recv, goes_on_after_more_than_all_buffers)
{
	const struct ud_frame f = honest();
	const unsigned n = 3 * ud_part(&ud_far)->rdm.n_buffers;
	unsigned i;

	for (i = 0; i < n; i++)
		ud_send_bytes(&ud_near, ah, "?", 1);
	for (i = 0; i < n; i++)
		send_frame(&f, "lost", 4);
	ud_counts(&ud_far, &ia->count.dropped_no_receive, n);
	cr_expect_eq(ia->count.dropped_foreign, n);
	ud_works(&ud_near, ah, &ud_far, 100);
}

static ssize_t recv_refused(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
			    void *context)
{
	return -FI_EAGAIN;
}

static struct fi_ops_msg *taking, refusing;

static void receives_refuse(void *refuse)
{
	struct ud_pz *upz = ud_part(&ud_far);

	dofi_mutex_lock(&upz->net.domain->cq.lock);
	if (!taking) {
		taking = upz->rdm.fid->msg;
		refusing = *taking;
		refusing.recv = recv_refused;
	}
	upz->rdm.fid->msg = refuse ? &refusing : taking;
	dofi_mutex_unlock(&upz->net.domain->cq.lock);
}

/* No further arrival posts the buffers again. */
Test(xport_ud_recv, goes_on_when_the_fabric_takes_buffers_again)
{
	const unsigned n = ud_part(&ud_far)->rdm.n_buffers;
	unsigned i;

	dofi_progress_call(&ia->progress, receives_refuse, &refusing);
	for (i = 0; i < n; i++)
		ud_send_bytes(&ud_near, ah, "?", 1);
	ud_counts(&ud_far, &ia->count.dropped_foreign, n);
	dofi_progress_call(&ia->progress, receives_refuse, NULL);
	ud_works(&ud_near, ah, &ud_far, 100);
}

static void fail_on_thread(void *arg)
{
	struct ud_pz *upz = arg;
	const struct fi_cq_data_entry entry = { .len = 0 };

	dofi_mutex_lock(&upz->net.domain->cq.lock);
	upz->rdm.arrived(&upz->rdm.buffer[0], &entry, FI_ETRUNC, NULL);
	dofi_mutex_unlock(&upz->net.domain->cq.lock);
}

/*
 * A datagram longer than a buffer, as another program may send. The fabric has the buffer already,
 * which the completion hands over once more.
 */
Test(xport_ud_recv, a_datagram_too_long_for_a_buffer_is_dropped)
{
	dofi_progress_call(&ia->progress, fail_on_thread, ud_part(&ud_far));
	cr_expect_eq(ia->count.dropped_foreign, 1);
	ud_works(&ud_near, ah, &ud_far, 100);
}

/* SRQs */

static DAT_SRQ_HANDLE srq;

static struct ud_side shared_ep(void)
{
	const DAT_EP_ATTR attr = ud_attr();
	struct ud_side side = ud_far;

	succeed(dofi_ep_create_with_srq(ia, side.pz, side.evd, side.evd, side.evd, srq, &attr,
					&side.ep));
	return side;
}

static void srq_make(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT,
	};

	succeed(dofi_srq_create(ia, ud_far.pz, &attr, &srq));
}

static void lend(size_t offset, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = ud_segment(&ud_far, offset, 100);

	succeed(dofi_srq_post_recv(srq, 1, &iov, cookie_of(cookie)));
}

static void send_to(const struct ud_side *side, const char *text)
{
	struct ud_frame f = honest();

	f.number = ud_number(side->ep);
	send_frame(&f, text, strlen(text));
}

Test(xport_ud_recv, takes_buffers_of_an_srq)
{
	struct ud_side one, two;

	srq_make();
	one = shared_ep();
	two = shared_ep();
	lend(0, 1);
	lend(100, 2);
	lend(200, 3);
	send_to(&two, "two");
	send_to(&one, "one");
	send_to(&two, "two");
	ud_received(&two, 1, 3);
	ud_received(&one, 2, 3);
	ud_received(&two, 3, 3);
	cr_expect(has_text(100, "one"));
}

/* An EP that found no buffer does not get the next one: its datagram is gone. */
Test(xport_ud_recv, of_an_empty_srq_is_dropped)
{
	struct ud_side one, two;

	srq_make();
	one = shared_ep();
	two = shared_ep();
	send_to(&one, "one");
	send_to(&one, "one");
	ud_counts(&ud_far, &ia->count.dropped_no_receive, 2);
	lend(0, 1);
	lend(100, 2);
	send_to(&two, "two");
	ud_received(&two, 1, 3);
	send_to(&one, "one");
	ud_received(&one, 2, 3);
	cr_expect_eq(ia->count.dropped_no_receive, 2);
	succeed(dofi_ep_free(one.ep));
	succeed(dofi_ep_free(two.ep));
	succeed(dofi_srq_free(srq));
}
