/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version and the providers of libfabric. */
#ifndef INFO_LIBFABRIC_H
#define INFO_LIBFABRIC_H

#include <stdio.h>

/* Prints them, or why libfabric cannot be loaded. */
void libfabric_print(FILE *out);

#endif
