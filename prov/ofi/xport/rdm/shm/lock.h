/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exclusive access to the memory of an IA's shm endpoints, among all threads of all processes.
 *
 * libfabric's shm endpoints cannot bear a process that is killed while it sends to them: a spin lock
 * stays taken (1.17), or an entry of a lock-free queue stays claimed (since 1.18), and the owner
 * never receives again. So libfabric is only called behind a gate: a word in the page of the
 * endpoints' owner (xport/rdm/shm/page.h) with the number of the page of the process that is inside. The owner
 * finds a holder that is dead by the lock of the holder's page (xport/rdm/shm/files.h), and knows that no
 * other process is inside then; it repairs the memory (xport/rdm/shm/region.h). Memory of an unknown layout
 * stays closed: the owner replaces its endpoints and then opens the gate again. A process that only
 * sends waits for that; its failed attempt wakes the owner.
 *
 * A polling reader waits outside, for a word beside the gate that counts what was given. A robust
 * mutex would do the same, but costs four times as much with each message: entering and leaving are
 * one locked instruction here.
 */
#ifndef DOFI_SHM_LOCK_H
#define DOFI_SHM_LOCK_H

#include "fab/cq.h"
#include "xport/rdm/shm/files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dofi_robust {
	struct dofi_cq_guard guard;	/* for CQs of the owner's endpoints */
	_Atomic uint64_t *holder;	/* in the owner's page: the holder's number, 0 if it is open */
	uint64_t self;			/* the number of the calling process's page */
	char name[DOFI_SHM_NAME];	/* of the owner's page: its endpoints' names begin with it */
	/* The owner's alone; NULL in a gate to another process's endpoints. */
	void (*damaged)(struct dofi_robust *robust);	/* any thread, once, see dofi_robust_enable() */
	_Atomic bool disabled;		/* damaged() was called; no thread enters */
	_Atomic unsigned repairs;	/* how often the memory was repaired */
	/* The holder when a thread last checked on it, and when that was. Any thread. */
	_Atomic uint64_t suspect;
	_Atomic int64_t seen_at;
};

extern const struct dofi_cq_guard_ops dofi_robust_guard_ops;

static inline bool dofi_robust_take(struct dofi_robust *robust, uint64_t from)
{
	return atomic_compare_exchange_strong_explicit(robust->holder, &from, robust->self,
						       memory_order_acquire, memory_order_relaxed);
}

/* The slow path of dofi_robust_try(). */
bool dofi_robust_try_again(struct dofi_robust *robust);

/*
 * Returns false if the holder has stayed longer than an undisturbed call of libfabric takes: the
 * caller is to come back later. A NULL gate is always open. Any thread. No system call, unless a
 * holder stays for 10 ms.
 */
static inline bool dofi_robust_try(struct dofi_robust *robust)
{
	return !robust || dofi_robust_take(robust, 0) || dofi_robust_try_again(robust);
}

/* Like dofi_robust_try(), for a caller that can wait: returns false after 100 ms, or if it is closed. */
bool dofi_robust_lock(struct dofi_robust *robust);

/*
 * Opens a gate after damaged() was called, once all endpoints behind it are closed. The owner's
 * progress thread.
 */
void dofi_robust_enable(struct dofi_robust *robust);

static inline void dofi_robust_unlock(struct dofi_robust *robust)
{
	if (robust)
		atomic_store_explicit(robust->holder, 0, memory_order_release);
}

#endif
