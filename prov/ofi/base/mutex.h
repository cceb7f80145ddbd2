/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A mutex that is unlocked by a store. Without contention, locking is a locked instruction and a
 * branch, unlocking a store, a load and a branch, all inline. A pthread_mutex_t costs sixty
 * instructions; an operation and its completion lock three mutexes.
 *
 * The memory must stay mapped until each unlock has returned: an unlock loads the number of waiters
 * after its store, when another thread may have the mutex already. The memory is of a pool, or the
 * last of its counted users frees it, or a thread that frees it first takes an outer lock that all
 * users of the mutex hold.
 */
#ifndef DOFI_BASE_MUTEX_H
#define DOFI_BASE_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef DOFI_CHECKS
#include <pthread.h>
#endif

/*
 * Clang checks these locks (-Wthread-safety): docs/locking.md lists them. Other compilers see
 * nothing, as unit tests (DOFI_NO_GUARDS), whose objects no other thread uses.
 */
#if defined(__clang__) && !defined(DOFI_NO_GUARDS)
#define DOFI_GUARD(x) __attribute__((x))
#else
#define DOFI_GUARD(x)
#endif

/* A type of locks. */
#define DOFI_LOCK DOFI_GUARD(capability("mutex"))
/* The member is accessed with @lock held. */
#define DOFI_GUARDED_BY(lock) DOFI_GUARD(guarded_by(lock))
/* The caller holds the locks; does not hold them. */
#define DOFI_NEEDS(...) DOFI_GUARD(requires_capability(__VA_ARGS__))
#define DOFI_NEEDS_NOT(...) DOFI_GUARD(locks_excluded(__VA_ARGS__))
/* The function returns with the locks taken; dropped; taken if it returns @result. */
#define DOFI_TAKES(...) DOFI_GUARD(acquire_capability(__VA_ARGS__))
#define DOFI_DROPS(...) DOFI_GUARD(release_capability(__VA_ARGS__))
#define DOFI_TAKES_IF(result, ...) DOFI_GUARD(try_acquire_capability(result, __VA_ARGS__))
/* Aborts in debug builds unless the caller holds the lock. Then the analysis counts it as held. */
#define DOFI_ASSERTS(...) DOFI_GUARD(assert_capability(__VA_ARGS__))
/* Not analysed: a comment at the use, or at the top of the file, says why. */
#define DOFI_UNCHECKED_LOCKS DOFI_GUARD(no_thread_safety_analysis)

/* Annotations for ThreadSanitizer, which finds inversions of the lock order by them. */
#ifdef __has_feature
#define DOFI_HAVE_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define DOFI_HAVE_TSAN 1
#else
#define DOFI_HAVE_TSAN 0
#endif

/* A call of sanitizer/tsan_interface.h: __tsan_mutex_@what. */
#if DOFI_HAVE_TSAN
#include <sanitizer/tsan_interface.h>
#define DOFI_TSAN_MUTEX(what, ...) __tsan_mutex_##what(__VA_ARGS__)
#else
#define DOFI_TSAN_MUTEX(what, ...) ((void)0)
#endif

/* The thread that holds a lock: debug builds abort where a caller lacks the lock it needs. */
#ifdef DOFI_CHECKS

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

/* Prints the arguments and aborts. */
_Noreturn void dofi_owner_abort(const char *function, const char *lock, const char *wrong);

/* Aborts unless the calling thread is the owner of @lock, or, without @is_caller, is not. */
static inline void dofi_owner_check(const struct dofi_owner *owner, bool is_caller,
				    const char *function, const char *lock)
{
	const pthread_t thread = atomic_load_explicit(&owner->thread, memory_order_relaxed);

	if (__builtin_expect((thread == pthread_self()) != is_caller, 0))
		dofi_owner_abort(function, lock,
				 is_caller ? "is not held by the caller" :
					     "is held by the caller already");
}

#else

struct dofi_owner {
};

#define dofi_owner_set(owner) ((void)(owner))
#define dofi_owner_clear(owner) ((void)(owner))
#define dofi_owner_check(owner, is_caller, function, lock) \
	((void)(owner), (void)(function), (void)(lock))

#endif

/* Zeroed, it is unlocked. */
struct DOFI_LOCK dofi_mutex {
	_Atomic uint32_t locked;	/* the futex: 0 or 1 */
	_Atomic uint32_t waiters;	/* threads in dofi_mutex_wait() */
	struct dofi_owner owner;
};

static inline void dofi_mutex_init(struct dofi_mutex *mutex)
{
	atomic_init(&mutex->locked, 0);
	atomic_init(&mutex->waiters, 0);
	dofi_owner_clear(&mutex->owner);
}

/*
 * Aborts in debug builds unless the calling thread holds the mutex. Call in each function that a
 * header declares with DOFI_NEEDS: clang does not check calls through a pointer.
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

/* Returns whether the caller has locked the mutex. */
static inline bool dofi_mutex_take(struct dofi_mutex *mutex)
{
	return !(atomic_fetch_or_explicit(&mutex->locked, 1, memory_order_acquire) & 1);
}

/* Returns false if the mutex is locked already. */
static inline bool dofi_mutex_try(struct dofi_mutex *mutex)
	DOFI_TAKES_IF(true, *mutex) DOFI_UNCHECKED_LOCKS
{
	bool taken;

	DOFI_TSAN_MUTEX(pre_lock, mutex, __tsan_mutex_try_lock);
	taken = dofi_mutex_take(mutex);
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
	if (__builtin_expect(!dofi_mutex_take(mutex), 0))
		dofi_mutex_wait(mutex);
	dofi_owner_set(&mutex->owner);
	DOFI_TSAN_MUTEX(post_lock, mutex, 0, 0);
}

/*
 * The processor may load waiters before the others see the store; the compiler may not. A thread
 * that is going to sleep makes all processors pass a barrier between the two: dofi_mutex_wait().
 */
static inline void dofi_mutex_unlock(struct dofi_mutex *mutex)
	DOFI_DROPS(*mutex) DOFI_UNCHECKED_LOCKS
{
	dofi_owner_check(&mutex->owner, true, __func__, "mutex");
	dofi_owner_clear(&mutex->owner);
	DOFI_TSAN_MUTEX(pre_unlock, mutex, 0);
	atomic_store_explicit(&mutex->locked, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&mutex->waiters, memory_order_relaxed), 0))
		dofi_mutex_wake(mutex);
	DOFI_TSAN_MUTEX(post_unlock, mutex, 0);
}

#endif
