/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of live handles: what stands between a program's handles and the providers.
 *
 * The registry never looks behind a handle. A handle is good if it is in this set,
 * which also tells its kind and its provider. So null, wild, freed and mistaken
 * handles are told apart without touching memory that they may not point to.
 *
 * Lookups are on the data path and take no lock. They can be simple because an entry
 * never moves within a table: a slot is empty, used, or vacated. A crowded table is
 * copied into a larger one that takes its place; the old one stays, for the lookups
 * that are still in it.
 */
#ifndef DREG_HANDLE_H
#define DREG_HANDLE_H

#include "dat_select.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the set knows of a handle. */
struct dreg_handle {
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE owner;	/* IA it dies with; an IA owns itself */
	DAT_HANDLE_TYPE kind;
	unsigned int flags;
	uint64_t serial;	/* order of additions; tells one life of an address from the next */
};

/* Flags. What an object creates inherits DREG_EXTENSIONS. */
#define DREG_EXTENSIONS		0x1u	/* the IA supports dat_extension_op() */
#define DREG_PROVIDER_MADE	0x2u	/* an EP that the provider made for a CR */
#define DREG_TAKES_REQUESTS	0x4u	/* an EVD that may bring connection requests */

/*
 * dreg_handle_add - enters a handle that a provider has made.
 *
 * An entry that its address may still have from an earlier life is overwritten. The
 * serial in @h is not used, a new one is given. Returns 0, -ENOMEM, or -EINVAL for a
 * value that can be no handle.
 */
int dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h);

/*
 * dreg_handle_drop - removes a handle, unless its address has a new life since @serial.
 *
 * Called after the provider has freed the object, so another thread may already have
 * been given the same address: its handle is younger than @serial and stays.
 */
void dreg_handle_drop(DAT_HANDLE handle, uint64_t serial);

/* dreg_handle_drop_owned - the same for an IA and all that belongs to it. */
void dreg_handle_drop_owned(DAT_IA_HANDLE owner, uint64_t serial);

/* The serial of the youngest handle. */
uint64_t dreg_handle_serial(void);

/* dreg_handle_flag - sets flags of a live handle of a kind; any other value is passed over. */
void dreg_handle_flag(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, unsigned int flags);

/*
 * Lookup
 */

/* Aligned to its size, so that none crosses a cache line. */
struct dreg_slot {
	/* the handle, or one of the next; published last */
	__attribute__((aligned(32))) _Atomic uintptr_t key;
	_Atomic(uint64_t) meta;	/* kind + 1, flags, serial; 0 unless used */
	_Atomic(const DAT_PROVIDER *) provider;
	_Atomic(DAT_IA_HANDLE) owner;
};

#define DREG_KEY_EMPTY		((uintptr_t)0)	/* ends every search */
#define DREG_KEY_VACATED	((uintptr_t)1)	/* does not */

#define DREG_META_KIND(meta)	((unsigned int)((meta) & 0xff))
#define DREG_META_FLAGS(meta)	((unsigned int)((meta) >> 8 & 0xff))
#define DREG_META_SERIAL(meta)	((meta) >> 16)

struct dreg_table {
	size_t mask;			/* slots - 1, times the size of one */
	struct dreg_table *older;	/* the table this one replaced */
	struct dreg_slot slot[];	/* at least half are empty, so searches end */
};

extern _Atomic(struct dreg_table *) dreg_table __attribute__((visibility("hidden")));

/*
 * Slots are found by their distance from the first, in bytes, which needs no arithmetic on the
 * data path. Handles are aligned addresses: the multiplication spreads them over the upper half.
 */
static inline size_t dreg_slot_home(const struct dreg_table *t, uintptr_t key)
{
	return (uint64_t)key * UINT64_C(0xd6e8feb86659fd93) >> 32 & t->mask;
}

static inline size_t dreg_slot_after(const struct dreg_table *t, size_t at)
{
	return (at + sizeof(struct dreg_slot)) & t->mask;
}

static inline struct dreg_slot *dreg_slot_at(struct dreg_table *t, size_t at)
{
	return (struct dreg_slot *)((char *)t->slot + at);
}

/*
 * The slot of a handle, or null. For the values 0 and 1 it may be a slot that is not
 * used, whose meta, being 0, is of no kind.
 */
static inline struct dreg_slot *dreg_slot_find(struct dreg_table *t, DAT_HANDLE handle)
{
	uintptr_t key = (uintptr_t)handle, k;
	size_t at = dreg_slot_home(t, key);
	struct dreg_slot *s;

	for (;; at = dreg_slot_after(t, at)) {
		s = dreg_slot_at(t, at);
		/* Pairs with the release that publishes key after the other fields. */
		k = atomic_load_explicit(&s->key, memory_order_acquire);
		if (k == key)
			return s;
		if (k == DREG_KEY_EMPTY)
			return NULL;
	}
}

/* Pairs with the release in dreg_handle_add(): what was entered before is found. */
static inline struct dreg_table *dreg_table_now(void)
{
	return atomic_load_explicit(&dreg_table, memory_order_acquire);
}

/* dreg_handle_route - the provider of a live handle of that kind; null if it is none. */
static inline const DAT_PROVIDER *dreg_handle_route(DAT_HANDLE handle, DAT_HANDLE_TYPE kind)
{
	struct dreg_slot *s = dreg_slot_find(dreg_table_now(), handle);

	if (!s || DREG_META_KIND(atomic_load_explicit(&s->meta, memory_order_relaxed)) !=
		  (unsigned int)kind + 1)
		return NULL;
	return atomic_load_explicit(&s->provider, memory_order_relaxed);
}

/*
 * dreg_handle_route_first - the same for a handle with none of @flags, as far as one look tells.
 *
 * Nearly always it does; false says nothing.
 */
static inline bool dreg_handle_route_first(DAT_HANDLE handle, DAT_HANDLE_TYPE kind,
					   unsigned int flags, const DAT_PROVIDER **provider)
{
	struct dreg_table *t = dreg_table_now();
	struct dreg_slot *s = dreg_slot_at(t, dreg_slot_home(t, (uintptr_t)handle));
	uint64_t meta;

	/* Pairs with the release that publishes key after the other fields. */
	if (atomic_load_explicit(&s->key, memory_order_acquire) != (uintptr_t)handle)
		return false;
	meta = atomic_load_explicit(&s->meta, memory_order_relaxed);
	if ((meta & (flags << 8 | 0xff)) != (unsigned int)kind + 1)
		return false;
	*provider = atomic_load_explicit(&s->provider, memory_order_relaxed);
	return true;
}

/* dreg_handle_find - all that is known of a handle; false if it is not live. */
bool dreg_handle_find(DAT_HANDLE handle, struct dreg_handle *h);

/* dreg_handle_live - the same for a handle that must be of a kind. */
bool dreg_handle_live(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, struct dreg_handle *h);

/*
 * dreg_handle_arg - whether a further handle may be passed to a provider's function.
 *
 * It may if it is null, which the provider may or may not allow, or live, of that
 * kind, and made by the same provider: another would misread it.
 */
bool dreg_handle_arg(const DAT_PROVIDER *provider, DAT_HANDLE arg, DAT_HANDLE_TYPE kind);

#endif
