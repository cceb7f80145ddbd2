/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Grants: peers' permitted accesses to memory of this process, and the keys for it. */

#include "fab/grant.h"

#include "base/layout.h"
#include "base/pool.h"
#include "fab/grant_book.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define KEY_TRIES 64

struct dofi_grant {
	/* key and number while the grant is in force; otherwise 0 */
	_Atomic uint64_t word;
	uint32_t number;		/* how many grants have had this memory */
	uint32_t key;
	uint32_t page;			/* in the book, or 0 */
	struct dofi_grants *table;
	struct dofi_bounds bounds;
	struct dofi_table_link link;	/* in the table, by key; under its lock */
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
	t->table = (struct dofi_table){ .n = 0 };
	t->book = NULL;
	LIST_INIT(&t->writers);
}

void dofi_grants_fini(struct dofi_grants *t)
{
	dofi_grant_book_free(t->book);
	dofi_table_fini(&t->table);
}

/* Keys are random, so each is its own hash. */
static struct dofi_grant *find(const struct dofi_grants *t, uint32_t key) DOFI_NEEDS(t->lock)
{
	struct dofi_table_link *link = dofi_table_find(&t->table, key);

	return link ? DOFI_CONTAINER_OF(link, struct dofi_grant, link) : NULL;
}

/* A local registration is of no use to peers. */
static void publish(struct dofi_table_link *link, void *arg)
{
	struct dofi_grant *g = DOFI_CONTAINER_OF(link, struct dofi_grant, link);

	(void)arg;
	g->page = g->table->book && g->bounds.access ?
			  dofi_grant_book_add(g->table->book, &g->bounds) : 0;
}

int dofi_grant_open_as(struct dofi_grants *t, const struct dofi_mr_request *r, uint32_t key,
		       struct dofi_grant **out)
{
	struct dofi_grant *g = dofi_pool_get(&pool);
	const bool choose = !key;
	int ret, tries = 0;

	if (!g)
		return -ENOMEM;
	g->table = t;
	g->bounds = (struct dofi_bounds){
		.memory = (uintptr_t)r->addr, .first = r->zero_based ? 0 : (uintptr_t)r->addr,
		.len = r->len, .access = r->remote,
	};
	dofi_mutex_lock(&t->lock);
	do {
		if (choose)
			key = dofi_key_random(r->scoped);
		ret = find(t, key) ? -EEXIST : 0;
	} while (choose && key && ret && ++tries < KEY_TRIES);
	if (choose && ret)
		ret = -EAGAIN;
	if (!key)
		ret = -EIO;
	if (!ret)
		ret = dofi_table_add(&t->table, &g->link, key);
	if (!ret) {
		g->key = key;
		g->bounds.fabric_key = dofi_mr_fabric_key(key, r->secret);
		publish(&g->link, NULL);
		atomic_store(&g->word, (uint64_t)key << 32 | ++g->number);
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
	dofi_table_remove(&t->table, &g->link);
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
	int ret = t->book ? 0 : dofi_grant_book_make(&book);

	if (ret || t->book)
		return ret;
	dofi_mutex_lock(&t->lock);
	t->book = book;
	dofi_table_each(&t->table, publish, NULL);
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

/* Returns the grant for @wanted, and sets *@memory; NULL if there is none. Lock held. */
static struct dofi_grant *admit(const struct dofi_grants *t, const struct dofi_access *wanted,
				void **memory) DOFI_NEEDS(t->lock)
{
	struct dofi_grant *g = find(t, wanted->key);

	if (!g || !dofi_bounds_allow(&g->bounds, wanted))
		return NULL;
	*memory = (void *)(uintptr_t)(g->bounds.memory + (wanted->addr - g->bounds.first));
	return g;
}

const char *dofi_grant_refusal(struct dofi_grants *t, const struct dofi_access *wanted)
{
	const char *why = "range";
	const struct dofi_grant *g;

	dofi_mutex_lock(&t->lock);
	g = find(t, wanted->key);
	if (!g || g->bounds.fabric_key != dofi_mr_fabric_key(wanted->key, wanted->secret))
		why = "context";
	else if (!wanted->access || wanted->access & ~g->bounds.access)
		why = "privilege";
	dofi_mutex_unlock(&t->lock);
	return why;
}

int dofi_grant_enter(struct dofi_grants *t, const struct dofi_access *wanted, void **memory)
{
	dofi_mutex_lock(&t->lock);
	if (admit(t, wanted, memory))
		return 0;
	dofi_mutex_unlock(&t->lock);
	return -EACCES;
}

void dofi_grant_leave(struct dofi_grants *t)
{
	dofi_mutex_unlock(&t->lock);
}

int dofi_grant_word(struct dofi_grants *t, const struct dofi_access *wanted, void **memory,
		    struct dofi_grant_word *word)
{
	const struct dofi_grant *g;

	dofi_mutex_lock(&t->lock);
	g = admit(t, wanted, memory);
	if (g)
		*word = (struct dofi_grant_word){ .at = (const uint64_t *)&g->word,
						  .value = atomic_load(&g->word) };
	dofi_mutex_unlock(&t->lock);
	return g ? 0 : -EACCES;
}
