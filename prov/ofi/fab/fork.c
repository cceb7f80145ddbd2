/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fork waits until the progress threads rest. */

#include "fab/fork.h"

#include <time.h>

/* A fabric's connect() or a consumer's agent may block a thread; a fork must not wait as long. */
#define PATIENCE_S 1

/* Held during a fork, and by a thread that begins to work. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, dofi_fork_guard) guards = TAILQ_HEAD_INITIALIZER(guards);	/* under lock */

static void before_fork(void)
{
	struct dofi_fork_guard *g;
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(g, &guards, link)
		g->held = !pthread_mutex_timedlock(&g->busy, &deadline);
}

static void release(void)
{
	struct dofi_fork_guard *g;

	TAILQ_FOREACH(g, &guards, link)
		if (g->held)
			pthread_mutex_unlock(&g->busy);
	pthread_mutex_unlock(&lock);
}

/* The child has none of the threads. */
static void in_child(void)
{
	TAILQ_INIT(&guards);
	pthread_mutex_unlock(&lock);
}

static void handlers_install(void)
{
	pthread_atfork(before_fork, release, in_child);
}

void dofi_fork_guard_add(struct dofi_fork_guard *guard)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_mutexattr_t attr;

	pthread_once(&once, handlers_install);
	/* a thread that forks in a consumer's upcall finds its own guard busy and goes on */
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
	/* a fork that waits for other threads keeps this one at rest */
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&guard->busy);
	pthread_mutex_unlock(&lock);
}

void dofi_fork_guard_rest(struct dofi_fork_guard *guard)
{
	pthread_mutex_unlock(&guard->busy);
}
