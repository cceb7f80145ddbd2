/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a connection between two processes of one host: a ring each way (base/ring.h).
 *
 * The end that asks makes the memory and sends its descriptor with the request; the other end
 * maps it. Besides each end maps the other's doorbell: a page that all peers of a set of rings
 * (rings/rings.h) share, where the owner says what it wants of them.
 */
#ifndef DOFI_RINGS_LINK_H
#define DOFI_RINGS_LINK_H

#include "base/ring.h"

/* A record is a frame. */
#define DOFI_LINK_FRAME DOFI_RING_RECORD_MAX

/* Rings of a set have a mark each; beyond so many, several share one. */
#define DOFI_DOORBELL_WORDS 64
#define DOFI_DOORBELL_MARKS (64 * DOFI_DOORBELL_WORDS)

/* What the owner of a doorbell wants of a producer behind each record. */
enum {
	DOFI_DOORBELL_MARK = 1 << 0,	/* to mark the ring */
	DOFI_DOORBELL_WAKE = 1 << 1,	/* to clear this, and wake the owner if it was set */
	DOFI_DOORBELL_LEADER = 1 << 2,	/* to clear this, and call dofi_word_wake() if it was set */
};

/*
 * The shared page. A peer that clears what another has set delays that other's frames until the
 * owner's next full search; peers are of the same user.
 */
struct dofi_doorbell {
	_Alignas(DOFI_RING_LINE) _Atomic uint32_t wants;
	/* a bit for each word of @mark that is not 0, set after that */
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t marked;
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t mark[DOFI_DOORBELL_WORDS];
};

struct dofi_link_memory;

struct dofi_link {
	/* the sender's lock */
	struct dofi_ring_out out;
	struct dofi_doorbell *doorbell;	/* the peer's; NULL: it is woken for each frame */
	uint32_t mark;			/* of our ring there */
	/* the lock of the set that it is in */
	struct dofi_ring_in in;
	bool reported;			/* a completion has said that the peer broke @in */
	uint32_t slot;			/* in the set */
	void *owner;			/* of the set's user */
	/* both */
	struct dofi_link_memory *memory;
	bool made;			/* here; else the peer made it */
	int fd;				/* of the memory, while the peer may need it, or -1 */
};

/* Makes a connection's memory. 0 or a negative errno. */
int dofi_link_make(struct dofi_link **link);
/*
 * Maps the memory @fd of a peer that asks, and the peer's doorbell @bell. 0, -EPROTO if one of
 * them is not what it should be, or another negative errno. Both stay open.
 */
int dofi_link_join(int fd, int doorbell, struct dofi_link **link);
/*
 * The peer has joined, and sent its doorbell @bell; -1 if that did not get here, because this
 * process has no descriptor left: then each frame wakes the peer. As dofi_link_join().
 */
int dofi_link_meet(struct dofi_link *link, int doorbell);
/* It is in no set. NULL is nothing. */
void dofi_link_free(struct dofi_link *link);

/* Says to the peer where the ring to us is in our set. */
void dofi_link_show_slot(struct dofi_link *link);

/*
 * Room for a frame of up to @len bytes, at most DOFI_LINK_FRAME, in the ring to the peer: as
 * dofi_ring_reserve(). Then dofi_link_send(), or nothing.
 */
static inline int dofi_link_reserve(struct dofi_link *link, size_t len, unsigned char **frame)
{
	return dofi_ring_reserve(&link->out, len, frame);
}

static inline void dofi_link_send(struct dofi_link *link, size_t len)
{
	dofi_ring_publish(&link->out, len);
}

/* The slow path of dofi_link_notify(). */
bool dofi_link_notify_slow(struct dofi_link *link);

/*
 * Behind dofi_link_send(): whether the caller is to wake the peer. Either this load sees what
 * the peer wants, or the peer, which looks at its rings after it stored that, sees the frame:
 * all four are sequentially consistent.
 */
static inline bool dofi_link_notify(struct dofi_link *link)
{
	return !link->doorbell || (atomic_load(&link->doorbell->wants) && dofi_link_notify_slow(link));
}

#endif
