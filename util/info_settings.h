/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the settings of this provider, which reports them as named attributes. */
#ifndef INFO_SETTINGS_H
#define INFO_SETTINGS_H

#include "dat_text.h"
#include "json.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether the named attribute @name is a setting. */
bool setting_is(const char *name);

/* Whether the provider reports settings; other providers do not. */
bool settings_reported(const DAT_PROVIDER_ATTR *pa);

/* Print one line per setting, or the members of an array. */
void settings_print(FILE *out, const DAT_PROVIDER_ATTR *pa);
void settings_json(struct json *j, const DAT_PROVIDER_ATTR *pa);

/*
 * Writes to @text which variables DAT_OFI_... of the environment are no settings of @pa, or have a
 * value that does not count; an empty text if all are right.
 */
void settings_judge(const DAT_PROVIDER_ATTR *pa, char *text, size_t len);

#endif
