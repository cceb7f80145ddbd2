/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may call the fabric where it shares memory: one thread at a time, of all processes. */

#include "fab/gate.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* As long as a few calls of the fabric by somebody who has a processor. */
#define TRIES 2000
#define LOOK_NS 10000000L
#define WAIT_NS 100000000L

/* How the memory of libfabric's shm endpoints begins in the version that has the lock. */
struct region {
	uint8_t version;
	uint8_t unused[23];
	pthread_spinlock_t lock;
};

#define REGION_VERSION 4

_Static_assert(offsetof(struct region, lock) == 24, "where libfabric 1.17 has it");

/* Nobody is in there: if it is locked, that was by the one who died. */
static void region_open(struct region *region, const char *name)
{
	if (region->version != REGION_VERSION)
		return;
	if (pthread_spin_trylock(&region->lock))
		dofi_log(DOFI_INFO, DOFI_FAB, "%s: who had its lock is dead", name);
	pthread_spin_unlock(&region->lock);
}

/* Where the endpoints of the page @name are mapped; their files may be gone. */
static void regions_open(const char *name)
{
	char line[512], path[256], want[DOFI_SHM_NAME + sizeof(DOFI_SHM_FOLDER) + 2];
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long at, offset;
	int len;

	if (!maps)
		return;
	len = snprintf(want, sizeof(want), "%s/%s.", DOFI_SHM_FOLDER, name);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%*x rw-s %lx %*s %*s %255s", &at, &offset, path) == 3 &&
		    !offset && !strncmp(path, want, len))
			region_open((struct region *)at, name);
	fclose(maps);
}

/*
 * Whether the owner of page @number has died. That a file is missing says so only where one sees
 * one's own: a program may have changed its root, or an administrator removed them all.
 */
static bool is_dead(uint64_t number, uint64_t self)
{
	int ret = dofi_shm_file_is_alive(number);

	return ret == -ESTALE || (ret == -ENOENT && !dofi_shm_file_is_alive(self));
}

/* Whether somebody, who may be the same as before, has been in there for long, and is dead. */
static bool died_in_there(struct dofi_gate *gate, uint64_t holder)
{
	const int64_t now = dofi_now();

	if (atomic_exchange(&gate->suspect, holder) != holder) {
		atomic_store(&gate->seen_at, now);
		return false;
	}
	if (now - atomic_load(&gate->seen_at) < LOOK_NS)
		return false;
	atomic_store(&gate->seen_at, now);
	return is_dead(holder, gate->self);
}

bool dofi_gate_try_again(struct dofi_gate *gate)
{
	uint64_t holder;
	int i;

	for (i = 0; i < TRIES; i++)
		if (!atomic_load_explicit(gate->holder, memory_order_relaxed) &&
		    dofi_gate_take(gate, 0))
			return true;
	holder = atomic_load(gate->holder);
	if (!holder || !died_in_there(gate, holder) || !dofi_gate_take(gate, holder))
		return false;
	regions_open(gate->name);
	return true;
}

bool dofi_gate_enter(struct dofi_gate *gate)
{
	const struct timespec moment = { .tv_nsec = 50000 };
	const int64_t until = dofi_now() + WAIT_NS;

	while (!dofi_gate_try(gate)) {
		if (dofi_now() >= until)
			return false;
		/* who leaves does not know who waits: that would cost everybody who passes */
		nanosleep(&moment, NULL);
	}
	return true;
}
