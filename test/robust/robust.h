/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Helpers of the robustness tests, in addition to the two-process harness. */
#ifndef ROBUST_H
#define ROBUST_H

#include "../pair/pair.h"

/* Returns the number in the environment variable @name, or @by_default. */
unsigned env_count(const char *name, unsigned by_default);

/* Pseudo-random numbers, identical in every run. */
unsigned next_random(unsigned below);

/* Resources that a process must return. */
struct resources {
	unsigned fds;
	unsigned threads;
	size_t own;		/* anonymous resident memory in bytes */
	size_t shared;		/* resident memory of files, as libraries and shm */
};

struct resources resources_settled(void);
/*
 * The process holds as many threads as @before, no more descriptors, and at most @own and @shared
 * more bytes of memory.
 */
void expect_resources(const struct resources *before, size_t own, size_t shared);
/* Whether memory can be measured: checkers keep freed memory. */
bool memory_is_measurable(void);

/* The number of voluntary sleeps of this process's threads with the name @name. */
unsigned long thread_sleeps(const char *name);

/* Returns when thread @tid of this process sleeps. */
void wait_asleep(pid_t tid);

/* Opens a TCP connection, without DAT, to the port of @to's qualifier. */
int foreign_client(const struct listener *to);

/* Raises the limit on descriptors to @n, or skips the case. */
void need_fds(unsigned n);

#endif
