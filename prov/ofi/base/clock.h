/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Monotonic time in nanoseconds. */
#ifndef DOFI_BASE_CLOCK_H
#define DOFI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define DOFI_NEVER INT64_MAX

static inline int64_t dofi_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Returns the time @us microseconds from now; DOFI_NEVER for UINT32_MAX (DAT_TIMEOUT_INFINITE). */
static inline int64_t dofi_deadline(uint32_t us)
{
	return us == UINT32_MAX ? DOFI_NEVER : dofi_now() + us * 1000LL;
}

static inline struct timespec dofi_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000LL, .tv_nsec = ns % 1000000000LL };
}

#endif
