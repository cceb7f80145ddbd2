/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CM connections within a host: AF_UNIX sockets. The kernel reports the user at the other end.
 *
 * The name of a listener contains its qualifier; the name of a socket that connects contains the
 * address and port that a connection over TCP would have. Names are abstract: they are in no file
 * system, exist in one network namespace, as ports do, and end with their processes.
 */
#ifndef DOFI_XPORT_CM_LOCAL_H
#define DOFI_XPORT_CM_LOCAL_H

#include "xport/cm/listen.h"

/* What a listener serves for its qualifier; each has names of its own. */
enum dofi_local_service { DOFI_LOCAL_CONNECTIONS, DOFI_LOCAL_DATAGRAMS };

/*
 * Like dofi_cm_listen(), for @conn_qual. -EADDRINUSE, which is logged, if a process on this host
 * has the name.
 */
int dofi_local_listen(struct dofi_progress *progress, enum dofi_local_service service,
		      uint64_t conn_qual, const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener);

/*
 * Like dofi_cm_connect(), to the listener for @conn_qual. @to is the address that the program
 * passed. ended() gets -ECONNREFUSED if there is none, and -EACCES if it is another user's.
 */
int dofi_local_connect(struct dofi_progress *progress, enum dofi_local_service service,
		       uint64_t conn_qual, const struct sockaddr_storage *to,
		       const struct dofi_cm_ops *ops, void *owner,
		       const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);

#endif
