/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls in progress, so that a thread can wait until all have ended. */
#ifndef DOFI_BASE_CALLS_H
#define DOFI_BASE_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

/* Zeroed, no call is in progress. */
struct dofi_calls {
	/* the futex: the number of calls, plus DOFI_CALLS_AWAITED while a thread waits for them */
	_Atomic uint32_t word;
};

#define DOFI_CALLS_AWAITED (1u << 31)

/* Sequentially consistent: see dofi_calls_await(). */
static inline void dofi_calls_begin(struct dofi_calls *calls)
{
	atomic_fetch_add(&calls->word, 1);
}

void dofi_calls_wake(struct dofi_calls *calls);

/* The memory of @calls may be reused, but not unmapped, once this has counted. */
static inline void dofi_calls_end(struct dofi_calls *calls)
{
	if (__builtin_expect(atomic_fetch_sub(&calls->word, 1) == DOFI_CALLS_AWAITED + 1, 0))
		dofi_calls_wake(calls);
}

/*
 * Waits until no call is in progress. A thread that clears a flag before this, and tests it after
 * dofi_calls_begin(), either sees it cleared or is waited for. One thread at a time.
 */
void dofi_calls_await(struct dofi_calls *calls);

#endif
