/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations at a connectionless fabric, and the queue of operations that lack one. */

#include "xport/peer.h"

#include <rdma/fi_errno.h>

#define MOST 1024			/* more than a PZ has of anything */

static struct peer peer, second;
static DAT_EP_HANDLE ep, second_ep;
static struct rdm_op *op[MOST];

static void couple(void)
{
	ep = ep_make();
	second_ep = ep_make();
	peer_couple(&peer, ep);
	peer_couple(&second, second_ep);
}

static void init(void)
{
	rdm_init();
	couple();
}

/* A fabric that injects less than a frame */
static void init_sockets(void)
{
	rdm_init_on("sockets");
	couple();
}

TestSuite(rdm_op, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_op_copy, .init = init_sockets, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_pending, .init = init, .fini = rdm_fini, .timeout = 60);
TestSuite(rdm_stall, .init = init, .fini = rdm_fini, .timeout = 60);

static void post_send(DAT_EP_HANDLE from, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(0, length);
	const DAT_DTO_COOKIE c = { .as_64 = cookie };

	succeed(dofi_ep_post_send(from, 1, &iov, c, DAT_COMPLETION_DEFAULT_FLAG));
}

static struct rdm_op *get(struct rdm_conn *conn, bool copy)
{
	static const struct dofi_dto dto = { .number = 7 };

	return copy ? rdm_op_get_copy(conn) : rdm_op_get(conn, &dto, false);
}

/* Takes all operations for the connection of @of. Returns their number. */
static unsigned take_all(struct dofi_ep *of, bool copies)
{
	unsigned n = 0;

	dofi_mutex_lock(&of->lock);
	while (n < MOST && (op[n] = get(rdm_conn_of(of), copies)))
		n++;
	dofi_mutex_unlock(&of->lock);
	cr_assert(n && n < MOST, "%u", n);
	return n;
}

static void put_all(struct dofi_ep *of, unsigned n)
{
	dofi_mutex_lock(&of->lock);
	while (n)
		rdm_op_put(op[--n]);
	dofi_mutex_unlock(&of->lock);
}

/* Completes the operation as the fabric would. */
static void op_ends(struct rdm_op *done, int err)
{
	const struct fi_cq_data_entry entry = { .op_context = done };
	struct dofi_cq *cq = &done->rpz->domain->cq;

	dofi_mutex_lock(&cq->lock);
	rdm_op_completed(&entry, err, NULL);
	dofi_mutex_unlock(&cq->lock);
}

/* Operations */

Test(rdm_op, is_lent_and_put_back)
{
	const unsigned n = take_all(ep, false);

	put_all(ep, n);
	cr_expect_eq(take_all(second_ep, false), n);
	put_all(second_ep, n);
}

/* The fabric may complete an operation after its connection has ended. */
Test(rdm_op, outlives_its_connection)
{
	const unsigned n = take_all(ep, false);
	unsigned i;

	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (i = 0; i < n; i++) {
		cr_expect(!op[i]->conn);
		op_ends(op[i], i % 2 ? FI_ECANCELED : 0);
	}
	cr_expect_eq(take_all(second_ep, false), n, "all of them are free");
	put_all(second_ep, n);
}

static struct rdm_op *get_numbered(struct dofi_ep *of, uint32_t number)
{
	const struct dofi_dto dto = { .number = number };
	struct rdm_op *got;

	dofi_mutex_lock(&of->lock);
	got = rdm_op_get(rdm_conn_of(of), &dto, false);
	dofi_mutex_unlock(&of->lock);
	cr_assert(got);
	return got;
}

/* A completion of the slot's previous operation does not end the present one. */
Test(rdm_op, ends_the_operation_of_its_number)
{
	const struct dofi_queue *q = &((struct dofi_ep *)ep)->sq;
	uint32_t number;

	post_send(ep, BIG, 1);
	number = peer_take(&peer, RDM_FRAME_RTS)->frame.number;
	op_ends(get_numbered(ep, number - (q->mask + 1)), FI_EIO);
	cr_expect(peer_has_none(&peer) && event_none(evd));
	op_ends(get_numbered(ep, number), FI_EIO);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_TRANSPORT), 1);
	peer_sees_break(&peer);
}

Test(rdm_op_copy, goes_on_when_one_is_free)
{
	const unsigned ops = take_all(ep, false);
	const struct peer_frame *f;

	memset(big, 7, 2000);
	post_send(ep, 2000, 1);
	cr_expect(peer_has_none(&peer) && event_none(evd));
	put_all(ep, ops);
	f = peer_take(&peer, RDM_FRAME_SEND);
	cr_expect(f->frame.length == 2000 && !memcmp(f->data, big, 2000));
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
}

Test(rdm_op_copy, is_apart_from_the_others)
{
	take_all(ep, true);
	post_send(ep, 2000, 1);
	peer_take(&peer, RDM_FRAME_SEND);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
	op_ends(op[0], 0);
	cr_expect_eq(take_all(second_ep, true), 1);
	put_all(second_ep, 1);
}

