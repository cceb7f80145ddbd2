/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that two processes share: a memfd without a name and with a sealed size. A peer could
 * truncate another file, which is SIGBUS here, and hugetlbfs may run out of pages at an access:
 * only sealed memory of ordinary pages is mapped.
 */
#ifndef DOFI_BASE_SHM_H
#define DOFI_BASE_SHM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Creates and maps @size bytes, all zero. Returns a descriptor for the peer, or an error. */
int dofi_sealed_make(size_t size, void **at);

/* Creates and maps memory that no other process can write. -ENOTSUP before Linux 5.1. */
int dofi_sealed_make_own(size_t size, void **at);

/*
 * Maps the memory of @fd, which may be any descriptor of a hostile process, and stays open. Returns
 * 0, -EPROTO if it is not sealed memory of @size bytes, or another negative errno.
 */
int dofi_sealed_map(int fd, size_t size, void **at);
/* Maps the memory of @fd only for reading. Returns 0, -EPROTO, or another negative errno. */
int dofi_sealed_map_to_read(int fd, size_t size, void **at);

void dofi_sealed_unmap(void *at, size_t size);

/* Which shared memory is mapped at an address of this process. */

/* A position in shared memory. Equal in all processes that map it. */
struct dofi_shared {
	uint32_t major, minor;	/* the device of the file, or of anonymous shared memory */
	uint64_t inode;
	uint64_t offset;
};

/*
 * Finds the mapping at @addr. Returns 0; -EFAULT if a part of the @len bytes is not mapped;
 * -EPERM if a part is private to this process; or another negative errno if /proc cannot be read.
 */
int dofi_shared_find(const void *addr, size_t len, struct dofi_shared *shared);

/*
 * A word in shared memory that shows other processes whether a thread lives: part of a robust mutex
 * that the thread holds. The kernel changes it when the thread ends, by any cause, and at exec,
 * before it reuses PID or memory. So a writer by PID needs no system call to verify the PID.
 */

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

/* The calling thread lives until dofi_alive_end(). -ENOTSUP: a system without robust mutexes. */
int dofi_alive_begin(struct dofi_alive *alive);
void dofi_alive_end(struct dofi_alive *alive);

/* Any process. @alive may hold anything. */
static inline bool dofi_alive_is(const struct dofi_alive *alive)
{
	return alive->at < DOFI_ALIVE_WORDS && alive->value &&
	       atomic_load(&alive->word[alive->at]) == alive->value;
}

#endif
