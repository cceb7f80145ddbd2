/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The settings of a provider of ours, which it tells as named attributes. */
#ifndef INFO_SETTINGS_H
#define INFO_SETTINGS_H

#include "dat_text.h"
#include "json.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether the named attribute @name is a setting. */
bool setting_is(const char *name);

/* Whether the provider tells any; another's does not. */
bool settings_told(const DAT_PROVIDER_ATTR *pa);

/* A line for each, or the members of an array. */
void settings_print(FILE *out, const DAT_PROVIDER_ATTR *pa);
void settings_json(struct json *j, const DAT_PROVIDER_ATTR *pa);

#endif
