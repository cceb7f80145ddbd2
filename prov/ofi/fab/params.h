/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry: the fabric that the user selects. */
#ifndef DOFI_FAB_PARAMS_H
#define DOFI_FAB_PARAMS_H

#include <stddef.h>

/* The `key=value` words; an empty string means "any". */
struct dofi_params {
	char provider[64];
	char domain[64];
	char address[64];	/* numeric, of a local interface */
	char endpoint[64];	/* msg: connected, rdm: connectionless */
};

/*
 * Parses @text into @params. Returns 0; or -EINVAL, with a sentence in @why, for a word that is no
 * `key=value`, an unknown key, an overlong value or an unknown endpoint type.
 */
int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size);

#endif
