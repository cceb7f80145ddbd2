/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The book of a PZ's grants, which peers of the host can read, and the wait for their writes. */

#include "fab/grant_book.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define MAGIC 0x6461746772616e74ull

#define CONNS 8192			/* connections beyond them write by the target */
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
	_Atomic uint64_t conn[CONNS];	/* ids, by their low halves */
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

uint32_t dofi_grant_book_add(struct dofi_grant_book *book, const struct dofi_bounds *bounds)
{
	_Atomic uint32_t *bucket = bucket_of(book->pages, bounds->fabric_key);
	uint32_t n = book->free;
	struct page *page;

	if (!n && book->used == PAGES)
		return 0;
	if (n)
		book->free = page_at(book->pages, n)->next;
	else
		n = ++book->used;
	page = page_at(book->pages, n);
	page->fabric_key = bounds->fabric_key;
	page->first = bounds->first;
	page->memory = bounds->memory;
	page->len = bounds->len;
	page->access = bounds->access;
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

static void conn_set(struct dofi_grant_book *book, uint32_t slot, uint64_t id)
{
	if (slot < CONNS)
		atomic_store(&book->pages->conn[slot], id);
}

void dofi_grant_book_add_conn(struct dofi_grant_book *book, uint64_t id)
{
	conn_set(book, (uint32_t)id, id);
}

void dofi_grant_book_remove_conn(struct dofi_grant_book *book, uint64_t id)
{
	conn_set(book, (uint32_t)id, 0);
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

bool dofi_grant_pages_find(const struct dofi_grant_pages *pages, const struct dofi_access *wanted,
			   struct dofi_right *right)
{
	uint32_t n = pages->bucket[wanted->key % BUCKETS], probes;
	const struct page *page;
	struct dofi_bounds has;
	uint64_t word;

	for (probes = 0; n && n <= PAGES && probes < MOST_PROBES; probes++, n = page->next) {
		page = &pages->page[n - 1];
		word = atomic_load(&page->word);
		has = (struct dofi_bounds){
			.fabric_key = page->fabric_key, .first = page->first,
			.memory = page->memory, .len = page->len, .access = page->access,
		};
		if (!word || !dofi_bounds_allow(&has, wanted) || atomic_load(&page->word) != word)
			continue;
		*right = (struct dofi_right){
			.page = n, .word = word, .memory = has.memory + (wanted->addr - has.first),
		};
		return true;
	}
	return false;
}

bool dofi_grant_pages_has_conn(const struct dofi_grant_pages *pages, uint64_t id)
{
	const uint32_t slot = (uint32_t)id;

	return slot < CONNS && atomic_load(&pages->conn[slot]) == id;
}

bool dofi_grant_pages_hold(const struct dofi_grant_pages *pages, const struct dofi_right *right)
{
	return dofi_alive_is(&pages->alive) &&
	       atomic_load(&pages->page[right->page - 1].word) == right->word;
}

bool dofi_grant_pages_held(const struct dofi_grant_pages *pages, const struct dofi_right *right)
{
	atomic_thread_fence(memory_order_seq_cst);
	return dofi_grant_pages_hold(pages, right);
}

/* Writers */

/* A piece takes less than a millisecond, if the writer has a processor. */
int64_t dofi_writer_patience_ns = 5 * INT64_C(1000000000);

#define SPINS 1000

/* Waits while word @i is @busy and the writer lives; before Linux 5.3, up to the limit. */
static void await(struct dofi_writer *writer, int i, uint64_t busy)
{
	const int64_t until = dofi_now() + dofi_writer_patience_ns;
	const pid_t pid = (pid_t)atomic_load(writer->pid);
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int spins = 0;

	while (atomic_load(&writer->writing[i].busy) == busy && writer->given_up[i] != busy) {
		if (spins++ < SPINS)
			continue;
		if (p.fd < 0)
			p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if ((p.fd < 0 && errno == ESRCH) || poll(&p, 1, 1) > 0)
			break;
		if (dofi_now() < until)
			continue;
		writer->given_up[i] = busy;
		dofi_log(DOFI_WARN, DOFI_MEM, "process %d is stopped while it writes to memory",
			 (int)pid);
	}
	if (p.fd >= 0)
		close(p.fd);
}

void dofi_writer_await(struct dofi_writer *writer, uint32_t page)
{
	uint64_t busy;
	int i;

	for (i = 0; i < DOFI_WRITINGS; i++) {
		busy = atomic_load(&writer->writing[i].busy);
		if (busy && (!page || (busy & ((1u << DOFI_WRITING_PAGE_BITS) - 1)) == page))
			await(writer, i, busy);
	}
}
