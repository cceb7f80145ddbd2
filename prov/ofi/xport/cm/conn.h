/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CM connections: what two connected endpoints of a connectionless fabric tell each other
 * over TCP.
 *
 * Such a fabric knows neither requests nor ends. So each DAT connection has a TCP connection
 * beside it, on the port of its qualifier. It carries the request and the answer, and stays: its
 * end is how a dead peer is noticed, and a message on it wakes a peer whose queue has no
 * descriptor to sleep on.
 *
 * Anybody may connect to the port. Until a whole request has come, a connection is a stranger,
 * whom the owner of the listener never sees: it has a few seconds, only so many may be there at a
 * time, and what they do wrong is logged once.
 *
 * All on the progress thread, and without locks, but for dofi_cm_wake().
 */
#ifndef DOFI_XPORT_CM_CONN_H
#define DOFI_XPORT_CM_CONN_H

#include "loop/progress.h"
#include "xport/cm/wire.h"

#include <sys/socket.h>

struct dofi_cm_conn;			/* a connection */
struct dofi_cm_listener;

/*
 * What the owner is told: on the progress thread, no lock held, and never from within a call of
 * his. A message, and what it points to, is valid during the call. Connections and listeners may be
 * closed in all of them, and a connection also once it has ended.
 */
struct dofi_cm_ops {
	/* A stranger's request: now the connection is the owner's, to answer or to close at any time. */
	void (*request)(struct dofi_cm_listener *listener, struct dofi_cm_conn *conn,
			const struct dofi_cm_msg *msg);
	/* Any other message, of any kind but a request, in any order: the peer may be hostile. */
	void (*message)(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg);
	/*
	 * The last word: nothing comes any more, and the owner closes the connection, now or later. 0 is
	 * an end in order; else a negative errno, as of a failed connect(); -EPROTO or
	 * -EPROTONOSUPPORT for what is no message; -ENOBUFS for a peer that takes nothing.
	 */
	void (*ended)(struct dofi_cm_conn *conn, int err);
	uint32_t patience_ms;		/* of a listener; 0: DOFI_CM_PATIENCE_MS; for tests */
};

/*
 * Connects to @addr and sends @first once it is connected. That it cannot connect, ended() tells;
 * what is returned is want of memory or of descriptors. Has no time-out but the kernel's.
 */
int dofi_cm_connect(struct dofi_progress *progress, const struct sockaddr *addr,
		    const struct dofi_cm_ops *ops, void *owner,
		    const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);

/* Never blocks: what the socket does not take now is kept, within limits, and sent later. */
void dofi_cm_send(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg);

/*
 * Sends a BELL, unless other bytes wait to be sent, which wake the peer as well. Any thread; the
 * caller sees to it that the connection is not closed meanwhile.
 */
void dofi_cm_wake(struct dofi_cm_conn *conn);

/*
 * Ends the connection; the owner hears nothing of it any more. What was sent gets to the peer
 * if it takes it, see sock/linger.h. NULL is nothing to close. Before dofi_progress_stop(), and then
 * by way of dofi_progress_call(): the memory is freed in later work.
 */
void dofi_cm_close(struct dofi_cm_conn *conn);

/* NULL at first for a connection that came as a request. */
void dofi_cm_set_owner(struct dofi_cm_conn *conn, void *owner);
void *dofi_cm_owner(const struct dofi_cm_conn *conn);

/* Valid as long as the connection. */
const struct sockaddr_storage *dofi_cm_peer(const struct dofi_cm_conn *conn);

/* The port of a connection that connects, which its peer sees. */
uint16_t dofi_cm_local_port(const struct dofi_cm_conn *conn);

/* For listen.c and local.c */

/* dofi_cm_connect() with the socket @fd, which it takes, whatever it returns. */
int dofi_cm_connect_by(struct dofi_progress *progress, int fd, const struct sockaddr *addr,
		       const struct dofi_cm_ops *ops, void *owner,
		       const struct dofi_cm_msg *first, struct dofi_cm_conn **conn);
/* A connection of the accepted socket @fd, which is the connection's on success. */
int dofi_cm_adopt(struct dofi_progress *progress, int fd, const struct sockaddr *peer,
		  const struct dofi_cm_ops *ops, void *owner, struct dofi_cm_conn **conn);
void dofi_cm_hand_over(struct dofi_cm_conn *conn, const struct dofi_cm_ops *ops, void *owner);

#endif
