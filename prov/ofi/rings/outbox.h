/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sender's end of a link: all frames from a set of rings to one peer. Any thread sends frames,
 * with the lock that dofi_outbox_lock() selects, and calls dofi_outbox_notify() and
 * dofi_outbox_has_ended(). The progress thread alone calls the other functions.
 */
#ifndef DOFI_RINGS_OUTBOX_H
#define DOFI_RINGS_OUTBOX_H

#include "base/mutex.h"
#include "rings/link.h"

struct dofi_rings;

struct dofi_outbox {
	struct dofi_mutex lock;		/* a leaf: dofi_outbox_lock() */
	struct dofi_ring_out out;	/* under it */
	/*
	 * The lock that the only user holds while it sends, until there is another user; then @lock
	 * counts. Written by the progress thread with the first user's lock held.
	 */
	struct dofi_mutex *sole;
	/* constant once the outbox is used */
	struct dofi_doorbell *doorbell;	/* of the peer */
	uint32_t mark;			/* of the peer's inbox */
	uint64_t peer;			/* the peer's key */
	char bell[DOFI_BELL_NAME];	/* of the peer */
	const struct dofi_grant_pages *grants; /* of the peer, or NULL: it carries out RDMA */
	struct dofi_link *link;
	/* writes to the peer's memory, each announced in a word of the link */
	struct {
		struct dofi_mutex lock;
		uint64_t count;
	} writes[DOFI_WRITINGS];
	unsigned uses;			/* 0: the outbox is an offer of the peer */
	LIST_ENTRY(dofi_outbox) all;	/* of a used outbox, in the set of rings */
};

/*
 * Maps an offer: the memory @link of an inbox, the peer's doorbell @doorbell, and if that is not
 * -1 the peer's book of grants @grants. Returns 0, -EPROTO if one of the first two is not sealed
 * memory of the right size and layout, or another negative errno. The descriptors stay open.
 */
int dofi_outbox_map(int link, int doorbell, int grants, struct dofi_outbox **offer);
/* Unmaps an offer that is not used. NULL is ignored. */
void dofi_outbox_unmap(struct dofi_outbox *offer);
/*
 * Sets *@outbox to the outbox of @rings to the peer of *@offer, with one more use. That is *@offer,
 * which is set to NULL, if there was none. @sole is a lock that the user always holds while it
 * sends, or NULL. Returns 0, or -ECONNRESET if the peer has withdrawn the offer. No lock held.
 */
int dofi_outbox_get(struct dofi_rings *rings, struct dofi_outbox **offer, struct dofi_mutex *sole,
		    struct dofi_outbox **outbox);
/* Removes a use. The last one ends the outbox, and wakes the peer by @bell. NULL is ignored. */
void dofi_outbox_put(struct dofi_outbox *outbox, const struct dofi_bell *bell);
/*
 * Returns whether the peer reads no more: it has shut its inbox, or has ended. Wakes the peer to
 * find out. Any thread.
 */
bool dofi_outbox_has_ended(const struct dofi_outbox *outbox, const struct dofi_bell *bell);

/*
 * Call around dofi_outbox_reserve() and dofi_outbox_send(), with the lock held that the user gave
 * dofi_outbox_get(). DOFI_UNCHECKED_LOCKS: the analysis counts @lock as held also for a sole user.
 */
static inline void dofi_outbox_lock(struct dofi_outbox *outbox)
	DOFI_TAKES(outbox->lock) DOFI_UNCHECKED_LOCKS
{
	if (outbox->sole)
		dofi_mutex_assert_held(outbox->sole);
	else
		dofi_mutex_lock(&outbox->lock);
}

static inline void dofi_outbox_unlock(struct dofi_outbox *outbox)
	DOFI_DROPS(outbox->lock) DOFI_UNCHECKED_LOCKS
{
	if (!outbox->sole)
		dofi_mutex_unlock(&outbox->lock);
}

/*
 * Reserves a frame of @len bytes, at most DOFI_LINK_FRAME, which dofi_outbox_send() publishes
 * under the same lock. Returns 0, -EAGAIN if the ring is full, or -EPROTO if the peer broke it.
 */
static inline int dofi_outbox_reserve(struct dofi_outbox *outbox, size_t len,
				      unsigned char **frame) DOFI_NEEDS(outbox->lock)
{
	return dofi_ring_reserve(&outbox->out, len, frame);
}

static inline void dofi_outbox_send(struct dofi_outbox *outbox) DOFI_NEEDS(outbox->lock)
{
	dofi_ring_publish(&outbox->out);
}

/* The slow path of dofi_outbox_notify(). */
void dofi_outbox_notify_slow(struct dofi_outbox *outbox, const struct dofi_bell *bell);

/*
 * Does what the peer wants after each frame: call after dofi_outbox_send(). Wakes a sleeping peer
 * by the socket of @bell. Either this load sees the peer's wish, or the peer, which reads its
 * inboxes after it stored that, finds the frame: the four accesses are sequentially consistent.
 */
static inline void dofi_outbox_notify(struct dofi_outbox *outbox, const struct dofi_bell *bell)
{
	if (__builtin_expect(atomic_load(&outbox->doorbell->wants), 0))
		dofi_outbox_notify_slow(outbox, bell);
}

#endif
