/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics that are requested of a connectionless fabric or of the peer, and their ACKs. */

#include "xport/coupled.h"

#include "obj/cq_data.h"
#include "obj/ep/ep_post.h"

#include <rdma/fi_rma.h>

static DAT_EP_HANDLE other;		/* an EP of the IA, if there is no peer of the test */

#define ROOM (4096 - RDM_FRAME_FULL)	/* bytes of data in a frame of shm */

static void init(void)
{
	coupled_init();
	fill(big, 7);
}

static void init_apart(void)
{
	coupled_init_apart();
	fill(big, 7);
}

/* On a fabric that does RDMA itself */
static void init_pair(void)
{
	rdm_init_on("sockets");
	ep = ep_make();
	other = ep_make();
	pair_connect(ep, other);
	fill(big, 7);
}

TestSuite(rdm_rma, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rma_apart, .init = init_apart, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rma_fabric, .init = init_pair, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_rma_data, .init = coupled_init, .fini = rdm_fini, .timeout = 60);

/* RDMA by the fabric */

Test(rdm_rma_fabric, writes_and_reads)
{
	const DAT_RMR_TRIPLET remote = remote_of(big_remote, (uintptr_t)big + 10000, 5000);
	DAT_LMR_TRIPLET from = big_segment(1, 5000), to = big_segment(20000, 5000);
	const DAT_DTO_COOKIE one = { .as_64 = 1 }, two = { .as_64 = 2 };
	const DAT_COMPLETION_FLAGS plain = DAT_COMPLETION_DEFAULT_FLAG;

	succeed(dofi_ep_post_rdma_write(ep, 1, &from, one, &remote, plain));
	done(1);
	pair_works(ep, other);
	cr_expect(!memcmp(big + 10000, big + 1, 5000));
	succeed(dofi_ep_post_rdma_read(ep, 1, &to, two, &remote, plain));
	done(2);
	cr_expect(!memcmp(big + 20000, big + 1, 5000));
}

#if DAT_VERSION_MAJOR >= 2
/* The immediate data arrives after the write, although the fabric does not order them. */
Test(rdm_rma_fabric, reports_a_write_when_it_is_done)
{
	DAT_RMR_TRIPLET remote = remote_of(big_remote, (uintptr_t)big + 10000, 5000);
	DAT_LMR_TRIPLET from = big_segment(1, 5000);
	const struct dofi_post p = {
		.n = 1, .iov = &from, .remote = &remote, .cookie.as_64 = 1, .immed = 0xfeed,
	};
	const DAT_EVENT_NUMBER number = DAT_IB_DTO_EVENT;
	bool reported = false;
	DAT_EVENT event;
	int i;

	receive_with(other, 0, 1, 2);
	succeed(dofi_ep_post_write_immed(ep, &p));
	for (i = 0; i < 2; i++) {
		event = event_await(evd, number);
		reported |= event.event_data.dto_completion_event_data.user_cookie.as_64 == 2;
	}
	cr_expect(reported && !memcmp(big + 10000, big + 1, 5000));
}
#endif

/* The operations that the fabric has been given; it carries out none of them. */
static struct {
	unsigned writes, reads;
	void *write[4], *read;
} given;

static ssize_t keep_write(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	given.write[given.writes++] = msg->context;
	return 0;
}

static ssize_t keep_read(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	given.read = msg->context;
	given.reads++;
	return 0;
}

/* The fabric orders nothing, as EFA, and keeps RDMA until the test completes it. */
static void fabric_keeps(void)
{
	static struct dofi_fabric_choice fabric;
	static struct fi_ops_rma ops;
	struct rdm_pz *rpz = rdm_conn_of(ep)->rpz;

	fabric = *rpz->ria->fabric;
	fabric.zero_based = fabric.write_ordered = false;
	rpz->ria->fabric = &fabric;
	ops = *rpz->rdm.fid->rma;
	ops.writemsg = keep_write;
	ops.readmsg = keep_read;
	rpz->rdm.fid->rma = &ops;
	memset(&given, 0, sizeof(given));
}

static void kept_completes(void *context, int err)
{
	const struct fi_cq_data_entry entry = { .op_context = context };
	struct dofi_cq *cq = &((struct dofi_pz *)pz)->domain.cq;

	dofi_mutex_lock(&cq->lock);
	ia->progress.ops->completed(&entry, err, NULL);
	dofi_mutex_unlock(&cq->lock);
}

static void write_to(size_t offset, uint64_t cookie)
{
	const DAT_RMR_TRIPLET remote = remote_of(big_remote, (uintptr_t)big + offset, 100);
	DAT_LMR_TRIPLET from = big_segment(0, 100);

	succeed(dofi_ep_post_rdma_write(ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = cookie }, &remote,
					DAT_COMPLETION_DEFAULT_FLAG));
}

