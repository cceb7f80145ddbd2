/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fork waits until the progress threads rest.
 *
 * A program with one thread may fork and then call what it likes (fork(2)). It does
 * not know of our threads; if one of them held a lock at that moment, the child would
 * wait for it for ever.
 */
#ifndef DOFI_LOOP_FORK_H
#define DOFI_LOOP_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/* Part of a thread's owner; no other lock is held when one of these is waited for. */
struct dofi_fork_guard {
	pthread_mutex_t busy;		/* held by the thread whenever it does not rest */
	bool held;			/* by the fork; under the list's lock */
	TAILQ_ENTRY(dofi_fork_guard) link;
};

/* Before the thread starts, and after it ended. A forked child has no guard to remove. */
void dofi_fork_guard_add(struct dofi_fork_guard *guard);
void dofi_fork_guard_remove(struct dofi_fork_guard *guard);

/* The thread's own calls, around all that it does. */
void dofi_fork_guard_work(struct dofi_fork_guard *guard);
void dofi_fork_guard_rest(struct dofi_fork_guard *guard);

/*
 * A descriptor that a forked child shall not have: it would keep open, or locked, what must
 * end with this process.
 */
struct dofi_fork_fd {
	int fd;
	TAILQ_ENTRY(dofi_fork_fd) link;
};

/* After it was opened, and before it is closed. A forked child has none to remove. */
void dofi_fork_fd_add(struct dofi_fork_fd *fd);
void dofi_fork_fd_remove(struct dofi_fork_fd *fd);

#endif
