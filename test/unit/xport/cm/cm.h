/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with CM sockets, and a trace of their owners' notifications. */
#ifndef UNIT_XPORT_CM_H
#define UNIT_XPORT_CM_H

#include "xport/cm/listen.h"

#include <netinet/in.h>
#include <semaphore.h>

struct cm_fixture {
	struct dofi_progress progress;
	struct dofi_cm_listener *listener;
	struct sockaddr_storage address;	/* the listener's address */
	struct dofi_cm_conn *passive, *active;	/* the last accepted and connected ones */
	_Atomic int passive_err, active_err;	/* the error of ended(); 1 before that */
	struct dofi_cm_msg msg;		/* the last message */
	unsigned char data[DOFI_CM_MAX_DATA];	/* the data of msg */
	sem_t traced;
	/* further work of an owner; called on the progress thread */
	void (*on_request)(struct dofi_cm_conn *cm);
	void (*on_message)(struct dofi_cm_conn *cm);
	void (*on_ended)(struct dofi_cm_conn *cm);
	/* to be set before cm_listen() */
	uint32_t patience_ms;
	enum dofi_cm_kind first;
	bool wildcard;
};

extern struct cm_fixture cm;

/* Faults of the system, for any socket. */
struct cm_faults {
	int accept, accept_times;	/* accept4() fails accept_times times with errno accept */
	int epoll_add;			/* errno of the next failing EPOLL_CTL_ADD */
	int send;			/* errno of the next failing send */
	size_t send_most;		/* sockets take at most this many bytes at a time */
	int small;			/* the send buffer of accepted sockets */
	bool connect_to_self;
};

extern struct cm_faults cm_fault;
extern _Atomic unsigned cm_accepts;	/* calls of accept4() */
extern _Atomic unsigned cm_full_sends;	/* sends that the socket took in part, or not at all */
extern int cm_connecting, cm_accepted; /* the last sockets, while they are open */

/*
 * Notifications of owners, a letter each: "q" is a request; messages by kind are "a" accept, "r"
 * reject, "f" refuse, "y" ready, "g" BYE, "d" DATAGRAM_ACCEPT; "e" is the end. Capitals
 * are notifications of the passive CM socket.
 */
const char *cm_trace(void);

void cm_init(void);
void cm_fini(void);

/* Waits until @n more letters are in the trace. */
void cm_await(unsigned n);
/* Runs @fn on the progress thread. */
void cm_do(void (*fn)(void *arg), void *arg);
/* Returns when everything that was started before is done. */
void cm_settle(void);

/* Call the functions of the same name with prefix dofi_ on the progress thread. */
int cm_listen(int family);
int cm_connect(const struct dofi_cm_msg *msg);
void cm_send(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg);
void cm_close(struct dofi_cm_conn *s);
void cm_unlisten(void);

/* A message with its mandatory fields only. */
struct dofi_cm_msg cm_msg(enum dofi_cm_kind kind);
/* Connects two CM sockets. The trace has a "q". */
void cm_couple(void);

/* The socket of an embryo, connected to the listener. */
int cm_embryo(void);
/* The socket of an embryo with a request that was accepted. */
int cm_embryo_in(void);
void cm_put(int fd, const void *bytes, size_t n);
void cm_put_msg(int fd, enum dofi_cm_kind kind);
/* Reads until the end of the connection. Returns 0, or a negative errno. */
int cm_end_of(int fd);

#endif
