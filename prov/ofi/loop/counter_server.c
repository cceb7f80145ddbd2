/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Serves the counters of an IA to datinfo --counters. */

#include "loop/counter_server.h"

#include "base/env.h"
#include "base/layout.h"
#include "base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The most IAs of a process that have a server. */
#define MOST 256

/* Whether the process at the other end of @fd is this user's, root's or of the permitted group. */
static bool may_read(int fd)
{
	gid_t groups[1024];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	size_t i;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	if (peer.uid == geteuid() || !peer.uid)
		return true;
	if (dofi_settings.counters_group < 0)
		return false;
	if (peer.gid == (gid_t)dofi_settings.counters_group)
		return true;
	len = sizeof(groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == (gid_t)dofi_settings.counters_group)
			return true;
	return false;
}

/* Sends the text in a memory file. */
static void serve(struct dofi_source *source)
{
	struct dofi_counter_server *t =
		DOFI_CONTAINER_OF(source, struct dofi_counter_server, source);
	int to = accept4(t->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), fd;
	union {
		struct cmsghdr head;
		char buffer[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec byte = { .iov_base = (char[]){ 'c' }, .iov_len = 1 };
	const struct msghdr msg = {
		.msg_iov = &byte, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control.buffer),
	};
	FILE *file;

	if (to < 0)
		return;
	if (!may_read(to))
		goto close_to;
	fd = memfd_create("dat-ofi counters", MFD_CLOEXEC);
	if (fd < 0)
		goto close_to;
	file = fdopen(fd, "w");
	if (!file) {
		close(fd);
		goto close_to;
	}
	t->render(file, t->arg);
	fflush(file);
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	/* the client may have left: no answer is needed then */
	if (sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		dofi_log(DOFI_DEBUG, DOFI_CORE, "counters: %s", strerror(errno));
	fclose(file);
close_to:
	close(to);
}

void dofi_counter_server_init(struct dofi_counter_server *t)
{
	*t = (struct dofi_counter_server){ .fd = -1 };
}

/* Binds to the first free number: other IAs, also of the other API version, have the lower ones. */
static void open_on_thread(void *arg)
{
	struct dofi_counter_server *t = arg;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int i = 0, len, ret;

	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd < 0) {
		ret = -errno;
		goto log;
	}
	do {
		len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "dat-ofi/%d/%d",
			       (int)getpid(), i);
		ret = bind(t->fd, (struct sockaddr *)&at,
			   offsetof(struct sockaddr_un, sun_path) + 1 + len) ? -errno : 0;
	} while (ret == -EADDRINUSE && ++i < MOST);
	if (!ret)
		ret = listen(t->fd, 8) ? -errno :
		      dofi_source_add(t->progress, &t->source, t->fd, EPOLLIN);
	if (!ret)
		return;
	close(t->fd);
	t->fd = -1;
log:
	dofi_log(DOFI_INFO, DOFI_CORE, "the counters are not served: %s", strerror(-ret));
}

void dofi_counter_server_open(struct dofi_counter_server *t, struct dofi_progress *progress,
		    void (*render)(FILE *to, void *arg), void *arg)
{
	*t = (struct dofi_counter_server){
		.source.ready = serve, .progress = progress, .fd = -1, .render = render, .arg = arg,
	};
	if (dofi_settings.counters)
		dofi_progress_call(progress, open_on_thread, t);
}

void dofi_counter_server_close(struct dofi_counter_server *t)
{
	if (t->fd >= 0) {
		dofi_source_remove(t->progress, t->fd);
		close(t->fd);
	}
	dofi_counter_server_init(t);
}
