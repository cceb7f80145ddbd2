/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The set of live handles: insertion and removal, by one writer at a time. */

#include "handle.h"

#include "lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS	1024	/* enough that a program's handles rarely collide */

/* The first table is static: the registry works before and without any allocation. */
static struct dreg_table first_table = {
	.mask = (FIRST_SLOTS - 1) * sizeof(struct dreg_slot),
	.slot = { [FIRST_SLOTS - 1] = { .meta = 0 } },
};

_Atomic(struct dreg_table *) dreg_table = &first_table;

/* serialises writers; guards slots_in_use and serial */
static struct dreg_lock lock = DREG_LOCK_INIT;
/* slots of the current table that are used or vacated */
static size_t slots_in_use DREG_GUARDED_BY(lock);
static uint64_t serial DREG_GUARDED_BY(lock); /* serial of the newest handle; meta keeps 48 bits */

static void slot_fill(struct dreg_slot *s, uintptr_t key, const DAT_PROVIDER *provider,
		      DAT_IA_HANDLE owner, uint64_t meta)
{
	atomic_store_explicit(&s->provider, provider, memory_order_relaxed);
	atomic_store_explicit(&s->owner, owner, memory_order_relaxed);
	atomic_store_explicit(&s->meta, meta, memory_order_relaxed);
	/* Pairs with the acquire in dreg_slot_find() and dreg_handle_route_fast(). */
	atomic_store_explicit(&s->key, key, memory_order_release);
}

/* Returns the slot of @key, or else the first vacated or empty slot of its probe sequence. */
static struct dreg_slot *slot_for(struct dreg_table *t, uintptr_t key)
{
	struct dreg_slot *vacated = NULL;
	size_t at = dreg_slot_home(t, key);
	struct dreg_slot *s;
	uintptr_t k;

	for (;; at = dreg_slot_after(t, at)) {
		s = dreg_slot_at(t, at);
		k = atomic_load_explicit(&s->key, memory_order_relaxed);
		if (k == key)
			return s;
		if (k == DREG_KEY_VACATED && !vacated)
			vacated = s;
		if (k == DREG_KEY_EMPTY)
			return vacated ? vacated : s;
	}
}

static size_t slots_of(const struct dreg_table *t)
{
	return t->mask / sizeof(t->slot[0]) + 1;
}

/*
 * Replaces the table by a larger table unless half of its slots are empty.
 *
 * Vacated slots are reused, and in a table this sparse most of them become empty again at once. So
 * a table doubles only when the program has more handles than before, not with time. All older
 * tables together are smaller than the current table.
 */
static int table_grow(void) DREG_NEEDS(lock)
{
	struct dreg_table *t = dreg_table_now(), *larger;
	size_t slots = slots_of(t), size = sizeof(*larger) + 2 * slots * sizeof(t->slot[0]), i;

	if (slots_in_use < slots / 2)
		return 0;
	larger = aligned_alloc(_Alignof(struct dreg_table), size);
	if (!larger)
		return -ENOMEM;
	memset(larger, 0, size);
	larger->mask = (2 * slots - 1) * sizeof(t->slot[0]);
	larger->older = t;
	slots_in_use = 0;
	for (i = 0; i < slots; i++) {
		struct dreg_slot *s = &t->slot[i];
		uint64_t meta = atomic_load_explicit(&s->meta, memory_order_relaxed);
		uintptr_t key = atomic_load_explicit(&s->key, memory_order_relaxed);

		if (!meta)
			continue;
		slot_fill(slot_for(larger, key), key,
			  atomic_load_explicit(&s->provider, memory_order_relaxed),
			  atomic_load_explicit(&s->owner, memory_order_relaxed), meta);
		slots_in_use++;
	}
	/* Pairs with the acquire in dreg_table_now(). */
	atomic_store_explicit(&dreg_table, larger, memory_order_release);
	return 0;
}

int dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h)
{
	uintptr_t key = (uintptr_t)handle;
	struct dreg_slot *s;
	int ret;

	if (key == DREG_KEY_EMPTY || key == DREG_KEY_VACATED)
		return -EINVAL;
	dreg_lock(&lock);
	ret = table_grow();
	if (!ret) {
		s = slot_for(dreg_table_now(), key);
		if (atomic_load_explicit(&s->key, memory_order_relaxed) == DREG_KEY_EMPTY)
			slots_in_use++;
		slot_fill(s, key, h->provider, h->owner,
			  ++serial << 16 | (h->flags & 0xff) << 8 | (h->kind + 1));
	}
	dreg_unlock(&lock);
	return ret;
}

