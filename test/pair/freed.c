/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An LMR is freed while operations on it are outstanding between two processes. Its memory is
 * unmapped or overwritten at once, and no operation may use it any more: that would crash the
 * process, or bring the peer other bytes than before.
 */

#include "pair.h"

#include <string.h>
#include <sys/mman.h>

#define SMALL 64u
#define LARGE (1u << 20)
#define MANY 8

/* Frees the LMR of @m, then unmaps or overwrites its memory. */
static void free_memory(struct mem *m, bool unmap)
{
	OK(dat_lmr_free(m->lmr));
	if (unmap)
		munmap(m->base, m->size);
	else
		memset(m->base, 0xee, m->size);
}

/* Expects the completion of @cookie next. */
static DAT_DTO_COMPLETION_EVENT_DATA completion(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event;

	expect_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	return event.event_data.dto_completion_event_data;
}

/* Expects the completion of an operation that may have finished before the LMR was freed. */
static void expect_ended(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_STATUS status = completion(evd, cookie).status;

	CHECK(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_LOCAL_PROTECTION ||
	      status == DAT_DTO_ERR_FLUSHED, "status %d", status);
}

/* Closes a link after its connection has ended, or while it ends. */
static void close_ended(struct link *l)
{
	OK(dat_ep_free(l->ep));
	mem_put(&l->m);
	node_close(&l->n);
}

/* Sends @n messages, or fewer if the connection ends before. */
static void send_until_end(struct link *l, unsigned n, uint32_t size)
{
	DAT_LMR_TRIPLET segment = mem_segment(&l->m, 0, size);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned i;

	for (i = 0; i < n && !ret; i++)
		ret = dat_ep_post_send(l->ep, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = i },
				       DAT_COMPLETION_DEFAULT_FLAG);
}

/* Receives */

/*
 * Of three receives the second loses its LMR: its message fails it, and the other two keep their
 * order.
 */
static void receiver(struct pair *p)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;
	struct mem freed;
	struct link l;

	link_open(p, &l, 2 * SMALL);
	mem_get(&l.n, &freed, SMALL);
	post_recv(l.ep, &l.m, 0, SMALL, 1);
	post_recv(l.ep, &freed, 0, SMALL, 2);
	post_recv(l.ep, &l.m, SMALL, SMALL, 3);
	free_memory(&freed, true);
	pair_sync(p);
	expect_dto(l.n.recv, 1, DAT_DTO_SUCCESS, SMALL);
	verify(l.m.base, SMALL, 1);
	expect_dto(l.n.recv, 2, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	/* a fabric may continue after the failed message, until the connection is closed */
	d = completion(l.n.recv, 3);
	CHECK(d.status == DAT_DTO_ERR_FLUSHED || d.status == DAT_DTO_SUCCESS, "status %d",
	      d.status);
	if (d.status == DAT_DTO_SUCCESS)
		verify(l.m.base + SMALL, SMALL, 1);
	expect_conn(l.n.conn, DAT_CONNECTION_EVENT_BROKEN, l.ep);
	pair_sync(p);
	close_ended(&l);
}

/* Sends @n messages of @size and waits for the end of the connection. */
static void sender_of(struct pair *p, unsigned n, uint32_t size)
{
	struct link l;

	link_open(p, &l, size);
	fill(l.m.base, size, 1);
	pair_sync(p);
	send_until_end(&l, n, size);
	expect_end(l.n.conn, l.ep);
	pair_sync(p);
	close_ended(&l);
}

static void sender(struct pair *p)
{
	sender_of(p, 3, SMALL);
}

