/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA that the target carries out for a peer: permitted and forbidden accesses. */

#include "xport/coupled.h"

#include "base/log.h"
#include "capture.h"
#include "obj/cq_data.h"
#include "obj/ep/ep_post.h"

#include <string.h>

TestSuite(rdm_target, .init = coupled_init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_target_sockets, .init = coupled_init_sockets, .fini = rdm_fini, .timeout = 60);

static void ask(enum rdm_frame_kind kind, const struct dofi_access *use, uint64_t cq_data)
{
	struct rdm_frame f = peer_frame(&peer, kind);

	f.number = f.sequence;
	f.key = use->key;
	f.addr = use->addr;
	f.length = use->len;
	f.cq_data = cq_data;
	peer_send(&peer, &f, theirs, kind == RDM_FRAME_WRITE ? use->len : 0);
}

static struct dofi_access use_of(const void *at, uint64_t len)
{
	return (struct dofi_access){ .key = big_remote, .addr = (uintptr_t)at, .len = len };
}

Test(rdm_target, writes_go_where_they_say)
{
	const struct dofi_access all = use_of(big, 3000), none = use_of(big + BIG - 1, 0);
	struct rdm_frame f;

	ask(RDM_FRAME_WRITE, &all, 0);
	answered(peer.sent, RDM_OK);
	cr_expect(!memcmp(big, theirs, 3000) && all_zero(big + 3000, BIG - 3000));
	ask(RDM_FRAME_WRITE, &none, 0);
	answered(peer.sent, RDM_OK);

	f = announcement(99, theirs + 5, 30000);
	f.kind = RDM_FRAME_WRITE;
	f.key = big_remote;
	f.addr = (uintptr_t)big + 10000;
	peer_send(&peer, &f, NULL, 0);
	answered(99, RDM_OK);
	cr_expect(!memcmp(big + 10000, theirs + 5, 30000) && all_zero(big + 3000, 7000));
	cr_expect(event_none(evd), "no event reports it");
}

static bool owes(void)
{
	struct dofi_ep *e = ep;
	bool is;

	dofi_mutex_lock(&e->lock);
	is = rdm_ack_pending(rdm_conn_of(e));
	dofi_mutex_unlock(&e->lock);
	return is;
}

static void set_closing(bool closing)
{
	struct dofi_ep *e = ep;

	dofi_mutex_lock(&e->lock);
	e->closing = closing;
	dofi_ep_open_queues(e);
	dofi_mutex_unlock(&e->lock);
}

/* A program that polls its memory may end the connection before the ACK can be sent. */
Test(rdm_target, a_write_that_was_done_is_answered_at_the_end_too)
{
	const struct dofi_access use = use_of(big, 100);

	fabric_takes(ep, false);
	ask(RDM_FRAME_WRITE, &use, 0);
	while (!owes())
		dofi_progress_wake(&ia->progress);
	cr_expect(!memcmp(big, theirs, 100));
	set_closing(true);
	fabric_takes(ep, true);
	dofi_cq_drain(((struct dofi_ep *)ep)->cq);
	answered(peer.sent, RDM_OK);
	cr_expect(!owes());
	set_closing(false);
}

/* The next event is of the receive @cookie, and reports a write of 100 bytes. */
static void reported(uint64_t cookie)
{
	DAT_EVENT event;

#if DAT_VERSION_MAJOR >= 2
	event = event_await(evd, DAT_IB_DTO_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, 100);
#else
	event = event_await(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, 0);
#endif
	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

Test(rdm_target, a_write_may_carry_immediate_data)
{
	const struct dofi_access use = use_of(big, 100);
	const uint64_t cq_data = dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 100, 0xfeed);

	receive(100, 100, 1);
	ask(RDM_FRAME_WRITE, &use, cq_data);
	answered(peer.sent, RDM_OK);
	reported(1);
	cr_expect(!memcmp(big, theirs, 100) && all_zero(big + 100, 100));
	/* the write does not wait for the receive that reports it */
	memset(big, 0, 100);
	ask(RDM_FRAME_WRITE, &use, cq_data);
	answered(peer.sent, RDM_OK);
	cr_expect(!memcmp(big, theirs, 100));
	cr_expect(peer_has_none(&peer) && event_none(evd));
	receive(100, 100, 2);
	reported(2);
	cr_expect(all_zero(big + 100, 100));
}

Test(rdm_target, a_write_from_nowhere_fails)
{
	struct rdm_frame f = announcement(99, (void *)0x10, 5000);

	f.kind = RDM_FRAME_WRITE;
	f.key = big_remote;
	f.addr = (uintptr_t)big;
	peer_send(&peer, &f, NULL, 0);
	answered(99, RDM_NO_MEMORY);
	cr_expect(all_zero(big + 5000, BIG - 5000));
}

