/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CM connections: TCP or, within a host, Unix sockets over which the ends of connections on a
 * connectionless fabric, and datagram EPs, exchange requests.
 *
 * Such a fabric has neither connection requests nor ends. So each DAT connection has a CM
 * connection as well, to the port or name of its qualifier. It carries the request and the answer,
 * and stays open: its end reports the death of the peer. The CM connection of datagram EPs is
 * closed after the answer was confirmed (READY).
 *
 * Anybody may connect to the port. Until a complete request has arrived, a connection is called an
 * embryo, which the owner of the listener does not see. An embryo has a few seconds, the number
 * of embryos is limited, and each kind of misbehaviour is logged once per listener.
 *
 * All on the progress thread, and without locks.
 */
#ifndef DOFI_XPORT_CM_CONN_H
#define DOFI_XPORT_CM_CONN_H

#include "loop/progress.h"
#include "xport/cm/wire.h"

#include <sys/socket.h>

struct dofi_cm_conn;
struct dofi_cm_listener;

/*
 * Callbacks to the owner of connections, on the progress thread, with no lock held, and never from
 * within a dofi_cm_*() call. A message, with its data, is valid during the call. All of
 * them may close connections and listeners; a connection may also be closed after its end.
 */
struct dofi_cm_ops {
	/* An embryo sent a request. The owner answers or closes the connection at any time. */
	void (*request)(struct dofi_cm_listener *listener, struct dofi_cm_conn *conn,
			const struct dofi_cm_msg *msg);
	/* A message of any other kind. Kinds may come in any order: the peer may be hostile. */
	void (*message)(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg);
	/*
	 * The last callback of a connection, which the owner then closes, now or later. @err is 0
	 * for an orderly end; else a negative errno, such as a failed connect()'s; -EPROTO or
	 * -EPROTONOSUPPORT for a malformed message; -ENOBUFS for a peer that reads nothing.
	 */
	void (*ended)(struct dofi_cm_conn *conn, int err);
	/* the kind of request that a listener takes; 0 is DOFI_CM_REQUEST */
	enum dofi_cm_kind first;
	/* time limit of an embryo; 0: DOFI_CM_PATIENCE_MS. Tests set others. */
	uint32_t patience_ms;
};

/*
 * Connects to @addr, then sends @first. ended() reports the failure of the connection; other errors
 * are the system's. There is no time-out but the kernel's. @named_after is the argument
 * of dofi_cm_name_socket(), or NULL for a socket without a name.
 */
int dofi_cm_connect(struct dofi_progress *progress, const struct sockaddr *addr,
		    const struct sockaddr_storage *named_after, const struct dofi_cm_ops *ops,
		    void *owner, const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);

/* Never blocks: some bytes that the socket does not take are sent later. NULL is ignored. */
void dofi_cm_send(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg);

/* Answers a request: a REFUSE for @reason, or if that is 0 a REJECT with the program's @data. */
void dofi_cm_decline(struct dofi_cm_conn *conn, unsigned reason, const void *data, size_t size);

/*
 * Ends the connection, without further callbacks. Bytes that were sent reach the peer if it takes
 * them, see sock/linger.h. NULL is ignored. Call before dofi_progress_stop(), and then through
 * dofi_progress_call(), because the memory is freed in later work.
 */
void dofi_cm_close(struct dofi_cm_conn *conn);

/* At first the owner of an incoming connection is NULL. */
void dofi_cm_set_owner(struct dofi_cm_conn *conn, void *owner);
void *dofi_cm_owner(const struct dofi_cm_conn *conn);

/* The peer's address, valid as long as the connection. */
const struct sockaddr_storage *dofi_cm_peer(const struct dofi_cm_conn *conn);

/* The local port of a connection that connects. */
uint16_t dofi_cm_local_port(const struct dofi_cm_conn *conn);

/* For listen.c */

/* Makes a connection of the accepted socket @fd, which the connection owns if that succeeds. */
int dofi_cm_adopt(struct dofi_progress *progress, int fd, const struct sockaddr *peer,
		  const struct dofi_cm_ops *ops, void *owner, struct dofi_cm_conn **conn);
void dofi_cm_hand_over(struct dofi_cm_conn *conn, const struct dofi_cm_ops *ops, void *owner);

/* fds.c: descriptors that are passed with bytes through a local socket (SCM_RIGHTS). */

struct dofi_cm_fds {
	unsigned n;
	int fd[DOFI_CM_FDS];
};

/* Sends bytes with @fds, which is empty after success. The caller keeps the descriptors open. */
ssize_t dofi_cm_fds_send(int socket, const void *bytes, size_t n, struct dofi_cm_fds *fds);
/* Receives bytes. Adds descriptors that came with them to @fds, and closes excess ones. */
ssize_t dofi_cm_fds_receive(int socket, void *bytes, size_t size, struct dofi_cm_fds *fds);
void dofi_cm_fds_close(struct dofi_cm_fds *fds);

#endif
