/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completions from the fabric: each counts once, remote CQ data, and reads into an RMR. */

#include "obj/ops.h"

#include "base/env.h"
#include "fab/quirks.h"
#include "obj/cq_data.h"

#include <rdma/fi_errno.h>

/* Completing */

Test(ep_dto, a_completion_counts_once)
{
	succeed(post_send(1));
	complete(0);
	complete(0);
	complete_with(0, FI_EIO, 0);
	take(1, DAT_DTO_SUCCESS);
	settle();
	cr_expect(event_none(evd));
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
}

/* Lost answers */

static struct {
	unsigned n;
	void *context;			/* of the last one */
	bool refuses;
} probe;

static int probe_record(struct dofi_ep *of, struct dofi_dto *dto)
{
	if (probe.refuses)
		return -FI_EAGAIN;
	probe.n++;
	probe.context = dofi_dto_context(dto);
	return 0;
}

/* Replaces ep by one whose transport has probes. */
static void make_watched(void)
{
	static struct dofi_xport xport;
	DAT_EP_ATTR attr = attr_of_depth(8);

	/* the timer itself does not fire during a test */
	dofi_settings.tick_us = 1000000;
	xport = transport_ops;
	xport.probe = probe_record;
	ia->xport = &xport;
	make_with(evd, evd, &attr);
}

/* The events of a read and the write behind it, whose completion came first. */
static void overtake(bool loses, DAT_DTO_COMPLETION_STATUS read, DAT_DTO_COMPLETION_STATUS write)
{
	struct dofi_quirk quirk = *ia->fabric.quirk;
	const struct dofi_quirk *former = ia->fabric.quirk;

	quirk.loses_answers = loses;
	make_watched();
	ia->fabric.quirk = &quirk;
	succeed(post_send(1));
	succeed(post_read(2, 8, 8, 0));
	succeed(post_write(3, 8, 8));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	complete(2);
	if (!loses)
		complete(1);
	take(2, read);
	take(3, write);
	ia->fabric.quirk = former;
}

