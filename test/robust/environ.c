/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment of a program does not change when it opens its first IA and connects, not for
 * threads that read it, nor for one that changes a variable, nor for children.
 */

#include "robust.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 64
#define READERS 2
/* a variable that the program changes meanwhile */
#define OWN "DAT_TEST_OWN"

static atomic_bool stop;
static atomic_uint rounds;

/* Returns how many variables of libfabric there are. */
static int libfabric_count(void)
{
	char **e;
	int n = 0;

	for (e = environ; *e; e++)
		n += !strncmp(*e, "FI_", 3);
	return n;
}

static void *reads(void *arg)
{
	unsigned i;

	for (i = 0; !stop || !i; i++) {
		CHECK(!getenv("DAT_TEST_NO_SUCH_VARIABLE"), "a variable appears");
		CHECK(getenv(arg), "%s disappears", (char *)arg);
	}
	return NULL;
}

static void *changes(void *arg)
{
	char text[16], *found;
	unsigned i;

	for (i = 0; !stop || !i; i++) {
		snprintf(text, sizeof(text), "%u", i);
		CHECK(!setenv(OWN, text, 1), "setenv");
		if (i % 1000)
			continue;
		found = getenv(OWN);
		CHECK(found, "the variable disappears");
	}
	/* every change before has come through */
	CHECK(!strcmp(getenv(OWN), text), "%s is %s, not %s", OWN, getenv(OWN), text);
	return NULL;
}

/* Programs that are started meanwhile have no variable more. */
static void *starts(void *count)
{
	char command[80];
	int status;
	pid_t pid;

	snprintf(command, sizeof(command), "test `env | grep -c ^FI_` = %d", *(int *)count);
	do {
		pid = fork();
		if (!pid) {
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
			_exit(127);
		}
		SAME(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "\"%s\" ends with %#x", command,
		      status);
		rounds++;
	} while (!stop);
	return NULL;
}

static void exchange(struct pair *p)
{
	struct node n;

	node_begin(&n, 2 * SIZE);
	post_recv(n.ep, &n.m, SIZE, SIZE, 1);
	pair_link(p, &n, n.ep);
	fill(n.m.base, SIZE, 1);
	post_send(n.ep, &n.m, 0, SIZE, 2);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, SIZE);
	expect_dto(n.recv, 1, DAT_DTO_SUCCESS, SIZE);
	verify(n.m.base + SIZE, SIZE, 1);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void run(struct pair *p)
{
	static char first[64];
	pthread_t reader[READERS], changer, starter;
	char **e, *before[4096];
	unsigned n = 0, i;
	int count = libfabric_count();

	setenv(OWN, "", 1);
	CHECK(environ[0] && strcspn(environ[0], "=") < sizeof(first), "no variable");
	memcpy(first, environ[0], strcspn(environ[0], "="));
	for (e = environ; *e; e++) {
		CHECK(n < 4096, "too many variables");
		before[n++] = *e;
	}
	for (i = 0; i < READERS; i++)
		CHECK(!pthread_create(&reader[i], NULL, reads, first), "pthread_create");
	CHECK(!pthread_create(&changer, NULL, changes, NULL), "pthread_create");
	CHECK(!pthread_create(&starter, NULL, starts, &count), "pthread_create");
	while (!rounds)
		sched_yield();
	exchange(p);
	stop = true;
	for (i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	pthread_join(changer, NULL);
	pthread_join(starter, NULL);
	for (i = 0; i < n; i++)
		CHECK(environ[i] && (environ[i] == before[i] ||
				     !strncmp(environ[i], OWN "=", sizeof(OWN))),
		      "%s became %s", before[i], environ[i]);
	CHECK(!environ[n], "%s is new", environ[n]);
}

static const struct pair_case cases[] = {
	PAIR_CASE("opening_and_connecting_leave_the_environment_alone", run, run),
};

PAIR_MAIN(cases)
