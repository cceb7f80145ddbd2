/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A mutex of one word. Without contention, which is the usual case, locking and unlocking are one
 * instruction and a branch each, inline. A pthread_mutex_t costs sixty instructions in two calls;
 * an operation and its completion lock three.
 */
#ifndef DOFI_BASE_MUTEX_H
#define DOFI_BASE_MUTEX_H

#include "base/guard.h"
#include "base/mutex_tsan.h"
#include "base/owner.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it is unlocked. */
struct DOFI_LOCK dofi_mutex {
	/*
	 * the futex: DOFI_MUTEX_LOCKED if it is locked, plus DOFI_MUTEX_WAITER for each waiting
	 * thread
	 */
	_Atomic uint32_t word;
	struct dofi_owner owner;
};

#define DOFI_MUTEX_LOCKED	1u
#define DOFI_MUTEX_WAITER	2u

static inline void dofi_mutex_init(struct dofi_mutex *mutex)
{
	atomic_init(&mutex->word, 0);
	dofi_owner_clear(&mutex->owner);
}

/*
 * Aborts in debug builds, with the name of the calling function, unless the calling thread holds
 * the mutex. Other builds check nothing. Call it at the head of each function that a header
 * declares with DOFI_NEEDS: clang does not check calls through a pointer.
 */
#define dofi_mutex_assert_held(mutex) dofi_mutex_check_held(mutex, #mutex, __func__)

static inline void dofi_mutex_check_held(const struct dofi_mutex *mutex, const char *name,
					 const char *function)
	DOFI_ASSERTS(*mutex) DOFI_UNCHECKED_LOCKS
{
	dofi_owner_check(&mutex->owner, true, function, name);
}

/* The slow paths of locking and unlocking. Preserve errno. */
void dofi_mutex_wait(struct dofi_mutex *mutex);
void dofi_mutex_wake(struct dofi_mutex *mutex);

/* Returns the word before: if it was not locked, the caller has locked it. */
static inline uint32_t dofi_mutex_take(struct dofi_mutex *mutex)
{
	return atomic_fetch_or_explicit(&mutex->word, DOFI_MUTEX_LOCKED, memory_order_acquire);
}

/* Returns false if the mutex is locked already. */
static inline bool dofi_mutex_try(struct dofi_mutex *mutex)
	DOFI_TAKES_IF(true, *mutex) DOFI_UNCHECKED_LOCKS
{
	bool taken;

	DOFI_TSAN_MUTEX(pre_lock, mutex, __tsan_mutex_try_lock);
	taken = !(dofi_mutex_take(mutex) & DOFI_MUTEX_LOCKED);
	if (taken)
		dofi_owner_set(&mutex->owner);
	DOFI_TSAN_MUTEX(post_lock, mutex,
			__tsan_mutex_try_lock | (taken ? 0 : __tsan_mutex_try_lock_failed), 0);
	return taken;
}

/* Signals do not end the wait. */
static inline void dofi_mutex_lock(struct dofi_mutex *mutex) DOFI_TAKES(*mutex) DOFI_UNCHECKED_LOCKS
{
	dofi_owner_check(&mutex->owner, false, __func__, "mutex");
	DOFI_TSAN_MUTEX(pre_lock, mutex, 0);
	if (__builtin_expect(dofi_mutex_take(mutex) & DOFI_MUTEX_LOCKED, 0))
		dofi_mutex_wait(mutex);
	dofi_owner_set(&mutex->owner);
	DOFI_TSAN_MUTEX(post_lock, mutex, 0, 0);
}

static inline void dofi_mutex_unlock(struct dofi_mutex *mutex)
	DOFI_DROPS(*mutex) DOFI_UNCHECKED_LOCKS
{
	dofi_owner_check(&mutex->owner, true, __func__, "mutex");
	dofi_owner_clear(&mutex->owner);
	DOFI_TSAN_MUTEX(pre_unlock, mutex, 0);
	if (__builtin_expect(atomic_fetch_sub_explicit(&mutex->word, DOFI_MUTEX_LOCKED,
						       memory_order_release) != DOFI_MUTEX_LOCKED,
			     0))
		dofi_mutex_wake(mutex);
	DOFI_TSAN_MUTEX(post_unlock, mutex, 0);
}

#endif
