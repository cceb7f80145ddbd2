/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether this process may write to memory, without writing to it. */
#ifndef DOFI_BASE_MAPPED_H
#define DOFI_BASE_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether the first and the last page of @len bytes at @addr, at least one, are mapped for
 * writing. Like a write it gives the process pages of its own there, but it changes no byte. True
 * if the system does not say.
 */
bool dofi_mapped_to_write(const void *addr, size_t len);

#endif
