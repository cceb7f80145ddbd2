/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: opening an endpoint replaces the program's handlers of SIGINT, SIGTERM, SIGBUS and SIGSEGV.
 *
 * A signal that the program ignores then removes the files of its endpoints, and so does a
 * signal that kills a forked child. New peers no longer find the endpoint.
 */
#include "defect.h"

static void open_one(char path[NAME_SIZE + 16])
{
	char name[NAME_SIZE];
	struct node n;

	rdm_open(&n, "shm", "a", FI_MSG);
	shm_name(&n, name);
	snprintf(path, NAME_SIZE + 16, "/dev/shm/%s", name + strlen("fi_shm://"));
	if (access(path, F_OK))
		end(FAILED, "%s: %s", path, strerror(errno));
}

static void ignore(void)
{
	char path[NAME_SIZE + 16];

	signal(SIGINT, SIG_IGN);
	open_one(path);
	raise(SIGINT);
	if (access(path, F_OK))
		end(SHOWS, "it removed the endpoint's file");
	end(ABSENT, "it does nothing");
}

static void nothing(void)
{
	for (;;)
		pause();
}

static void bear(void)
{
	char path[NAME_SIZE + 16];
	pid_t pid;

	open_one(path);
	pid = start(nothing, getpgrp());
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	if (access(path, F_OK))
		end(SHOWS, "its end removed its parent's file");
	end(ABSENT, "its end leaves its parent's file");
}

int main(void)
{
	int ignored, removed;

	printf("ignored signal: ");
	fflush(stdout);
	ignored = bounded(ignore, 10);
	printf("forked child: ");
	fflush(stdout);
	removed = bounded(bear, 10);
	return removed == SHOWS ? removed : ignored;
}
