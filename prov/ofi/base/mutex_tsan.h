/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Annotations of our mutex for ThreadSanitizer, so that it finds inversions of the lock order.
 * Empty in other builds.
 */
#ifndef DOFI_BASE_MUTEX_TSAN_H
#define DOFI_BASE_MUTEX_TSAN_H

#ifdef __has_feature
#define DOFI_HAVE_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define DOFI_HAVE_TSAN 1
#else
#define DOFI_HAVE_TSAN 0
#endif

/* A call of sanitizer/tsan_interface.h: __tsan_mutex_@what. */
#if DOFI_HAVE_TSAN
#include <sanitizer/tsan_interface.h>
#define DOFI_TSAN_MUTEX(what, ...) __tsan_mutex_##what(__VA_ARGS__)
#else
#define DOFI_TSAN_MUTEX(what, ...) ((void)0)
#endif

#endif
