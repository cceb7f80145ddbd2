/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A forked process that a test talks with, and that dies when the test says so. */
#ifndef UNIT_CHILD_H
#define UNIT_CHILD_H

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	pid_t pid;
	int fd;			/* to and from it */
};

static inline void say(int fd, const void *what, size_t len)
{
	cr_assert_eq(send(fd, what, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Both ends: waits for what the other says. */
static inline void hear(int fd, void *what, size_t len)
{
	cr_assert_eq(recv(fd, what, len, MSG_WAITALL), (ssize_t)len);
}

/* A child's wait for its end: that of the test ends it too, and time does. */
static inline void child_rest(int fd)
{
	char byte;

	alarm(60);
	while (recv(fd, &byte, 1, 0) > 0)
		;
	_exit(0);
}

static inline struct child child_start(void (*run)(int fd))
{
	struct child c;
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	fflush(NULL);
	c.fd = fd[0];
	c.pid = fork();
	if (!c.pid) {
		close(fd[0]);
		run(fd[1]);
		_exit(0);
	}
	cr_assert(c.pid > 0);
	close(fd[1]);
	return c;
}

/* What became of it, as wait() has it. */
static inline int child_end(struct child *c)
{
	int status = -1;

	close(c->fd);
	cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
	return status;
}

static inline void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	child_end(c);
}

/* Goes on with an empty /dev/shm of its own, mounted with @options; false where that is not allowed. */
static inline bool enter_dev_shm(const char *options)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/dev/shm", "tmpfs", 0, options);
}

/* The same in a child, which ends where that is not allowed. */
static inline void child_enter_dev_shm(void)
{
	if (!enter_dev_shm(NULL)) {
		fprintf(stderr, "skipped: a /dev/shm of our own: %s\n", strerror(errno));
		_exit(77);
	}
}

/* Goes on as process 1 of another PID namespace, where that is allowed; else ends. */
static inline void child_enter_pid_space(void)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID)) {
		fprintf(stderr, "skipped: PID namespaces: %s\n", strerror(errno));
		_exit(77);
	}
	pid = fork();
	if (!pid)
		return;
	waitpid(pid, &status, 0);
	_exit(0);
}

#endif
