/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may call the fabric where it shares memory: one thread at a time, of all processes.
 *
 * An endpoint of libfabric's shm (1.17) has a spin lock in its shared memory, which it takes
 * itself and everybody who sends to it. A process that is killed while it has the lock leaves it
 * taken, and whoever comes next spins for ever. So the lock is only taken behind a gate of ours, a
 * robust mutex in the page of the endpoint's owner (fab/shm.h): whom the kernel tells that the one
 * before him died in there knows that the lock is nobody's, and opens it. Who waits for what is to
 * come waits outside, for a word beside the mutex.
 */
#ifndef DOFI_FAB_GATE_H
#define DOFI_FAB_GATE_H

#include "fab/shm_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dofi_gate {
	pthread_mutex_t *mutex;		/* in the owner's page, as this is: */
	_Atomic uint32_t *given;	/* changes after whoever had something for the owner left */
	char name[DOFI_SHM_NAME];	/* of the page, and what its endpoints' names begin with */
};

/* In a page that nobody else knows yet. 0 or a negative errno. */
int dofi_gate_init(pthread_mutex_t *mutex);

/* The rest of dofi_gate_try() and dofi_gate_leave(). */
bool dofi_gate_try_again(struct dofi_gate *gate, int err);

/*
 * False if somebody is in there for longer than one is who is not interrupted: then the fabric is
 * to be called later. No gate is an open one. Any thread; no system call, unless somebody died.
 */
static inline bool dofi_gate_try(struct dofi_gate *gate)
{
	int err = gate ? pthread_mutex_trylock(gate->mutex) : 0;

	return !err || dofi_gate_try_again(gate, err);
}

/* The same for who can wait: false if somebody is stopped in there, or held up as long. */
bool dofi_gate_enter(struct dofi_gate *gate);

static inline void dofi_gate_leave(struct dofi_gate *gate)
{
	if (gate)
		pthread_mutex_unlock(gate->mutex);
}

#endif
