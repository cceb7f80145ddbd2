/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Monotonic time in nanoseconds. */
#ifndef DOFI_BASE_CLOCK_H
#define DOFI_BASE_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
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

/*
 * The timespec of system calls that are made by number: __kernel_timespec, which headers before
 * Linux 5.1 lack. The members of the C library's timespec have 32 bits on some architectures.
 */
struct dofi_timespec {
	int64_t tv_sec;
	int64_t tv_nsec;
};

static inline struct dofi_timespec dofi_timespec(int64_t ns)
{
	return (struct dofi_timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* 32-bit architectures have two versions of older calls. */
#ifdef SYS_futex_time64
#define DOFI_SYS_FUTEX SYS_futex_time64
#define DOFI_SYS_PPOLL SYS_ppoll_time64
#else
#define DOFI_SYS_FUTEX SYS_futex
#define DOFI_SYS_PPOLL SYS_ppoll
#endif

#endif
