/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that are connected each with each. */
#ifndef CREW_H
#define CREW_H

#include "robust.h"

#include <pthread.h>

#define CREW_MOST 1000

/* In memory that the processes share. */
struct crew {
	pthread_barrier_t barrier;
	unsigned n;
	struct listener listener[CREW_MOST];
};

/* One process. The members after number are crew_objects()'s. */
struct member {
	struct crew *crew;
	unsigned number;
	struct node n;
	DAT_EVD_HANDLE cr, conn, req, recv;
	DAT_EP_HANDLE ep[CREW_MOST];	/* by the number of the peer */
};

/* Allocates @size bytes of shared memory, which begin with a crew of @n processes. */
void *crew_make(unsigned n, size_t size);

/*
 * Runs @run in each process, with a member that has crew and number, and returns when all have
 * ended. Fails if one fails: the others end with this process.
 */
void crew_run(struct crew *crew, void (*run)(struct member *m));

/* Returns when all processes have called it. */
void crew_barrier(struct member *m);

/* Listens; needs an open node. The other processes may connect after a barrier. */
void crew_listen(struct member *m);
/* Creates the EVDs and the EPs. */
void crew_objects(struct member *m);
/* Connects to all others, and returns when all connections are established. */
void crew_connect(struct member *m);

/* Expects an event, within a time that grows with the crew. */
void crew_await(const struct member *m, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		DAT_EVENT *event);

#endif