/* Receives without a message cause no error: the connection continues, and ends normally. */
static void unused_receiver(struct pair *p)
{
	struct mem freed;
	struct link l;
	unsigned i;

	link_open(p, &l, SMALL);
	mem_get(&l.n, &freed, MANY * SMALL);
	post_recv(l.ep, &l.m, 0, SMALL, 0);
	for (i = 1; i <= MANY; i++)
		post_recv(l.ep, &freed, (i - 1) * SMALL, SMALL, i);
	free_memory(&freed, true);
	pair_sync(p);
	expect_dto(l.n.recv, 0, DAT_DTO_SUCCESS, SMALL);
	pair_sync(p);
	pair_unlink(p, &l.n, l.ep);
	for (i = 1; i <= MANY; i++)
		expect_dto(l.n.recv, i, DAT_DTO_ERR_FLUSHED, 0);
	close_ended(&l);
}

static void unused_sender(struct pair *p)
{
	struct link l;

	link_open(p, &l, SMALL);
	pair_sync(p);
	post_send(l.ep, &l.m, 0, SMALL, 1);
	expect_dto(l.n.req, 1, DAT_DTO_SUCCESS, SMALL);
	pair_sync(p);
	link_close(p, &l);
}

/* Gives receives of @ep as many segments as the IA allows: posted receives move. */
static void widen(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_recv_iov = n->attr.max_iov_segments_per_dto;
	OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param));
}

/* Receives posted before there is a connection, and with @widened, before the EP is modified. */
static void early_receiver_of(struct pair *p, bool widened)
{
	struct mem freed;
	DAT_EP_ATTR attr;
	struct link l;

	node_open(&l.n);
	mem_get(&l.n, &l.m, SMALL);
	mem_get(&l.n, &freed, SMALL);
	node_ep_attr(&l.n, &attr);
	attr.max_recv_iov = 1;
	l.ep = node_ep(&l.n, &attr);
	post_recv(l.ep, &freed, 0, SMALL, 1);
	if (widened)
		widen(&l.n, l.ep);
	free_memory(&freed, true);
	pair_link(p, &l.n, l.ep);
	pair_sync(p);
	expect_dto(l.n.recv, 1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect_conn(l.n.conn, DAT_CONNECTION_EVENT_BROKEN, l.ep);
	pair_sync(p);
	close_ended(&l);
}

static void early_receiver(struct pair *p)
{
	early_receiver_of(p, false);
}

static void widened_receiver(struct pair *p)
{
	early_receiver_of(p, true);
}

static void early_sender(struct pair *p)
{
	struct link l;

	node_open(&l.n);
	mem_get(&l.n, &l.m, SMALL);
	l.ep = node_ep(&l.n, NULL);
	pair_link(p, &l.n, l.ep);
	pair_sync(p);
	post_send(l.ep, &l.m, 0, SMALL, 1);
	expect_end(l.n.conn, l.ep);
	pair_sync(p);
	close_ended(&l);
}

/* The LMR is freed while a long message arrives. */
static void midway_receiver(struct pair *p)
{
	struct mem freed;
	struct link l;
	unsigned i;

	link_open(p, &l, SMALL);
	mem_get(&l.n, &freed, MANY * LARGE);
	for (i = 0; i < MANY; i++)
		post_recv(l.ep, &freed, i * LARGE, LARGE, i);
	pair_sync(p);
	free_memory(&freed, true);
	for (i = 0; i < MANY; i++)
		expect_ended(l.n.recv, i);
	/* all receives may have finished before */
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(l.n.conn, l.ep);
	pair_sync(p);
	close_ended(&l);
}

static void midway_sender(struct pair *p)
{
	sender_of(p, MANY, LARGE);
}

/* Requests */

/* Sends of @size to a peer that has posted no receives. */
static void send_and_free(struct pair *p, uint32_t size, bool unmap)
{
	struct mem freed;
	struct link l;
	unsigned i;

	link_open_depth(p, &l, SMALL, 4 * MANY);
	mem_get(&l.n, &freed, size);
	fill(freed.base, size, 7);
	for (i = 0; i < 4 * MANY; i++)
		post_send(l.ep, &freed, 0, size, i);
	free_memory(&freed, unmap);
	pair_sync(p);
	for (i = 0; i < 4 * MANY; i++)
		expect_ended(l.n.req, i);
	if (!unmap)
		munmap(freed.base, freed.size);
	pair_sync(p);
	close_ended(&l);
}

/* The peer receives the bytes as they were when the sends were posted. */
static void receive_original(struct pair *p, uint32_t size)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;
	struct link l;
	struct mem m;
	unsigned i;

	link_open_depth(p, &l, SMALL, 4 * MANY);
	mem_get(&l.n, &m, 4 * MANY * size);
	pair_sync(p);
	for (i = 0; i < 4 * MANY; i++)
		post_recv(l.ep, &m, i * size, size, i);
	pair_sync(p);
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(l.n.conn, l.ep);
	for (i = 0; i < 4 * MANY; i++) {
		d = completion(l.n.recv, i);
		if (d.status == DAT_DTO_SUCCESS)
			verify(m.base + i * size, size, 7);
	}
	mem_put(&m);
	close_ended(&l);
}

