/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version of the loaded libfabric, which may be newer than the tested ones. */
#ifndef DOFI_FAB_VERSION_H
#define DOFI_FAB_VERSION_H

#include <stddef.h>
#include <stdint.h>

/* Writes @version (fi_version()) as text; an untested version is marked as that. */
void dofi_version_text(uint32_t version, char *text, size_t size);

/* Logs a version that is newer than the tested ones, once in a process. Any thread. */
void dofi_version_check(uint32_t version);

#endif
