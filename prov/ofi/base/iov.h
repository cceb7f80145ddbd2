/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes into and out of memory that is in pieces. */
#ifndef DOFI_BASE_IOV_H
#define DOFI_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/*
 * Copies @len bytes at @from into the @n pieces @iov, beginning at @offset of them all; what is
 * beyond the last is left out. How many were copied.
 */
size_t dofi_iov_scatter(const struct iovec *iov, size_t n, size_t offset, const void *from,
			size_t len);

/* The other way. */
size_t dofi_iov_gather(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len);

/*
 * Programs poll the last word that a peer writes, and expect to find all before it when that has
 * changed, as on hardware. memcpy() promises no order, and glibc's stores the first bytes last.
 * How many of @len bytes at @to are to be written behind the rest: they are in one aligned word.
 */
size_t dofi_iov_tail(const void *to, size_t len);

/* memcpy() that ends with the last word: who sees that it has changed sees the rest. */
void dofi_iov_land(void *to, const void *from, size_t len);

#endif
