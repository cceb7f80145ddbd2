/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue between two processes: which message takes which buffer, and what
 * becomes of it.
 */

#include "pair.h"

#if DAT_API >= 2
#include <dat2/dat_ib_extensions.h>
#endif
#include <signal.h>
#include <string.h>

#define EPS 4
#define SLOT 65536u		/* size of each buffer */
#define SLOTS 8

/* A node with EPs, on an SRQ if there is one, and memory divided into slots. */
struct side {
	struct node n;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep[EPS];
	int n_eps;
	struct mem m;
};

static DAT_SRQ_HANDLE srq_make(struct node *n, DAT_COUNT depth)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = depth, .max_recv_iov = 2,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE srq;

	if (!n->attr.max_srqs)
		pair_skip("the fabric has no SRQs");
	OK(dat_srq_create(n->ia, n->pz, &attr, &srq));
	return srq;
}

static DAT_EP_HANDLE srq_ep(struct node *n, DAT_SRQ_HANDLE srq)
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;

	node_ep_attr(n, &attr);
	attr.srq_soft_hw = DAT_HW_DEFAULT;
	OK(dat_ep_create_with_srq(n->ia, n->pz, n->recv, n->req, n->conn, srq, &attr, &ep));
	return ep;
}

static void side_open(struct pair *p, struct side *s, int eps, bool shared)
{
	int i;

	memset(s, 0, sizeof(*s));
	node_open(&s->n);
	mem_get(&s->n, &s->m, SLOTS * SLOT);
	if (shared)
		s->srq = srq_make(&s->n, SLOTS);
	s->n_eps = eps;
	for (i = 0; i < eps; i++)
		s->ep[i] = shared ? srq_ep(&s->n, s->srq) : node_ep(&s->n, NULL);
	for (i = 0; i < eps; i++)
		pair_link(p, &s->n, s->ep[i]);
}

/* Expects an asynchronous event about @handle with this reason. */
static void expect_async(struct node *n, DAT_HANDLE handle, DAT_COUNT reason)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(n->async, DAT_ASYNC_ERROR_EP_BROKEN, &event);
	d = &event.event_data.asynch_error_event_data;
	CHECK(d->dat_handle == handle, "wrong object");
	SAME(d->reason, reason);
}

/* Expects the event that an EP takes no more buffers from the SRQ. */
static void expect_last(struct side *s, DAT_EP_HANDLE ep)
{
	if (s->srq)
		expect_async(&s->n, ep, DAT_EP_TRANSFER_TO_ERROR);
}

/* EPs that are no longer connected have been removed from ep[] before. */
static void side_close(struct pair *p, struct side *s)
{
	int i;

	for (i = 0; i < s->n_eps; i++) {
		if (!s->ep[i])
			continue;
		pair_unlink(p, &s->n, s->ep[i]);
		expect_last(s, s->ep[i]);
		OK(dat_ep_free(s->ep[i]));
	}
	expect_quiet(s->n.req);
	expect_quiet(s->n.recv);
	if (s->srq)
		OK(dat_srq_free(s->srq));
	mem_put(&s->m);
	node_close(&s->n);
}

static DAT_RETURN try_post(struct side *s, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET segment = mem_segment(&s->m, offset, length);

	return dat_srq_post_recv(s->srq, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = cookie });
}

/* Posts slot @i with its number as the cookie. */
static void post_slot(struct side *s, unsigned i)
{
	OK(try_post(s, i * SLOT, SLOT, i));
}

static void check_counts(struct side *s, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &param));
	SAME(param.available_dto_count, available);
	SAME(param.outstanding_dto_count, outstanding);
}

/* Expects a successful receive of @ep next; returns its slot. */
static unsigned expect_message(struct side *s, DAT_EP_HANDLE ep, uint64_t length, unsigned seed)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(s->n.recv, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	CHECK(d->ep_handle == ep, "wrong endpoint");
	SAME(d->status, DAT_DTO_SUCCESS);
	SAME(d->transfered_length, length);
	CHECK(d->user_cookie.as_64 < SLOTS, "invalid cookie");
	verify(s->m.base + d->user_cookie.as_64 * SLOT, length, seed);
	return (unsigned)d->user_cookie.as_64;
}

