/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Closes descriptors of other processes, where close() may block. */

#include "loop/closer.h"

#include "base/log.h"
#include "base/mutex.h"
#include "loop/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

struct item {
	int fd;
	STAILQ_ENTRY(item) link;
};

static struct dofi_mutex lock;
static STAILQ_HEAD(, item) items DOFI_GUARDED_BY(lock) = STAILQ_HEAD_INITIALIZER(items);
/* the process that has a thread here; 0: none. A forked child does not have its parent's. */
static pid_t closing DOFI_GUARDED_BY(lock);

static struct item *item_next(void)
{
	struct item *item;

	dofi_mutex_lock(&lock);
	item = STAILQ_FIRST(&items);
	if (item)
		STAILQ_REMOVE_HEAD(&items, link);
	else
		closing = 0;
	dofi_mutex_unlock(&lock);
	return item;
}

static void *closer_run(void *arg)
{
	struct item *item;

	while ((item = item_next())) {
		close(item->fd);
		free(item);
	}
	return arg;
}

static void thread_start(void)
{
	pthread_t thread;
	int ret = dofi_thread_start(&thread, closer_run, NULL);

	if (!ret) {
		pthread_detach(thread);
		return;
	}
	dofi_log(DOFI_WARN, DOFI_CM, "a descriptor of another process stays open: %s",
		 strerror(-ret));
	dofi_mutex_lock(&lock);
	closing = 0;
	dofi_mutex_unlock(&lock);
}

/* Without memory @fd stays open. */
void dofi_close_apart(int fd)
{
	struct item *item = malloc(sizeof(*item));
	bool start;

	if (!item)
		return;
	item->fd = fd;
	dofi_mutex_lock(&lock);
	STAILQ_INSERT_TAIL(&items, item, link);
	start = closing != getpid();
	closing = getpid();
	dofi_mutex_unlock(&lock);
	if (start)
		thread_start();
}

bool dofi_socket_is_local(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX;
}

void dofi_close_socket(int fd)
{
	char byte;

	/* a forked child may also have the socket */
	shutdown(fd, SHUT_RDWR);
	if (dofi_socket_is_local(fd) && recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0)
		dofi_close_apart(fd);
	else
		close(fd);
}
