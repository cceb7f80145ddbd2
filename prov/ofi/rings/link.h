/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a connection between two processes of one host: a ring in each direction
 * (base/ring.h).
 *
 * The active end creates the memory and sends its descriptor with the request; the passive end maps
 * it. Each end also maps the other's doorbell: a page that all peers of a set of rings
 * (rings/rings.h) share, where its owner requests marks and wakeups. An end that may write to the
 * peer's memory also maps the peer's book of grants.
 */
#ifndef DOFI_RINGS_LINK_H
#define DOFI_RINGS_LINK_H

#include "base/ring.h"
#include "fab/grant_book.h"
#include "rings/bell.h"

/* A record is a frame. */
#define DOFI_LINK_FRAME DOFI_RING_RECORD_MAX

/* Each ring of a set has a mark; with more rings than marks, several share one. */
#define DOFI_DOORBELL_WORDS 64
#define DOFI_DOORBELL_MARKS (64 * DOFI_DOORBELL_WORDS)

/* Bits of dofi_doorbell.wants: a producer's duties after each record. */
enum {
	DOFI_DOORBELL_MARK = 1 << 0,	/* set the mark of the ring */
	DOFI_DOORBELL_WAKE = 1 << 1,	/* clear this bit, and wake the owner if it was set */
	/* clear this bit, and call dofi_word_wake() if it was set */
	DOFI_DOORBELL_LEADER = 1 << 2,
};

/*
 * The shared page. A faulty peer that clears bits delays the frames of other peers until the
 * owner's next full search (dofi_longest_sleep_ns); all peers
 * run as the owner's user.
 */
struct dofi_doorbell {
	_Alignas(DOFI_RING_LINE) _Atomic uint32_t wants;
	_Atomic bool ended;	/* a peer has ended a link that it had claimed: dofi_link_end() */
	char bell[DOFI_BELL_NAME];	/* the owner's: dofi_bell_ring() wakes it */
	/* a bit for each word of @mark that is not 0; set after the word */
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t marked;
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t mark[DOFI_DOORBELL_WORDS];
};

struct dofi_link;
struct dofi_link_memory;

/* Receives the frames of a link. CQ lock held. */
struct dofi_link_user {
	/* A frame, valid during the call; NULL: the peer broke the ring, and nothing follows. */
	void (*arrived)(struct dofi_link *link, const unsigned char *frame, size_t len,
			struct dofi_sink *sink);
	/* As dofi_polled(), for the next frame of @link, which has one. */
	bool (*poll)(struct dofi_link *link, struct dofi_sink *sink);
};

struct dofi_link {
	struct dofi_ring_out out;	/* under the lock of the sender */
	struct dofi_doorbell *doorbell;	/* of the peer */
	char bell[DOFI_BELL_NAME];	/* of the peer */
	uint32_t mark;			/* of this link's ring at the peer */
	struct dofi_ring_in in;		/* under the lock of the set that the link is in */
	bool reported;			/* a completion has reported that the peer broke @in */
	uint32_t slot;			/* in the set */
	const struct dofi_link_user *user;	/* of a link in a set */
	void *owner;			/* for the user */
	/* under the lock of the sender: for writes to the peer's memory */
	const struct dofi_grant_pages *grants;	/* the peer's, or NULL */
	struct dofi_writing *writing;
	uint64_t writes;		/* marks that were set */
	struct dofi_writer writer;	/* under the lock of the grants: for the peer's writes */
	struct dofi_link_memory *memory; /* constant, but for fd */
	bool made;			/* this end created the memory */
	int fd;				/* of the memory, until the peer has mapped it; or -1 */
};

/* Creates the memory of a connection. Returns 0 or a negative errno. */
int dofi_link_make(struct dofi_link **link);
/*
 * Maps the memory @fd of a requesting peer, and the peer's doorbell @doorbell. Returns 0, -EPROTO
 * if one of them is not sealed memory of the right size, or another negative errno. Both
 * descriptors stay open.
 */
int dofi_link_join(int fd, int doorbell, struct dofi_link **link);
/*
 * Call when the peer has joined, and sent its doorbell @doorbell; -1 if this process had no
 * descriptor left to receive it. Returns as dofi_link_join(), or -EMFILE.
 */
int dofi_link_meet(struct dofi_link *link, int doorbell);
/* Closes the descriptor of the memory, which the peer has mapped. */
void dofi_link_keep(struct dofi_link *link);
/* Maps the book of the peer's grants, without which this end does not write there. */
void dofi_link_learn_grants(struct dofi_link *link, int fd);
/* The link must be in no set. Does nothing for NULL. */
void dofi_link_free(struct dofi_link *link);

/* Takes no more records: a faulty peer's may have no end. Call with the lock of the set held. */
static inline void dofi_link_ignore(struct dofi_link *link)
{
	link->in.broken = link->reported = true;
}

/* Stores the slot of the incoming ring for the peer, which derives its mark from the slot. */
void dofi_link_show_slot(struct dofi_link *link);

/*
 * A link that carries frames in one direction only, to its maker. A peer may not need the link that
 * the maker offers, so exactly one of dofi_link_claim() and dofi_link_withdraw() succeeds.
 */

/* The sender will use the link. Returns false if the maker has withdrawn it. */
bool dofi_link_claim(struct dofi_link *link);
/* Ends the link for the sender, which has to wake the maker after this call. */
void dofi_link_end(struct dofi_link *link);
/* The maker withdraws its offer. Returns false if the sender has claimed the link. */
bool dofi_link_withdraw(struct dofi_link *link);
/* Ends the link for the maker, which stops reading, whether the link was claimed or not. */
void dofi_link_shut(struct dofi_link *link);
/* For the maker: returns whether the sender has ended the link, with all its frames in the ring. */
bool dofi_link_has_ended(const struct dofi_link *link);
/* For the sender: returns whether the maker has shut the link. */
bool dofi_link_is_shut(const struct dofi_link *link);

/* As dofi_ring_reserve(), in the ring to the peer. dofi_link_send() publishes the frame. */
static inline int dofi_link_reserve(struct dofi_link *link, size_t len, unsigned char **frame)
{
	return dofi_ring_reserve(&link->out, len, frame);
}

static inline void dofi_link_send(struct dofi_link *link, size_t len)
{
	dofi_ring_publish(&link->out, len);
}

/* The slow path of dofi_link_notify(). */
void dofi_link_notify_slow(struct dofi_link *link, const struct dofi_bell *bell);

/*
 * Does what the peer wants after each frame: call after dofi_link_send(). Wakes a sleeping peer by
 * the socket of @bell. Either this load sees the peer's wish, or the peer, which reads its rings
 * after it stored that, finds the frame: the four accesses are sequentially consistent.
 */
static inline void dofi_link_notify(struct dofi_link *link, const struct dofi_bell *bell)
{
	if (__builtin_expect(atomic_load(&link->doorbell->wants), 0))
		dofi_link_notify_slow(link, bell);
}

#endif
