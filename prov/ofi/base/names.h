/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of names in a string, separated by blanks. */
#ifndef DOFI_BASE_NAMES_H
#define DOFI_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

bool dofi_names_have(const char *names, const char *name);
/* Appends @name to @names, of @size bytes, unless it is NULL or listed. */
void dofi_names_add(char *names, size_t size, const char *name);

#endif
