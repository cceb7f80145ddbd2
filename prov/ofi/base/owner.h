/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that holds a lock. Builds with --enable-debug record it, and abort where a function
 * finds that its caller does not hold the lock it needs. Elsewhere it takes neither memory nor
 * instructions.
 */
#ifndef DOFI_BASE_OWNER_H
#define DOFI_BASE_OWNER_H

#include <stdbool.h>

#ifdef DOFI_CHECKS

#include <pthread.h>
#include <stdatomic.h>

/* All zero, there is none. */
struct dofi_owner {
	/* 0: none. A thread finds its own number here only if it has stored the number itself. */
	_Atomic pthread_t thread;
};

static inline void dofi_owner_set(struct dofi_owner *owner)
{
	atomic_store_explicit(&owner->thread, pthread_self(), memory_order_relaxed);
}

static inline void dofi_owner_clear(struct dofi_owner *owner)
{
	atomic_store_explicit(&owner->thread, 0, memory_order_relaxed);
}

static inline bool dofi_owner_is_caller(const struct dofi_owner *owner)
{
	return atomic_load_explicit(&owner->thread, memory_order_relaxed) == pthread_self();
}

/* Prints @function, @lock and what is @wrong, and aborts. */
_Noreturn void dofi_owner_abort(const char *function, const char *lock, const char *wrong);

/* @owner is of @lock: aborts unless it is the calling thread, or unless it is not. */
static inline void dofi_owner_check(const struct dofi_owner *owner, bool is_caller,
				    const char *function, const char *lock)
{
	if (__builtin_expect(dofi_owner_is_caller(owner) != is_caller, 0))
		dofi_owner_abort(function, lock,
				 is_caller ? "is not held by the caller" :
					     "is held by the caller already");
}

#else

struct dofi_owner {
};

static inline void dofi_owner_set(struct dofi_owner *owner)
{
	(void)owner;
}

static inline void dofi_owner_clear(struct dofi_owner *owner)
{
	(void)owner;
}

static inline void dofi_owner_check(const struct dofi_owner *owner, bool is_caller,
				    const char *function, const char *lock)
{
	(void)owner;
	(void)is_caller;
	(void)function;
	(void)lock;
}

#endif

#endif
