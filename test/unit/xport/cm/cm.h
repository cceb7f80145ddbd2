/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with CM connections, of which it is told what their owners are. */
#ifndef UNIT_XPORT_CM_H
#define UNIT_XPORT_CM_H

#include "xport/cm/listen.h"

#include <netinet/in.h>
#include <semaphore.h>

struct cm_fixture {
	struct dofi_progress progress;
	struct dofi_cm_listener *listener;
	struct sockaddr_storage address;	/* where it listens */
	struct dofi_cm_conn *passive, *active;	/* the last that were requested and connected */
	_Atomic int passive_err, active_err;	/* as ended() had it; 1 before */
	struct dofi_cm_msg msg;		/* the last message, */
	unsigned char data[DOFI_CM_MAX_DATA];	/* and its data */
	sem_t traced;
	/* what else an owner does; on the progress thread */
	void (*on_request)(struct dofi_cm_conn *cm);
	void (*on_message)(struct dofi_cm_conn *cm);
	void (*on_ended)(struct dofi_cm_conn *cm);
	/* before cm_listen() */
	uint32_t patience_ms;
	bool wildcard;
};

extern struct cm_fixture cm;

/* Faults of the system, for any socket. */
struct cm_faults {
	int accept, accept_times;	/* so many times accept4() fails with this errno */
	int epoll_add;			/* the next source is refused with this errno */
	int send;			/* the next send fails with this errno */
	size_t send_most;		/* sockets take no more bytes at a time */
	int small;			/* sockets let in have so small a send buffer */
	bool connect_to_self;
};

extern struct cm_faults cm_fault;
extern _Atomic unsigned cm_accepts;	/* calls of accept4() */
extern int cm_connecting, cm_accepted; /* the last sockets, while they are open */

/*
 * What owners were told, a letter each: "q" a request; a message, by its kind, "a" accept, "r"
 * reject, "f" refuse, "y" ready, "b" bell, "g" bye; "e" the end. In capitals what the connection was
 * told that was requested.
 */
const char *cm_trace(void);

void cm_init(void);
void cm_fini(void);

/* Waits until @n more letters are in the trace. */
void cm_await(unsigned n);
/* Runs it on the progress thread. */
void cm_do(void (*fn)(void *arg), void *arg);
/* When all that was begun before is done. */
void cm_settle(void);

/* These are the calls of their names, on the progress thread. */
int cm_listen(int family);
int cm_connect(const struct dofi_cm_msg *msg);
void cm_send(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg);
void cm_close(struct dofi_cm_conn *s);
void cm_unlisten(void);

/* A message with nothing but what it must have. */
struct dofi_cm_msg cm_msg(enum dofi_cm_kind kind);
/* Two connected CM connections; the trace has a "q". */
void cm_couple(void);

/* A socket of a stranger, connected to the listener. */
int cm_stranger(void);
/* The same, having sent a request that was taken. */
int cm_stranger_in(void);
void cm_put(int fd, const void *bytes, size_t n);
void cm_put_msg(int fd, enum dofi_cm_kind kind);
/* Waits for the end, which is 0, or a negative errno; all that comes before is read. */
int cm_end_of(int fd);

#endif