Test(rdm_target, reads_bring_what_is_there)
{
	const struct dofi_access few = use_of(big + 10, 3000), many = use_of(big + 20, 30000);
	const struct rdm_frame *f;
	const struct peer_frame *a;

	memcpy(big, theirs, sizeof(big));
	ask(RDM_FRAME_READ, &few, 0);
	a = answered(peer.sent, RDM_OK);
	cr_expect_eq(a->frame.data_size, 3000);
	cr_expect(!memcmp(a->data, theirs + 10, 3000));

	/* a read of more than a frame is answered with an address and a length */
	ask(RDM_FRAME_READ, &many, 0);
	f = &answered(peer.sent, RDM_OK)->frame;
	cr_expect_eq(f->data_size, 0);
	cr_expect_eq(f->addr, (uintptr_t)big + 20);
	cr_expect_eq(f->length, 30000);
	cr_expect_eq(*(const uint64_t *)(uintptr_t)f->value[0], f->value[1]);
	succeed(dofi_lmr_free(dofi_lmr_at(big_context)));
	cr_expect(*(const uint64_t *)(uintptr_t)f->value[0] != f->value[1]);
}

/* Memory with restricted access, and memory of another PZ */
static DAT_RMR_CONTEXT read_only, write_only, of_other_zone;
static unsigned char limited[1000], foreign[1000];

/* Remote write access requires local write access. */
#define WRITE_ONLY (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

static void limits_make(void)
{
	DAT_LMR_HANDLE handle;
	DAT_LMR_CONTEXT local;
	DAT_PZ_HANDLE other_pz;

	succeed(dofi_pz_create(ia, &other_pz));
	succeed(lmr_make(pz, limited, sizeof(limited), DAT_MEM_PRIV_REMOTE_READ_FLAG, &handle,
			 &local, &read_only));
	succeed(lmr_make(pz, limited, sizeof(limited), WRITE_ONLY, &handle,
			 &local, &write_only));
	succeed(lmr_make(other_pz, foreign, sizeof(foreign), DAT_MEM_PRIV_ALL_FLAG, &handle,
			 &local, &of_other_zone));
}

/* Every mistake that a peer can make about memory. */
static size_t wrongs(struct dofi_access *wrong, enum rdm_frame_kind kind)
{
	const uint64_t at = (uintptr_t)big, elsewhere = (uintptr_t)foreign;
	const DAT_RMR_CONTEXT not_for_it = kind == RDM_FRAME_WRITE ? read_only : write_only;
	size_t n = 0;

	wrong[n++] = (struct dofi_access){ .key = 0, .addr = at, .len = 8 };
	wrong[n++] = (struct dofi_access){ .key = big_remote ^ 1, .addr = at, .len = 8 };
	wrong[n++] = (struct dofi_access){
		.key = big_remote | DOFI_KEY_SCOPED, .addr = at, .len = 8,
	};
	wrong[n++] = (struct dofi_access){
		.key = not_for_it, .addr = (uintptr_t)limited, .len = 8,
	};
	wrong[n++] = (struct dofi_access){ .key = of_other_zone, .addr = elsewhere, .len = 8 };
	wrong[n++] = (struct dofi_access){ .key = big_remote, .addr = at - 1, .len = 8 };
	wrong[n++] = (struct dofi_access){ .key = big_remote, .addr = at + BIG - 7, .len = 8 };
	wrong[n++] = (struct dofi_access){ .key = big_remote, .addr = at + BIG, .len = 8 };
	wrong[n++] = (struct dofi_access){ .key = big_remote, .addr = at + BIG, .len = 0 };
	wrong[n++] = (struct dofi_access){ .key = big_remote, .addr = UINT64_MAX, .len = 8 };
	wrong[n++] = (struct dofi_access){
		.key = big_remote, .addr = (uintptr_t)limited, .len = 8,
	};
	return n;
}

static bool untouched(void)
{
	return all_zero(big, sizeof(big)) && all_zero(limited, sizeof(limited)) &&
	       all_zero(foreign, sizeof(foreign)) && all_zero(memory, sizeof(memory));
}

Test(rdm_target, wrong_writes_write_nothing)
{
	const uint64_t cq_data = dofi_cq_data(DOFI_CQ_DATA_WRITE_IMMED, false, 8, 1);
	struct dofi_access wrong[16];
	size_t n, i;

	limits_make();
	receive(0, 100, 1);
	n = wrongs(wrong, RDM_FRAME_WRITE);
	for (i = 0; i < n; i++) {
		const struct dofi_access *w = &wrong[i];
		struct rdm_frame f;

		ask(RDM_FRAME_WRITE, w, cq_data);
		answered(peer.sent, RDM_NO_ACCESS);
		f = announcement(99, theirs, w->len);
		f.kind = RDM_FRAME_WRITE;
		f.key = w->key;
		f.addr = w->addr;
		peer_send(&peer, &f, NULL, 0);
		answered(99, RDM_NO_ACCESS);
		cr_expect(untouched(), "%zu", i);
	}
	cr_expect(event_none(evd), "no receive was taken");
	say("well", 4);
	got(1, 4);
}

