/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedy for the reason of an IA's failure. */
#ifndef INFO_FIX_H
#define INFO_FIX_H

#include <stddef.h>

/*
 * Removes the numbers of causes from @reason, and writes the advice for the first one to @text, or
 * for an errno that the reason names; an empty text if there is none.
 */
void fix_find(char *reason, char *text, size_t len);

#endif
