/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tells whether two processes may share memory. */
#ifndef DOFI_SHM_HOST_H
#define DOFI_SHM_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers as Linux gives them; where it tells nothing, random ones that nobody else has. */
struct dofi_host {
	uint8_t boot[16];		/* of the kernel that runs */
	uint64_t shm_device, shm_inode;	/* of /dev/shm */
	uint64_t pid_space;		/* inode of the PID namespace */
	uint32_t uid;
	uint32_t pid;			/* in its namespace */
};

/* The calling process's. 0 or a negative errno. Any thread. */
int dofi_host_read(struct dofi_host *host);

/*
 * Whether the two can share memory. A process's number has to mean the same to both: by it they
 * read each other's memory.
 */
bool dofi_host_shares_memory(const struct dofi_host *a, const struct dofi_host *b);

/* Whether a process's number means the same to both. */
bool dofi_host_shares_pids(const struct dofi_host *a, const struct dofi_host *b);

#endif
