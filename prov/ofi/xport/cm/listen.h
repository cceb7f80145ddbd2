/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listeners for CM connections. All on the progress thread, and without locks. */
#ifndef DOFI_XPORT_CM_LISTEN_H
#define DOFI_XPORT_CM_LISTEN_H

#include "xport/cm/conn.h"

#define DOFI_CM_PATIENCE_MS 3000	/* from the arrival of an embryo to its complete request */
/* Limits of a listener's embryos: a quarter of the descriptors, half of it for one address. */
#define DOFI_CM_EMBRYOS_LEAST 64
#define DOFI_CM_EMBRYOS_MOST 4096

/* Listens at @addr: an IP or a local name; port 0 is any. -EADDRINUSE, -EACCES: of the port. */
int dofi_cm_listen(struct dofi_progress *progress, const struct sockaddr *addr,
		   const struct dofi_cm_ops *ops, void *owner, struct dofi_cm_listener **listener);
/* Closes the listener and its embryos, when dofi_cm_close() permits it; no other connection. */
void dofi_cm_unlisten(struct dofi_cm_listener *listener);

/* The listeners at a port of the two families; NULL where that family is not served. */
struct dofi_cm_listeners {
	struct dofi_cm_listener *own, *other;	/* of the family that was asked for, of the other */
};

/*
 * Listens at @address; if @both, @address is a wildcard address, also at the same port of the
 * other family. If the host lacks that family, or another program has the port, the first family
 * alone is served. A fabric's address is exchanged over the connection, so the fabric's family does
 * not matter here.
 */
int dofi_cm_listen_both(struct dofi_progress *progress, const struct sockaddr_storage *address,
			bool both, const struct dofi_cm_ops *ops, void *owner,
			struct dofi_cm_listeners *l);
/* Closes both, of which either may be NULL. */
void dofi_cm_unlisten_both(struct dofi_cm_listeners *l);

uint16_t dofi_cm_listener_port(const struct dofi_cm_listener *listener);
void *dofi_cm_listener_owner(const struct dofi_cm_listener *listener);

/*
 * Within a host: AF_UNIX sockets. The kernel reports the user at the other end.
 *
 * The name of a listener contains its qualifier; the name of a socket that connects contains the
 * address and port that a connection over TCP would have. Names are abstract: they are in no file
 * system, exist in one network namespace, as ports do, and end with their processes.
 */

/* The service of a listener for its qualifier; each has names of its own. */
enum dofi_local_service { DOFI_LOCAL_CONNECTIONS, DOFI_LOCAL_DATAGRAMS };

/* Listens at the name of @conn_qual. -EADDRINUSE, which is logged: a process here has the name. */
int dofi_local_listen(struct dofi_progress *progress, enum dofi_local_service service,
		      uint64_t conn_qual, const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener);
/*
 * Connects to the listener for @conn_qual, then sends @first. @to is the address that the program
 * passed. ended() gets -ECONNREFUSED if there is none, and -EACCES if it is another user's.
 */
int dofi_local_connect(struct dofi_progress *progress, enum dofi_local_service service,
		       uint64_t conn_qual, const struct sockaddr_storage *to,
		       const struct dofi_cm_ops *ops, void *owner,
		       const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);

#endif
