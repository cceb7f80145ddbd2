/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fork waits until the progress threads rest. */

#include "loop/fork.h"

#include <time.h>
#include <unistd.h>

/*
 * How long a fork waits: the fabric's connect() or an upcall of the program may block a progress
 * thread for longer.
 */
#define PATIENCE_S 1

/* Held during a fork, and by a thread that begins to work. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, dofi_fork_guard) guards = TAILQ_HEAD_INITIALIZER(guards);	/* under lock */

/* Held during a fork, and while the list of descriptors is changed. Taken after guards. */
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, dofi_fork_fd) fds = TAILQ_HEAD_INITIALIZER(fds);	/* under fds_lock */

static void before_fork(void)
{
	struct dofi_fork_guard *g;
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(g, &guards, link)
		g->held = !pthread_mutex_timedlock(&g->busy, &deadline);
	pthread_mutex_lock(&fds_lock);
}

static void release(void)
{
	struct dofi_fork_guard *g;

	pthread_mutex_unlock(&fds_lock);
	TAILQ_FOREACH(g, &guards, link)
		if (g->held)
			pthread_mutex_unlock(&g->busy);
	pthread_mutex_unlock(&lock);
}

/* The child has no progress threads, and closes the descriptors. */
static void in_child(void)
{
	struct dofi_fork_fd *f;

	TAILQ_FOREACH(f, &fds, link)
		close(f->fd);
	TAILQ_INIT(&fds);
	TAILQ_INIT(&guards);
	pthread_mutex_unlock(&fds_lock);
	pthread_mutex_unlock(&lock);
}

static void handlers_install(void)
{
	pthread_atfork(before_fork, release, in_child);
}

static void handlers_need(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, handlers_install);
}

void dofi_fork_guard_add(struct dofi_fork_guard *guard)
{
	pthread_mutexattr_t attr;

	handlers_need();
	/*
	 * a thread that forks in an upcall holds its own guard: locking that fails, and the fork
	 * goes on
	 */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&guard->busy, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&guards, guard, link);
	pthread_mutex_unlock(&lock);
}

void dofi_fork_guard_remove(struct dofi_fork_guard *guard)
{
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&guards, guard, link);
	pthread_mutex_unlock(&lock);
	pthread_mutex_destroy(&guard->busy);
}

void dofi_fork_guard_work(struct dofi_fork_guard *guard)
{
	/* while a fork waits for other threads, this one does not start to work */
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&guard->busy);
	pthread_mutex_unlock(&lock);
}

void dofi_fork_guard_rest(struct dofi_fork_guard *guard)
{
	pthread_mutex_unlock(&guard->busy);
}

void dofi_fork_fd_add(struct dofi_fork_fd *fd)
{
	handlers_need();
	pthread_mutex_lock(&fds_lock);
	TAILQ_INSERT_TAIL(&fds, fd, link);
	pthread_mutex_unlock(&fds_lock);
}

void dofi_fork_fd_remove(struct dofi_fork_fd *fd)
{
	pthread_mutex_lock(&fds_lock);
	TAILQ_REMOVE(&fds, fd, link);
	pthread_mutex_unlock(&fds_lock);
}
