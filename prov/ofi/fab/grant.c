/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Grants: what peers may do with memory of this process, and the keys for it. */

#include "fab/grant.h"

#include "base/pool.h"
#include "fab/grant_book.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_BUCKETS 64
#define KEY_TRIES 64

struct dofi_grant {
	/* key and number while the grant is in force; otherwise 0 */
	_Atomic uint64_t word;
	uint32_t number;		/* how many grants have had this memory */
	uint32_t key;
	uint32_t page;			/* in the book, or 0 */
	struct dofi_grants *table;
	struct dofi_terms terms;
	LIST_ENTRY(dofi_grant) link;	/* in its bucket; under the lock of the table */
};

/* Type-stable: peers read words of grants that ended long ago. */
static struct dofi_pool pool = DOFI_POOL_INIT("grant", struct dofi_grant, NULL);

/* Keys */

uint32_t dofi_random(void)
{
	uint32_t number = 0;

	while (!number)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number) && errno != EINTR)
			return 0;
	return number;
}

/* Never returns 0 for a key: that means "no remote access" to DAT programs. */
uint32_t dofi_key_random(bool scoped)
{
	uint32_t number;

	do {
		number = dofi_random();
		if (!number)
			return 0;
		number &= ~DOFI_KEY_SCOPED;
	} while (!number);
	return scoped ? number | DOFI_KEY_SCOPED : number;
}

/* The table */

void dofi_grants_init(struct dofi_grants *t)
{
	dofi_mutex_init(&t->lock);
	t->bucket = NULL;
	t->n_buckets = t->used = 0;
	t->book = NULL;
	LIST_INIT(&t->writers);
}

void dofi_grants_fini(struct dofi_grants *t)
{
	dofi_grant_book_free(t->book);
	free(t->bucket);
}

/* Keys are random, so their low bits are a hash. */
static struct dofi_grant_list *bucket_of(const struct dofi_grants *t, uint32_t key)
{
	return &t->bucket[key & (t->n_buckets - 1)];
}

static struct dofi_grant *find(const struct dofi_grants *t, uint32_t key) DOFI_NEEDS(t->lock)
{
	struct dofi_grant *g;

	if (!t->n_buckets)
		return NULL;
	LIST_FOREACH(g, bucket_of(t, key), link)
		if (g->key == key)
			return g;
	return NULL;
}

/* Doubles a full table. Without memory the lists get longer; -ENOMEM only without a table. */
static int grow(struct dofi_grants *t)
{
	struct dofi_grants next = { .n_buckets = t->n_buckets ? 2 * t->n_buckets : FIRST_BUCKETS };
	struct dofi_grant *g;
	size_t i;

	if (t->used < t->n_buckets)
		return 0;
	next.bucket = calloc(next.n_buckets, sizeof(*next.bucket));
	if (!next.bucket)
		return t->n_buckets ? 0 : -ENOMEM;
	for (i = 0; i < t->n_buckets; i++)
		while ((g = LIST_FIRST(&t->bucket[i]))) {
			LIST_REMOVE(g, link);
			LIST_INSERT_HEAD(bucket_of(&next, g->key), g, link);
		}
	free(t->bucket);
	t->bucket = next.bucket;
	t->n_buckets = next.n_buckets;
	return 0;
}

static int key_choose(const struct dofi_grants *t, bool scoped, uint32_t *key) DOFI_NEEDS(t->lock)
{
	int tries;

	for (tries = 0; tries < KEY_TRIES; tries++) {
		*key = dofi_key_random(scoped);
		if (!*key)
			return -EIO;
		if (!find(t, *key))
			return 0;
	}
	return -EAGAIN;
}

/* A local registration is of no use to peers. */
static void publish(struct dofi_grant *g)
{
	g->page = g->table->book && g->terms.access ?
			  dofi_grant_book_add(g->table->book, &g->terms) : 0;
}

int dofi_grant_open_as(struct dofi_grants *t, const struct dofi_mr_request *r, uint32_t key,
		       struct dofi_grant **out)
{
	struct dofi_grant *g = dofi_pool_get(&pool);
	int ret;

