/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receiver's end of a link.
 *
 * In each exchange of CM messages with a peer on this host an end offers an inbox. The peer claims
 * it as its outbox, unless it has an outbox to this set of rings. A claimed inbox stays until the
 * peer ends it, with its last use of the outbox, or is found dead.
 *
 * Progress thread, without locks, unless stated otherwise.
 */
#ifndef DOFI_RINGS_INBOX_H
#define DOFI_RINGS_INBOX_H

#include "rings/outbox.h"
#include "rings/rings.h"

struct dofi_inbox {
	struct dofi_rings *rings;
	struct dofi_ring_in in;		/* under the lock of the CQ, as the two below */
	bool reported;			/* a completion has reported that the peer broke @in */
	uint32_t slot;			/* in the set */
	struct dofi_link *link;
	int fd;				/* of @link, until the exchange ends; then -1 */
	uint64_t peer;			/* its key, from the end of the exchange on; CQ lock */
	struct dofi_writer writer;	/* the peer, as a writer to memory of this process */
	TAILQ_ENTRY(dofi_inbox) all;	/* in the set */
};

/* Makes an inbox for an exchange. 0 or a negative errno. */
int dofi_inbox_open(struct dofi_rings *rings, struct dofi_inbox **inbox);
/* Ends the exchange of @inbox, or NULL. Frees it if the peer did not claim it, or has ended it. */
void dofi_inbox_offer_end(struct dofi_inbox *inbox);
/* Waits until the peer with the key @peer is not writing to memory of this process. */
void dofi_inboxes_await_writes(struct dofi_rings *rings, uint64_t peer);
/* Frees the inboxes that their peers have ended, with all frames delivered. */
void dofi_inboxes_reap(struct dofi_rings *rings);
/* Frees all inboxes, which are in no exchange. */
void dofi_inboxes_close(struct dofi_rings *rings);

/* The key of the peer that has claimed @inbox, or 0. CQ lock held, or progress thread. */
static inline uint64_t dofi_inbox_peer(const struct dofi_inbox *inbox)
{
	return inbox->peer ? inbox->peer : atomic_load(&inbox->link->key);
}

/* Takes no more frames: a faulty peer's may have no end. Lock of the CQ held. */
static inline void dofi_inbox_shut(struct dofi_inbox *inbox)
{
	uint32_t claimed = DOFI_LINK_CLAIMED;

	inbox->in.broken = inbox->reported = true;
	atomic_compare_exchange_strong(&inbox->link->use, &claimed, DOFI_LINK_SHUT);
}

#endif