Test(ep_dto, a_read_that_an_answered_write_overtakes_is_lost_on_some_fabrics)
{
	overtake(false, DAT_DTO_SUCCESS, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
}

Test(ep_dto, a_lost_answer_breaks_the_connection)
{
	overtake(true, DAT_DTO_ERR_REMOTE_RESPONDER, DAT_DTO_ERR_FLUSHED);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* Each read that is answered is before the write. */
Test(ep_dto, no_read_is_lost_that_is_posted_behind_the_write)
{
	struct dofi_quirk quirk = *ia->fabric.quirk;
	const struct dofi_quirk *former = ia->fabric.quirk;

	quirk.loses_answers = true;
	make_watched();
	ia->fabric.quirk = &quirk;
	succeed(post_read(1, 8, 8, 0));
	succeed(post_write(2, 8, 8));
	succeed(post_read(3, 8, 8, 0));
	complete(0);
	complete(1);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
	ia->fabric.quirk = former;
}

/* The probe: a write of the provider's for reads that do not end */

static void watch_fire(void *arg)
{
	inside()->watch.fire(&inside()->watch);
}

/* The timer fires, as it does each second while reads are outstanding. */
static void tick(void)
{
	settle();
	dofi_progress_call(&ia->progress, watch_fire, NULL);
}

static void probe_complete(int err)
{
	const struct fi_cq_data_entry entry = { .op_context = probe.context };

	dofi_dto_complete(&entry, err, NULL);
}

Test(ep_dto, an_answered_probe_breaks_the_connection_of_a_read_that_is_not)
{
	make_watched();
	succeed(post_send(1));
	succeed(post_read(2, 8, 8, 0));
	succeed(post_read(3, 8, 8, 0));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	tick();
	tick();
	tick();
	cr_assert_eq(probe.n, 1, "one at a time, and only without progress");
	cr_expect(event_none(evd), "the peer may be slow");
	probe_complete(0);
	take(2, DAT_DTO_ERR_REMOTE_RESPONDER);
	take(3, DAT_DTO_ERR_FLUSHED);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	probe_complete(0);
	cr_expect(event_none(evd));
}

/* A transport without probes, such as rings: its peers may answer a write first. */
Test(ep_dto, other_connections_of_the_ia_lose_no_answers)
{
	succeed(post_read(1, 8, 8, 0));
	succeed(post_write(2, 8, 8));
	complete(1);
	cr_expect(event_none(evd));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	take(2, DAT_DTO_SUCCESS);
	cr_expect(inside()->watched);
}

Test(ep_dto, a_probe_concerns_the_reads_before_it)
{
	make_watched();
	succeed(post_read(1, 8, 8, 0));
	tick();
	cr_assert_eq(probe.n, 1);
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	succeed(post_read(2, 8, 8, 0));
	probe_complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_dto, a_refused_probe_is_posted_at_the_next_tick)
{
	make_watched();
	probe.refuses = true;
	succeed(post_read(1, 8, 8, 0));
	tick();
	probe.refuses = false;
	tick();
	cr_expect_eq(probe.n, 1);
	complete(0);
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_dto, reads_are_watched_while_there_are_some)
{
	make_watched();
	cr_expect(!inside()->watched);
	succeed(post_read(1, 8, 8, 0));
	settle();
	cr_expect(inside()->watched && inside()->watch.at);
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	tick();
	cr_expect(inside()->watched, "a request has ended since");
	tick();
	cr_expect_eq(probe.n, 0);
	cr_expect(!inside()->watched);
	succeed(post_read(2, 8, 8, 0));
	settle();
	cr_expect(inside()->watched && inside()->watch.at);
}

/* A disconnect does not wait for a probe, and its completion may come with the flush. */
Test(ep_dto, a_probe_is_no_request)
{
	make_watched();
	succeed(post_read(1, 8, 8, 0));
	tick();
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	probe_complete(FI_ECANCELED);
	cr_expect(event_none(evd));
	cr_expect(!inside()->probe.at_fabric);
	cr_expect_eq(inside()->watch.at, 0);
	succeed(dofi_ep_reset(ep));
}

Test(ep_dto, a_completion_of_a_slots_former_user_is_dropped)
{
	unsigned i, slots = inside()->sq.mask + 1;

	for (i = 0; i < slots; i++) {
		succeed(post_send(i));
		complete(i);
		take(i, DAT_DTO_SUCCESS);
	}
	succeed(post_send(slots));
	cr_assert_eq(transport.dto[slots], transport.dto[0]);
	complete(0);
	cr_expect(event_none(evd));
	complete(slots);
	take(slots, DAT_DTO_SUCCESS);
}

/* An operation that is queued is not at the fabric, so a completion for it must be stale. */
Test(ep_dto, a_completion_of_what_was_not_submitted_is_dropped)
{
	DAT_EP_ATTR attr = attr_of_depth(2);
	struct dofi_dto *slot;

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(post_send(2));
	complete(0);
	take(1, DAT_DTO_SUCCESS);
	slot = transport.dto[0];
	transport.taken = 0;
	succeed(post_send(3));
	cr_assert_eq(slot->cookie, 3);
	transport.context[0] = dofi_dto_context(slot);
	complete(0);
	cr_expect(event_none(evd));
	transport.taken = 1;
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	cr_assert_eq(transport.n, 3);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

Test(ep_dto, a_completion_of_nothing_is_dropped)
{
	const struct fi_cq_data_entry entry = { 0 };

	dofi_dto_complete(&entry, 0, NULL);
	cr_expect(event_none(evd));
}

/* Failing */

/* The transport may give the fabric one byte for a receive of zero bytes. */
Test(ep_dto, a_byte_for_a_receive_of_none_is_too_long)
{
	DAT_LMR_TRIPLET none = segment(0, 0);

	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 0);
	take(1, DAT_DTO_SUCCESS);
	succeed(dofi_ep_post_recv(ep, 0, NULL, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(1, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(dofi_ep_post_recv(ep, 1, &none, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(transport.n - 1, 0, 1);
	settle();
	take(2, DAT_DTO_ERR_LOCAL_LENGTH);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, what_the_fabric_refuses_waits_for_its_elders)
{
	succeed(post_send(1));
	transport.fail = -FI_EIO;
	succeed(post_send(2));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	take(2, DAT_DTO_ERR_TRANSPORT);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_dto, the_next_connection_knows_nothing_of_the_last_ones_operations)
{
	DAT_EP_ATTR attr = attr_of_depth(2);

	make_with(evd, evd, &attr);
	succeed(post_send(1));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	complete(0);
	complete_with(0, FI_EIO, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_reset(ep));
	make_connected(ep);
	succeed(post_send(2));
	succeed(post_send(3));
	complete(0);
	cr_expect(event_none(evd));
	complete(1);
	take(2, DAT_DTO_SUCCESS);
	complete(2);
	take(3, DAT_DTO_SUCCESS);
}

/*
 * Either this thread or the progress thread reads the fabric's queue. Each completion arrives once.
 */
Test(ep_dto, what_the_fabrics_queue_holds_arrives_in_order)
{
	DAT_COUNT more;
	DAT_EVENT event;
	uint64_t n;

	for (n = 0; n < 32; n++)
		succeed(post_send(n));
	for (n = 0; n < 32; n++)
		fake_complete(transport.context[n], 0);
	for (n = 0; n < 32; n++) {
		succeed(dofi_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
		cr_assert_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	}
	cr_expect(event_none(evd));
}

/* Remote CQ data of a message */

static DAT_RMR_HANDLE rmr;
static DAT_RMR_CONTEXT granted;		/* memory[0..63] */

static void bind_with(int priv, int flags, size_t length, DAT_RMR_CONTEXT *context)
{
	const DAT_LMR_TRIPLET part = segment(0, length);

#if DAT_VERSION_MAJOR >= 2
	succeed(dofi_rmr_bind(rmr, lmr, &part, (DAT_MEM_PRIV_FLAGS)priv, DAT_VA_TYPE_VA, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags,
			      context));
#else
	succeed(dofi_rmr_bind(rmr, &part, (DAT_MEM_PRIV_FLAGS)priv, ep,
			      (DAT_RMR_COOKIE){ .as_64 = 90 }, (DAT_COMPLETION_FLAGS)flags,
			      context));
#endif
}

static void init_granted(void)
{
	ops_init();
	succeed(dofi_rmr_create(pz, &rmr));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
}

TestSuite(ep_dto, .init = ops_init, .fini = ia_fini);
TestSuite(ep_data, .init = init_granted, .fini = ia_fini);

/* A message of 8 bytes that invalidates @context completes the @i-th operation. */
static void arrive_with(unsigned i, uint32_t context)
{
	const struct fi_cq_data_entry entry = { .op_context = transport.context[i], .len = 8 };
	const struct dofi_arrived arrived = {
		.kind = DOFI_DTO_RECV_INVALIDATE, .immed = context, .length = 8,
	};

	dofi_dto_complete_as(&entry, 0, &arrived, NULL);
}

static bool is_granted(void)
{
	return dofi_rmr_in_force(pz, ep, granted);
}

/* The transport matches a message of @len bytes, with remote CQ data, to the @i-th operation. */
static void match_with(unsigned i, size_t len, uint64_t cq_data)
{
	transport.dto[i]->flags |= DOFI_DTO_MATCHED;
	transport.dto[i]->cq_data = cq_data;
	complete_with(i, 0, len);
}

Test(ep_data, a_matched_receive_reports_its_remote_cq_data)
{
	const unsigned first = transport.n;
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_recv(1));
	succeed(post_recv(2));
	match_with(first, 5, 0);
	d = take(1, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 5);
	match_with(first + 1, 6, dofi_cq_data(DOFI_CQ_DATA_INVALIDATE, false, 0, granted));
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 6);
	cr_expect(!is_granted());
}

Test(ep_data, a_matched_receive_of_nonsense_breaks_the_connection)
{
	const unsigned first = transport.n;

	succeed(post_recv(1));
	match_with(first, 5, dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 3, 0));
	take(1, DAT_DTO_ERR_TRANSPORT);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	/* remote CQ data counts only for a matched receive */
	make_with(evd, evd, NULL);
	succeed(post_recv(2));
	transport.dto[transport.n - 1]->cq_data = 1;
	complete_with(transport.n - 1, 0, 5);
	take(2, DAT_DTO_SUCCESS);
}

Test(ep_data, an_invalidation_is_done_before_its_event)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(post_recv(1));
	succeed(post_recv(2));
	arrive_with(1, granted);
	cr_expect(!is_granted());
	cr_expect(!fake_mr_live(granted));
	cr_expect(event_none(evd), "the first is not done");
	complete_with(0, 0, 8);
	d = take(1, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE);
	cr_expect_eq(d.rmr_context, 0);
#endif
	d = take(2, DAT_DTO_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq(d.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	cr_expect_eq(d.rmr_context, granted);
#endif
	/* the next operation in the slot does not inherit the context */
	bind_with(0, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	for (unsigned n = 0; n < 64; n++) {
		succeed(post_recv(n));
		complete_with(2 + n, 0, 8);
		d = take(n, DAT_DTO_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
		cr_assert_eq(d.operation, DAT_DTO_RECEIVE);
#endif
	}
}

/* A hostile peer may send any value. It only breaks its own connection. */
Test(ep_data, what_is_no_grant_of_ours_breaks_the_connection)
{
	const uint32_t bad[] = { 0, granted ^ 1, rmr_context, lmr_context, UINT32_MAX };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		succeed(post_recv(1));
		arrive_with(transport.n - 1, bad[i]);
		settle();
		take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
		event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
		cr_expect(event_none(evd));
		cr_expect(is_granted());
		succeed(dofi_ep_reset(ep));
		make_connected(ep);
	}
}

#if DAT_VERSION_MAJOR >= 2
static DAT_RETURN send_invalidate(DAT_COUNT n, int flags, DAT_BOOLEAN invalidate)
{
	DAT_LMR_TRIPLET s[2] = { segment(0, 8), segment(64, 8) };

	return dofi_ep_post_send_with_invalidate(ep, n, n ? s : NULL, cookie_of(1),
						 (DAT_COMPLETION_FLAGS)flags, invalidate, 0x1234);
}

Test(ep_data, a_send_names_the_context_to_invalidate)
{
	struct dofi_dto *dto;

	succeed(send_invalidate(2, 0, DAT_TRUE));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_SEND_INVALIDATE);
	cr_expect_eq(dto->immed, 0x1234);
	cr_expect_eq(dto->n_iov, 2);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_SEND);
	succeed(send_invalidate(0, 0, DAT_TRUE));
	cr_expect_eq(transport.dto[1]->n_iov, 0);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.dto[2]->kind, DOFI_DTO_SEND, "nothing is to be invalidated");
}

Test(ep_data, a_send_that_invalidates_is_checked_as_any)
{
	DAT_LMR_TRIPLET s = { .lmr_context = 77, .segment_length = 8 };

	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0, DAT_TRUE,
							1),
		      EP);
	expect_handle(dofi_ep_post_send_with_invalidate(NOWHERE, 0, NULL, cookie_of(1), 0,
							DAT_FALSE, 1),
		      EP);
	expect_arg(send_invalidate(1000, 0, DAT_TRUE), 2);
	expect_arg(dofi_ep_post_send_with_invalidate(ep, 1, NULL, cookie_of(1), 0, DAT_TRUE, 1), 3);
	expect_arg(send_invalidate(1, 0x4000, DAT_TRUE), 5);
	expect_type(dofi_ep_post_send_with_invalidate(ep, 1, &s, cookie_of(1), 0, DAT_TRUE, 1),
		    DAT_PROTECTION_VIOLATION);
	ia->fabric.cq_data = false;
	expect_type(send_invalidate(1, 0, DAT_TRUE), DAT_MODEL_NOT_SUPPORTED);
	succeed(send_invalidate(1, 0, DAT_FALSE));
	cr_expect_eq(transport.n, 1);
}

/* Reads into an RMR */

static DAT_RMR_TRIPLET target(size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){
		.rmr_context = granted, .virtual_address = (uintptr_t)memory + offset,
		.segment_length = length,
	};
}

static DAT_RETURN read_into(DAT_RMR_TRIPLET local, size_t remote, int flags)
{
	const DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(1), &r,
					     (DAT_COMPLETION_FLAGS)flags);
}

