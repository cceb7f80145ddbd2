/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies bytes into and out of memory in segments. */
#ifndef DOFI_BASE_IOV_H
#define DOFI_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/*
 * Copies @len bytes at @from into the @n segments @iov, beginning at @offset in their sequence.
 * Bytes beyond the last segment are not copied. Returns how many were.
 */
size_t dofi_iov_scatter(const struct iovec *iov, size_t n, size_t offset, const void *from,
			size_t len);

/* Like dofi_iov_scatter(), but copies from the segments to @to. */
size_t dofi_iov_gather(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len);

/*
 * Returns how many of @len bytes at @to have to be written after the rest: they are in one aligned
 * word. Programs poll the last word that a peer writes, and expect all before it to be there once
 * it changed, as on hardware. memcpy() promises no order, and glibc's stores the first bytes last.
 */
size_t dofi_iov_tail(const void *to, size_t len);

/* Like memcpy(), but stores the last word last: a thread that sees it changed sees the rest. */
void dofi_iov_land(void *to, const void *from, size_t len);

#endif
