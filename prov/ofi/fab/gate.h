/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may call the fabric where it shares memory: one thread at a time, of all processes.
 *
 * An endpoint of libfabric's shm (1.17) has a spin lock in its shared memory, which it takes
 * itself and everybody who sends to it. A process that is killed while it has the lock leaves it
 * taken, and whoever comes next spins for ever. So the lock is only taken behind a gate of ours, a
 * word in the page of the endpoint's owner (fab/shm.h) that says whose thread is in there. Whoever
 * finds that one dead, by the lock of its page (fab/shm_files.h), knows that the fabric's is
 * nobody's, and opens it. Who waits for what is to come waits outside, for a word beside the gate.
 *
 * A robust mutex would do the same, but costs four times as much with each message: a way in and a
 * way out are one locked instruction here.
 */
#ifndef DOFI_FAB_GATE_H
#define DOFI_FAB_GATE_H

#include "fab/shm_files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dofi_gate {
	_Atomic uint64_t *holder;	/* in the owner's page: the number of who is in there, or 0 */
	_Atomic uint32_t *given;	/* likewise: changes after whoever had something for it left */
	uint64_t self;			/* the number of the page of who goes through */
	char name[DOFI_SHM_NAME];	/* of the owner's page: its endpoints' names begin with it */
	/* Who was in there when somebody last looked closely, and when that was. Any thread. */
	_Atomic uint64_t suspect;
	_Atomic int64_t seen_at;
};

static inline bool dofi_gate_take(struct dofi_gate *gate, uint64_t from)
{
	return atomic_compare_exchange_strong_explicit(gate->holder, &from, gate->self,
						       memory_order_acquire, memory_order_relaxed);
}

/* The rest of dofi_gate_try(). */
bool dofi_gate_try_again(struct dofi_gate *gate);

/*
 * False if somebody is in there for longer than one is who is not interrupted: then the fabric is
 * to be called later. No gate is an open one. Any thread; no system call, unless one stays in there
 * for 10 ms.
 */
static inline bool dofi_gate_try(struct dofi_gate *gate)
{
	return !gate || dofi_gate_take(gate, 0) || dofi_gate_try_again(gate);
}

/* The same for who can wait: false if somebody is stopped in there, or held up as long. */
bool dofi_gate_enter(struct dofi_gate *gate);

static inline void dofi_gate_leave(struct dofi_gate *gate)
{
	if (gate)
		atomic_store_explicit(gate->holder, 0, memory_order_release);
}

#endif
