/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry: which fabric is asked for. */
#ifndef DOFI_FAB_PARAMS_H
#define DOFI_FAB_PARAMS_H

#include <stddef.h>

/* Its `key=value` words. Empty means "any". */
struct dofi_params {
	char provider[64];
	char domain[64];
	char address[64];	/* numeric, of a local interface */
	char endpoint[64];	/* msg: connected, rdm: connectionless */
};

/*
 * Parses @text into @params. On a word that is no `key=value`, an unknown key,
 * an overlong value or an unknown endpoint: -EINVAL and a sentence naming it in @why.
 */
int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size);

#endif
