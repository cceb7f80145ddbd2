/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that two processes share by a descriptor: a memfd without a name and with a sealed size.
 *
 * A process that maps a file gets SIGBUS where another process has truncated it. Seals prevent
 * that, so a peer's descriptor is mapped only if it is sealed, and has ordinary pages: hugetlbfs
 * may run out of pages at the first access.
 */
#ifndef DOFI_BASE_SEALED_H
#define DOFI_BASE_SEALED_H

#include <stddef.h>

/*
 * Creates and maps @size bytes, all zero. Returns a descriptor for the peer, or a negative errno.
 */
int dofi_sealed_make(size_t size, void **at);

/*
 * Like dofi_sealed_make(), but no other process can write to the memory. -ENOTSUP before Linux 5.1.
 */
int dofi_sealed_make_own(size_t size, void **at);

/*
 * Maps the memory of @fd, which may be any descriptor of a hostile process, and stays open. Returns
 * 0, -EPROTO if it is not sealed memory of @size bytes, or another negative errno.
 */
int dofi_sealed_map(int fd, size_t size, void **at);
/* Like dofi_sealed_map(), only for reading. */
int dofi_sealed_map_to_read(int fd, size_t size, void **at);

void dofi_sealed_unmap(void *at, size_t size);

#endif
