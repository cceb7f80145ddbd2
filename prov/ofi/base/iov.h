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

#endif