Test(ep_data, a_read_goes_where_the_rmr_says)
{
	struct dofi_dto *dto;

	succeed(read_into(target(8, 56), 40, 0));
	dto = transport.dto[0];
	cr_expect_eq(dto->kind, DOFI_DTO_READ);
	cr_expect_eq(dto->n_iov, 1);
	cr_expect_eq(dto->iov[0].iov_base, memory + 8);
	cr_expect_eq(dto->iov[0].iov_len, 40);
	cr_expect_eq(dto->desc[0], ((struct dofi_lmr *)lmr)->desc);
	cr_expect_eq(dto->remote_addr, 0x5000);
	cr_expect_eq(inside()->reads, 1);
	complete(0);
	cr_expect_eq(take(1, DAT_DTO_SUCCESS).operation, DAT_DTO_RDMA_READ);
	cr_expect_eq(inside()->reads, 0);
	succeed(read_into((DAT_RMR_TRIPLET){ 0 }, 0, 0));	/* no bytes, so no RMR is needed */
	complete(1);
	take(1, DAT_DTO_SUCCESS);
}

Test(ep_data, a_read_into_an_rmr_needs_addresses_that_a_peer_has)
{
	const DAT_RMR_TRIPLET local = target(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);

	r.virtual_address = UINT64_MAX - 3;
	succeed(dofi_ep_post_rdma_read_to_rmr(ep, &local, cookie_of(1), &r,
					      DAT_COMPLETION_DEFAULT_FLAG));
	take(1, DAT_DTO_ERR_REMOTE_ACCESS);
	cr_expect_eq(transport.n, 0);
}

