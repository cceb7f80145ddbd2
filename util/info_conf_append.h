/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appends entries to the dat.conf that the registry reads. */
#ifndef INFO_CONF_APPEND_H
#define INFO_CONF_APPEND_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of DAT_OVERRIDE, or of the dat.conf that the registry reads or would read. */
void conf_path(char *path, size_t size);

/*
 * Appends the entries among @lines to the file @path, except those whose name, API version and
 * thread safety an entry of the file has. The file is replaced in one step, and made if it is
 * missing. Returns the number of entries appended, or negative errno.
 */
int conf_append(const char *path, const char *lines);

/*
 * Leaves the registry of this process with one IA, of this provider, by DAT_OVERRIDE: dat.conf may
 * have none, or many of other providers. The library is that of an entry of the file that
 * conf_path() returns, or else the one in @libdir. Call it before any call of the registry, and
 * after conf_path(). Returns false without descriptors or memory.
 */
bool conf_own_only(const char *libdir);

#endif
