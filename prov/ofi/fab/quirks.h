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
	bool shutdown_overtakes; /* tells of the peer's end before all that it sent was received */
	bool shutdown_closes;	/* fi_shutdown closes a descriptor that fi_close closes again */
	bool stale_signal;	/* a descriptor stays readable after its CQ or EQ was emptied */
	bool goes_on;		/* a refused RDMA write does not keep what was sent after it from arriving */
	bool loses_mark;	/* does not tell of a message that waited that CQ data came with it */
	bool silent_errors;	/* a failed completion does not make its CQ's descriptor readable */
	bool needs_room;	/* never ends a message that meets a receive of no bytes */
	bool forgets_strangers;	/* closes a passive endpoint that connections still refer to: halfopen.h */
	bool takes_offset;	/* adds a registration's offset to the addresses that peers name */
	const char *reason;
};

/* The row of @provider, or a row of defaults for a fabric nobody measured. */
const struct dofi_quirk *dofi_quirk_of(const char *provider);

#endif
