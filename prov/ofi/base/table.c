/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash table of objects that have a link in them. */

#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_BUCKETS 64

/* FNV-1a, with its high bits folded into the low ones, which select the bucket. */
uint32_t dofi_hash(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t hash = 2166136261u;

	while (len--)
		hash = (hash ^ *p++) * 16777619u;
	return hash ^ hash >> 16;
}

static struct dofi_table_link **bucket_of(const struct dofi_table *t, uint32_t hash)
{
	return &t->bucket[hash & (t->n_buckets - 1)];
}

static void insert(struct dofi_table *t, struct dofi_table_link *link)
{
	struct dofi_table_link **bucket = bucket_of(t, link->hash);

	link->next = *bucket;
	*bucket = link;
}

static void move_all(struct dofi_table *to, struct dofi_table *from)
{
	struct dofi_table_link *link, *next;
	uint32_t i;

	for (i = 0; i < from->n_buckets; i++)
		for (link = from->bucket[i]; link; link = next) {
			next = link->next;
			insert(to, link);
		}
}

/* Without memory the table stays as it is: its buckets only have more objects. */
static void grow(struct dofi_table *t)
{
	struct dofi_table more = {
		.n_buckets = t->n_buckets ? 2 * t->n_buckets : FIRST_BUCKETS, .n = t->n,
	};

	more.bucket = calloc(more.n_buckets, sizeof(more.bucket[0]));
	if (!more.bucket)
		return;
	move_all(&more, t);
	free(t->bucket);
	*t = more;
}

int dofi_table_add(struct dofi_table *t, struct dofi_table_link *link, uint32_t hash)
{
	if (t->n >= t->n_buckets)
		grow(t);
	if (!t->n_buckets)
		return -ENOMEM;
	link->hash = hash;
	insert(t, link);
	t->n++;
	return 0;
}

void dofi_table_remove(struct dofi_table *t, struct dofi_table_link *link)
{
	struct dofi_table_link **at = bucket_of(t, link->hash);

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	t->n--;
}

/* @link, or the first behind it with @hash. */
static struct dofi_table_link *match(struct dofi_table_link *link, uint32_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct dofi_table_link *dofi_table_find(const struct dofi_table *t, uint32_t hash)
{
	return t->n_buckets ? match(*bucket_of(t, hash), hash) : NULL;
}

struct dofi_table_link *dofi_table_next(const struct dofi_table_link *link)
{
	return match(link->next, link->hash);
}

void dofi_table_each(struct dofi_table *t, void (*fn)(struct dofi_table_link *link, void *arg),
		     void *arg)
{
	struct dofi_table_link *link, *next;
	uint32_t i;

	for (i = 0; i < t->n_buckets; i++)
		for (link = t->bucket[i]; link; link = next) {
			next = link->next;
			fn(link, arg);
		}
}

void dofi_table_fini(struct dofi_table *t)
{
	free(t->bucket);
	*t = (struct dofi_table){ .n = 0 };
}
