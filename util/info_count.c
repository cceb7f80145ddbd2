/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests the counters of a process's IAs from the provider's loop/counter_server.c. The reply is
 * a descriptor of a file in memory.
 */
#include "info_count.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A stopped process does not answer. */
#define REPLY_TIMEOUT_SECONDS 5

/* Whether the socket belongs to @pid: any process could have bound its name. */
static bool is_socket_of(int fd, pid_t pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.pid == pid;
}

static int connect_to(const char *name, pid_t pid)
{
	const struct timeval timeout = { .tv_sec = REPLY_TIMEOUT_SECONDS };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd;

	if (len >= sizeof(at.sun_path))
		return -1;
	memcpy(at.sun_path + 1, name, len);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + 1 + len) ||
	    !is_socket_of(fd, pid)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Receives a descriptor over @from; -1 if none arrives. */
static int recv_fd(int from)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control.space),
	};
	int fd;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg) ||
	    control.head.cmsg_level != SOL_SOCKET || control.head.cmsg_type != SCM_RIGHTS ||
	    control.head.cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/* The counters of an EP are less than a KiB of text. */
#define MOST_BYTES (64 << 20)

/*
 * Whether @fd is a file in memory, as the provider passes. The process may be another user's, and
 * pass a device or a pipe, which has no end.
 */
static bool is_reply(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && !fstat(fd, &st) && st.st_size <= MOST_BYTES;
}

/* Other characters may be commands for a terminal. */
static char printable(char c)
{
	return c == '\n' || (c >= ' ' && c <= '~') ? c : '?';
}

/* The file may grow meanwhile. */
static void copy_file(FILE *out, int fd)
{
	char buf[4096];
	off_t at = 0;
	ssize_t n, i;

	while (at < MOST_BYTES && (n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (i = 0; i < n; i++)
			putc(printable(buf[i]), out);
		at += n;
	}
}

static bool show_one(FILE *out, const char *name, pid_t pid)
{
	int from = connect_to(name, pid), fd;
	bool valid;

	if (from < 0) {
		fprintf(stderr, "datinfo: %s: %s\n", name,
			errno ? strerror(errno) : "owned by another process");
		return false;
	}
	fd = recv_fd(from);
	close(from);
	if (fd < 0) {
		fprintf(stderr, "datinfo: %s does not answer: it may belong to another user\n",
			name);
		return false;
	}
	valid = is_reply(fd);
	if (valid)
		copy_file(out, fd);
	else
		fprintf(stderr,
			"datinfo: %s: the answer is not a file in memory of at most %d MiB\n",
			name, MOST_BYTES >> 20);
	close(fd);
	return valid;
}

#define FLAG_ACCEPTCON 0x10000

/* Returns the name in a line of /proc/net/unix if it has @prefix and listens, else NULL. */
static const char *name_in(char *line, const char *prefix)
{
	char *name = strchr(line, '@');
	unsigned long flags;

	if (!name || strncmp(name + 1, prefix, strlen(prefix)) ||
	    sscanf(line, "%*s %*s %*s %lx", &flags) != 1 || !(flags & FLAG_ACCEPTCON))
		return NULL;
	name[strcspn(name, "\n")] = 0;
	return name + 1;
}

int count_show(FILE *out, pid_t pid)
{
	FILE *f = fopen("/proc/net/unix", "r");
	char line[512], prefix[32];
	const char *name;
	int shown = 0;

	if (!f) {
		fprintf(stderr, "datinfo: /proc/net/unix: %s\n", strerror(errno));
		return 0;
	}
	snprintf(prefix, sizeof(prefix), "dat-ofi/%d/", (int)pid);
	while (fgets(line, sizeof(line), f)) {
		name = name_in(line, prefix);
		errno = 0;
		if (name)
			shown += show_one(out, name, pid);
	}
	fclose(f);
	return shown;
}