/* Every other message has the SOLICITED_WAIT flag. */
static void send_pattern(struct side *s, DAT_EP_HANDLE ep, size_t length, unsigned seed)
{
	DAT_LMR_TRIPLET iov = mem_segment(&s->m, 0, length);
	const DAT_DTO_COOKIE cookie = { .as_64 = seed };

	fill(s->m.base, length, seed);
	OK(dat_ep_post_send(ep, 1, &iov, cookie, seed & 1 ? DAT_COMPLETION_SOLICITED_WAIT_FLAG :
								    DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(s->n.req, seed, DAT_DTO_SUCCESS, length);
}

/* Sizes around the largest message that fits into its RTS. */
static const size_t sizes[] = { 0, 1, 8, 115, 116, 117, 128, 129, 4096, 9001, SLOT };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void messages_server(struct pair *p)
{
	struct side s;
	unsigned i, j;

	side_open(p, &s, EPS, true);
	for (i = 0; i < SLOTS; i++)
		post_slot(&s, i);
	pair_sync(p);
	for (i = 0; i < SIZES; i++)
		for (j = 0; j < EPS; j++) {
			post_slot(&s, expect_message(&s, s.ep[j], sizes[i], i * EPS + j));
			pair_sync(p);
		}
	check_counts(&s, SLOTS, SLOTS);
	side_close(p, &s);
}

static void messages_client(struct pair *p)
{
	struct side s;
	unsigned i, j;

	side_open(p, &s, EPS, false);
	pair_sync(p);
	for (i = 0; i < SIZES; i++)
		for (j = 0; j < EPS; j++) {
			send_pattern(&s, s.ep[j], sizes[i], i * EPS + j);
			pair_sync(p);
		}
	side_close(p, &s);
}

#if DAT_API >= 2
/* Immediate data reaches the receiver of an SRQ, too. */
static void immediate_server(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, true);
	for (i = 0; i < SLOTS; i++)
		post_slot(&s, i);
	pair_sync(p);
	for (i = 0; i < SIZES; i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d;
		DAT_IB_EXTENSION_EVENT_DATA x;
		DAT_EVENT event;

		expect_event(s.n.recv, DAT_IB_DTO_EVENT, &event);
		d = &event.event_data.dto_completion_event_data;
		memcpy(&x, event.event_extension_data, sizeof(x));
		SAME(d->status, DAT_DTO_SUCCESS);
		SAME(d->transfered_length, sizes[i]);
		SAME(x.type, DAT_IB_RECV_IMMED_DATA);
		SAME(x.val.immed.data, 1000 + i);
		verify(s.m.base + d->user_cookie.as_64 * SLOT, sizes[i], i);
		post_slot(&s, (unsigned)d->user_cookie.as_64);
		pair_sync(p);
	}
	side_close(p, &s);
}

static void immediate_client(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, false);
	pair_sync(p);
	for (i = 0; i < SIZES; i++) {
		DAT_LMR_TRIPLET iov = mem_segment(&s.m, 0, sizes[i]);
		const DAT_DTO_COOKIE cookie = { .as_64 = i };

		fill(s.m.base, sizes[i], i);
		OK(dat_ib_post_send_immed(s.ep[0], 1, &iov, cookie, 1000 + i,
					  DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(s.n.req, i, DAT_DTO_SUCCESS, sizes[i]);
		pair_sync(p);
	}
	side_close(p, &s);
}
#endif

/* On every EP messages wait for a buffer, and each buffer that is posted takes one. */
static void waits_server(struct pair *p)
{
	struct side s;
	unsigned i, j;

	side_open(p, &s, EPS, true);
	for (i = 0; i < SIZES; i++) {
		pair_sync(p);
		expect_quiet(s.n.recv);
		for (j = 0; j < EPS; j++) {
			DAT_EVENT event;

			post_slot(&s, j);
			expect_event(s.n.recv, DAT_DTO_COMPLETION_EVENT, &event);
			SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
			SAME(event.event_data.dto_completion_event_data.transfered_length,
			     sizes[i]);
			verify(s.m.base + j * SLOT, sizes[i], i);
			check_counts(&s, 0, 0);
		}
		pair_sync(p);
	}
	side_close(p, &s);
}

static void waits_client(struct pair *p)
{
	struct side s;
	unsigned i, j;

	side_open(p, &s, EPS, false);
	for (i = 0; i < SIZES; i++) {
		fill(s.m.base, sizes[i], i);
		for (j = 0; j < EPS; j++)
			post_send(s.ep[j], &s.m, 0, sizes[i], j);
		pair_sync(p);
		pair_sync(p);
		for (j = 0; j < EPS; j++)
			expect_event(s.n.req, DAT_DTO_COMPLETION_EVENT, &(DAT_EVENT){ 0 });
	}
	side_close(p, &s);
}

/* Both peers use an SRQ and answer each other with fewer buffers than EPs. */

#define ROUNDS 50

static void both_directions(struct pair *p)
{
	static const size_t lengths[] = { 16, 3000, 116, 20000 };
	unsigned sent[EPS] = { 0 }, received = 0, completed = 0, i;
	DAT_EVENT event;
	struct side s;

	side_open(p, &s, EPS, true);
	for (i = 0; i < 2; i++)
		post_slot(&s, i);
	fill(s.m.base + 4 * SLOT, SLOT, 7);
	pair_sync(p);
	for (i = 0; i < EPS; i++, sent[i - 1]++)
		post_send(s.ep[i], &s.m, 4 * SLOT, lengths[i], i);
	while (received < EPS * ROUNDS || completed < EPS * ROUNDS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *d =
			&event.event_data.dto_completion_event_data;

		if (completed < EPS * ROUNDS && !dat_evd_dequeue(s.n.req, &event)) {
			SAME(d->status, DAT_DTO_SUCCESS);
			completed++;
			continue;
		}
		if (received == EPS * ROUNDS) {
			expect_event(s.n.req, DAT_DTO_COMPLETION_EVENT, &event);
			SAME(d->status, DAT_DTO_SUCCESS);
			completed++;
			continue;
		}
		expect_event(s.n.recv, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(d->status, DAT_DTO_SUCCESS);
		for (i = 0; i < EPS && s.ep[i] != d->ep_handle; i++)
			;
		CHECK(i < EPS, "unknown endpoint");
		SAME(d->transfered_length, lengths[i]);
		verify(s.m.base + d->user_cookie.as_64 * SLOT, lengths[i], 7);
		received++;
		post_slot(&s, (unsigned)d->user_cookie.as_64);
		if (sent[i] < ROUNDS) {
			post_send(s.ep[i], &s.m, 4 * SLOT, lengths[i], i);
			sent[i]++;
		}
	}
	check_counts(&s, 2, 2);
	side_close(p, &s);
}

/*
 * Messages sent before the end arrive, with the fewest buffers possible, followed by the end. It
 * depends on the fabric whether the sends complete before there are buffers.
 */

#define LAST 20u

static void last_messages_server(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, true);
	pair_sync(p);
	for (i = 0; i < LAST; i++) {
		post_slot(&s, 0);
		expect_message(&s, s.ep[0], i % 2 ? 5000 : 50, i % 2);
	}
	expect_conn(s.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s.ep[0]);
	expect_last(&s, s.ep[0]);
	check_counts(&s, 0, 0);
	OK(dat_ep_free(s.ep[0]));
	s.n_eps = 0;
	side_close(p, &s);
}

static void last_messages_client(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, false);
	fill(s.m.base, 50, 0);
	fill(s.m.base + SLOT, 5000, 1);
	for (i = 0; i < LAST; i++)
		post_send(s.ep[0], &s.m, i % 2 * SLOT, i % 2 ? 5000 : 50, i);
	OK(dat_ep_disconnect(s.ep[0], DAT_CLOSE_GRACEFUL_FLAG));
	pair_sync(p);
	for (i = 0; i < LAST; i++)
		expect_dto(s.n.req, i, DAT_DTO_SUCCESS, i % 2 ? 5000 : 50);
	expect_conn(s.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s.ep[0]);
	OK(dat_ep_free(s.ep[0]));
	s.n_eps = 0;
	side_close(p, &s);
}

/* A message that is too long ends its own connection; other connections and the buffers remain. */
static void too_long_server(struct pair *p)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;
	struct side s;
	unsigned i;

	side_open(p, &s, EPS, true);
	OK(try_post(&s, 0, 64, 0));
	OK(try_post(&s, SLOT, 200, 1));
	post_slot(&s, 2);
	for (i = 0; i < 2; i++) {
		pair_sync(p);
		expect_event(s.n.recv, DAT_DTO_COMPLETION_EVENT, &event);
		d = &event.event_data.dto_completion_event_data;
		SAME(d->status, DAT_DTO_ERR_LOCAL_LENGTH);
		SAME(d->user_cookie.as_64, i);
		CHECK(d->ep_handle == s.ep[i], "wrong endpoint");
		expect_conn(s.n.conn, DAT_CONNECTION_EVENT_BROKEN, s.ep[i]);
		expect_last(&s, s.ep[i]);
		OK(dat_ep_free(s.ep[i]));
		s.ep[i] = NULL;
	}
	check_counts(&s, 1, 1);
	pair_sync(p);
	SAME(expect_message(&s, s.ep[2], 300, 3), 2);
	side_close(p, &s);
}

