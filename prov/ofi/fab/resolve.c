/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The addresses of a host name, with a limit of time. */

#include "fab/params.h"

#include "base/clock.h"
#include "base/cond.h"
#include "loop/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct lookup {
	char *name;
	struct dofi_mutex lock;		/* the fields below */
	struct dofi_cond answered;
	struct addrinfo *list;
	bool done;
	bool abandoned;			/* the thread frees this structure */
};

static void lookup_free(struct lookup *l)
{
	if (l->list)
		freeaddrinfo(l->list);
	free(l->name);
	free(l);
}

static void *lookup_run(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list = NULL;
	struct lookup *l = arg;
	bool abandoned;

	if (getaddrinfo(l->name, NULL, &hints, &list))
		list = NULL;
	dofi_mutex_lock(&l->lock);
	l->list = list;
	l->done = true;
	abandoned = l->abandoned;
	dofi_cond_broadcast(&l->answered);
	dofi_mutex_unlock(&l->lock);
	if (abandoned)
		lookup_free(l);
	return NULL;
}

/* Returns false if the answer is late; then the thread frees @l. */
static bool lookup_wait(struct lookup *l, pthread_t thread, int64_t deadline)
{
	bool done;

	dofi_mutex_lock(&l->lock);
	while (!l->done && dofi_cond_wait(&l->answered, &l->lock, deadline) != -ETIMEDOUT)
		;
	done = l->done;
	l->abandoned = !done;
	if (!done)
		pthread_detach(thread);
	dofi_mutex_unlock(&l->lock);
	if (done)
		pthread_join(thread, NULL);
	return done;
}

int dofi_resolve(const char *name, int64_t limit_ns, struct addrinfo **list)
{
	const int64_t deadline = dofi_now() + limit_ns;
	struct lookup *l = calloc(1, sizeof(*l));
	pthread_t thread;
	int ret = -ENOMEM;

	if (!l)
		return ret;
	l->name = strdup(name);
	dofi_mutex_init(&l->lock);
	dofi_cond_init(&l->answered);
	if (l->name)
		ret = dofi_thread_start(&thread, lookup_run, l);
	if (!ret && !lookup_wait(l, thread, deadline))
		return -ETIMEDOUT;
	if (!ret) {
		*list = l->list;
		l->list = NULL;
		ret = *list ? 0 : -ENOENT;
	}
	lookup_free(l);
	return ret;
}
