/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of live handles: maps a program's handles to their kinds and providers, so that null,
 * wild, freed and mistaken handles are detected without dereferencing them. Lookups are on the data
 * path and take no lock: an entry never moves within a table, and a slot is empty, used or vacated.
 * A larger table replaces a crowded one, which is kept for lookups in progress.
 */
#ifndef DREG_HANDLE_H
#define DREG_HANDLE_H

#include "dat_select.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entry of a handle. */
struct dreg_handle {
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE owner;	/* the handle ends when this IA closes; an IA owns itself */
	DAT_HANDLE_TYPE kind;
	unsigned int flags;
	uint64_t serial;	/* order of additions; distinguishes reuses of an address */
};

/* Flags. A child object inherits DREG_EXTENSIONS. */
#define DREG_EXTENSIONS		0x1u	/* the IA supports dat_extension_op() */
#define DREG_HAS_EP		0x2u	/* a CR that the provider created an EP for */
#define DREG_TAKES_REQUESTS	0x4u	/* an EVD that may deliver connection requests */

/*
 * Adds a handle that a provider has created. Overwrites an entry left from an earlier object at
 * this address. Ignores the serial in @h and assigns a new one. Returns 0, -ENOMEM, or -EINVAL for
 * a value that cannot be a handle.
 */
int dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h);

/*
 * Removes a handle, unless its address was reused after @serial. Called after the provider has
 * freed the object, so another thread may already have a new object at this address. That handle is
 * newer than @serial and stays.
 */
void dreg_handle_drop(DAT_HANDLE handle, uint64_t serial);

/* Removes an IA and all of its objects, but no handle that is newer than @serial. */
void dreg_handle_drop_owned(DAT_IA_HANDLE owner, uint64_t serial);

/* The serial of the newest handle. */
uint64_t dreg_handle_serial(void);

/* Sets flags of a live handle of @kind; ignores any other value. */
void dreg_handle_flag(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, unsigned int flags);

/* Lookup */

/* Aligned to its size, so that no slot crosses a cache line. */
struct dreg_slot {
	/* the handle or a DREG_KEY_ value; published last */
	__attribute__((aligned(32))) _Atomic uintptr_t key;
	_Atomic(uint64_t) meta;	/* kind + 1, flags, serial; 0 unless used */
	_Atomic(const DAT_PROVIDER *) provider;
	_Atomic(DAT_IA_HANDLE) owner;
};

#define DREG_KEY_EMPTY		((uintptr_t)0)	/* ends every search */
#define DREG_KEY_VACATED	((uintptr_t)1)	/* does not end a search */

#define DREG_META_KIND(meta)	((unsigned int)((meta) & 0xff))
#define DREG_META_FLAGS(meta)	((unsigned int)((meta) >> 8 & 0xff))
#define DREG_META_SERIAL(meta)	((meta) >> 16)

struct dreg_table {
	size_t mask;			/* (slots - 1) * size of a slot */
	struct dreg_table *older;	/* the table this one replaced */
	struct dreg_slot slot[];	/* at least half are empty, so searches end */
};

extern _Atomic(struct dreg_table *) dreg_table __attribute__((visibility("hidden")));

/*
 * Slots are addressed by their byte offset, which needs no arithmetic on the data path. Handles are
 * aligned addresses; the multiplication spreads them over the upper half.
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
 * Returns the slot of a handle, or null. For the values 0 and 1 it may return an unused slot, whose
 * meta of 0 matches no kind.
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

/* Pairs with the release in table_grow(): handles added before are found. */
static inline struct dreg_table *dreg_table_now(void)
{
	return atomic_load_explicit(&dreg_table, memory_order_acquire);
}

/* Returns the provider of a live handle of @kind, else null. */
static inline const DAT_PROVIDER *dreg_handle_route(DAT_HANDLE handle, DAT_HANDLE_TYPE kind)
{
	struct dreg_slot *s = dreg_slot_find(dreg_table_now(), handle);

	if (!s || DREG_META_KIND(atomic_load_explicit(&s->meta, memory_order_relaxed)) !=
		  (unsigned int)kind + 1)
		return NULL;
	return atomic_load_explicit(&s->provider, memory_order_relaxed);
}

/*
 * Fast path of dreg_handle_route(), for a handle with none of @flags. Checks the first slot only,
 * which is nearly always the right one. After false the caller must try dreg_handle_route().
 */
static inline bool dreg_handle_route_fast(DAT_HANDLE handle, DAT_HANDLE_TYPE kind,
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

/* Copies the entry of a handle to @h; false if it is not live. */
bool dreg_handle_find(DAT_HANDLE handle, struct dreg_handle *h);

/* Copies the entry of a handle of @kind to @h; false if it is not live. */
bool dreg_handle_live(DAT_HANDLE handle, DAT_HANDLE_TYPE kind, struct dreg_handle *h);

/*
 * Whether a handle argument may be passed to a provider's function. True for null, which the
 * provider checks itself, and for a live handle of @kind that this provider created: a provider
 * would misread the object of another.
 */
bool dreg_handle_arg(const DAT_PROVIDER *provider, DAT_HANDLE arg, DAT_HANDLE_TYPE kind);

#endif
