/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several fabric queues read as one: which are read, and that no completion is missed. */

#include "fab/shards.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define QUEUES 3

/* The state of a queue in the fabric. */
struct queue {
	struct fid_cq cq;
	int fd;
	unsigned held;			/* completions */
	bool failed;			/* an error follows the completions */
	unsigned reads;
	unsigned refusals;		/* fi_trywait() calls that are still refused */
};

static struct queue queue[QUEUES];
static struct dofi_shard first;
static struct dofi_shards shards;
static struct fid_fabric fabric;
static unsigned closed;

static void report(const struct queue *q, bool readable)
{
	uint64_t n = 1;
	ssize_t ret = readable ? write(q->fd, &n, sizeof(n)) : read(q->fd, &n, sizeof(n));

	(void)ret;
}

static ssize_t queue_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct queue *q = (struct queue *)cq;
	ssize_t n = q->held < count ? q->held : count;

	q->reads++;
	q->held -= n;
	if (!q->held)
		report(q, false);
	if (!n)
		return q->failed ? -FI_EAVAIL : -FI_EAGAIN;
	return n;
}

static int queue_close(struct fid *fid)
{
	closed++;
	return 0;
}

static int trywait(struct fid_fabric *f, struct fid **fids, int count)
{
	struct queue *q = (struct queue *)fids[0];

	cr_assert(f == &fabric && count == 1);
	if (q->held)
		return -FI_EAGAIN;
	if (!q->refusals)
		return 0;
	q->refusals--;
	return -FI_EAGAIN;
}

static struct fi_ops fid_ops = { .size = sizeof(fid_ops), .close = queue_close };
static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops), .read = queue_read };
static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops), .trywait = trywait };

static ssize_t look(void)
{
	struct fi_cq_data_entry entry[4];

	return dofi_shards_read(&shards, &fabric, entry, 4);
}

/* Three shards at rest. */
static void init(void)
{
	unsigned i;

	fabric.ops = &fabric_ops;
	for (i = 0; i < QUEUES; i++) {
		queue[i].cq = (struct fid_cq){ .fid.ops = &fid_ops, .ops = &cq_ops };
		queue[i].fd = eventfd(0, EFD_NONBLOCK);
	}
	first = (struct dofi_shard){ .fid = &queue[0].cq, .fd = queue[0].fd };
	cr_assert_eq(dofi_shards_open(&shards, &first), 0);
	for (i = 1; i < QUEUES; i++)
		cr_assert_eq(dofi_shards_add(&shards, &queue[i].cq, queue[i].fd), 0);
	cr_assert_eq(look(), -FI_EAGAIN);
	for (i = 0; i < QUEUES; i++)
		queue[i].reads = 0;
}

TestSuite(shards, .init = init);

/* @n completions arrive. */
static void come(struct queue *q, unsigned n)
{
	q->held += n;
	report(q, true);
}

/* A completion arrives that the descriptor does not report. */
static void come_unseen(struct queue *q)
{
	q->held++;
}

static unsigned reads(void)
{
	unsigned i, n = 0;

	for (i = 0; i < QUEUES; i++)
		n += queue[i].reads;
	return n;
}

static bool set_reports(void)
{
	struct pollfd p = { .fd = shards.set, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(shards, a_new_shard_is_read_though_its_descriptor_reports_nothing)
{
	struct queue q = { .cq = queue[0].cq, .fd = eventfd(0, EFD_NONBLOCK), .held = 1 };

	cr_assert_eq(dofi_shards_add(&shards, &q.cq, q.fd), 0);
	cr_expect_eq(look(), 1);
	cr_expect(shards.last->fid == &q.cq);
}

Test(shards, those_that_rest_are_not_read)
{
	unsigned i;

	for (i = 0; i < 100; i++)
		cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), 0);
}

Test(shards, a_resting_shard_that_reports_is_read_alone)
{
	come(&queue[2], 6);
	cr_expect_eq(look(), 4);
	cr_expect_eq(look(), 2);
	cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), queue[2].reads);
}

Test(shards, what_is_read_may_rest_again)
{
	come(&queue[1], 1);
	cr_expect_eq(look(), 1);
	cr_expect_eq(look(), -FI_EAGAIN);
	queue[1].reads = 0;
	cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), 0);
}

Test(shards, a_shard_that_may_not_rest_is_read_each_time)
{
	unsigned before;

	queue[1].refusals = 3;
	come(&queue[1], 1);
	cr_expect_eq(look(), 1);
	before = reads();
	cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), before + 1);
	come_unseen(&queue[1]);
	cr_expect_eq(look(), 1);
}

