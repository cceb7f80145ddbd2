/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shards: CQs of libfabric that form one CQ. Each has few endpoints, so that a read stays cheap. */
#ifndef DOFI_FAB_SHARDS_H
#define DOFI_FAB_SHARDS_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* The most endpoints of a shard: a read then costs about 2 us. */
#define DOFI_SHARD_ENDPOINTS 64

/* The most shards: 65,536 endpoints. */
#define DOFI_SHARDS 1024

/* A CQ of the fabric, and the endpoints that complete there. Never freed. */
struct dofi_shard {
	struct fid_cq *fid;
	int fd;				/* -1 if it has none */
	unsigned endpoints;		/* how many complete here; progress thread */
	unsigned index;			/* in dofi_shards.shard */
	_Atomic bool asked; /* the next read includes it even if its descriptor reports nothing */
	bool awake;			/* each read includes it; CQ lock */
	TAILQ_ENTRY(dofi_shard) link;	/* in dofi_shards.awake; CQ lock */
};

/*
 * The shards of a CQ that has more than one. A shard rests once a read has found it empty and
 * fi_trywait() has succeeded: from then on its descriptor reports all that arrives, and stays
 * readable until the next read. Other shards are awake, and each read of the CQ includes them.
 *
 * The descriptor does not report a message that was in the fabric's memory before its receive was
 * posted: dofi_shards_ask() is for that.
 */
struct dofi_shards {
	int set;			/* an epoll set of the shards' descriptors */
	unsigned n;			/* shards that are open */
	unsigned vacant;		/* index: all shards before it are full; progress thread */
	_Atomic bool asked;		/* a shard may have asked set */
	unsigned reads;
	struct dofi_shard *last;	/* the shard that the last read returned something of */
	TAILQ_HEAD(, dofi_shard) awake;
	struct dofi_shard *shard[DOFI_SHARDS];
};

/* Starts to read @first, and shards added later, as one CQ. Progress thread, CQ lock held. */
int dofi_shards_open(struct dofi_shards *shards, struct dofi_shard *first);
/* Adds a shard: @fid with @fd. Returns 0 or a negative errno. Progress thread, CQ lock held. */
int dofi_shards_add(struct dofi_shards *shards, struct fid_cq *fid, int fd);
/* Closes all but the first, which the CQ closes. Progress thread, CQ lock held. */
void dofi_shards_close(struct dofi_shards *shards);

/* Returns a shard with room for another endpoint, or NULL. Progress thread. */
struct dofi_shard *dofi_shards_not_full(struct dofi_shards *shards);
/* Call when an endpoint of @shard is closed. Progress thread. */
void dofi_shards_leave(struct dofi_shards *shards, struct dofi_shard *shard);

/* Returns what fi_cq_read() does; an error is to be read from shards->last. CQ lock held. */
ssize_t dofi_shards_read(struct dofi_shards *shards, struct fid_fabric *fabric, void *buf,
			 size_t count);

/* Returns whether all shards rest, so that the set reports all that arrives. CQ lock held. */
bool dofi_shards_can_sleep(struct dofi_shards *shards, struct fid_fabric *fabric);

/* Call after a receive or a close of an endpoint: the next read includes @shard. Any lock. */
static inline void dofi_shards_ask(struct dofi_shards *shards, struct dofi_shard *shard)
{
	atomic_store(&shard->asked, true);
	atomic_store(&shards->asked, true);
}

#endif
