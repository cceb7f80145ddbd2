/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* This process's descriptors: 0 to 2 where the program closed them, the table, libfabric's. */

#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void dofi_std_fds_hold(void)
{
	const int err = errno;
	int fd, at;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		at = open("/", O_PATH | O_CLOEXEC);
		/* another thread has opened something at @fd */
		if (at > STDERR_FILENO)
			close(at);
	}
	errno = err;
}

void dofi_fd_table_grow(void)
{
	const int err = errno;
	rlim_t room = DOFI_FD_ROOM;
	struct rlimit limit;
	int fd = -1, last;
	struct stat st;

	/* the link count of the directory is 2 and the number of threads */
	if (!stat("/proc/self/task", &st) && st.st_nlink <= 3 &&
	    !getrlimit(RLIMIT_NOFILE, &limit)) {
		if (limit.rlim_cur < room)
			room = limit.rlim_cur;
		fd = open("/", O_PATH | O_CLOEXEC);
	}
	if (fd >= 0) {
		last = fcntl(fd, F_DUPFD_CLOEXEC, (int)room - 1);
		if (last >= 0)
			close(last);
		close(fd);
	}
	errno = err;
}

void dofi_fds_add(struct dofi_fds *fds, int fd)
{
	int *more;

	/* full at each power of two */
	if (!(fds->n & (fds->n - 1))) {
		more = realloc(fds->fd, (fds->n ? 2 * fds->n : 1) * sizeof(*more));
		if (!more)
			return;
		fds->fd = more;
	}
	fds->fd[fds->n++] = fd;
}

/* Sets in sets. The descriptor of an event queue of tcp has two levels. */
#define DEPTH 3

static void epoll_each(int set, int depth, int *spare,
		       void (*each)(void *arg, int fd, bool is_socket), void *arg)
{
	struct dofi_fds sets = { .fd = NULL };
	char path[64], line[256];
	bool is_socket;
	socklen_t len;
	size_t i;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	f = fopen(path, "re");
	if (!f && errno == EMFILE && spare && *spare >= 0) {
		close(*spare);
		*spare = -1;
		f = fopen(path, "re");
	}
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "tfd: %d", &fd) != 1)
			continue;
		len = 0;
		is_socket = !getsockname(fd, NULL, &len) || errno != ENOTSOCK;
		if (!is_socket)
			dofi_fds_add(&sets, fd);
		each(arg, fd, is_socket);
	}
	fclose(f);
	for (i = 0; i < sets.n && depth > 1; i++)
		epoll_each(sets.fd[i], depth - 1, spare, each, arg);
	free(sets.fd);
}

void dofi_epoll_each(int set, int *spare, void (*each)(void *arg, int fd, bool is_socket),
		     void *arg)
{
	epoll_each(set, DEPTH, spare, each, arg);
}

/* Whether @fd is a Unix socket without a name, as both ends of a pair are. */
static bool is_of_a_pair(int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(address);

	return !getsockname(fd, (struct sockaddr *)&address, &len) &&
	       address.sun_family == AF_UNIX && len == sizeof(address.sun_family);
}

/* How far apart the two descriptors of a pair are searched: each was the lowest free one. */
#define APART 32

/*
 * libfabric wakes its epoll sets through socket pairs; a set contains the end that is read. One
 * call made both ends, so their inodes mostly have successive numbers. If not, as each processor
 * has numbers of its own, the descriptors have.
 */
static int other_end(int fd)
{
	struct stat st, other;
	int i;

	if (fstat(fd, &st))
		return -1;
	for (i = fd + 1; i < fd + APART; i++)
		if (!fstat(i, &other) && other.st_dev == st.st_dev &&
		    other.st_ino == st.st_ino + 1 && is_of_a_pair(i))
			return i;
	return is_of_a_pair(fd + 1) ? fd + 1 : -1;
}

static void close_on_exec(void *arg, int fd, bool is_socket)
{
	int other;

	(void)arg;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	other = is_socket && is_of_a_pair(fd) ? other_end(fd) : -1;
	if (other >= 0)
		fcntl(other, F_SETFD, FD_CLOEXEC);
}

void dofi_epoll_close_on_exec(int set)
{
	const int err = errno;

	fcntl(set, F_SETFD, FD_CLOEXEC);
	dofi_epoll_each(set, NULL, close_on_exec, NULL);
	errno = err;
}