static void too_long_client(struct pair *p)
{
	static const size_t length[] = { 65, 201 };
	DAT_EVENT event;
	struct side s;
	unsigned i;

	side_open(p, &s, EPS, false);
	for (i = 0; i < 2; i++) {
		pair_sync(p);
		post_send(s.ep[i], &s.m, 0, length[i], 1);
		/* it depends on the fabric whether the message left before the end */
		expect_event(s.n.req, DAT_DTO_COMPLETION_EVENT, &event);
		expect_end(s.n.conn, s.ep[i]);
		OK(dat_ep_free(s.ep[i]));
		s.ep[i] = NULL;
	}
	pair_sync(p);
	send_pattern(&s, s.ep[2], 300, 3);
	side_close(p, &s);
}

/* The end of a connection leaves the buffers to the other EPs, and is reported once. */
static void ends_server(struct pair *p)
{
	struct side s;
	int i;

	side_open(p, &s, EPS, true);
	post_slot(&s, 0);
	post_slot(&s, 1);
	for (i = 0; i < EPS; i++) {
		pair_sync(p);
		if (i % 2)
			OK(dat_ep_disconnect(s.ep[i], DAT_CLOSE_ABRUPT_FLAG));
		expect_conn(s.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s.ep[i]);
		expect_last(&s, s.ep[i]);
		check_counts(&s, 2, 2);
		expect_quiet(s.n.recv);
	}
	FAILS(dat_srq_free(s.srq), DAT_INVALID_STATE);
	/* the first EP is connected again, still with the SRQ */
	OK(dat_ep_reset(s.ep[0]));
	pair_link(p, &s.n, s.ep[0]);
	SAME(expect_message(&s, s.ep[0], 77, 9), 0);
	for (i = 1; i < EPS; i++) {
		OK(dat_ep_free(s.ep[i]));
		s.ep[i] = NULL;
	}
	side_close(p, &s);
}

