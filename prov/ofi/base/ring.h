/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring of records from one process to another, in memory that both map.
 *
 * One thread at a time produces, and one consumes. The ring has lines of a cache line each. A
 * record is a word with its length and the bytes behind that, in consecutive lines: a short one
 * is a single line, and moves from one processor to the other by a single transfer. The
 * consumer looks at the word of the next record, not at an index of the producer's. The word is
 * 0 until the record is there, because the producer clears the word behind each record before
 * it publishes that. Where a record does not fit between its place and the end of the ring, a
 * SKIP there leads to the first line. A SKIP also follows the first lines if the consumer has taken all that is before
 * it: a ring that never has much in it stays in one page of memory, and in the processors' nearest caches.
 *
 * Ordering, by pairs:
 *   publish  the producer's store of a record's word, behind the bytes and the cleared word
 *            after them; the consumer's load of the word, before it reads these. Both are
 *            sequentially consistent: a producer that then loads a flag, and a consumer that
 *            stores the flag and then looks here, cannot miss each other (rings/link.h).
 *   release  the consumer's store-release of the head, behind its last access to the record;
 *            the producer's load-acquire of the head, before it writes to the lines again.
 *
 * Neither end trusts the other. The consumer reads a word once and checks it against the ring;
 * the producer checks the head. The bytes of a record may change while the consumer reads them.
 * An end that dies leaves the other an empty or a full ring, and no lock.
 */
#ifndef DOFI_BASE_RING_H
#define DOFI_BASE_RING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOFI_RING_LINE 64
#define DOFI_RING_LINES 1024			/* a power of two */
#define DOFI_RING_FIRST 56			/* lines that a ring with little in it uses */
#define DOFI_RING_RECORD_MAX 8320		/* bytes of the longest record */

/* All zero at first. Its place in memory is a cache line's. */
struct dofi_ring {
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t head;	/* lines released by the consumer, in all */
	_Alignas(DOFI_RING_LINE) unsigned char line[DOFI_RING_LINES][DOFI_RING_LINE];
};

/* Each end has its own view, in memory of its own. */
struct dofi_ring_out {
	struct dofi_ring *ring;
	uint64_t tail;			/* lines written, in all */
	uint64_t head;			/* as last read */
	uint64_t at;			/* where the record begins that is reserved */
};

struct dofi_ring_in {
	struct dofi_ring *ring;
	uint64_t next;			/* lines taken, in all */
	bool broken;			/* by the producer: nothing is taken any more */
};

/* A record in the ring. */
struct dofi_ring_record {
	const unsigned char *data;
	size_t len;
	uint64_t end;			/* for dofi_ring_release() */
};

#define DOFI_RING_SKIP UINT64_MAX

static inline _Atomic uint64_t *dofi_ring_word(struct dofi_ring *ring, uint64_t line)
{
	return (_Atomic uint64_t *)ring->line[line % DOFI_RING_LINES];
}

/* Lines of a record of @len bytes. */
static inline uint64_t dofi_ring_lines(size_t len)
{
	return (sizeof(uint64_t) + len + DOFI_RING_LINE - 1) / DOFI_RING_LINE;
}

/* Reads the head again. A head that was never possible is a negative errno. */
static inline int dofi_ring_read_head(struct dofi_ring_out *out)
{
	/* release */
	const uint64_t head = atomic_load_explicit(&out->ring->head, memory_order_acquire);

	if (out->tail - head > DOFI_RING_LINES)
		return -EPROTO;
	out->head = head;
	return 0;
}

/*
 * Whether a record of @n lines that would be the first to leave the ring's first lines can begin the ring anew. That
 * takes an empty ring, and room behind the SKIP.
 */
static inline bool dofi_ring_can_restart(struct dofi_ring_out *out, uint64_t n)
{
	return n < out->tail % DOFI_RING_LINES && !dofi_ring_read_head(out) && out->head == out->tail;
}

