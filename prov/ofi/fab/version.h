/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version of the libfabric that is loaded, which may be newer than any tested one. */
#ifndef DOFI_FAB_VERSION_H
#define DOFI_FAB_VERSION_H

#include <stddef.h>
#include <stdint.h>

/* @version as fi_version() returns it, as text; a version that was not tested says so. */
void dofi_version_text(uint32_t version, char *text, size_t size);

/* Logs a version that is newer than any tested one: once in a process. Any thread. */
void dofi_version_check(uint32_t version);

#endif
