/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts calls in progress, so that a thread can wait until all have ended. */

#include "base/calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void dofi_calls_wake(struct dofi_calls *calls)
{
	const int err = errno;

	syscall(SYS_futex, &calls->word, FUTEX_WAKE_PRIVATE, INT_MAX);
	errno = err;
}

void dofi_calls_await(struct dofi_calls *calls)
{
	const int err = errno;
	uint32_t word = atomic_fetch_or(&calls->word, DOFI_CALLS_AWAITED) | DOFI_CALLS_AWAITED;

	while (word != DOFI_CALLS_AWAITED) {
		syscall(SYS_futex, &calls->word, FUTEX_WAIT_PRIVATE, word, NULL);
		word = atomic_load(&calls->word);
	}
	atomic_fetch_and(&calls->word, ~DOFI_CALLS_AWAITED);
	errno = err;
}
