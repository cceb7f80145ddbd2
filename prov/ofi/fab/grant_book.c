/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The book of a PZ's grants, which peers of the host can read. */

#include "fab/grant_book.h"

#include "base/alive.h"
#include "base/sealed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 0x6461746772616e74ull

#define PAGES 8192
#define BUCKETS 4096			/* a power of two; keys are random */
#define MOST_PROBES 64			/* a peer follows a chain while the owner changes it */

/* One grant. Peers read the other fields between two loads of the word. */
struct page {
	_Alignas(64) _Atomic uint64_t word;	/* 0: no grant */
	_Atomic uint64_t fabric_key, first, memory, len, access;
	_Atomic uint32_t next;		/* page of the chain, or of the free pages; 0: none */
};

/* Page n is page[n - 1]. */
struct dofi_grant_pages {
	uint64_t magic;
	struct dofi_alive alive;
	_Atomic uint32_t bucket[BUCKETS];
	struct page page[PAGES];
};

struct dofi_grant_book {
	struct dofi_grant_pages *pages;
	int fd;
	pid_t owner;
	uint32_t used;			/* pages that have ever had a grant */
	uint32_t free;			/* head of the pages with an ended grant; 0: no page */
	uint64_t last;			/* the last word */
};

/* The owner */

int dofi_grant_book_make(struct dofi_grant_book **out)
{
	struct dofi_grant_book *book = calloc(1, sizeof(*book));
	void *at;
	int ret;

	if (!book)
		return -ENOMEM;
	book->fd = dofi_sealed_make_own(sizeof(*book->pages), &at);
	if (book->fd < 0) {
		ret = book->fd;
		goto free_book;
	}
	book->pages = at;
	ret = dofi_alive_begin(&book->pages->alive);
	if (ret)
		goto unmap;
	book->pages->magic = MAGIC;
	book->owner = getpid();
	*out = book;
	return 0;

unmap:
	dofi_sealed_unmap(at, sizeof(*book->pages));
	close(book->fd);
free_book:
	free(book);
	return ret;
}

void dofi_grant_book_free(struct dofi_grant_book *book)
{
	if (!book)
		return;
	dofi_alive_end(&book->pages->alive);
	dofi_sealed_unmap(book->pages, sizeof(*book->pages));
	close(book->fd);
	free(book);
}

int dofi_grant_book_fd(const struct dofi_grant_book *book)
{
	return book->fd;
}

static struct page *page_at(struct dofi_grant_pages *pages, uint32_t n)
{
	return &pages->page[n - 1];
}

static _Atomic uint32_t *bucket_of(struct dofi_grant_pages *pages, uint64_t key)
{
	return &pages->bucket[key % BUCKETS];
}

static uint32_t page_take(struct dofi_grant_book *book)
{
	const uint32_t n = book->free;

	if (!n)
		return book->used < PAGES ? ++book->used : 0;
	book->free = page_at(book->pages, n)->next;
	return n;
}

uint32_t dofi_grant_book_add(struct dofi_grant_book *book, const struct dofi_terms *terms)
{
	_Atomic uint32_t *bucket = bucket_of(book->pages, terms->fabric_key);
	const uint32_t n = page_take(book);
	struct page *page;

	if (!n)
		return 0;
	page = page_at(book->pages, n);
	page->fabric_key = terms->fabric_key;
	page->first = terms->first;
	page->memory = terms->memory;
	page->len = terms->len;
	page->access = terms->access;
	page->next = *bucket;
	atomic_store(&page->word, ++book->last);
	atomic_store(bucket, n);
	return n;
}

bool dofi_grant_book_remove(struct dofi_grant_book *book, uint32_t n)
{
	struct page *page = page_at(book->pages, n);
	_Atomic uint32_t *at = bucket_of(book->pages, page->fabric_key);

	if (book->owner != getpid())
		return false;
	atomic_store(&page->word, 0);
	while (*at != n)
		at = &page_at(book->pages, *at)->next;
	*at = page->next;
	page->next = book->free;
	book->free = n;
	return true;
}

/* Peers */

int dofi_grant_pages_map(int fd, const struct dofi_grant_pages **out)
{
	const struct dofi_grant_pages *pages;
	void *at;
	int ret = dofi_sealed_map_to_read(fd, sizeof(*pages), &at);

	if (ret)
		return ret;
	pages = at;
	if (pages->magic != MAGIC) {
		dofi_sealed_unmap(at, sizeof(*pages));
		return -EPROTO;
	}
	*out = pages;
	return 0;
}

void dofi_grant_pages_unmap(const struct dofi_grant_pages *pages)
{
	if (pages)
		dofi_sealed_unmap((void *)(uintptr_t)pages, sizeof(*pages));
}

static bool allows(const struct page *page, const struct dofi_use *use, struct dofi_permit *permit)
{
	const uint64_t word = atomic_load(&page->word);
	const struct dofi_terms terms = {
		.fabric_key = page->fabric_key, .first = page->first, .memory = page->memory,
		.len = page->len, .access = page->access,
	};

	if (!word || !dofi_terms_allow(&terms, use) || atomic_load(&page->word) != word)
		return false;
	permit->word = word;
	permit->memory = terms.memory + (use->addr - terms.first);
	return true;
}

bool dofi_grant_pages_find(const struct dofi_grant_pages *pages, const struct dofi_use *use,
			   struct dofi_permit *permit)
{
	uint32_t n = pages->bucket[use->key % BUCKETS], probes;

	for (probes = 0; n && n <= PAGES && probes < MOST_PROBES; probes++) {
		if (allows(&pages->page[n - 1], use, permit)) {
			permit->page = n;
			return true;
		}
		n = pages->page[n - 1].next;
	}
	return false;
}

bool dofi_grant_pages_hold(const struct dofi_grant_pages *pages, const struct dofi_permit *permit)
{
	return dofi_alive_is(&pages->alive) &&
	       atomic_load(&pages->page[permit->page - 1].word) == permit->word;
}

bool dofi_grant_pages_held(const struct dofi_grant_pages *pages, const struct dofi_permit *permit)
{
	atomic_thread_fence(memory_order_seq_cst);
	return dofi_grant_pages_hold(pages, permit);
}