/* Ends every other connection, then connects the first EP again. */
static void ends_client(struct pair *p)
{
	struct side s;
	int i;

	side_open(p, &s, EPS, false);
	for (i = 0; i < EPS; i++) {
		pair_sync(p);
		if (!(i % 2))
			OK(dat_ep_disconnect(s.ep[i], DAT_CLOSE_GRACEFUL_FLAG));
		expect_conn(s.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s.ep[i]);
	}
	OK(dat_ep_reset(s.ep[0]));
	pair_link(p, &s.n, s.ep[0]);
	send_pattern(&s, s.ep[0], 77, 9);
	for (i = 1; i < EPS; i++) {
		OK(dat_ep_free(s.ep[i]));
		s.ep[i] = NULL;
	}
	side_close(p, &s);
}

/*
 * Knowledge about one peer does not apply to the next: the client's EP connects to an EP
 * of an SRQ, then to one without.
 */
static void next_peer(struct pair *p)
{
	DAT_EP_HANDLE plain;
	struct side s;

	side_open(p, &s, 1, p->server);
	pair_unlink(p, &s.n, s.ep[0]);
	expect_last(&s, s.ep[0]);
	OK(dat_ep_reset(s.ep[0]));
	plain = node_ep(&s.n, NULL);
	post_recv(plain, &s.m, 0, SLOT, 1);
	pair_link(p, &s.n, p->server ? plain : s.ep[0]);
	pair_sync(p);
	if (p->server)
		expect_dto(s.n.recv, 1, DAT_DTO_SUCCESS, 500);
	else
		send_pattern(&s, s.ep[0], 500, 2);
	pair_unlink(p, &s.n, p->server ? plain : s.ep[0]);
	OK(dat_ep_free(plain));
	OK(dat_ep_free(s.ep[0]));
	s.n_eps = 0;
	while (!dat_evd_dequeue(s.n.recv, &(DAT_EVENT){ 0 }))
		;
	side_close(p, &s);
}