Test(rdm_op_copy, a_short_frame_that_the_fabric_does_not_inject_is_sent_from_a_copy,
     .init = rdm_init)
{
	ia->fabric.info->tx_attr->inject_size = RDM_FRAME_FULL + 100;
	cr_assert(ia->fabric.frame_size <= RDM_INJECT_MAX);
	couple();
	memset(big, 7, 2000);
	post_send(ep, 2000, 1);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 1);
	cr_expect(!memcmp(peer_take(&peer, RDM_FRAME_SEND)->data, big, 2000));
}

Test(rdm_op_copy, a_copy_that_is_lost_ends_its_connection)
{
	take_all(ep, true);
	op_ends(op[0], FI_EIO);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	post_send(second_ep, 10, 2);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 2);
}

/* The peer's BYE gives the better reason. */
Test(rdm_op_copy, unless_the_peer_has_left)
{
	struct dofi_ep *e = ep;

	take_all(ep, true);
	dofi_mutex_lock(&e->lock);
	rdm_conn_of(e)->left = true;
	dofi_mutex_unlock(&e->lock);
	op_ends(op[0], FI_EIO);
	cr_expect(peer_has_none(&peer) && event_none(evd));
}

/* Queued frames */

/* Takes all spare frames of the PZ and one more. Returns the number of spares. */
static unsigned wait_all(struct rdm_pz *rpz, struct rdm_pending **taken)
{
	const size_t size = rpz->rdm.frame_size;
	unsigned n = 0;

	do {
		taken[n] = rdm_pending_get(rpz, size);
		cr_assert(taken[n]);
		memset(taken[n]->data, (int)n, size);
	} while (taken[n]->is_spare && ++n < MOST - 1);
	return n;
}

Test(rdm_pending, takes_what_is_there_first)
{
	struct rdm_pz *rpz = ((struct dofi_pz *)pz)->xport_pz;
	static struct rdm_pending *taken[MOST];
	unsigned n = wait_all(rpz, taken), i;

	cr_expect(n > RDM_WINDOW && n < MOST - 1, "%u", n);
	for (i = 0; i <= n; i++)
		rdm_pending_put(rpz, taken[i]);
	cr_expect_eq(wait_all(rpz, taken), n);
	for (i = 0; i <= n; i++)
		rdm_pending_put(rpz, taken[i]);
}

Test(rdm_pending, has_room_for_what_is_longer)
{
	struct rdm_pz *rpz = ((struct dofi_pz *)pz)->xport_pz;
	const size_t size = rpz->rdm.frame_size + 1;
	struct rdm_pending *longer = rdm_pending_get(rpz, size);

	cr_assert(longer && !longer->is_spare);
	memset(longer->data, 1, size);
	rdm_pending_put(rpz, longer);
}

/* Operations that the fabric does not take */

static const unsigned char *received_by(struct peer *p)
{
	return peer_take(p, RDM_FRAME_SEND)->data;
}

Test(rdm_stall, ends_for_all_of_them)
{
	big[0] = 42;
	fabric_takes(ep, false);
	post_send(ep, 1, 1);
	post_send(second_ep, 1, 2);
	cr_expect(peer_has_none(&peer) && peer_has_none(&second) && event_none(evd));
	fabric_takes(second_ep, true);
	dofi_cq_drain(&((struct dofi_pz *)pz)->domain.cq);
	cr_expect_eq(*received_by(&peer), 42);
	cr_expect_eq(*received_by(&second), 42);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS) + done_await(evd, DAT_DTO_SUCCESS), 3);
}

Test(rdm_stall, does_not_outlive_the_connection)
{
	fabric_takes(ep, false);
	post_send(ep, 1, 1);
	post_send(second_ep, 1, 2);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_FLUSHED), 1);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	fabric_takes(second_ep, true);
	dofi_cq_drain(&((struct dofi_pz *)pz)->domain.cq);
	received_by(&second);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 2);
	cr_expect(peer_has_none(&peer));
}

/* A sweep that is due does not find the connection either. */
Test(rdm_stall, leaves_the_line_with_the_connection)
{
	struct rdm_conn *conn = rdm_conn_of(ep);
	struct dofi_cq *cq = &conn->rpz->domain->cq;

	dofi_mutex_lock(&cq->lock);
	dofi_mutex_lock(&conn->ep->lock);
	rdm_stall(conn);
	rdm_stall(conn);
	dofi_mutex_unlock(&conn->ep->lock);
	cr_expect(conn->stall.queued && TAILQ_FIRST(&cq->stalls) == &conn->stall);
	rdm_ops_abandon(conn);
	cr_expect(!conn->stall.queued && TAILQ_EMPTY(&cq->stalls));
	dofi_mutex_unlock(&cq->lock);
}
