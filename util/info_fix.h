/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedy for the reason of an IA's failure. */
#ifndef INFO_FIX_H
#define INFO_FIX_H

#include <stddef.h>

/* Writes the advice for @reason to @text; an empty text if there is none. */
void fix_find(const char *reason, char *text, size_t len);

#endif
