/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with side connections, of which it is told what their owners are. */
#ifndef UNIT_XPORT_SIDE_H
#define UNIT_XPORT_SIDE_H

#include "xport/cm/conn.h"

#include <semaphore.h>

struct side_fixture {
	struct dofi_progress progress;
	struct dofi_side_listener *listener;
	struct sockaddr_storage address;	/* where it listens */
	struct dofi_side *passive, *active;	/* the last that were requested and connected */
	_Atomic int passive_err, active_err;	/* as ended() had it; 1 before */
	struct dofi_side_msg msg;		/* the last message, */
	unsigned char data[DOFI_SIDE_MAX_DATA];	/* and its data */
	sem_t traced;
	/* what else an owner does; on the progress thread */
	void (*on_request)(struct dofi_side *side);
	void (*on_message)(struct dofi_side *side);
	void (*on_ended)(struct dofi_side *side);
	/* before side_listen() */
	uint32_t patience_ms;
	bool wildcard;
};

extern struct side_fixture side;

/* Faults of the system, for any socket. */
struct side_faults {
	int accept, accept_times;	/* so many times accept4() fails with this errno */
	int epoll_add;			/* the next source is refused with this errno */
	int send;			/* the next send fails with this errno */
	size_t send_most;		/* sockets take no more bytes at a time */
	int small;			/* sockets let in have so small a send buffer */
	bool connect_to_self;
};

extern struct side_faults side_fault;
extern _Atomic unsigned side_accepts;	/* calls of accept4() */
extern int side_connecting, side_accepted; /* the last sockets, while they are open */

/*
 * What owners were told, a letter each: "q" a request; a message, by its kind, "a" accept, "r"
 * reject, "f" refuse, "y" ready, "b" bell, "g" bye; "e" the end. In capitals what the side was
 * told that was requested.
 */
const char *side_trace(void);

void side_init(void);
void side_fini(void);

/* Waits until @n more letters are in the trace. */
void side_await(unsigned n);
/* Runs it on the progress thread. */
void side_do(void (*fn)(void *arg), void *arg);
/* When all that was begun before is done. */
void side_settle(void);

/* These are the calls of their names, on the progress thread. */
int side_listen(int family);
int side_connect(const struct dofi_side_msg *msg);
void side_send(struct dofi_side *s, const struct dofi_side_msg *msg);
void side_close(struct dofi_side *s);
void side_unlisten(void);

/* A message with nothing but what it must have. */
struct dofi_side_msg side_msg(enum dofi_side_kind kind);
/* Two connected sides; the trace has a "q". */
void side_couple(void);

/* A socket of a stranger, connected to the listener. */
int side_stranger(void);
/* The same, having sent a request that was taken. */
int side_stranger_in(void);
void side_put(int fd, const void *bytes, size_t n);
void side_put_msg(int fd, enum dofi_side_kind kind);
/* Waits for the end, which is 0, or a negative errno; all that comes before is read. */
int side_end_of(int fd);

#endif
