/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version and the providers of libfabric. */
#ifndef INFO_LIBFABRIC_H
#define INFO_LIBFABRIC_H

#include <stdbool.h>
#include <stdio.h>

/* Prints them, or why libfabric cannot be loaded. */
void libfabric_print(FILE *out);

/* Returns whether libfabric_print() has listed @provider: of "tcp;ofi_rxm" both tcp and ofi_rxm. */
bool libfabric_has(const char *provider);

/* Returns whether @word is in @list, a list of words with blanks between. */
bool has_word(const char *list, const char *word);

#endif