Test(shards, a_resting_shard_that_is_asked_for_is_read_once)
{
	come_unseen(&queue[2]);
	cr_expect_eq(look(), -FI_EAGAIN);
	dofi_shards_ask(&shards, shards.shard[2]);
	cr_expect(shards.asked && shards.shard[2]->asked);
	cr_expect_eq(look(), 1);
	cr_expect(!shards.asked && !shards.shard[2]->asked);
	cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), 2);
	cr_expect_eq(look(), -FI_EAGAIN);
	cr_expect_eq(reads(), 2);
}

Test(shards, a_busy_one_does_not_starve_the_others)
{
	unsigned i;

	come(&queue[0], 4000);
	cr_expect_eq(look(), 4);
	come(&queue[1], 1);
	for (i = 0; i < 20 && !queue[1].reads; i++)
		look();
	cr_expect(i < 20);
}

Test(shards, several_that_are_busy_take_turns)
{
	come(&queue[0], 4000);
	come(&queue[1], 4000);
	queue[0].reads = queue[1].reads = 0;
	while (reads() < 100)
		look();
	cr_expect(queue[0].reads >= 40);
	cr_expect(queue[1].reads >= 40);
}

Test(shards, an_error_names_its_shard)
{
	queue[1].failed = true;
	come(&queue[1], 1);
	cr_expect_eq(look(), 1);
	cr_expect_eq(look(), -FI_EAVAIL);
	cr_expect(shards.last->fid == &queue[1].cq);
}

Test(shards, the_set_reports_what_comes_to_those_that_rest)
{
	cr_expect(dofi_shards_can_sleep(&shards, &fabric));
	cr_expect(!set_reports());
	come(&queue[2], 1);
	cr_expect(set_reports());
}

Test(shards, none_rests_while_one_refuses)
{
	dofi_shards_ask(&shards, shards.shard[1]);
	queue[1].refusals = 1;
	cr_expect(!dofi_shards_can_sleep(&shards, &fabric));
	cr_expect(dofi_shards_can_sleep(&shards, &fabric));
}

Test(shards, a_shard_that_is_asked_for_is_read_before_the_shards_rest)
{
	come_unseen(&queue[1]);
	dofi_shards_ask(&shards, shards.shard[1]);
	cr_expect(!dofi_shards_can_sleep(&shards, &fabric));
	cr_expect_eq(look(), 1);
}

Test(shards, endpoints_fill_one_after_the_other)
{
	unsigned i, n;

	for (i = 0; i < QUEUES; i++)
		for (n = 0; n < DOFI_SHARD_ENDPOINTS; n++) {
			struct dofi_shard *shard = dofi_shards_not_full(&shards);

			cr_assert(shard == shards.shard[i]);
			shard->endpoints++;
		}
	cr_expect(!dofi_shards_not_full(&shards));
}

Test(shards, what_an_endpoint_leaves_is_used_again)
{
	unsigned i;

	for (i = 0; i < QUEUES; i++)
		shards.shard[i]->endpoints = DOFI_SHARD_ENDPOINTS;
	cr_assert(!dofi_shards_not_full(&shards));
	dofi_shards_leave(&shards, shards.shard[2]);
	cr_expect(dofi_shards_not_full(&shards) == shards.shard[2]);
	dofi_shards_leave(&shards, shards.shard[0]);
	cr_expect(dofi_shards_not_full(&shards) == &first);
}

Test(shards, a_shard_that_epoll_refuses_is_left_out)
{
	struct queue q = { .cq = queue[0].cq, .fd = memfd_create("unpollable", 0) };

	cr_expect_eq(dofi_shards_add(&shards, &q.cq, q.fd), -EPERM);
	cr_expect_eq(shards.n, QUEUES);
}

Test(shards, a_first_that_epoll_does_not_take_is_reported)
{
	struct dofi_shards none = { .n = 0 };
	struct dofi_shard bad = { .fd = memfd_create("unpollable", 0) };

	cr_expect_eq(dofi_shards_open(&none, &bad), -EPERM);
	cr_expect_eq(close(none.set), -1, "the set was closed");
}

Test(shards, the_first_is_left_open)
{
	dofi_shards_close(&shards);
	cr_expect_eq(closed, QUEUES - 1);
	cr_expect_eq(close(shards.set), -1, "the set was closed");
}

Test(shards, the_memory_serves_another_time)
{
	struct dofi_shard *second = shards.shard[1];

	dofi_shards_close(&shards);
	cr_assert_eq(dofi_shards_open(&shards, &first), 0);
	cr_assert_eq(dofi_shards_add(&shards, &queue[1].cq, queue[1].fd), 0);
	cr_expect(shards.shard[1] == second);
	come_unseen(&queue[1]);
	cr_expect_eq(look(), 1);
}
