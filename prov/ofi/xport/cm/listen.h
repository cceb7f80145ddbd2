/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listeners for CM connections. All on the progress thread, and without locks. */
#ifndef DOFI_XPORT_CM_LISTEN_H
#define DOFI_XPORT_CM_LISTEN_H

#include "xport/cm/conn.h"

#define DOFI_CM_PATIENCE_MS 3000	/* from a stranger's arrival to its whole request */
/*
 * How many strangers a listener has at most: a quarter of the descriptors that the process may have, within
 * these bounds; from one address half of that. Then the oldest makes room.
 */
#define DOFI_CM_STRANGERS_LEAST 64
#define DOFI_CM_STRANGERS_MOST 4096

/*
 * Listens at @addr, IPv4, IPv6 or a name (local.h); port 0 is any that is free. -EADDRINUSE
 * and -EACCES are the port's, others are of the system.
 */
int dofi_cm_listen(struct dofi_progress *progress, const struct sockaddr *addr,
		   const struct dofi_cm_ops *ops, void *owner,
		   struct dofi_cm_listener **listener);
/* With it go the strangers, but no connection that the owner was told of. When, as dofi_cm_close(). */
void dofi_cm_unlisten(struct dofi_cm_listener *listener);
uint16_t dofi_cm_listener_port(const struct dofi_cm_listener *listener);
void *dofi_cm_listener_owner(const struct dofi_cm_listener *listener);

#endif
