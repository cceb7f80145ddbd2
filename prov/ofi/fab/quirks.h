/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fi_info does not tell about a fabric: a small table with reasons. */
#ifndef DOFI_FAB_QUIRKS_H
#define DOFI_FAB_QUIRKS_H

#include <stdbool.h>

struct dofi_quirk {
	const char *provider;	/* libfabric's provider name */
	int rank;		/* the policy's preference, lowest first; 0 is never chosen by itself */
	bool late_listen_error;	/* an address in use shows at fi_listen, as EINVAL */
	bool blind_when_blocked; /* does not see the peer's end behind a message nobody receives */
	bool shutdown_closes;	/* fi_shutdown closes a descriptor that fi_close closes again */
	bool stale_signal;	/* a descriptor stays readable after its CQ or EQ was emptied */
	bool silent_errors;	/* a failed completion does not make its CQ's descriptor readable */
	bool needs_room;	/* never ends a message that meets a receive of no bytes */
	const char *setting;	/* libfabric's, as "NAME=value", which the fabric is used with */
	const char *reason;
};

/* The row of @provider, or a row of defaults for a fabric nobody measured. */
const struct dofi_quirk *dofi_quirk_of(const char *provider);

/*
 * Puts the settings of all rows into the environment, where the user has not set them.
 * Libfabric reads them when it is called first in a process. Once in a process.
 */
void dofi_quirks_set(void);

#endif
