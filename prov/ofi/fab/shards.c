/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shards: CQs of libfabric that form one CQ. Each has few endpoints, so that a read stays cheap. */

#include "fab/shards.h"

#include "base/log.h"

#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The set is checked once in this many reads, so that no busy shard starves the others. */
#define READS 8

#define REPORTS 32

static void wake(struct dofi_shards *s, struct dofi_shard *shard)
{
	if (!shard->awake)
		TAILQ_INSERT_TAIL(&s->awake, shard, link);
	shard->awake = true;
}

/* A new shard is awake, as its descriptor may not report earlier arrivals. */
static int enter(struct dofi_shards *s, struct dofi_shard *shard)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = shard };

	if (epoll_ctl(s->set, EPOLL_CTL_ADD, shard->fd, &ev))
		return -errno;
	shard->index = s->n;
	shard->awake = false;
	atomic_store(&shard->asked, false);
	s->shard[s->n++] = shard;
	wake(s, shard);
	return 0;
}

int dofi_shards_open(struct dofi_shards *s, struct dofi_shard *first)
{
	int ret;

	s->set = epoll_create1(EPOLL_CLOEXEC);
	if (s->set < 0)
		return -errno;
	s->n = s->vacant = s->reads = 0;
	s->last = first;
	atomic_store(&s->asked, false);
	TAILQ_INIT(&s->awake);
	ret = enter(s, first);
	if (ret)
		close(s->set);
	return ret;
}

int dofi_shards_add(struct dofi_shards *s, struct fid_cq *fid, int fd)
{
	struct dofi_shard *shard;

	if (s->n == DOFI_SHARDS)
		return -ENOMEM;
	/* kept: a thread may still request the shard of an endpoint that was closed meanwhile */
	shard = s->shard[s->n];
	if (!shard)
		shard = s->shard[s->n] = calloc(1, sizeof(*shard));
	if (!shard)
		return -ENOMEM;
	shard->fid = fid;
	shard->fd = fd;
	shard->endpoints = 0;
	return enter(s, shard);
}

void dofi_shards_close(struct dofi_shards *s)
{
	int ret;

	close(s->set);
	while (s->n > 1) {
		ret = fi_close(&s->shard[--s->n]->fid->fid);
		if (ret)
			dofi_log(DOFI_WARN, DOFI_FAB, "closing a completion queue: %s",
				 fi_strerror(-ret));
	}
	s->n = 0;
}

struct dofi_shard *dofi_shards_not_full(struct dofi_shards *s)
{
	while (s->vacant < s->n && s->shard[s->vacant]->endpoints >= DOFI_SHARD_ENDPOINTS)
		s->vacant++;
	return s->vacant < s->n ? s->shard[s->vacant] : NULL;
}

void dofi_shards_leave(struct dofi_shards *s, struct dofi_shard *shard)
{
	shard->endpoints--;
	if (shard->index < s->vacant)
		s->vacant = shard->index;
}

/*
 * Clears s->asked first: a shard that is requested meanwhile is found now, or sets it again. The
 * load is sequentially consistent: a thread that is about to sleep has stored armed, or
 * lead.has_leader, and a poster loads these two after dofi_shards_ask() (dofi_cq_kick()). So one of
 * the two threads sees the other's store.
 */
static void wake_asked(struct dofi_shards *s)
{
	unsigned i;

	if (!atomic_load(&s->asked) || !atomic_exchange(&s->asked, false))
		return;
	for (i = 0; i < s->n; i++)
		if (atomic_load_explicit(&s->shard[i]->asked, memory_order_relaxed) &&
		    atomic_exchange(&s->shard[i]->asked, false))
			wake(s, s->shard[i]);
}

/* Wakes the shards that the set reports. Returns whether there are any. */
static bool wake_reported(struct dofi_shards *s)
{
	struct epoll_event ev[REPORTS];
	int i, n = epoll_wait(s->set, ev, REPORTS, 0);

	for (i = 0; i < n; i++)
		wake(s, ev[i].data.ptr);
	return n > 0;
}

/* Returns whether @shard rests from now on. */
static bool rest(struct dofi_shards *s, struct dofi_shard *shard, struct fid_fabric *fabric)
{
	struct fid *fid = &shard->fid->fid;

	if (fi_trywait(fabric, &fid, 1) != FI_SUCCESS)
		return false;
	TAILQ_REMOVE(&s->awake, shard, link);
	shard->awake = false;
	return true;
}

static ssize_t read_awake(struct dofi_shards *s, struct fid_fabric *fabric, void *buf, size_t count)
{
	struct dofi_shard *shard, *next;
	ssize_t n;

	for (shard = TAILQ_FIRST(&s->awake); shard; shard = next) {
		n = fi_cq_read(shard->fid, buf, count);
		if (n != -FI_EAGAIN) {
			/* the next read reads this shard last */
			TAILQ_REMOVE(&s->awake, shard, link);
			TAILQ_INSERT_TAIL(&s->awake, shard, link);
			s->last = shard;
			return n;
		}
		next = TAILQ_NEXT(shard, link);
		rest(s, shard, fabric);
	}
	return -FI_EAGAIN;
}

ssize_t dofi_shards_read(struct dofi_shards *s, struct fid_fabric *fabric, void *buf, size_t count)
{
	const bool overdue = s->reads++ % READS == 0;
	ssize_t n;

	wake_asked(s);
	if (overdue)
		wake_reported(s);
	n = read_awake(s, fabric, buf, count);
	if (n != -FI_EAGAIN || overdue || !wake_reported(s))
		return n;
	return read_awake(s, fabric, buf, count);
}

bool dofi_shards_can_sleep(struct dofi_shards *s, struct fid_fabric *fabric)
{
	struct dofi_shard *shard, *next;

	wake_asked(s);
	for (shard = TAILQ_FIRST(&s->awake); shard; shard = next) {
		next = TAILQ_NEXT(shard, link);
		if (!rest(s, shard, fabric))
			return false;
	}
	return true;
}
