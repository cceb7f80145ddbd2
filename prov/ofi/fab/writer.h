/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes of peers to this process's memory, and the wait of a grant's end for them.
 *
 * A writer marks the page of the grant (fab/grant_book.h) as busy, then checks that the grant is
 * valid and the connection not over, writes, and clears the mark. The owner voids the page, or
 * declares the connection over, and then reads the mark. These accesses are sequentially
 * consistent: either the writer finds that it may not write, or the owner finds the mark and waits
 * until the bytes are in place.
 *
 * Both processes can write to the mark, so the wait is bounded. A dead writer does not delay the
 * owner. A writer that a signal or a debugger has stopped delays the owner once, up to the limit.
 * If it was stopped between its check and the system call, it writes when it continues.
 */
#ifndef DOFI_FAB_WRITER_H
#define DOFI_FAB_WRITER_H

#include "base/line.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* Most bytes that are written under one mark, so that an owner waits for few. */
#define DOFI_WRITE_PIECE ((size_t)1 << 20)

/* Shared by the two processes; all zero at first. */
struct dofi_mark {
	/* 0, or the page being written to in the low bits and a count in the high bits */
	_Alignas(DOFI_CACHE_LINE) _Atomic uint64_t busy;
	_Atomic uint32_t over;		/* set by the owner: the connection has ended */
};

#define DOFI_MARK_PAGE_BITS 16

/* The owner's end of a mark. */
struct dofi_writer {
	struct dofi_mark *mark;
	pid_t pid;			/* the writer's process */
	uint64_t given_up;		/* the mark for which a wait has ended without success */
	LIST_ENTRY(dofi_writer) link;	/* in the list of dofi_grants */
};

extern int64_t dofi_writer_patience_ns;	/* the limit of a wait; tests change it */

/* Waits until the peer is not writing to @page, which is void. */
void dofi_writer_await(struct dofi_writer *writer, uint32_t page);
/* The connection is over: waits until the peer is not writing, and from now on it does not. */
void dofi_writer_end(struct dofi_writer *writer);

/* The writer's end. @count is the writer's own. */
static inline void dofi_mark_set(struct dofi_mark *mark, uint64_t *count, uint32_t page)
{
	atomic_store(&mark->busy, ++*count << DOFI_MARK_PAGE_BITS | page);
}

static inline void dofi_mark_clear(struct dofi_mark *mark)
{
	atomic_store_explicit(&mark->busy, 0, memory_order_release);
}

/* Returns whether the owner has declared the connection over. Call with the mark set. */
static inline bool dofi_mark_over(const struct dofi_mark *mark)
{
	return atomic_load(&mark->over);
}

#endif
