/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Explains event numbers and return codes, given as a number or a name. */
#ifndef INFO_EXPLAIN_H
#define INFO_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Prints the meaning of @text to @out: an event, a return code, or both where one number is either.
 * @text is a number, decimal or with 0x hexadecimal, or a name from the header files of this API
 * version in upper or lower case. Returns false, and prints nothing, if @text is neither.
 */
bool explain(FILE *out, const char *text);

#endif
