/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The values that fields of events and of queries have, and their meanings. */
#ifndef INFO_VALUES_H
#define INFO_VALUES_H

#include "dat_select.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Prints the values with @name, in any case, or if @name is NULL, the values of @number. A blank
 * line separates them from each other, and from what was @printed before. Returns whether anything
 * was printed, before or by this call.
 */
bool values_print(FILE *out, const char *name, DAT_UINT32 number, bool printed);

#endif
