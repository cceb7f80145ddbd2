/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A forked process that exchanges messages with the test, and ends when the test ends it. */
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
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	pid_t pid;
	int fd;			/* socket to the other process */
};

static inline void say(int fd, const void *what, size_t len)
{
	cr_assert_eq(send(fd, what, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* For both ends: waits for the other end's message. */
static inline void hear(int fd, void *what, size_t len)
{
	cr_assert_eq(recv(fd, what, len, MSG_WAITALL), (ssize_t)len);
}

/* A child waits here for its end. The end of the test ends it too, and so does an alarm. */
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

/* Like child_start(), and waits until the child has sent a byte. */
static inline struct child child_start_ready(void (*run)(int fd))
{
	struct child c = child_start(run);
	char byte;

	hear(c.fd, &byte, 1);
	return c;
}

/* Returns the child's wait() status. */
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

/*
 * For a child: continues as process 1 of a new PID namespace, or exits with 77 if that is not
 * allowed.
 */
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