/*
 * Frees a slot. A search need not continue past it if the next slot is empty; then it and the
 * vacated slots before it become empty too.
 */
static void slot_vacate(struct dreg_table *t, struct dreg_slot *s) DREG_NEEDS(lock)
{
	size_t last = slots_of(t) - 1, i = s - t->slot;

	atomic_store_explicit(&s->meta, 0, memory_order_relaxed);
	atomic_store_explicit(&s->key, DREG_KEY_VACATED, memory_order_release);

	if (atomic_load_explicit(&t->slot[(i + 1) & last].key, memory_order_relaxed) !=
	    DREG_KEY_EMPTY)
		return;
	for (; atomic_load_explicit(&t->slot[i].key, memory_order_relaxed) == DREG_KEY_VACATED;
	     i = (i - 1) & last) {
		atomic_store_explicit(&t->slot[i].key, DREG_KEY_EMPTY, memory_order_release);
		slots_in_use--;
	}
}

void dreg_handle_drop(DAT_HANDLE handle, uint64_t serial_max)
{
	struct dreg_table *t;
	struct dreg_slot *s;
	uint64_t meta;

	dreg_lock(&lock);
	t = dreg_table_now();
	s = dreg_slot_find(t, handle);
	meta = s ? atomic_load_explicit(&s->meta, memory_order_relaxed) : 0;
	if (meta && DREG_META_SERIAL(meta) <= serial_max)
		slot_vacate(t, s);
	dreg_unlock(&lock);
}

void dreg_handle_drop_owned(DAT_IA_HANDLE owner, uint64_t serial_max)
{
	struct dreg_table *t;
	uint64_t meta;
	size_t i;

	dreg_lock(&lock);
	t = dreg_table_now();
	for (i = 0; i < slots_of(t); i++) {
		meta = atomic_load_explicit(&t->slot[i].meta, memory_order_relaxed);
		if (meta && DREG_META_SERIAL(meta) <= serial_max &&
		    atomic_load_explicit(&t->slot[i].owner, memory_order_relaxed) == owner)
			slot_vacate(t, &t->slot[i]);
	}
	dreg_unlock(&lock);
}

void dreg_handle_flag(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, unsigned int flags)
{
	struct dreg_slot *s;
	uint64_t meta;

	dreg_lock(&lock);
	s = dreg_slot_find(dreg_table_now(), handle);
	meta = s ? atomic_load_explicit(&s->meta, memory_order_relaxed) : 0;
	if (DREG_META_KIND(meta) == (unsigned int)kind + 1)
		atomic_store_explicit(&s->meta, meta | flags << 8, memory_order_relaxed);
	dreg_unlock(&lock);
}

uint64_t dreg_handle_serial(void)
{
	uint64_t now;

	dreg_lock(&lock);
	now = serial;
	dreg_unlock(&lock);
	return now;
}

bool dreg_handle_find(DAT_HANDLE handle, struct dreg_handle *h)
{
	struct dreg_slot *s = dreg_slot_find(dreg_table_now(), handle);
	uint64_t meta = s ? atomic_load_explicit(&s->meta, memory_order_relaxed) : 0;

	if (!meta)
		return false;
	h->kind = (DAT_HANDLE_TYPE)(DREG_META_KIND(meta) - 1);
	h->flags = DREG_META_FLAGS(meta);
	h->serial = DREG_META_SERIAL(meta);
	h->provider = atomic_load_explicit(&s->provider, memory_order_relaxed);
	h->owner = atomic_load_explicit(&s->owner, memory_order_relaxed);
	return true;
}

bool dreg_handle_live(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, struct dreg_handle *h)
{
	return dreg_handle_find(handle, h) && h->kind == kind;
}

bool dreg_handle_arg(const DAT_PROVIDER *provider, DAT_HANDLE arg, DAT_HANDLE_TYPE kind)
{
	const DAT_PROVIDER *other = dreg_handle_route(arg, kind);

	if (arg == DAT_HANDLE_NULL)
		return true;
	/* Each IA name has its own table; one library fills its tables with identical functions. */
	return other && (other == provider || other->ia_close_func == provider->ia_close_func);
}

/* Frees the tables on unload if no handle is live. */
static void __attribute__((destructor)) tables_free(void)
{
	struct dreg_table *t = dreg_table_now(), *older;
	size_t i;

	for (i = 0; i < slots_of(t); i++)
		if (atomic_load_explicit(&t->slot[i].meta, memory_order_relaxed))
			return;
	atomic_store_explicit(&dreg_table, &first_table, memory_order_release);
	for (; t != &first_table; t = older) {
		older = t->older;
		free(t);
	}
}
