/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring of records from one process to another, in memory that both map.
 *
 * One thread at a time produces, and one consumes. The ring consists of lines, each a cache line. A
 * record is a word with its length, followed by its bytes, in consecutive lines. So a short record
 * is one line, which one transfer moves from processor to processor. The consumer loads the word of
 * the next record, not an index of the producer. The word is 0 until the record is there: the
 * producer clears the word after each record before it publishes the record. If a record does not
 * fit before the end of the ring, a SKIP there leads to the first line. If the consumer has
 * taken all records, a SKIP follows the first lines already: a ring with few records stays in one
 * page, and in the nearest caches.
 *
 * Ordering, in two pairs. Publish: the producer stores a record's word after its bytes and the
 * cleared word behind them; the consumer loads the word before these. Both are sequentially
 * consistent: a producer that then loads a flag, and a consumer that stores the flag and then reads
 * here, cannot miss each other (rings/link.h). Release: the consumer stores the head after its last
 * access to the record; the producer loads it (acquire) before it writes to the lines.
 *
 * Neither end trusts the other. The consumer reads a word once and checks it against the ring; the
 * producer checks the head. The bytes of a record may change while the consumer reads them. An end
 * that dies leaves the other an empty or a full ring, and no lock.
 */
#ifndef DOFI_BASE_RING_H
#define DOFI_BASE_RING_H

#include "base/layout.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOFI_RING_LINE DOFI_CACHE_LINE
#define DOFI_RING_LINES (65536 / DOFI_RING_LINE) /* a power of two */
/* lines that a ring with little in it uses: with the header, less than 4 KiB */
#define DOFI_RING_FIRST (4096 / DOFI_RING_LINE - 8)
#define DOFI_RING_RECORD_MAX 8320		/* bytes of the longest record */

/*
 * The consumer's processor has the lines that the producer will write. With a record of up to
 * DOFI_RING_SHORT lines the producer fetches as many, from the third one behind the record on; it
 * fetched the two before with earlier records. It fetches the lines of a longer record at once, as
 * stores would fetch few of them at a time.
 */
#define DOFI_RING_AHEAD 2
#define DOFI_RING_SHORT 2

/* All zero at first. */
struct dofi_ring {
	/* how many lines the consumer has released */
	_Alignas(DOFI_RING_LINE) _Atomic uint64_t head;
	_Alignas(DOFI_RING_LINE) unsigned char line[DOFI_RING_LINES][DOFI_RING_LINE];
};

/* The producer's end, in its private memory. */
struct dofi_ring_out {
	struct dofi_ring *ring;
	uint64_t tail;			/* how many lines were written */
	uint64_t head;			/* ring->head when it was last loaded */
	/* the reserved record: the lines where it begins and ends, and its bytes */
	uint64_t at, end;
	size_t len;
};

