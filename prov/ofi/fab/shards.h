/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several queues of the fabric that are read as one, so that a read costs the same however many endpoints there are. */
#ifndef DOFI_FAB_SHARDS_H
#define DOFI_FAB_SHARDS_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* Endpoints of a shard. A read of it costs about 2 us then, and its descriptors are few beside theirs. */
#define DOFI_SHARD_ENDPOINTS 64

/* Room for 65,536 endpoints. */
#define DOFI_SHARDS 1024

/* A queue of the fabric, and the endpoints that complete there. Its memory is never given back. */
struct dofi_shard {
	struct fid_cq *fid;
	int fd;				/* -1 if it has none */
	unsigned endpoints;		/* progress thread */
	unsigned index;			/* in struct dofi_shards */
	_Atomic bool asked;		/* is to be read even if its descriptor reports nothing */
	bool awake;			/* the descriptor does not report everything; CQ lock, as the next */
	TAILQ_ENTRY(dofi_shard) link;	/* while it is awake */
};

/*
 * The shards of a CQ that has more than one. A shard rests when a read has found nothing and fi_trywait() has agreed:
 * from then on its descriptor reports all that comes, and stays readable until the next read. Other shards are awake,
 * and each read of the CQ reads them.
 *
 * One thing is not reported: a message that was waiting for a receive may be in the fabric's memory already when the
 * receive is posted. See dofi_shards_ask().
 */
struct dofi_shards {
	int set;			/* an epoll set of their descriptors */
	unsigned n;			/* that are open */
	unsigned vacant;		/* none before it has room for an endpoint; progress thread */
	_Atomic bool asked;		/* some shard is */
	unsigned reads;
	struct dofi_shard *last;	/* what the last read came from */
	TAILQ_HEAD(, dofi_shard) awake;
	struct dofi_shard *shard[DOFI_SHARDS];
};

/*
 * @first, and each shard that is added later, are read as one queue from now on. @shards is all zero, or was closed.
 * 0 or a negative errno. Progress thread, CQ lock held.
 */
int dofi_shards_open(struct dofi_shards *shards, struct dofi_shard *first);
/* The next shard is @fid, whose descriptor is @fd. Progress thread, CQ lock held. 0 or a negative errno. */
int dofi_shards_add(struct dofi_shards *shards, struct fid_cq *fid, int fd);
/* Closes all but the first, which the CQ closes. Progress thread, CQ lock held. */
void dofi_shards_close(struct dofi_shards *shards);

/* A shard with room for another endpoint, or NULL. Progress thread. */
struct dofi_shard *dofi_shards_with_room(struct dofi_shards *shards);
/* An endpoint of @shard is closed. Progress thread. */
void dofi_shards_leave(struct dofi_shards *shards, struct dofi_shard *shard);

/* As fi_cq_read(); shards->last is where an error is. CQ lock held. */
ssize_t dofi_shards_read(struct dofi_shards *shards, struct fid_fabric *fabric, void *buf, size_t count);

/* Whether the set reports all that comes from now on. CQ lock held. */
bool dofi_shards_rest(struct dofi_shards *shards, struct fid_fabric *fabric);

/* The next read of the CQ reads @shard, too: its endpoint was given a receive, or was closed. Any thread, any lock. */
static inline void dofi_shards_ask(struct dofi_shards *shards, struct dofi_shard *shard)
{
	atomic_store(&shard->asked, true);
	atomic_store(&shards->asked, true);
}

#endif