static void watermarks_server(struct pair *p)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_COUNT buffers, span;
	DAT_EVENT event;
	struct side s;
	unsigned i;

	side_open(p, &s, 2, true);
	for (i = 0; i < 4; i++)
		post_slot(&s, i);
	OK(dat_srq_set_lw(s.srq, 3));
	FAILS(dat_srq_set_lw(s.srq, SLOTS + 1), DAT_INVALID_PARAMETER);
	OK(dat_ep_set_watermark(s.ep[0], 0, DAT_WATERMARK_INFINITE));
	pair_sync(p);
	for (i = 0; i < 3; i++)
		expect_message(&s, s.ep[0], 10, i);
	OK(dat_ep_recv_query(s.ep[0], &buffers, &span));
	SAME(buffers, 0);
	SAME(span, 0);
	/* one event each: for the first message, and for the one that left two buffers */
	expect_async(&s.n, s.ep[0], DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	expect_async(&s.n, s.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	/* the number is already below the mark */
	OK(dat_srq_set_lw(s.srq, 2));
	expect_async(&s.n, s.srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	OK(dat_ep_set_watermark(s.ep[1], DAT_WATERMARK_INFINITE, 0));
	pair_sync(p);
	expect_event(s.n.recv, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->status, DAT_DTO_ERR_FLUSHED);
	CHECK(d->ep_handle == s.ep[1], "wrong endpoint");
	expect_conn(s.n.conn, DAT_CONNECTION_EVENT_BROKEN, s.ep[1]);
	expect_last(&s, s.ep[1]);
	OK(dat_ep_free(s.ep[1]));
	s.n_eps = 1;
	side_close(p, &s);
}

static void watermarks_client(struct pair *p)
{
	DAT_EVENT event;
	struct side s;
	unsigned i;

	side_open(p, &s, 2, false);
	pair_sync(p);
	for (i = 0; i < 3; i++)
		send_pattern(&s, s.ep[0], 10, i);
	pair_sync(p);
	post_send(s.ep[1], &s.m, 0, 10, 1);
	expect_event(s.n.req, DAT_DTO_COMPLETION_EVENT, &event);
	expect_end(s.n.conn, s.ep[1]);
	OK(dat_ep_free(s.ep[1]));
	s.n_eps = 1;
	side_close(p, &s);
}

/* The SRQ grows and shrinks under traffic, with a message waiting. */
static void resize_server(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, true);
	OK(dat_srq_resize(s.srq, 2));
	post_slot(&s, 0);
	post_slot(&s, 1);
	FAILS(try_post(&s, 0, 1, 9), DAT_INSUFFICIENT_RESOURCES);
	FAILS(dat_srq_resize(s.srq, 1), DAT_INVALID_STATE);
	OK(dat_srq_resize(s.srq, 100));
	for (i = 2; i < SLOTS; i++)
		post_slot(&s, i);
	pair_sync(p);
	for (i = 0; i < SLOTS; i++)
		SAME(expect_message(&s, s.ep[0], 1000, i), i);
	OK(dat_srq_resize(s.srq, 1));
	check_counts(&s, 0, 0);
	post_slot(&s, 3);
	SAME(expect_message(&s, s.ep[0], 1000, SLOTS), 3);
	side_close(p, &s);
}

static void resize_client(struct pair *p)
{
	struct side s;
	unsigned i;

	side_open(p, &s, 1, false);
	pair_sync(p);
	for (i = 0; i <= SLOTS; i++)
		send_pattern(&s, s.ep[0], 1000, i);
	side_close(p, &s);
}

/* The peer dies: while messages wait, and in the middle of a message. */
static void death_server(struct pair *p)
{
	struct side s;
	DAT_EVENT event;
	int i;

	side_open(p, &s, 3, true);
	pair_sync(p);
	pair_wait_gone(p);
	for (i = 0; i < 3; i++) {
		int k;

		/* the EP reads nothing after a message that waits */
		OK(dat_evd_wait(s.n.conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event,
				&(DAT_COUNT){ 0 }));
		CHECK(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			      event.event_number == end_by_death(&s.n),
		      "%s", event_name(event.event_number));
		for (k = 0; k < 3; k++)
			if (event.event_data.connect_event_data.ep_handle == s.ep[k])
				break;
		CHECK(k < 3, "wrong endpoint");
		expect_last(&s, s.ep[k]);
		OK(dat_ep_free(s.ep[k]));
		s.ep[k] = NULL;
	}
	/* no EP waits for a buffer now */
	post_slot(&s, 0);
	check_counts(&s, 1, 1);
	expect_quiet(s.n.recv);
	s.n_eps = 0;
	side_close(p, &s);
}

static void death_client(struct pair *p)
{
	struct side s;

	side_open(p, &s, 3, false);
	post_send(s.ep[0], &s.m, 0, 50, 1);
	post_send(s.ep[1], &s.m, 0, SLOT, 1);
	pair_sync(p);
	raise(SIGKILL);
}

/* An abrupt close while all objects are in use. */
static void closed(struct pair *p)
{
	struct side s;

	side_open(p, &s, EPS, true);
	post_slot(&s, 0);
	pair_sync(p);
	post_send(s.ep[0], &s.m, 4 * SLOT, SLOT, 1);
	post_send(s.ep[1], &s.m, 4 * SLOT, SLOT, 1);
	FAILS(dat_ia_close(s.n.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	pair_sync(p);
	OK(dat_ia_close(s.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct pair_case cases[] = {
	PAIR_CASE("messages", messages_server, messages_client),
#if DAT_API >= 2
	PAIR_CASE("immediate", immediate_server, immediate_client),
#endif
	PAIR_CASE("waits", waits_server, waits_client),
	PAIR_CASE("both_directions", both_directions, both_directions),
	PAIR_CASE("last_messages", last_messages_server, last_messages_client,
		  .not_sockets = "it loses a shutdown right after messages, one time in a hundred"),
	PAIR_CASE("too_long", too_long_server, too_long_client),
	PAIR_CASE("disconnects", ends_server, ends_client),
	PAIR_CASE("next_peer", next_peer, next_peer),
	PAIR_CASE("watermarks", watermarks_server, watermarks_client),
	PAIR_CASE("resize", resize_server, resize_client),
	PAIR_CASE("peer_killed", death_server, death_client, .client_killed = true),
	PAIR_CASE("closed", closed, closed),
};

PAIR_MAIN(cases)
