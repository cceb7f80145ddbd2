/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may call the fabric where it shares memory: one thread at a time, of all processes. */

#include "fab/gate.h"

#include "base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* As long as a few calls of the fabric by somebody who has a processor. */
#define TRIES 2000
#define WAIT_NS 100000000L

/* How the memory of libfabric's shm endpoints begins in the version that has the lock. */
struct region {
	uint8_t version;
	uint8_t unused[23];
	pthread_spinlock_t lock;
};

#define REGION_VERSION 4

_Static_assert(offsetof(struct region, lock) == 24, "where libfabric 1.17 has it");

int dofi_gate_init(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

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

/* Whether the gate is ours, after a try that came to @err. */
static bool is_entered(struct dofi_gate *gate, int err)
{
	if (err == EOWNERDEAD) {
		regions_open(gate->name);
		err = pthread_mutex_consistent(gate->mutex);
	}
	return !err;
}

bool dofi_gate_try_again(struct dofi_gate *gate, int err)
{
	int i;

	for (i = 0; err == EBUSY && i < TRIES; i++)
		err = pthread_mutex_trylock(gate->mutex);
	return is_entered(gate, err);
}

bool dofi_gate_enter(struct dofi_gate *gate)
{
	struct timespec until;

	if (dofi_gate_try(gate))
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	return is_entered(gate, pthread_mutex_timedlock(gate->mutex, &until));
}