/* Refuses @kind at @use, and returns the log. */
static const char *log_of(enum rdm_frame_kind kind, const struct dofi_access *use)
{
	static struct capture said;

	capture_begin(&said);
	ask(kind, use, 0);
	answered(peer.sent, RDM_NO_ACCESS);
	return capture_end(&said);
}

/* A connection logs the first refusal alone. */
static void log_anew(void)
{
	dofi_mutex_lock(&((struct dofi_ep *)ep)->lock);
	rdm_conn_of(ep)->logged_refusal = false;
	dofi_mutex_unlock(&((struct dofi_ep *)ep)->lock);
}

Test(rdm_target, the_log_has_the_reason_of_a_refusal)
{
	struct dofi_access use = use_of(big, 8);
	const char *log;

	limits_make();
	dofi_log_max = DOFI_WARN;
	use.key ^= 1;
	log = log_of(RDM_FRAME_WRITE, &use);
	cr_expect(strstr(log, "refused the peer's RDMA write of 8 bytes at 0x"), "%s", log);
	cr_expect(strstr(log, ", for its context\n"), "%s", log);
	use = use_of(big + BIG - 7, 8);
	cr_expect_str_eq(log_of(RDM_FRAME_READ, &use), "", "once is enough");
	log_anew();
	log = log_of(RDM_FRAME_READ, &use);
	cr_expect(strstr(log, "refused the peer's RDMA read of 8 bytes at 0x"), "%s", log);
	cr_expect(strstr(log, ", for its range\n"), "%s", log);
	use = use_of(limited, 8);
	use.key = write_only;
	log_anew();
	log = log_of(RDM_FRAME_READ, &use);
	cr_expect(strstr(log, ", for its privilege\n"), "%s", log);
}

Test(rdm_target, wrong_reads_read_nothing)
{
	struct dofi_access wrong[16];
	const struct peer_frame *a;
	size_t n, i;

	limits_make();
	n = wrongs(wrong, RDM_FRAME_READ);
	wrong[n++] = use_of(big, BIG + 1);
	wrong[n++] = use_of(big + 1, BIG);
	wrong[n++] = use_of(big, UINT64_MAX);
	for (i = 0; i < n; i++) {
		ask(RDM_FRAME_READ, &wrong[i], 0);
		a = answered(peer.sent, RDM_NO_ACCESS);
		cr_expect(!a->frame.data_size && !a->frame.addr && !a->frame.value[0], "%zu", i);
	}
}

Test(rdm_target, nothing_behind_a_refusal_is_done)
{
	struct dofi_access use = use_of(big + BIG, 8);

	receive(0, 100, 1);
	ask(RDM_FRAME_WRITE, &use, 0);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_ACK)->frame.key, RDM_NO_ACCESS);
	use = use_of(big, 8);
	ask(RDM_FRAME_WRITE, &use, 0);
	ask(RDM_FRAME_READ, &use, 0);
	say("hello", 5);
	cr_expect(peer_has_none(&peer));
	cr_expect(event_none(evd) && untouched());
	peer_hang_up(&peer);
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(untouched());
}

static void atomic(enum rdm_frame_kind kind, uint32_t key, const void *at)
{
	struct rdm_frame f = peer_frame(&peer, kind);

	f.number = f.sequence;
	f.key = key;
	f.addr = (uintptr_t)at;
	f.value[0] = 5;
	f.value[1] = 15;
	peer_send(&peer, &f, NULL, 0);
}

