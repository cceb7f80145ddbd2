/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A word in shared memory that shows other processes whether a thread lives.
 *
 * The word is part of a robust mutex that the thread holds. The kernel changes it when the thread
 * ends, by any cause, and at exec, before it reuses the number of the process or its memory. A
 * process that writes to another process's memory by number checks the word to learn, without a
 * system call, that the number still belongs to that process.
 */
#ifndef DOFI_BASE_ALIVE_H
#define DOFI_BASE_ALIVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOFI_ALIVE_WORDS 32

/* All zero at first, and in memory that other processes can only read. */
struct dofi_alive {
	/* the word's index, and its value while the thread lives */
	uint32_t at, value;
	union {
		pthread_mutex_t mutex;
		_Atomic uint32_t word[DOFI_ALIVE_WORDS]; /* one size for all C libraries */
	};
};

/*
 * The calling thread lives until it ends or calls dofi_alive_end(). Returns 0, or -ENOTSUP if this
 * system has no robust mutexes.
 */
int dofi_alive_begin(struct dofi_alive *alive);
void dofi_alive_end(struct dofi_alive *alive);

/* Any process. @alive may hold anything. */
static inline bool dofi_alive_is(const struct dofi_alive *alive)
{
	return alive->at < DOFI_ALIVE_WORDS && alive->value &&
	       atomic_load(&alive->word[alive->at]) == alive->value;
}

#endif
