/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a function in a child process, with a time limit for each of its steps. */
#include "info_child.h"

#include "log_lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both processes see this memory; the caller's part follows. */
struct child {
	char step[64];
	bool done;
	int to_parent; /* one byte for each step; its end shows the end of the child */
};

void child_step(struct child *c, const char *name)
{
	snprintf(c->step, sizeof(c->step), "%s", name);
	if (write(c->to_parent, "", 1) < 0)
		_exit(EXIT_FAILURE);
}

static void child_main(struct child *c, bool (*body)(struct child *c, void *shared), int log)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log, STDERR_FILENO);
	log_raise();
	c->done = body(c, c + 1);
	_exit(EXIT_SUCCESS);
}

/* Returns whether the child ended by itself: no step took longer than the limit. */
static bool child_await(int from_child, unsigned step_seconds)
{
	struct pollfd p = { .fd = from_child, .events = POLLIN };
	char byte;
	ssize_t n;
	int ready;

	for (;;) {
		ready = poll(&p, 1, (int)step_seconds * 1000);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		n = read(from_child, &byte, 1);
		if (!n || (n < 0 && errno != EINTR))
			return true;
	}
}

static void result_set(struct child_result *r, const struct child *c, bool ended, int status,
		       int log)
{
	char text[LOG_TEXT_MAX];

	memset(r, 0, sizeof(*r));
	if (!ended)
		r->end = CHILD_HUNG;
	else if (WIFSIGNALED(status) || !WIFEXITED(status) || WEXITSTATUS(status))
		r->end = CHILD_DIED;
	else
		r->end = c->done ? CHILD_DONE : CHILD_FAILED;
	r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	snprintf(r->step, sizeof(r->step), "%s", c->step);
	log_read(log, text);
	log_reason(text, NULL, false, r->log, sizeof(r->log));
}

/* Writes why there is no child. In a container or a service a filter may forbid system calls. */
static int failed(struct child_result *result, const char *call)
{
	snprintf(result->log, sizeof(result->log), "no process can be started: %s: %s%s", call,
		 strerror(errno),
		 errno == EPERM || errno == ENOSYS ?
			 ", so a seccomp filter of the container or service forbids it" : "");
	return -1;
}

static int child_start(struct child *c, bool (*body)(struct child *c, void *shared), int log,
		       unsigned step_seconds, struct child_result *result)
{
	int fd[2], status = 0, err;
	bool ended;
	pid_t pid;

	if (pipe(fd))
		return failed(result, "pipe");
	c->to_parent = fd[1];
	fflush(stdout);
	pid = fork();
	err = errno;
	if (!pid)
		child_main(c, body, log);
	close(fd[1]);
	if (pid > 0) {
		ended = child_await(fd[0], step_seconds);
		if (!ended)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		result_set(result, c, ended, status, log);
	}
	close(fd[0]);
	errno = err;
	return pid > 0 ? 0 : failed(result, "fork");
}

int child_run(bool (*body)(struct child *c, void *shared), void *shared, size_t size,
	      unsigned step_seconds, struct child_result *result)
{
	struct child *c = mmap(NULL, sizeof(*c) + size, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int log = c == MAP_FAILED ? -1 : memfd_create("log", MFD_CLOEXEC), ret;

	if (log < 0) {
		ret = failed(result, c == MAP_FAILED ? "mmap" : "memfd_create");
	} else {
		memcpy(c + 1, shared, size);
		ret = child_start(c, body, log, step_seconds, result);
		memcpy(shared, c + 1, size);
	}
	if (log >= 0)
		close(log);
	if (c != MAP_FAILED)
		munmap(c, sizeof(*c) + size);
	return ret;
}
