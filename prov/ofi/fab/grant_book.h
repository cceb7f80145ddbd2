/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The book of a PZ's grants, in memory that peers of the host can read but not write, so that they
 * find out by themselves which memory they may use. Each grant has a page, with a word that is
 * never used again. The owner clears the word when the grant ends.
 *
 * A grant that finds no free page is not in the book: its target carries RDMA out.
 */
#ifndef DOFI_FAB_GRANT_BOOK_H
#define DOFI_FAB_GRANT_BOOK_H

#include "fab/grant.h"

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
uint32_t dofi_grant_book_add(struct dofi_grant_book *book, const struct dofi_terms *terms);
/*
 * Voids @page: a peer that has not yet found it valid does not use the memory. Returns false, and
 * does nothing, in a forked child: the book is the parent's.
 */
bool dofi_grant_book_remove(struct dofi_grant_book *book, uint32_t page);

/* Peers */

/* Returns 0, -EPROTO if @fd is no such memory, or another negative errno. @fd stays open. */
int dofi_grant_pages_map(int fd, const struct dofi_grant_pages **pages);
/* NULL is ignored. */
void dofi_grant_pages_unmap(const struct dofi_grant_pages *pages);

/* A permitted use. */
struct dofi_permit {
	uint32_t page;
	uint64_t word;
	uint64_t memory;		/* address of the first byte in the target's process */
};

/* Returns whether a grant permits @use, and sets *@permit. */
bool dofi_grant_pages_find(const struct dofi_grant_pages *pages, const struct dofi_use *use,
			   struct dofi_permit *permit);
/* Returns whether the target lives, and the grant of @permit has not ended. */
bool dofi_grant_pages_hold(const struct dofi_grant_pages *pages, const struct dofi_permit *permit);
/*
 * Like dofi_grant_pages_hold(), after the memory of the grant was read: the word is loaded after
 * the bytes, which may be another program's after the end of the grant.
 */
bool dofi_grant_pages_held(const struct dofi_grant_pages *pages, const struct dofi_permit *permit);

#endif
