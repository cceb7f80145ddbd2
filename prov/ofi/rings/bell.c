/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bell: wakes the progress thread of a process that shares memory with this one. */

#include "rings/bell.h"

#include "base/layout.h"
#include "fab/grant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A name of the abstract namespace begins with a zero byte. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
	int len;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "dat-ofi-bell-%s",
		       name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* The byte has woken the thread. */
static void drain(struct dofi_source *source)
{
	struct dofi_bell *bell = DOFI_CONTAINER_OF(source, struct dofi_bell, source);
	char bytes[64];

	while (recv(bell->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (bell->rung)
		bell->rung(bell);
}

int dofi_bell_open(struct dofi_bell *bell, struct dofi_progress *progress)
{
	struct sockaddr_un address;
	socklen_t len;
	int ret;

	snprintf(bell->name, sizeof(bell->name), "%08x%08x", dofi_random(), dofi_random());
	len = address_of(bell->name, &address);
	bell->source.ready = drain;
	bell->progress = progress;
	bell->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bell->fd < 0)
		return -errno;
	ret = bind(bell->fd, (struct sockaddr *)&address, len) ? -errno : 0;
	if (!ret)
		ret = dofi_source_add(progress, &bell->source, bell->fd, EPOLLIN);
	if (ret) {
		close(bell->fd);
		bell->fd = -1;
	}
	return ret;
}

void dofi_bell_close(struct dofi_bell *bell)
{
	if (bell->fd < 0)
		return;
	dofi_source_remove(bell->progress, bell->fd);
	close(bell->fd);
	bell->fd = -1;
}

/* A full socket has bytes that wake its owner. */
bool dofi_bell_ring(const struct dofi_bell *bell, const char *name)
{
	struct sockaddr_un address;
	const socklen_t len = address_of(name, &address);
	const int err = errno;	/* of the program, which may be in a post */
	const bool exists = sendto(bell->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
				   (struct sockaddr *)&address, len) == 1 ||
			    errno != ECONNREFUSED;

	errno = err;
	return exists;
}

bool dofi_bell_exists(const char *name)
{
	struct sockaddr_un address;
	const socklen_t len = address_of(name, &address);
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool exists = true;

	if (fd < 0)
		return true;	/* unknown */
	exists = !connect(fd, (struct sockaddr *)&address, len) || errno != ECONNREFUSED;
	close(fd);
	return exists;
}
