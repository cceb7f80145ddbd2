/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What distinguishes hosts and PID namespaces. */
#ifndef DOFI_HOST_HOST_H
#define DOFI_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers as Linux assigns them; random where they are unknown, so that they equal no other's. */
struct dofi_host {
	uint8_t boot[16];		/* boot_id of the kernel */
	uint64_t pid_space;		/* inode of the PID namespace */
	uint32_t pid;			/* in its namespace */
};

/* Reads those of the calling process. Returns 0 or a negative errno. Any thread. */
int dofi_host_read(struct dofi_host *host);

/*
 * Returns whether the two processes are in one PID namespace of one host: they can read each
 * other's memory by process number, if the system permits it.
 */
bool dofi_host_shares_pids(const struct dofi_host *a, const struct dofi_host *b);

#endif
