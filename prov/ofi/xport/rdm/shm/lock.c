/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A robust lock: exclusive access to the memory of an IA's shm endpoints, among all threads of all processes. */

#include "xport/rdm/shm/lock.h"

#include "base/clock.h"
#include "base/container.h"
#include "xport/rdm/shm/region.h"

#include <errno.h>
#include <time.h>

/* Tries before a caller gives up or checks the holder: as long as a few calls of libfabric take. */
#define TRIES 2000
#define LOOK_NS 10000000L
#define WAIT_NS 100000000L

/*
 * Returns whether the owner of page @number has died. A missing file proves that only while the caller's own file is
 * there: the program may have changed its root, or an administrator may have removed all files.
 */
static bool is_dead(uint64_t number, uint64_t self)
{
	int ret = dofi_shm_file_is_alive(number);

	return ret == -ESTALE || (ret == -ENOENT && !dofi_shm_file_is_alive(self));
}

/* Returns whether @holder has been the holder for 10 ms and is dead. */
static bool died_in_there(struct dofi_robust *robust, uint64_t holder)
{
	const int64_t now = dofi_now();

	if (atomic_exchange(&robust->suspect, holder) != holder) {
		atomic_store(&robust->seen_at, now);
		return false;
	}
	if (now - atomic_load(&robust->seen_at) < LOOK_NS)
		return false;
	atomic_store(&robust->seen_at, now);
	return is_dead(holder, robust->guard.self);
}

/*
 * Call after taking the lock from a dead holder. Returns false if the memory cannot be repaired: the lock is
 * disabled.
 */
static bool repair(struct dofi_robust *robust)
{
	atomic_fetch_add(&robust->repairs, 1);
	if (!dofi_regions_repair(robust->name))
		return true;
	atomic_store(&robust->disabled, true);
	robust->damaged(robust);
	return false;
}

static struct dofi_robust *robust_of(struct dofi_cq_guard *guard)
{
	return DOFI_CONTAINER_OF(guard, struct dofi_robust, guard);
}

static bool try_again(struct dofi_cq_guard *guard)
{
	struct dofi_robust *robust = robust_of(guard);
	uint64_t holder;
	int i;

	for (i = 0; i < TRIES; i++)
		if (!atomic_load_explicit(guard->holder, memory_order_relaxed) &&
		    dofi_cq_guard_take(guard, 0))
			return true;
	holder = atomic_load(guard->holder);
	if (!robust->damaged || !holder || atomic_load(&robust->disabled) || !died_in_there(robust, holder))
		return false;
	return dofi_cq_guard_take(guard, holder) && repair(robust);
}

bool dofi_robust_lock(struct dofi_robust *robust)
{
	const struct timespec moment = { .tv_nsec = 50000 };
	const int64_t until = dofi_now() + WAIT_NS;

	while (!dofi_robust_try(robust)) {
		if (dofi_now() >= until || atomic_load(&robust->disabled))
			return false;
		/* unlocking does not wake waiters: each message would pay for that */
		nanosleep(&moment, NULL);
	}
	return true;
}

void dofi_robust_enable(struct dofi_robust *robust)
{
	atomic_store(&robust->disabled, false);
	dofi_robust_unlock(robust);
}

static int guard_lock(struct dofi_cq_guard *guard)
{
	struct dofi_robust *robust = robust_of(guard);

	if (dofi_robust_lock(robust))
		return 0;
	return atomic_load(&robust->disabled) ? -ENOTRECOVERABLE : -ETIMEDOUT;
}

const struct dofi_cq_guard_ops dofi_robust_guard_ops = { .try_again = try_again, .lock = guard_lock };