	if (!g)
		return -ENOMEM;
	g->table = t;
	g->terms = (struct dofi_terms){
		.memory = (uintptr_t)r->addr, .first = r->zero_based ? 0 : (uintptr_t)r->addr,
		.len = r->len, .access = r->remote,
	};
	dofi_mutex_lock(&t->lock);
	ret = grow(t);
	if (!ret && !key)
		ret = key_choose(t, r->scoped, &key);
	else if (!ret && find(t, key))
		ret = -EEXIST;
	if (!ret) {
		g->key = key;
		g->terms.fabric_key = dofi_mr_fabric_key(key, r->secret);
		publish(g);
		atomic_store(&g->word, (uint64_t)key << 32 | ++g->number);
		LIST_INSERT_HEAD(bucket_of(t, key), g, link);
		t->used++;
	}
	dofi_mutex_unlock(&t->lock);
	if (ret)
		dofi_pool_put(&pool, g);
	else
		*out = g;
	return ret;
}

int dofi_grant_open(struct dofi_grants *t, const struct dofi_mr_request *r,
		    struct dofi_grant **out, uint32_t *key)
{
	int ret = dofi_grant_open_as(t, r, 0, out);

	if (!ret)
		*key = (*out)->key;
	return ret;
}

void dofi_grant_close(struct dofi_grant *g)
{
	struct dofi_grants *t = g->table;
	struct dofi_writer *writer;

	dofi_mutex_lock(&t->lock);
	/* no peer begins to write after the page is void: wait for peers that are writing */
	if (g->page && dofi_grant_book_remove(t->book, g->page))
		LIST_FOREACH(writer, &t->writers, link)
			dofi_writer_await(writer, g->page);
	LIST_REMOVE(g, link);
	t->used--;
	dofi_mutex_unlock(&t->lock);
	atomic_store(&g->word, 0);
	/* a peer that reads later contents of the memory finds the word changed */
	atomic_thread_fence(memory_order_seq_cst);
	dofi_pool_put(&pool, g);
}

/* Peers */

int dofi_grants_publish(struct dofi_grants *t)
{
	struct dofi_grant_book *book;
	struct dofi_grant *g;
	int ret = t->book ? 0 : dofi_grant_book_make(&book);
	size_t i;

	if (ret || t->book)
		return ret;
	dofi_mutex_lock(&t->lock);
	t->book = book;
	for (i = 0; i < t->n_buckets; i++)
		LIST_FOREACH(g, &t->bucket[i], link)
			publish(g);
	dofi_mutex_unlock(&t->lock);
	return 0;
}

void dofi_grants_add_writer(struct dofi_grants *t, struct dofi_writer *writer)
{
	dofi_mutex_lock(&t->lock);
	LIST_INSERT_HEAD(&t->writers, writer, link);
	dofi_mutex_unlock(&t->lock);
}

void dofi_grants_remove_writer(struct dofi_grants *t, struct dofi_writer *writer)
{
	dofi_mutex_lock(&t->lock);
	LIST_REMOVE(writer, link);
	dofi_mutex_unlock(&t->lock);
}

/* Uses */

/* Returns the grant for @use, and sets *@memory; NULL if there is none. Call with the lock held. */
static struct dofi_grant *admit(const struct dofi_grants *t, const struct dofi_use *use,
				void **memory) DOFI_NEEDS(t->lock)
{
	struct dofi_grant *g = find(t, use->key);

	if (!g || !dofi_terms_allow(&g->terms, use))
		return NULL;
	*memory = (void *)(uintptr_t)(g->terms.memory + (use->addr - g->terms.first));
	return g;
}

int dofi_grant_enter(struct dofi_grants *t, const struct dofi_use *use, void **memory)
{
	dofi_mutex_lock(&t->lock);
	if (admit(t, use, memory))
		return 0;
	dofi_mutex_unlock(&t->lock);
	return -EACCES;
}

void dofi_grant_leave(struct dofi_grants *t)
{
	dofi_mutex_unlock(&t->lock);
}

int dofi_grant_word(struct dofi_grants *t, const struct dofi_use *use, void **memory,
		    struct dofi_grant_word *word)
{
	const struct dofi_grant *g;

	dofi_mutex_lock(&t->lock);
	g = admit(t, use, memory);
	if (g)
		*word = (struct dofi_grant_word){ .at = (const uint64_t *)&g->word,
						  .value = atomic_load(&g->word) };
	dofi_mutex_unlock(&t->lock);
	return g ? 0 : -EACCES;
}