#if DAT_VERSION_MAJOR >= 2
Test(rdm_target, atomics_are_done_where_they_may)
{
	static uint64_t word[3] = { 1, 10, 2 };
	const DAT_MEM_PRIV_FLAGS priv =
		DAT_MEM_PRIV_ALL_FLAG | (DAT_MEM_PRIV_FLAGS)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	DAT_LMR_HANDLE handle;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT key;

	succeed(lmr_make(pz, word + 1, sizeof(*word), priv, &handle, &local, &key));
	atomic(RDM_FRAME_FETCH_ADD, key, word + 1);
	cr_expect_eq(answered(peer.sent, RDM_OK)->frame.value[0], 10);
	cr_expect_eq(word[1], 15);
	atomic(RDM_FRAME_CMP_SWAP, key, word + 1);
	cr_expect_eq(answered(peer.sent, RDM_OK)->frame.value[0], 15);
	cr_expect_eq(word[1], 5);
	atomic(RDM_FRAME_CMP_SWAP, key, word + 1);
	cr_expect_eq(answered(peer.sent, RDM_OK)->frame.value[0], 5);
	cr_expect_eq(word[1], 5, "something else was there");

	atomic(RDM_FRAME_FETCH_ADD, key ^ 1, word + 1);
	answered(peer.sent, RDM_NO_ACCESS);
	atomic(RDM_FRAME_FETCH_ADD, key, word);
	answered(peer.sent, RDM_NO_ACCESS);
	atomic(RDM_FRAME_CMP_SWAP, key, word + 2);
	answered(peer.sent, RDM_NO_ACCESS);
	atomic(RDM_FRAME_CMP_SWAP, key, (char *)(word + 1) + 4);
	answered(peer.sent, RDM_NO_ACCESS);
	cr_expect(word[0] == 1 && word[1] == 5 && word[2] == 2);
}

static DAT_RMR_CONTEXT bind_through(DAT_EP_HANDLE with)
{
	DAT_LMR_TRIPLET iov = big_segment(0, 100);
	const DAT_RMR_COOKIE cookie = { .as_64 = 0 };
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	succeed(dofi_rmr_create_for_ep(pz, &rmr));
	succeed(dofi_rmr_bind(rmr, dofi_lmr_at(big_context), &iov, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			      DAT_VA_TYPE_VA, with, cookie, DAT_COMPLETION_DEFAULT_FLAG, &context));
	event_await(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	return context;
}

Test(rdm_target, a_scoped_key_is_of_one_connection)
{
	static struct peer other;
	DAT_EP_HANDLE other_ep = ep_make();
	struct rdm_frame f;

	peer_couple(&other, other_ep);
	f = peer_frame(&other, RDM_FRAME_READ);
	f.key = bind_through(ep);
	f.addr = (uintptr_t)big;
	f.length = 10;
	peer_send(&other, &f, NULL, 0);
	cr_expect_eq(peer_take(&other, RDM_FRAME_ACK)->frame.key, RDM_NO_ACCESS);
	forgive(other_ep);
	f.conn = peer.conn;
	f.sequence = peer.sent + 1;
	peer_send(&peer, &f, NULL, 0);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_ACK)->frame.data_size, 10);

	/* the peer of another connection cannot invalidate it either */
	f = peer_frame(&other, RDM_FRAME_SEND);
	f.cq_data = dofi_cq_data(DOFI_CQ_DATA_INVALIDATE, false, 0, bind_through(ep));
	receive_with(other_ep, 0, 10, 1);
	peer_send(&other, &f, NULL, 0);
	done_await(evd, DAT_DTO_ERR_LOCAL_PROTECTION);
	peer_sees_break(&other);
	say("well", 4);
	receive(0, 10, 2);
	got(2, 4);
}
#else
Test(rdm_target, atomics_are_not_of_this_version)
{
	atomic(RDM_FRAME_FETCH_ADD, big_remote, big);
	answered(peer.sent, RDM_NO_ACCESS);
	atomic(RDM_FRAME_CMP_SWAP, big_remote, big);
	answered(peer.sent, RDM_NO_ACCESS);
	cr_expect(untouched());
}
#endif

/* A fabric that does RDMA itself */

Test(rdm_target_sockets, what_the_fabric_does_is_not_done_by_frames)
{
	const struct dofi_access use = use_of(big, 100);

	ask(RDM_FRAME_WRITE, &use, 0);
	answered(peer.sent, RDM_NO_ACCESS);
	ask(RDM_FRAME_READ, &use, 0);
	cr_expect_eq(answered(peer.sent, RDM_NO_ACCESS)->frame.data_size, 0);
	cr_expect(all_zero(big, sizeof(big)));
}

static void disconnect_and_take(void *arg)
{
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	fabric_takes(ep, true);
}

/* This thread reads no CQ before the BYE, so that the end alone can send the answer. */
Test(rdm_target_sockets, a_disconnect_sends_an_answer_that_the_fabric_did_not_take_before)
{
	const struct dofi_access use = use_of(big, 100);

	fabric_takes(ep, false);
	ask(RDM_FRAME_WRITE, &use, 0);
	while (!owes())
		dofi_progress_wake(&ia->progress);
	dofi_progress_call(&ia->progress, disconnect_and_take, NULL);
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_BYE);
	cr_assert_eq(peer.received.last_frame, peer.seen + 1);
	cr_expect_eq(peer_take(&peer, RDM_FRAME_ACK)->frame.key, RDM_NO_ACCESS);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}
