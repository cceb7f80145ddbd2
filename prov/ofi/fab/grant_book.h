/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The book of a PZ's grants, in memory that peers of the host can only read: they find out by
 * themselves which memory they may use. Each grant has a page, with a word that is never used
 * again, and that the owner clears at the end. Without a free page the target carries RDMA out.
 */
#ifndef DOFI_FAB_GRANT_BOOK_H
#define DOFI_FAB_GRANT_BOOK_H

#include "base/layout.h"
#include "fab/grant.h"

#include <stdatomic.h>
#include <sys/types.h>

/* The shared memory. It becomes real, page by page of the system, where it is used. */
struct dofi_grant_pages;

/* The owner's end. */
struct dofi_grant_book;

/* Returns 0; -ENOTSUP if the system does not have all of it; or another negative errno. */
int dofi_grant_book_make(struct dofi_grant_book **book);
/* Call on the thread that made the book. NULL is ignored. */
void dofi_grant_book_free(struct dofi_grant_book *book);
/* Returns the descriptor for peers, which is open while the book is. */
int dofi_grant_book_fd(const struct dofi_grant_book *book);

/* Call these two under the lock of the grants. Returns the grant's page, or 0 if none is free. */
uint32_t dofi_grant_book_add(struct dofi_grant_book *book, const struct dofi_bounds *bounds);
/* Voids @page, before a peer that checks it later writes. Returns false in a forked child. */
bool dofi_grant_book_remove(struct dofi_grant_book *book, uint32_t page);

/*
 * Peers write for the connection @id from the first to the second call. Writes for a connection
 * that finds no place in the book are carried out by the target.
 */
void dofi_grant_book_add_conn(struct dofi_grant_book *book, uint64_t id);
void dofi_grant_book_remove_conn(struct dofi_grant_book *book, uint64_t id);

/* Peers */

/* Returns 0, -EPROTO if @fd is no such memory, or another negative errno. @fd stays open. */
int dofi_grant_pages_map(int fd, const struct dofi_grant_pages **pages);
/* NULL is ignored. */
void dofi_grant_pages_unmap(const struct dofi_grant_pages *pages);

/* A permitted access. */
struct dofi_right {
	uint32_t page;
	uint64_t word;
	uint64_t memory;		/* address of the first byte in the target's process */
};

/* Returns whether a grant permits @wanted, and sets *@right. */
bool dofi_grant_pages_find(const struct dofi_grant_pages *pages, const struct dofi_access *wanted,
			   struct dofi_right *right);
/* Returns whether the target's connection @id may be used for writes. */
bool dofi_grant_pages_has_conn(const struct dofi_grant_pages *pages, uint64_t id);
/* Returns whether the target lives, and the grant of @right has not ended. */
bool dofi_grant_pages_hold(const struct dofi_grant_pages *pages, const struct dofi_right *right);
/* Returns whether that held while the bytes were read: loads the word last. Call after reading. */
bool dofi_grant_pages_held(const struct dofi_grant_pages *pages, const struct dofi_right *right);

/*
 * Writes of peers to this process's memory, and the wait of a grant's end for them. A writer stores
 * in a shared word that it is writing to the page of the grant, then checks grant and connection,
 * writes, and clears the word. The owner voids the page, or the connection's word in the book, and
 * then reads the writer's words. These accesses are sequentially consistent: the writer finds that
 * it may not write, or the owner waits for the bytes. Both processes can change the words, so the
 * wait is bounded, and ends with a dead writer. A stopped writer delays the owner once; stopped
 * after its check, it writes when it continues.
 */

/* Most bytes of one write, so that an owner waits for few. */
#define DOFI_WRITE_PIECE ((size_t)1 << 20)

/* The words of a writer, so that several of its threads can write. */
#define DOFI_WRITINGS 4

/* Shared by the two processes; all zero at first. */
struct dofi_writing {
	/* 0, or the page being written to in the low bits and a count in the high bits */
	_Alignas(DOFI_CACHE_LINE) _Atomic uint64_t busy;
};

#define DOFI_WRITING_PAGE_BITS 16

/* The owner's end. */
struct dofi_writer {
	struct dofi_writing *writing;	/* DOFI_WRITINGS of them */
	const _Atomic uint32_t *pid;	/* the writer's process, in memory shared with it */
	/* values of busy for which a wait ended without success */
	uint64_t given_up[DOFI_WRITINGS];
	LIST_ENTRY(dofi_writer) link;	/* in the list of dofi_grants */
};

extern int64_t dofi_writer_patience_ns;	/* the limit of a wait; tests change it */

/* Waits until the peer is not writing to @page, which is void; if that is 0, to any page. */
void dofi_writer_await(struct dofi_writer *writer, uint32_t page);

/* The writer's end. @count is the writer's own. */
static inline void dofi_writing_begin(struct dofi_writing *w, uint64_t *count, uint32_t page)
{
	atomic_store(&w->busy, ++*count << DOFI_WRITING_PAGE_BITS | page);
}

static inline void dofi_writing_end(struct dofi_writing *w)
{
	atomic_store_explicit(&w->busy, 0, memory_order_release);
}

#endif
