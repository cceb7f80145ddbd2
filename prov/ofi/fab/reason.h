/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why no fabric fits an IA. */
#ifndef DOFI_FAB_REASON_H
#define DOFI_FAB_REASON_H

#include "fab/params.h"

/*
 * Logs why no fabric fits @params, after a search has found none: as an error if the configuration
 * is wrong, as a warning if this machine lacks something. Returns -FI_ENODATA, or the errno of a
 * resource that is short.
 */
int dofi_reason_log(const struct dofi_params *params);

#endif