Test(ep_data, a_read_into_an_rmr_has_the_length_limit_of_rdma)
{
	ia->limits.max_rdma_size = 7;
	expect_type(read_into(target(0, 8), 8, 0), DAT_LENGTH_ERROR);
	cr_expect_eq(transport.n, 0);
	succeed(read_into(target(0, 7), 7, 0));
	cr_expect_eq(transport.n, 1);
}

Test(ep_data, a_read_into_an_rmr_is_checked)
{
	const DAT_RMR_TRIPLET r = remote_segment(8), l = target(0, 8);
	DAT_RMR_TRIPLET other = target(0, 8);

	expect_handle(dofi_ep_post_rdma_read_to_rmr(NOWHERE, &l, cookie_of(1), &r, 0), EP);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, NULL, cookie_of(1), &r, 0), 2);
	expect_arg(dofi_ep_post_rdma_read_to_rmr(ep, &l, cookie_of(1), NULL, 0), 4);
	expect_arg(read_into(l, 8, 0x4000), 5);
	expect_type(read_into(l, 9, 0), DAT_LENGTH_ERROR);
	expect_type(read_into(target(60, 8), 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 65), 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = rmr_context;	/* the context of an LMR */
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	other.rmr_context = 0;
	expect_type(read_into(other, 8, 0), DAT_PROTECTION_VIOLATION);
	bind_with(DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 64, &granted);
	expect_type(read_into(l, 8, 0), DAT_PROTECTION_VIOLATION);
	expect_type(read_into(target(0, 8), 8, 0), DAT_PRIVILEGES_VIOLATION);
	cr_expect_eq(transport.n, 0);
	cr_expect(event_none(evd));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	event_take(evd, DAT_RMR_BIND_COMPLETION_EVENT);
	succeed(dofi_ep_reset(ep));
	expect_type(read_into(l, 8, 0), DAT_INVALID_STATE);
}

