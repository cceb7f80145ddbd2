/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fork waits until the progress threads rest: a program with one thread may call any function in
 * the child (fork(2)), which would wait forever for a lock that our thread held.
 */
#ifndef DOFI_LOOP_FORK_H
#define DOFI_LOOP_FORK_H

#include "base/mutex.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/* A pthread mutex: a wait for it has a deadline, and a thread that holds it finds that out. */
struct DOFI_LOCK dofi_fork_lock {
	pthread_mutex_t mutex;
};

/* One per progress thread. Take no other lock before it. */
struct dofi_fork_guard {
	struct dofi_fork_lock busy;	/* held by the thread whenever it does not rest */
	bool held;			/* by the forking thread; under the lock of the list */
	TAILQ_ENTRY(dofi_fork_guard) link;
};

/* Call before the thread starts and after it has ended, but not in a forked child. */
void dofi_fork_guard_add(struct dofi_fork_guard *guard);
void dofi_fork_guard_remove(struct dofi_fork_guard *guard);

/* The progress thread calls these around all that it does. */
void dofi_fork_guard_work(struct dofi_fork_guard *guard) DOFI_TAKES(guard->busy);
void dofi_fork_guard_idle(struct dofi_fork_guard *guard) DOFI_DROPS(guard->busy);

/* A descriptor that a forked child closes: it belongs to an object that ends with this process. */
struct dofi_fork_fd {
	int fd;
	TAILQ_ENTRY(dofi_fork_fd) link;
};

/* Call after the descriptor was opened and before it is closed, but not in a forked child. */
void dofi_fork_fd_add(struct dofi_fork_fd *fd);
void dofi_fork_fd_remove(struct dofi_fork_fd *fd);

#endif
