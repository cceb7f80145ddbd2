/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Side connections: what two connected endpoints of a connectionless fabric tell each other
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
 * All on the progress thread, and without locks, but for dofi_side_ring().
 */
#ifndef DOFI_XPORT_CM_CONN_H
#define DOFI_XPORT_CM_CONN_H

#include "loop/progress.h"
#include "xport/cm/wire.h"

#include <netinet/in.h>

#define DOFI_SIDE_PATIENCE_MS 3000	/* from a stranger's arrival to its whole request */
/*
 * How many strangers a listener has at most: a quarter of the descriptors that the process may have, within
 * these bounds; from one address half of that. Then the oldest makes room.
 */
#define DOFI_SIDE_STRANGERS_LEAST 64
#define DOFI_SIDE_STRANGERS_MOST 4096

struct dofi_side;			/* a connection */
struct dofi_side_listener;

/*
 * What the owner is told: on the progress thread, no lock held, and never from within a call of
 * his. A message, and what it points to, is valid during the call. Sides and listeners may be
 * closed in all of them, and a side also once it has ended.
 */
struct dofi_side_ops {
	/* A stranger's request: now the side is the owner's, to answer or to close at any time. */
	void (*request)(struct dofi_side_listener *listener, struct dofi_side *side,
			const struct dofi_side_msg *msg);
	/* Any other message, of any kind but a request, in any order: the peer may be hostile. */
	void (*message)(struct dofi_side *side, const struct dofi_side_msg *msg);
	/*
	 * The last word: nothing comes any more, and the owner closes the side, now or later. 0 is
	 * an end in order; else a negative errno, as of a failed connect(); -EPROTO or
	 * -EPROTONOSUPPORT for what is no message; -ENOBUFS for a peer that takes nothing.
	 */
	void (*ended)(struct dofi_side *side, int err);
	uint32_t patience_ms;		/* 0: DOFI_SIDE_PATIENCE_MS; for tests */
};

/*
 * Listens at @addr, IPv4, IPv6 or a name (side_local.h); port 0 is any that is free. -EADDRINUSE
 * and -EACCES are the port's, others are of the system.
 */
int dofi_side_listen(struct dofi_progress *progress, const struct sockaddr *addr,
		     const struct dofi_side_ops *ops, void *owner,
		     struct dofi_side_listener **listener);
/* With it go the strangers, but no side that the owner was told of. When, as dofi_side_close(). */
void dofi_side_unlisten(struct dofi_side_listener *listener);
uint16_t dofi_side_port(const struct dofi_side_listener *listener);
void *dofi_side_listener_owner(const struct dofi_side_listener *listener);

/*
 * Connects to @addr and sends @first once it is connected. That it cannot connect, ended() tells;
 * what is returned is want of memory or of descriptors. Has no time-out but the kernel's.
 */
int dofi_side_connect(struct dofi_progress *progress, const struct sockaddr *addr,
		      const struct dofi_side_ops *ops, void *owner,
		      const struct dofi_side_msg *first, struct dofi_side **side);

/* Never blocks: what the socket does not take now is kept, within limits, and sent later. */
void dofi_side_send(struct dofi_side *side, const struct dofi_side_msg *msg);

/*
 * Sends a BELL, unless other bytes wait to be sent, which wake the peer as well. Any thread; the
 * caller sees to it that the side is not closed meanwhile.
 */
void dofi_side_ring(struct dofi_side *side);

/*
 * Ends the connection; the owner hears nothing of it any more. What was sent gets to the peer
 * if it takes it, see sock/linger.h. NULL is nothing to close. Before dofi_progress_stop(), and then
 * by way of dofi_progress_call(): the memory is freed in later work.
 */
void dofi_side_close(struct dofi_side *side);

/* NULL at first for a side that came as a request. */
void dofi_side_set_owner(struct dofi_side *side, void *owner);
void *dofi_side_owner(const struct dofi_side *side);

/* Valid as long as the side; the local address once the owner knows that it is connected. */
const struct sockaddr_storage *dofi_side_peer(const struct dofi_side *side);
const struct sockaddr_storage *dofi_side_local(const struct dofi_side *side);

/* The port of a side that connects, which its peer sees. */
uint16_t dofi_side_own_port(const struct dofi_side *side);

/* For side_listen.c and side_local.c */

/* @address is whole, also a name that has its NUL behind it. */
socklen_t dofi_side_address_len(const struct sockaddr *address);
/* A socket for @address, not blocking, or a negative errno. */
int dofi_side_socket(const struct sockaddr *address);
/* dofi_side_connect() with the socket @fd, which it takes, whatever it returns. */
int dofi_side_connect_by(struct dofi_progress *progress, int fd, const struct sockaddr *addr,
			 const struct dofi_side_ops *ops, void *owner,
			 const struct dofi_side_msg *first, struct dofi_side **side);
/* A side of the accepted socket @fd, which is the side's on success. */
int dofi_side_adopt(struct dofi_progress *progress, int fd, const struct sockaddr *peer,
		    const struct dofi_side_ops *ops, void *owner, struct dofi_side **side);
void dofi_side_hand_over(struct dofi_side *side, const struct dofi_side_ops *ops, void *owner);

#endif