static void read_from(size_t offset, uint64_t cookie)
{
	const DAT_RMR_TRIPLET remote = remote_of(big_remote, (uintptr_t)big + offset, 100);
	DAT_LMR_TRIPLET to = big_segment(500, 100);

	succeed(dofi_ep_post_rdma_read(ep, 1, &to, (DAT_DTO_COOKIE){ .as_64 = cookie }, &remote,
				       DAT_COMPLETION_DEFAULT_FLAG));
}

Test(rdm_rma_fabric, writes_do_not_wait_for_each_other_nor_reads_of_other_memory)
{
	fabric_keeps();
	write_to(10000, 1);
	write_to(10000, 2);
	read_from(10100, 3);
	write_to(12000, 4);
	read_from(9950, 5);
	cr_expect(given.writes == 3 && given.reads == 1, "%u, %u", given.writes, given.reads);
	kept_completes(given.write[1], 0);
	kept_completes(given.write[2], 0);
	cr_expect_eq(given.reads, 1, "the first write is still in flight");
	kept_completes(given.write[0], 0);
	cr_expect_eq(given.reads, 2);
	done(1);
	done(2);
}

Test(rdm_rma_fabric, a_message_waits_for_all_rdma)
{
	fabric_keeps();
	read_from(10000, 1);
	pair_works(other, ep);
	write_to(11000, 2);
	receive_with(other, 0, 1, 9);
	post_send(0, 1, 3);
	kept_completes(given.write[0], 0);
	cr_expect(event_none(evd), "the read is in flight");
	kept_completes(given.read, 0);
	done(1);
	done(2);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS) + done_await(evd, DAT_DTO_SUCCESS), 3 + 9);
}

/* The refused write completes after the write behind it. */
Test(rdm_rma_fabric, a_message_behind_a_refused_write_is_never_sent)
{
	fabric_keeps();
	write_to(10000, 1);
	write_to(11000, 2);
	receive_with(other, 0, 1, 9);
	post_send(0, 1, 3);
	kept_completes(given.write[1], 0);
	kept_completes(given.write[0], FI_EINVAL);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_ACCESS), 1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 2);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 3);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 9);
}

/* RDMA by the peer */

Test(rdm_rma, a_short_write_brings_its_bytes)
{
	const struct peer_frame *f;

	post_write(10, ROOM, 1);
	f = peer_take(&peer, RDM_FRAME_WRITE);
	cr_expect(f->frame.key == THEIR_KEY && f->frame.addr == (uintptr_t)theirs);
	cr_expect_eq(f->frame.value[1], 0, "nothing follows");
	cr_expect(f->frame.length == ROOM && f->frame.data_size == ROOM);
	cr_expect(!memcmp(f->data, big + 10, ROOM));
	cr_expect(event_none(evd), "it is done when the peer says so");
	answer(f->frame.number, NULL, 0);
	done(1);
}

Test(rdm_rma, a_long_one_says_where_they_are)
{
	const struct rdm_frame *f;

	post_write(10, RDM_EAGER_MAX + 1, 1);
	f = &peer_take(&peer, RDM_FRAME_WRITE)->frame;
	cr_expect(f->key == THEIR_KEY && f->addr == (uintptr_t)theirs &&
		  f->length == RDM_EAGER_MAX + 1);
	cr_expect(f->n_segments == 1 && names(f, 0, big + 10, RDM_EAGER_MAX + 1));
	answer(f->number, NULL, 0);
	done(1);
}

/*
 * A write that is a little longer than a frame takes several frames, even if the peer could read
 * it.
 */
Test(rdm_rma, a_write_that_is_not_long_goes_in_parts)
{
	const struct peer_frame *f;

	post_write(10, ROOM + 1, 1);
	f = peer_take(&peer, RDM_FRAME_WRITE);
	cr_expect(f->frame.data_size == ROOM && f->frame.value[1] == 1, "one byte follows");
	f = peer_take(&peer, RDM_FRAME_WRITE);
	cr_expect(f->frame.data_size == 1 && *f->data == big[10 + ROOM] && !f->frame.value[1]);
	cr_expect_eq(f->frame.addr, (uintptr_t)theirs + ROOM);
	cr_expect(event_none(evd));
	answer(f->frame.number, NULL, 0);
	done(1);
}