/*
 * Room for a record of up to @len bytes, at most DOFI_RING_RECORD_MAX: 0, and where its bytes
 * belong. -EAGAIN if the ring is full, -EPROTO if the consumer has broken it. One record can be
 * reserved at a time; without dofi_ring_publish() it is forgotten.
 */
static inline int dofi_ring_reserve(struct dofi_ring_out *out, size_t len, unsigned char **data)
{
	const uint64_t line = out->tail % DOFI_RING_LINES, left = DOFI_RING_LINES - line;
	const uint64_t n = dofi_ring_lines(len);
	/* from before DOFI_RING_FIRST to it or beyond, in one comparison */
	const bool leaves = line + n - DOFI_RING_FIRST < n;
	const bool skips = n > left || (__builtin_expect(leaves, 0) && dofi_ring_can_restart(out, n));
	const uint64_t at = skips ? out->tail + left : out->tail;
	const uint64_t end = at + n + 1;	/* with the word to be cleared */
	int ret;

	if (end - out->head > DOFI_RING_LINES) {
		ret = dofi_ring_read_head(out);
		if (ret)
			return ret;
		if (end - out->head > DOFI_RING_LINES)
			return -EAGAIN;
	}
	out->at = at;
	*data = (unsigned char *)(dofi_ring_word(out->ring, at) + 1);
	return 0;
}

/* The reserved record is there, with @len bytes. */
static inline void dofi_ring_publish(struct dofi_ring_out *out, size_t len)
{
	const uint64_t end = out->at + dofi_ring_lines(len);
	_Atomic uint64_t *word = dofi_ring_word(out->ring, out->at);

	atomic_store_explicit(dofi_ring_word(out->ring, end), 0, memory_order_relaxed);
	if (out->at == out->tail) {
		atomic_store(word, len + 1);	/* publish */
	} else {
		/* not seen before the SKIP is */
		atomic_store_explicit(word, len + 1, memory_order_relaxed);
		atomic_store(dofi_ring_word(out->ring, out->tail), DOFI_RING_SKIP); /* publish */
	}
	out->tail = end;
}

/* Whether a record may be there. */
static inline bool dofi_ring_has(const struct dofi_ring_in *in)
{
	return !in->broken &&
	       atomic_load_explicit(dofi_ring_word(in->ring, in->next), memory_order_relaxed);
}

/*
 * Checks what the word of a record says, at line @at of the ring. A SKIP leads to a record,
 * never to 0.
 */
static inline bool dofi_ring_fits(uint64_t word, uint64_t at)
{
	return word - 1 <= DOFI_RING_RECORD_MAX &&
	       dofi_ring_lines(word - 1) <= DOFI_RING_LINES - at % DOFI_RING_LINES;
}

/*
 * Takes the next record; it stays in the ring until dofi_ring_release(). False if there is
 * none. If the producer has broken the ring, in->broken is set.
 */
static inline bool dofi_ring_take(struct dofi_ring_in *in, struct dofi_ring_record *record)
{
	uint64_t at = in->next;
	uint64_t word = atomic_load(dofi_ring_word(in->ring, at));	/* publish */

	if (!word || in->broken)
		return false;
	if (word == DOFI_RING_SKIP && at % DOFI_RING_LINES) {
		at += DOFI_RING_LINES - at % DOFI_RING_LINES;
		word = atomic_load_explicit(dofi_ring_word(in->ring, at), memory_order_relaxed);
	}
	if (!dofi_ring_fits(word, at)) {
		in->broken = true;
		return false;
	}
	record->data = (const unsigned char *)(dofi_ring_word(in->ring, at) + 1);
	record->len = word - 1;
	record->end = in->next = at + dofi_ring_lines(record->len);
	return true;
}

/* Gives back the lines of all records up to the one that ends at @end. In the order of taking. */
static inline void dofi_ring_release(struct dofi_ring_in *in, uint64_t end)
{
	atomic_store_explicit(&in->ring->head, end, memory_order_release);	/* release */
}

#endif
