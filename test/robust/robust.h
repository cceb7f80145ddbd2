/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the robustness tests need beyond the two-process harness. */
#ifndef ROBUST_H
#define ROBUST_H

#include "../pair/pair.h"

/* The number in the environment variable @name, or @by_default. */
unsigned env_count(const char *name, unsigned by_default);

/* Numbers that look random and are the same in every run. */
unsigned next_random(unsigned below);

/* What a process holds of what it must give back. */
struct holdings {
	unsigned fds;
	unsigned threads;
	size_t own;		/* bytes of resident memory that is anonymous, */
	size_t shared;		/* and of a file: libraries, and the fabric's shared memory */
};

struct holdings holdings_settled(void);
/* The same is held as @before, and of memory at most @own and @shared bytes more. */
void expect_holdings(const struct holdings *before, size_t own, size_t shared);
/* Whether memory may be measured: checkers keep what is freed. */
bool memory_is_telling(void);

/* How often the threads of this process that are called @name went to sleep by themselves. */
unsigned long thread_sleeps(const char *name);

/* Returns when thread @tid of this process sleeps. */
void wait_asleep(pid_t tid);

/* A TCP connection, by no means of DAT, to the port of @to's qualifier. */
int stranger(const struct place *to);

/* Raises the limit on descriptors to @n or skips the case. */
void need_fds(unsigned n);

#endif