/* The consumer's end, in its private memory; begins with dofi_ring_seek() to line 0. */
struct dofi_ring_in {
	struct dofi_ring *ring;
	/* dofi_ring_seek() writes these two */
	uint64_t next;			/* how many lines were taken */
	_Atomic uint64_t *word;		/* of the next record */
	/* nothing is taken any more: the producer wrote an impossible record, or is faulty */
	bool broken;
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

/* Returns the lines of a record of @len bytes. */
static inline uint64_t dofi_ring_lines(size_t len)
{
	return (sizeof(uint64_t) + len + DOFI_RING_LINE - 1) / DOFI_RING_LINE;
}

/*
 * Begins to fetch @n lines from @line on for stores. An inlined or an external function would make
 * short records save more registers.
 */
static __attribute__((noinline, unused))
void dofi_ring_fetch(struct dofi_ring *ring, uint64_t line, uint64_t n)
{
	for (; n; n--, line++)
		dofi_fetch_to_store(dofi_ring_word(ring, line));
}

/* Loads the head. Returns 0, or -EPROTO if its value is impossible. */
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
 * Reserves a record of @len bytes, at most DOFI_RING_RECORD_MAX, and sets *@data. Returns 0,
 * -EAGAIN if the ring is full, or -EPROTO if the consumer broke it. Replaces an unpublished record.
 */
static inline int dofi_ring_reserve(struct dofi_ring_out *out, size_t len, unsigned char **data)
{
	struct dofi_ring *ring = out->ring;
	const uint64_t tail = out->tail, line = tail % DOFI_RING_LINES;
	const uint64_t left = DOFI_RING_LINES - line;
	const uint64_t n = dofi_ring_lines(len);
	/* begins before line DOFI_RING_FIRST and ends at it or after, in one comparison */
	const bool leaves = line + n - DOFI_RING_FIRST < n;
	/* instead of leaving, the record begins at the first line again if the ring is empty */
	const bool skips = n > left || (__builtin_expect(leaves, 0) && n < line &&
					!dofi_ring_read_head(out) && out->head == tail);
	const uint64_t at = skips ? tail + left : tail;
	const uint64_t end = at + n;
	int ret;

	/* with the line of the word to be cleared */
	if (end - out->head >= DOFI_RING_LINES) {
		ret = dofi_ring_read_head(out);
		if (ret)
			return ret;
		if (end - out->head >= DOFI_RING_LINES)
			return -EAGAIN;
	}
	/*
	 * Clears the word of the next record, which fetches its line. During a fetch at publication
	 * a polling consumer would take back this record's line.
	 */
	atomic_store_explicit(dofi_ring_word(ring, end), 0, memory_order_relaxed);
	if (__builtin_expect(n > DOFI_RING_SHORT, 0)) {
		dofi_ring_fetch(ring, at + 1, n - 1);
	} else {
		dofi_fetch_to_store(dofi_ring_word(ring, end + DOFI_RING_AHEAD));
		if (n > 1)
			dofi_fetch_to_store(dofi_ring_word(ring, end + DOFI_RING_AHEAD + 1));
	}
	out->at = at;
	out->end = end;
	out->len = len;
	*data = (unsigned char *)(dofi_ring_word(ring, at) + 1);
	return 0;
}

/* Publishes the reserved record. */
static inline void dofi_ring_publish(struct dofi_ring_out *out)
{
	struct dofi_ring *ring = out->ring;
	const uint64_t at = out->at, tail = out->tail, len = out->len;
	_Atomic uint64_t *word = dofi_ring_word(ring, at);

	if (__builtin_expect(at == tail, 1)) {
		atomic_store(word, len + 1);	/* publish */
	} else {
		/* the consumer does not load this before it has seen the SKIP */
		atomic_store_explicit(word, len + 1, memory_order_relaxed);
		atomic_store(dofi_ring_word(ring, tail), DOFI_RING_SKIP); /* publish */
	}
	out->tail = out->end;
}

/* The next record is at @line. */
static inline void dofi_ring_seek(struct dofi_ring_in *in, uint64_t line)
{
	in->next = line;
	in->word = dofi_ring_word(in->ring, line);
}

/*
 * Returns whether there may be a record. Sequentially consistent: a consumer that clears the mark
 * of the ring, and then finds the ring empty here, misses no record.
 */
static inline bool dofi_ring_has(const struct dofi_ring_in *in)
{
	return atomic_load(in->word) && !in->broken;	/* publish */
}

/* Returns whether @word can begin a record at line @at: a SKIP leads to a record, never to 0. */
static inline bool dofi_ring_fits(uint64_t word, uint64_t at)
{
	return word - 1 <= DOFI_RING_RECORD_MAX &&
	       dofi_ring_lines(word - 1) <= DOFI_RING_LINES - at % DOFI_RING_LINES;
}

/* Takes the next record, until dofi_ring_release(). False if there is none; may set in->broken. */
static inline bool dofi_ring_take(struct dofi_ring_in *in, struct dofi_ring_record *record)
{
	uint64_t at = in->next;
	uint64_t word = atomic_load(in->word);	/* publish */

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
	record->end = at + dofi_ring_lines(record->len);
	dofi_ring_seek(in, record->end);
	return true;
}

/* Describes the next record without taking it. False if there is none, or it is behind a SKIP. */
static inline bool dofi_ring_peek(const struct dofi_ring_in *in, struct dofi_ring_record *record)
{
	const uint64_t at = in->next;
	const uint64_t word = atomic_load(in->word);	/* publish */

	if (in->broken || !dofi_ring_fits(word, at))
		return false;
	record->data = (const unsigned char *)(in->word + 1);
	record->len = word - 1;
	record->end = at + dofi_ring_lines(record->len);
	return true;
}

/* Releases the lines of all records up to the one that ends at @end. Call in this order. */
static inline void dofi_ring_release(struct dofi_ring_in *in, uint64_t end)
{
	atomic_store_explicit(&in->ring->head, end, memory_order_release);	/* release */
}

/* Takes @record, which dofi_ring_peek() described, and releases its lines. */
static inline void dofi_ring_consume(struct dofi_ring_in *in, const struct dofi_ring_record *record)
{
	dofi_ring_seek(in, record->end);
	dofi_ring_release(in, record->end);
}

#endif