static void small_sender(struct pair *p)
{
	send_and_free(p, SMALL, false);
}

static void small_receiver(struct pair *p)
{
	receive_original(p, SMALL);
}

static void large_sender(struct pair *p)
{
	send_and_free(p, LARGE, false);
}

static void large_receiver(struct pair *p)
{
	receive_original(p, LARGE);
}

static void unmapping_sender(struct pair *p)
{
	send_and_free(p, LARGE, true);
}

/* RDMA of @size in both directions; the local LMR is freed at once. */
static void rdma_and_free(struct pair *p, uint32_t size)
{
	struct mem freed;
	struct link l;
	unsigned i;

	link_open(p, &l, LARGE);
	mem_get(&l.n, &freed, MANY * size);
	for (i = 0; i < MANY; i++) {
		post_write(l.ep, &freed, i * size, size, 2 * i, &l.theirs, 0);
		post_read(l.ep, &freed, i * size, size, 2 * i + 1, &l.theirs, 0);
	}
	free_memory(&freed, true);
	for (i = 0; i < 2 * MANY; i++)
		expect_ended(l.n.req, i);
	pair_sync(p);
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(l.n.conn, l.ep);
	close_ended(&l);
}

static void small_rdma(struct pair *p)
{
	rdma_and_free(p, SMALL);
}

static void large_rdma(struct pair *p)
{
	rdma_and_free(p, LARGE);
}

static void target(struct pair *p)
{
	struct link l;

	link_open(p, &l, LARGE);
	pair_sync(p);
	expect_end(l.n.conn, l.ep);
	close_ended(&l);
}

/* The target frees its LMR while the peer writes and reads. */
static void granting(struct pair *p)
{
	struct link l;

	link_open(p, &l, LARGE);
	free_memory(&l.m, true);
	pair_sync(p);
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(l.n.conn, l.ep);
	OK(dat_ep_free(l.ep));
	node_close(&l.n);
}

static void granted(struct pair *p)
{
	struct link l;
	unsigned i;

	link_open(p, &l, MANY * LARGE);
	for (i = 0; i < MANY; i++) {
		DAT_LMR_TRIPLET s = mem_segment(&l.m, i * LARGE, LARGE);
		DAT_RMR_TRIPLET r = remote_segment(&l.theirs, 0, LARGE);
		const DAT_DTO_COOKIE cookie = { .as_64 = i };

		if (i % 2 ? dat_ep_post_rdma_read(l.ep, 1, &s, cookie, &r,
						  DAT_COMPLETION_DEFAULT_FLAG) :
			    dat_ep_post_rdma_write(l.ep, 1, &s, cookie, &r,
						   DAT_COMPLETION_DEFAULT_FLAG))
			break;
	}
	pair_sync(p);
	expect_end(l.n.conn, l.ep);
	close_ended(&l);
}

