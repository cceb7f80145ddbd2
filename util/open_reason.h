/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens an IA and finds out why that failed, from the log of the provider and the registry. */
#ifndef OPEN_REASON_H
#define OPEN_REASON_H

#include "dat_select.h"

#include <stddef.h>

#define REASON_MAX 512

/*
 * Calls dat_ia_openv() with the log at level 1 or higher. On failure @reason gets the name of the
 * return code, and behind it the last message that was logged. Other messages are written to
 * stderr, warnings only if the user's settings ask for them. Not for concurrent use: stderr is
 * redirected meanwhile.
 */
DAT_RETURN reason_open_info(const DAT_PROVIDER_INFO *info, DAT_COUNT qlen,
			    DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia, char *reason, size_t len);

/* As reason_open_info(), for a name and the request of dat_ia_open(). */
DAT_RETURN reason_open(const char *name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
		       DAT_IA_HANDLE *ia, char *reason, size_t len);

/* Leaves the log at the level of the user's settings from now on. */
void reason_keep_level(void);

/* Returns the log without the return code; all of @reason if nothing was logged. */
const char *reason_text(const char *reason);

#endif
