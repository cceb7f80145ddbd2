/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric of our own for peers on the same host, with libfabric's interface: a domain and a
 * completion queue. Its completions are the frames in a set of rings.
 *
 * fab/cq_read.c reads this queue like any other; dofi_rings_poll() is a fast path. The queue has no
 * descriptor: dofi_rings_sleep_begin() makes peers wake the progress thread, and a leader requests
 * its wakeup by its word (fab/cq.h).
 */
#ifndef DOFI_RINGS_RINGS_H
#define DOFI_RINGS_RINGS_H

#include "fab/cq.h"
#include "fab/info.h"
#include "rings/link.h"

#include <rdma/fi_endpoint.h>
#include <sys/queue.h>

/* info->fabric_attr->prov_name */
#define DOFI_RINGS_NAME "rings"

/* The fabric: info->fabric_attr->fabric. Its domain ignores the fi_info. */
extern struct fid_fabric dofi_rings_fabric;

/* Returns whether only shared memory is requested: provider=shm without endpoint=rdm. */
bool dofi_rings_are_named(const struct dofi_params *params);

/*
 * Chooses rings for an IA without another fabric. Returns 0, -ENOMEM, or -ENODATA
 * (logged) if FI_PROVIDER excludes shm, or @params have another domain, endpoint or host.
 */
int dofi_rings_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice);

/* Chooses rings for an IA with another fabric for other hosts; same errors, but not logged. */
int dofi_rings_choose_beside(struct dofi_fabric_choice *choice);

/* Whether @choice is of this fabric. */
bool dofi_is_rings(const struct dofi_fabric_choice *choice);

struct dofi_inbox;
struct dofi_outbox;

/* Receives the frames of a set. CQ lock held. */
struct dofi_rings_user {
	/* A frame, valid during the call; NULL: the peer broke the ring, and nothing follows. */
	void (*arrived)(void *owner, struct dofi_inbox *inbox, const unsigned char *frame,
			size_t len, struct dofi_sink *sink);
	/*
	 * May take the next frame of @inbox, which has one. Returns true if it was the event of
	 * @sink; false if a read of the CQ has to follow.
	 */
	bool (*poll)(void *owner, struct dofi_inbox *inbox, struct dofi_sink *sink);
};

/* The set of rings behind a completion queue: the inboxes for the frames of all its peers. */
struct dofi_rings {
	struct fid_cq fid;
	struct fid_ep ep;		/* of all connections of the set; has no functions */
	struct dofi_doorbell *doorbell;
	int doorbell_fd;		/* for peers */

	/* constant from dofi_rings_begin() on */
	struct dofi_cq *cq;
	const struct dofi_rings_user *user;
	void *owner;			/* for the user */
	struct dofi_grants *grants;	/* memory that peers write to */

	/* progress thread only */
	TAILQ_HEAD(dofi_inboxes, dofi_inbox) inboxes;
	LIST_HEAD(, dofi_outbox) outboxes; /* those that are used */

	/* under the lock of the CQ, but for all_due */
	struct dofi_inbox **inbox;	/* by slot; NULL in a free slot */
	uint32_t n_slots;		/* slots up to the last one in use */
	uint32_t capacity;		/* slots that the array has */
	uint32_t turn;			/* the slot, or mark, that the next read begins with */
	bool marks;			/* peers mark their rings, as there were more than FEW */
	uint64_t due;			/* marks that were taken from the doorbell */
	_Atomic bool all_due;		/* the next read covers all inboxes; any thread */
	struct dofi_lead_word lead;	/* by which peers wake a leader: DOFI_DOORBELL_LEADER */
};

/* dofi_progress_ops.completed and poll of the CQ. */
dofi_completed dofi_rings_completed;
dofi_polled dofi_rings_poll;

struct dofi_rings *dofi_rings_of(const struct dofi_cq *cq);

/*
 * Begins to use the set, which is of @cq, before it has an inbox: @user is called with @owner,
 * peers wake this process by @bell, and write to the memory of @grants. Returns 0, or -EIO without
 * a random number.
 */
int dofi_rings_begin(struct dofi_rings *rings, struct dofi_cq *cq,
		     const struct dofi_rings_user *user, void *owner, const struct dofi_bell *bell,
		     struct dofi_grants *grants);

/* Returns whether a peer has ended an inbox since the last call. Any thread. */
bool dofi_rings_took_end(struct dofi_rings *rings);

/*
 * From now on peers that send wake the progress thread. Call, read until the CQ is empty, then
 * sleep.
 */
void dofi_rings_sleep_begin(struct dofi_rings *rings);
void dofi_rings_sleep_end(struct dofi_rings *rings);

/* For inbox.c. CQ lock held. Returns 0 or -ENOMEM. */
int dofi_rings_add(struct dofi_rings *rings, struct dofi_inbox *inbox);
void dofi_rings_remove(struct dofi_rings *rings, struct dofi_inbox *inbox);

#endif