Test(rdm_rma, a_read_that_is_not_long_is_brought_in_parts)
{
	struct rdm_frame f, a;

	post_read(10, RDM_EAGER_MAX, 1);
	for (f.addr = (uintptr_t)theirs, f.length = 0;
	     f.addr + f.length < (uintptr_t)theirs + RDM_EAGER_MAX;) {
		f = peer_take(&peer, RDM_FRAME_READ)->frame;
		cr_assert(f.length <= ROOM && !f.n_segments);
		a = about(RDM_FRAME_ACK, f.number);
		a.addr = f.value[0];
		peer_send(&peer, &a, theirs + f.value[0], f.length);
	}
	done(1);
	cr_expect(!memcmp(big + 10, theirs, RDM_EAGER_MAX));
}

Test(rdm_rma, a_read_is_brought_or_fetched)
{
	struct rdm_frame f, a;

	post_read(10, 100, 1);
	f = peer_take(&peer, RDM_FRAME_READ)->frame;
	cr_expect(f.key == THEIR_KEY && f.addr == (uintptr_t)theirs && f.length == 100);
	answer(f.number, theirs, 100);
	done(1);
	cr_expect(!memcmp(big + 10, theirs, 100) && big[110] == (unsigned char)(110 * 7));

	post_read(10, 30000, 2);
	f = peer_take(&peer, RDM_FRAME_READ)->frame;
	cr_expect_eq(f.length, 30000);
	a = peer_frame(&peer, RDM_FRAME_ACK);
	a.number = f.number;
	a.addr = (uintptr_t)theirs + 1000;
	a.length = 30000;
	a.value[0] = (uintptr_t)&peer.id;
	a.value[1] = peer.id;
	peer_send(&peer, &a, NULL, 0);
	done(2);
	cr_expect(!memcmp(big + 10, theirs + 1000, 30000));

	/* a read of no bytes */
	post_read(10, 0, 3);
	answer(peer_take(&peer, RDM_FRAME_READ)->frame.number, NULL, 0);
	done(3);
}

#if DAT_VERSION_MAJOR >= 2
static DAT_EVENT extended(void)
{
	return event_await(evd, DAT_IB_DTO_EVENT);
}

static struct dofi_post ext_post(DAT_LMR_TRIPLET *iov, DAT_RMR_TRIPLET *to, size_t length)
{
	*iov = big_segment(0, length);
	*to = remote_of(THEIR_KEY, (uintptr_t)theirs, length);
	return (struct dofi_post){
		.n = 1, .iov = iov, .remote = to, .cookie.as_64 = 1, .immed = 0xfeed,
	};
}

Test(rdm_rma, cq_data_goes_with_writes)
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET to;
	const struct dofi_post p = ext_post(&iov, &to, 100);
	const struct rdm_frame *f;

	succeed(dofi_ep_post_write_immed(ep, &p));
	f = &peer_take(&peer, RDM_FRAME_WRITE)->frame;
	cr_expect_eq(f->cq_data, dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 100, 0xfeed));
	answer(f->number, NULL, 0);
	extended();
}

Test(rdm_rma, the_cq_data_of_a_write_says_whether_it_is_solicited)
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET to;
	struct dofi_post p = ext_post(&iov, &to, 100);
	const struct rdm_frame *f;

	p.flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	succeed(dofi_ep_post_write_immed(ep, &p));
	f = &peer_take(&peer, RDM_FRAME_WRITE)->frame;
	cr_expect_eq(f->cq_data, dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, true, 100, 0xfeed));
	answer(f->number, NULL, 0);
	extended();
}

static void atomic_done(uint32_t number, uint64_t old)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_ACK);

	f.number = number;
	f.value[0] = old;
	peer_send(&peer, &f, NULL, 0);
	extended();
	cr_expect(!memcmp(big, &old, sizeof(old)));
}

Test(rdm_rma, atomics_say_what_is_to_be_done)
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET to;
	struct dofi_post p = ext_post(&iov, &to, 8);
	const struct rdm_frame *f;

	p.operand = 5;
	p.compare = 6;
	succeed(dofi_ep_post_fetch_add(ep, &p));
	f = &peer_take(&peer, RDM_FRAME_FETCH_ADD)->frame;
	cr_expect(f->key == THEIR_KEY && f->addr == (uintptr_t)theirs && f->value[0] == 5);
	atomic_done(f->number, 0x1122334455667788);
	succeed(dofi_ep_post_cmp_swap(ep, &p));
	f = &peer_take(&peer, RDM_FRAME_CMP_SWAP)->frame;
	cr_expect(f->value[0] == 5 && f->value[1] == 6);
	atomic_done(f->number, 42);
}
#endif

/* Neither process reads the other's memory: all data goes in frames */

