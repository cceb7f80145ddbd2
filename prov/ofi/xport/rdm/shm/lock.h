/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A robust lock: exclusive access to the memory of an IA's shm endpoints, among all threads of all processes.
 *
 * A process that is killed while it sends to a shm endpoint of libfabric leaves a spin lock locked (1.17), or an
 * entry of a lock-free queue claimed (since 1.18), and the owner never receives again. So libfabric is called with
 * this lock held. The lock is a word in the page of the endpoints' owner (xport/rdm/shm/page.h) with the number of
 * the holder's page. The owner detects a dead holder by the file lock of that page (xport/rdm/shm/files.h). No other
 * process holds the lock then, so the owner repairs the memory (xport/rdm/shm/region.h). If the layout of the memory
 * is unknown, the lock is disabled until the owner has replaced its endpoints. A sender waits for that; its failed
 * attempt wakes the owner.
 *
 * A polling reader does not take the lock while a counter in the page shows that no peer has sent anything. A robust
 * pthread mutex costs four times as much with each message: this lock takes one locked instruction.
 */
#ifndef DOFI_SHM_LOCK_H
#define DOFI_SHM_LOCK_H

#include "fab/cq.h"
#include "xport/rdm/shm/files.h"

#include <stdbool.h>
#include <stdint.h>

struct dofi_robust {
	struct dofi_cq_guard guard;	/* the lock: a word in the owner's page */
	char name[DOFI_SHM_NAME];	/* of the owner's page: names of its endpoints begin with it */
	/*
	 * Called when the memory cannot be repaired, by any thread, once until dofi_robust_enable(). NULL in a lock
	 * of another process's endpoints.
	 */
	void (*damaged)(struct dofi_robust *robust);
	_Atomic bool disabled;		/* damaged() was called: no thread gets the lock */
	_Atomic unsigned repairs;	/* how often the memory was repaired */
	_Atomic uint64_t suspect;	/* the holder when a thread last checked whether it is alive */
	_Atomic int64_t seen_at;	/* when that check was */
};

extern const struct dofi_cq_guard_ops dofi_robust_guard_ops;

/*
 * Locks, unless the holder keeps the lock longer than an undisturbed call of libfabric takes: then returns false, and
 * the caller tries again later. NULL is always free. Any thread. No system call, unless a holder keeps the lock for
 * 10 ms.
 */
static inline bool dofi_robust_try(struct dofi_robust *robust)
{
	return !robust || dofi_cq_guard_try(&robust->guard);
}

/* Like dofi_robust_try(), but waits: returns false after 100 ms, or if the lock is disabled. */
bool dofi_robust_lock(struct dofi_robust *robust);

/*
 * Enables the lock after damaged() was called, once all endpoints of the owner are closed. The owner's progress
 * thread.
 */
void dofi_robust_enable(struct dofi_robust *robust);

static inline void dofi_robust_unlock(struct dofi_robust *robust)
{
	if (robust)
		dofi_cq_guard_unlock(&robust->guard);
}

#endif
