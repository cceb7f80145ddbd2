/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with CM sockets, and a trace of what their owners are notified of. */
#ifndef UNIT_XPORT_SIDE_H
#define UNIT_XPORT_SIDE_H

#include "xport/cm/conn.h"

#include <semaphore.h>

struct side_fixture {
	struct dofi_progress progress;
	struct dofi_side_listener *listener;
	struct sockaddr_storage address;	/* the listener's address */
	struct dofi_side *passive, *active;	/* the last accepted and connected ones */
	_Atomic int passive_err, active_err;	/* the error of ended(); 1 before that */
	struct dofi_side_msg msg;		/* the last message */
	unsigned char data[DOFI_SIDE_MAX_DATA];	/* the data of msg */
	sem_t traced;
	/* what else an owner does; called on the progress thread */
	void (*on_request)(struct dofi_side *side);
	void (*on_message)(struct dofi_side *side);
	void (*on_ended)(struct dofi_side *side);
	/* to be set before side_listen() */
	uint32_t patience_ms;
	bool wildcard;
};

extern struct side_fixture side;

/* Faults of the system, for any socket. */
struct side_faults {
	int accept, accept_times;	/* accept4() fails accept_times times with errno accept */
	int epoll_add;			/* errno of the next failing EPOLL_CTL_ADD */
	int send;			/* errno of the next failing send */
	size_t send_most;		/* sockets take at most this many bytes at a time */
	int small;			/* the send buffer of accepted sockets */
	bool connect_to_self;
};

extern struct side_faults side_fault;
extern _Atomic unsigned side_accepts;	/* calls of accept4() */
extern int side_connecting, side_accepted; /* the last sockets, while they are open */

/*
 * Notifications of owners, a letter each: "q" is a request; messages by kind are "a" accept, "r"
 * reject, "f" refuse, "y" ready, "b" BELL, "g" BYE; "e" is the end. Capitals are notifications of
 * the passive CM socket.
 */
const char *side_trace(void);

void side_init(void);
void side_fini(void);

/* Waits until @n more letters are in the trace. */
void side_await(unsigned n);
/* Runs @fn on the progress thread. */
void side_do(void (*fn)(void *arg), void *arg);
/* Returns when everything that was started before is done. */
void side_settle(void);

/* Call the functions of the same name with prefix dofi_ on the progress thread. */
int side_listen(int family);
int side_connect(const struct dofi_side_msg *msg);
void side_send(struct dofi_side *s, const struct dofi_side_msg *msg);
void side_close(struct dofi_side *s);
void side_unlisten(void);

/* A message with its mandatory fields only. */
struct dofi_side_msg side_msg(enum dofi_side_kind kind);
/* Connects two CM sockets. The trace has a "q". */
void side_couple(void);

/* The socket of a stranger, connected to the listener. */
int side_stranger(void);
/* The socket of a stranger with a request that was accepted. */
int side_stranger_in(void);
void side_put(int fd, const void *bytes, size_t n);
void side_put_msg(int fd, enum dofi_side_kind kind);
/* Reads until the end of the connection. Returns 0, or a negative errno. */
int side_end_of(int fd);

#endif
