/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping until another thread rings: a condition variable whose waits a signal can end. */
#ifndef DOFI_BASE_BELL_H
#define DOFI_BASE_BELL_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdint.h>

/* Belongs to a lock, which all of these calls but the first need. */
struct dofi_bell {
	_Atomic uint32_t rings;		/* the futex: it has changed when a sleeper is too late */
	unsigned sleepers;
};

static inline void dofi_bell_init(struct dofi_bell *bell)
{
	atomic_init(&bell->rings, 0);
	bell->sleepers = 0;
}

/*
 * Drops the lock and sleeps. 0: somebody rang, or it only seems so. -ETIMEDOUT: the deadline has
 * passed. -EINTR: a signal handler without SA_RESTART ran in this thread; but where the kernel
 * lacks futex_waitv, handlers end a sleep only if it has no deadline.
 */
int dofi_bell_wait(struct dofi_bell *bell, struct dofi_mutex *lock, int64_t deadline);

/* Wakes one of the sleepers, if any, or all. */
void dofi_bell_ring(struct dofi_bell *bell);
void dofi_bell_ring_all(struct dofi_bell *bell);

#endif
