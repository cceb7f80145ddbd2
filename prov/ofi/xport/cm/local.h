/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CM connections within a host: sockets of AF_UNIX, whose kernel says who is at the other end.
 *
 * A listener's name is made of its qualifier, that of who connects of the address and port which
 * a connection over TCP would show. Both are abstract: they are in no file system, exist in one
 * network namespace, as ports do, and go with their processes.
 */
#ifndef DOFI_XPORT_CM_LOCAL_H
#define DOFI_XPORT_CM_LOCAL_H

#include "xport/cm/listen.h"

#include <stdbool.h>

/* dofi_cm_listen() for @conn_qual. -EADDRINUSE: a process on this host has its name; logged. */
int dofi_local_listen(struct dofi_progress *progress, uint64_t conn_qual,
		      const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener);

/*
 * dofi_cm_connect() to who listens for @conn_qual, which the program wants to reach at @to.
 * ended() is told -ECONNREFUSED if that is nobody, and -EACCES if it is another user.
 */
int dofi_local_connect(struct dofi_progress *progress, uint64_t conn_qual,
		       const struct sockaddr_storage *to, const struct dofi_cm_ops *ops,
		       void *owner, const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);

#endif
