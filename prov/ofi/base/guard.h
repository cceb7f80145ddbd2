/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What clang checks of locks (-Wthread-safety): which member a lock guards, and what a function
 * needs, takes and drops. Other compilers see nothing. docs/locking.md lists the locks and their
 * order.
 *
 * Unit tests define DOFI_NO_GUARDS: they call functions on objects that no other thread uses,
 * without locks.
 */
#ifndef DOFI_BASE_GUARD_H
#define DOFI_BASE_GUARD_H

#if defined(__clang__) && !defined(DOFI_NO_GUARDS)
#define DOFI_GUARD(x) __attribute__((x))
#else
#define DOFI_GUARD(x)
#endif

/* A type whose objects are locks. */
#define DOFI_LOCK DOFI_GUARD(capability("mutex"))
/* The member is accessed with @lock held. */
#define DOFI_GUARDED_BY(lock) DOFI_GUARD(guarded_by(lock))
/* A thread that holds this lock may take @... next, never the other way round. */
#define DOFI_TAKEN_BEFORE(...) DOFI_GUARD(acquired_before(__VA_ARGS__))
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

#endif