Test(rdm_rma_apart, a_write_goes_in_parts)
{
	static unsigned char came[BIG];
	const struct peer_frame *f = NULL;
	size_t n;

	post_write(0, BIG, 1);
	for (n = 0; n < BIG; n += f->frame.data_size) {
		f = peer_take(&peer, RDM_FRAME_WRITE);
		cr_expect(f->frame.addr == (uintptr_t)theirs + n && f->frame.key == THEIR_KEY);
		cr_expect(!f->frame.n_segments && f->frame.data_size);
		cr_expect_eq(f->frame.value[1], BIG - n - f->frame.data_size, "what follows");
		memcpy(came + n, f->data, f->frame.data_size);
	}
	cr_expect(n == BIG && !memcmp(came, big, BIG));
	cr_expect(event_none(evd));
	answer(f->frame.number, NULL, 0);
	done(1);
}

Test(rdm_rma_apart, a_read_goes_in_parts)
{
	const struct rdm_frame *f;
	struct rdm_frame a;
	size_t n, length;

	memset(big, 0, BIG);
	post_read(0, 10000, 1);
	for (n = 0; n < 10000; n += length) {
		f = &peer_take(&peer, RDM_FRAME_READ)->frame;
		length = f->length;
		cr_expect(f->addr == (uintptr_t)theirs + n && f->value[0] == n);
		cr_expect_eq(f->value[1], 10000 - n - length);
		cr_expect(event_none(evd));
		a = peer_frame(&peer, RDM_FRAME_ACK);
		a.number = f->number;
		a.addr = n;
		peer_send(&peer, &a, theirs + n, length);
	}
	done(1);
	cr_expect(!memcmp(big, theirs, 10000) && !big[10000]);
}

/* Data for a part of the read that was not requested yet is refused. */
Test(rdm_rma_apart, a_read_takes_no_data_for_parts_that_were_not_requested)
{
	struct rdm_frame f, a;

	memset(big, 0, BIG);
	post_read(0, 5000, 1);
	f = peer_take(&peer, RDM_FRAME_READ)->frame;
	peer_take(&peer, RDM_FRAME_READ);
	a = peer_frame(&peer, RDM_FRAME_ACK);
	a.number = f.number;
	a.addr = f.length;
	peer_send(&peer, &a, theirs, 100);
	done_await(evd, DAT_DTO_ERR_TRANSPORT);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(!big[0] && !memcmp(big, big + 1, BIG - 1));
}

/* The ACK of a read has exactly the requested length, and nothing is written beyond it. */
static void read_fails_with(struct rdm_frame *f, size_t size)
{
	post_read(100, 50, 2);
	f->number = peer_take(&peer, RDM_FRAME_READ)->frame.number;
	peer_send(&peer, f, theirs, size);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_TRANSPORT), 2);
	peer_sees_break(&peer);
	cr_expect(all_zero(big, 100) && all_zero(big + 150, BIG - 150));
}

Test(rdm_rma_data, a_read_does_not_bring_more)
{
	struct rdm_frame f = about(RDM_FRAME_ACK, 0);

	read_fails_with(&f, 51);
}

Test(rdm_rma_data, a_read_takes_no_bytes_for_another_place)
{
	struct rdm_frame f = about(RDM_FRAME_ACK, 0);

	f.addr = 10;
	read_fails_with(&f, 10);
}

Test(rdm_rma_data, a_read_takes_no_empty_answer)
{
	struct rdm_frame f = about(RDM_FRAME_ACK, 0);

	read_fails_with(&f, 0);
}

Test(rdm_rma_data, a_read_takes_no_memory_of_another_length)
{
	struct rdm_frame f = about(RDM_FRAME_ACK, 0);

	f.addr = (uintptr_t)theirs;
	f.length = 51;
	f.value[0] = (uintptr_t)&peer.id;
	f.value[1] = peer.id;
	read_fails_with(&f, 0);
}

Test(rdm_rma_data, a_read_takes_no_memory_that_is_not_mapped)
{
	struct rdm_frame f = about(RDM_FRAME_ACK, 0);

	f.addr = 0x10;
	f.length = 50;
	f.value[0] = (uintptr_t)&peer.id;
	f.value[1] = peer.id;
	read_fails_with(&f, 0);
}

Test(rdm_rma_data, a_read_whose_grant_ends_meanwhile_is_refused)
{
	struct rdm_frame f;

	post_read(100, 30000, 2);
	f = about(RDM_FRAME_ACK, peer_take(&peer, RDM_FRAME_READ)->frame.number);
	f.addr = (uintptr_t)theirs;
	f.length = 30000;
	f.value[0] = (uintptr_t)&peer.id;
	f.value[1] = peer.id + 1;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_ACCESS), 2);
	peer_sees_break(&peer);
}
