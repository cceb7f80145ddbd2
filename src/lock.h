/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pthread mutex that clang knows as a lock (-Wthread-safety). Data DREG_GUARDED_BY a lock is
 * accessed with the lock held; a function that needs a lock is marked DREG_NEEDS.
 */
#ifndef DREG_LOCK_H
#define DREG_LOCK_H

#include <pthread.h>

#ifdef __clang__
#define DREG_LOCK_ATTRIBUTE(x) __attribute__((x))
#else
#define DREG_LOCK_ATTRIBUTE(x)
#endif

#define DREG_GUARDED_BY(lock) DREG_LOCK_ATTRIBUTE(guarded_by(lock))
#define DREG_NEEDS(lock) DREG_LOCK_ATTRIBUTE(requires_capability(lock))
/* The caller is the only thread: in a destructor, or before it publishes the object. */
#define DREG_UNCHECKED_LOCKS DREG_LOCK_ATTRIBUTE(no_thread_safety_analysis)

struct DREG_LOCK_ATTRIBUTE(capability("mutex")) dreg_lock {
	pthread_mutex_t mutex;
};

#define DREG_LOCK_INIT { PTHREAD_MUTEX_INITIALIZER }

static inline void dreg_lock(struct dreg_lock *lock)
	DREG_LOCK_ATTRIBUTE(acquire_capability(*lock)) DREG_UNCHECKED_LOCKS
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void dreg_unlock(struct dreg_lock *lock)
	DREG_LOCK_ATTRIBUTE(release_capability(*lock)) DREG_UNCHECKED_LOCKS
{
	pthread_mutex_unlock(&lock->mutex);
}

static inline void dreg_wait(pthread_cond_t *cond, struct dreg_lock *lock) DREG_NEEDS(*lock)
{
	pthread_cond_wait(cond, &lock->mutex);
}

#endif