#if DAT_API >= 2
/* Buffers of an SRQ: a buffer without its LMR fails the message that takes it. */
static void shared_receiver(struct pair *p)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4,
			      .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_EP_ATTR ep_attr;
	DAT_LMR_TRIPLET segment;
	DAT_SRQ_HANDLE srq;
	struct mem freed;
	struct link l;

	node_open(&l.n);
	if (!l.n.attr.max_srqs)
		pair_skip("the fabric has no SRQs");
	OK(dat_srq_create(l.n.ia, l.n.pz, &attr, &srq));
	node_ep_attr(&l.n, &ep_attr);
	ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
	OK(dat_ep_create_with_srq(l.n.ia, l.n.pz, l.n.recv, l.n.req, l.n.conn, srq, &ep_attr,
				  &l.ep));
	mem_get(&l.n, &l.m, SMALL);
	mem_get(&l.n, &freed, SMALL);
	pair_link(p, &l.n, l.ep);
	segment = mem_segment(&freed, 0, SMALL);
	OK(dat_srq_post_recv(srq, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = 1 }));
	free_memory(&freed, true);
	pair_sync(p);
	expect_dto(l.n.recv, 1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect_conn(l.n.conn, DAT_CONNECTION_EVENT_BROKEN, l.ep);
	pair_sync(p);
	OK(dat_ep_free(l.ep));
	OK(dat_srq_free(srq));
	mem_put(&l.m);
	/*
	 * node_close() would fail, as asynchronous events of the SRQ's connection are still
	 * queued
	 */
	OK(dat_ia_close(l.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* An RMR, then its LMR, is freed while reads into the RMR are outstanding. */
static void read_into_rmr(struct pair *p)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_TRIPLET local, remote;
	DAT_RMR_HANDLE rmr;
	struct mem freed;
	struct link l;
	unsigned i;

	link_open(p, &l, LARGE);
	mem_get(&l.n, &freed, LARGE);
	OK(dat_rmr_create(l.n.pz, &rmr));
	OK(bind_part(rmr, &freed, 0, LARGE, PRIV_WRITE, l.ep, 100, &context));
	expect_bind(l.n.req, rmr, 100, DAT_RMR_BIND_SUCCESS);
	local = (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)freed.base,
				   .segment_length = LARGE,
				   .rmr_context = context };
	remote = remote_segment(&l.theirs, 0, LARGE);
	for (i = 0; i < MANY; i++)
		OK(dat_ep_post_rdma_read_to_rmr(l.ep, &local, (DAT_DTO_COOKIE){ .as_64 = i },
						&remote, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_rmr_free(rmr));
	free_memory(&freed, true);
	for (i = 0; i < MANY; i++)
		expect_ended(l.n.req, i);
	pair_sync(p);
	OK(dat_ep_disconnect(l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(l.n.conn, l.ep);
	close_ended(&l);
}
#endif

static const struct pair_case cases[] = {
	PAIR_CASE("a message fails at a receive without memory", receiver, sender),
	PAIR_CASE("unused receives are flushed in order", unused_receiver, unused_sender),
	PAIR_CASE("a receive of an unconnected EP", early_receiver, early_sender),
	PAIR_CASE("a receive of an EP that was modified", widened_receiver, early_sender),
	PAIR_CASE("receives of messages in flight", midway_receiver, midway_sender),
	PAIR_CASE("short sends", small_receiver, small_sender),
	PAIR_CASE("long sends", large_receiver, large_sender),
	PAIR_CASE("sends whose memory is unmapped", large_receiver, unmapping_sender),
	PAIR_CASE("short RDMA", target, small_rdma),
	PAIR_CASE("long RDMA", target, large_rdma),
	PAIR_CASE("the peer's RDMA", granting, granted),
#if DAT_API >= 2
	PAIR_CASE("a buffer of an SRQ", shared_receiver, early_sender),
	PAIR_CASE("reads into memory of an RMR", target, read_into_rmr),
#endif
};

PAIR_MAIN(cases)