Test(ep_data, a_read_may_follow_its_bind_at_once)
{
	transport.taken = 0;
	succeed(post_send(7));
	bind_with(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_COMPLETION_SUPPRESS_FLAG, 32, &granted);
	cr_expect(!is_granted());
	succeed(read_into(target(0, 32), 32, 0));
	transport.taken = 8;
	dofi_mutex_lock(&inside()->lock);
	dofi_dto_submit_pending(inside());
	dofi_mutex_unlock(&inside()->lock);
	cr_assert_eq(transport.n, 2);
	cr_expect_eq(transport.dto[1]->kind, DOFI_DTO_READ);
	complete(0);
	complete(1);
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_SUCCESS);
}

/* The RMR is bound when the read is posted, and unbound when the read is submitted. */
Test(ep_data, a_read_into_what_was_unbound_fails_in_its_turn)
{
	succeed(post_read(7, 8, 8, 0));
	bind_with(0, DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_SUPPRESS_FLAG, 0, NULL);
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, 1);
	complete(0);
	settle();
	take(7, DAT_DTO_SUCCESS);
	take(1, DAT_DTO_ERR_LOCAL_PROTECTION);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect_eq(transport.n, 1);
	cr_expect_eq(inside()->reads, 0);
}

Test(ep_data, a_read_into_an_rmr_waits_for_its_turn)
{
	DAT_COUNT most = inside()->attr.max_rdma_read_out, i;

	for (i = 0; i < most; i++)
		succeed(post_read(i, 8, 8, 0));
	succeed(read_into(target(0, 8), 8, 0));
	cr_expect_eq(transport.n, (unsigned)most);
	complete(0);
	cr_expect_eq(transport.n, (unsigned)most + 1);
	cr_expect_eq(inside()->reads, most);
	succeed(read_into(target(0, 8), 8, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	for (i = 1; i <= most; i++) {
		cr_expect_eq(transport.n, (unsigned)most + 1);
		complete(i);
	}
	cr_expect_eq(transport.n, (unsigned)most + 2);
}

Test(ep_data, a_read_into_an_rmr_is_flushed_as_any)
{
	transport.taken = 0;
	succeed(post_send(7));
	succeed(read_into(target(0, 8), 8, 0));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	take(7, DAT_DTO_ERR_FLUSHED);
	cr_expect_eq(take(1, DAT_DTO_ERR_FLUSHED).operation, DAT_DTO_RDMA_READ);
}
#endif
