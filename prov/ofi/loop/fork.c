/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fork waits until the progress threads rest. */

#include "loop/fork.h"

#include <time.h>
#include <unistd.h>

/* A fork waits no longer: connect() or an upcall of the program may block a progress thread. */
#define PATIENCE_S 1

static struct dofi_fork_lock fds_lock;

/* Held during a fork, and by a thread that begins to work. */
static struct dofi_fork_lock lock DOFI_TAKEN_BEFORE(fds_lock) = { PTHREAD_MUTEX_INITIALIZER };
static TAILQ_HEAD(, dofi_fork_guard) guards DOFI_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(guards);

/* Held during a fork, and while the list of descriptors is changed. */
static struct dofi_fork_lock fds_lock = { PTHREAD_MUTEX_INITIALIZER };
static TAILQ_HEAD(, dofi_fork_fd) fds DOFI_GUARDED_BY(fds_lock) = TAILQ_HEAD_INITIALIZER(fds);

static void take(struct dofi_fork_lock *l) DOFI_TAKES(*l) DOFI_UNCHECKED_LOCKS
{
	pthread_mutex_lock(&l->mutex);
}

static void drop(struct dofi_fork_lock *l) DOFI_DROPS(*l) DOFI_UNCHECKED_LOCKS
{
	pthread_mutex_unlock(&l->mutex);
}

/* DOFI_UNCHECKED_LOCKS, as for release(): how many guards are taken depends on the list. */
static void before_fork(void) DOFI_TAKES(lock, fds_lock) DOFI_UNCHECKED_LOCKS
{
	struct dofi_fork_guard *g;
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_S;
	take(&lock);
	TAILQ_FOREACH(g, &guards, link)
		g->held = !pthread_mutex_timedlock(&g->busy.mutex, &deadline);
	take(&fds_lock);
}

static void release(void) DOFI_DROPS(lock, fds_lock) DOFI_UNCHECKED_LOCKS
{
	struct dofi_fork_guard *g;

	drop(&fds_lock);
	TAILQ_FOREACH(g, &guards, link)
		if (g->held)
			drop(&g->busy);
	drop(&lock);
}

/* The child has no progress threads, and closes the descriptors. */
static void in_child(void) DOFI_DROPS(lock, fds_lock)
{
	struct dofi_fork_fd *f;

	TAILQ_FOREACH(f, &fds, link)
		close(f->fd);
	TAILQ_INIT(&fds);
	TAILQ_INIT(&guards);
	drop(&fds_lock);
	drop(&lock);
}

static void handlers_install(void)
{
	pthread_atfork(before_fork, release, in_child);
}

static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;

void dofi_fork_guard_add(struct dofi_fork_guard *guard)
{
	pthread_mutexattr_t attr;

	pthread_once(&handlers_once, handlers_install);
	/* a thread that forks in an upcall holds its own guard: locking that fails */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&guard->busy.mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	take(&lock);
	TAILQ_INSERT_TAIL(&guards, guard, link);
	drop(&lock);
}

void dofi_fork_guard_remove(struct dofi_fork_guard *guard)
{
	take(&lock);
	TAILQ_REMOVE(&guards, guard, link);
	drop(&lock);
	pthread_mutex_destroy(&guard->busy.mutex);
}

void dofi_fork_guard_work(struct dofi_fork_guard *guard)
{
	/* while a fork waits for other threads, this one does not start to work */
	take(&lock);
	take(&guard->busy);
	drop(&lock);
}

void dofi_fork_guard_idle(struct dofi_fork_guard *guard)
{
	drop(&guard->busy);
}

void dofi_fork_fd_add(struct dofi_fork_fd *fd)
{
	pthread_once(&handlers_once, handlers_install);
	take(&fds_lock);
	TAILQ_INSERT_TAIL(&fds, fd, link);
	drop(&fds_lock);
}

void dofi_fork_fd_remove(struct dofi_fork_fd *fd)
{
	take(&fds_lock);
	TAILQ_REMOVE(&fds, fd, link);
	drop(&fds_lock);
}
