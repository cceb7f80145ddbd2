/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that two processes of one host share. Peers are sets of rings (rings/rings.h), such as
 * PZs.
 *
 * A link is memory with a ring in one direction (base/ring.h). The receiver makes it, for one peer:
 * its inbox (rings/inbox.h). The sender maps it as its outbox (rings/outbox.h). So each of two
 * peers has an inbox for all frames of the other.
 *
 * The doorbell is a page of each set of rings that all its peers map. Its owner requests marks and
 * wakeups there.
 */
#ifndef DOFI_RINGS_LINK_H
#define DOFI_RINGS_LINK_H

#include "base/ring.h"
#include "fab/grant_book.h"
#include "rings/bell.h"

/* A record is a frame. */
#define DOFI_LINK_FRAME DOFI_RING_RECORD_MAX

#define DOFI_LINK_MAGIC 0x646174206f666972ull
/* Another layout also needs new names in xport/rdm/peer.c (layout), xport/ud/ud.h (UD_LAYOUT). */
#define DOFI_LINK_VERSION 4

/* Values of dofi_link.use. The maker withdraws an offer, or the sender claims it. */
enum {
	DOFI_LINK_OFFERED,
	DOFI_LINK_CLAIMED,
	DOFI_LINK_ENDED,		/* the sender writes no more frames */
	DOFI_LINK_SHUT,			/* the maker reads no more frames, or has withdrawn it */
};

struct dofi_link {
	uint64_t magic;
	uint32_t version;
	_Atomic uint32_t slot;		/* of the inbox in the maker's set */
	_Atomic uint32_t use;		/* DOFI_LINK_OFFERED, ... */
	/* of the sender, which stores them before its claim: process, key and bell */
	_Atomic uint32_t pid;
	_Atomic uint64_t key;
	char bell[DOFI_BELL_NAME];
	struct dofi_writing writing[DOFI_WRITINGS]; /* of the sender, to the maker's memory */
	struct dofi_ring ring;
};

/* Each inbox of a set has a mark, by its slot; with more inboxes than marks, several share one. */
#define DOFI_DOORBELL_MARKS 64

/* Bits of dofi_doorbell.wants: a sender's duties after each frame. */
enum {
	DOFI_DOORBELL_MARK = 1 << 0,	/* set the mark of the inbox */
	DOFI_DOORBELL_WAKE = 1 << 1,	/* clear this bit, and wake the owner if it was set */
	/* clear this bit, and call dofi_word_wake() if it was set */
	DOFI_DOORBELL_LEADER = 1 << 2,
};

/*
 * A faulty peer that clears bits delays the frames of other peers until the owner's next full
 * search (dofi_longest_sleep_ns); all peers run as the owner's user.
 */
struct dofi_doorbell {
	_Alignas(DOFI_RING_LINE) _Atomic uint32_t wants;
	_Atomic uint32_t ended;		/* not 0: a sender has set an inbox to ENDED */
	char bell[DOFI_BELL_NAME];	/* the owner's: dofi_bell_ring() wakes it */
	uint64_t key;			/* random: identifies the owner's set of rings */
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t marks; /* a bit for each */
};

#endif
