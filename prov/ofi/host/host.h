/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes of one host: their identity, and the memory of another process. */
#ifndef DOFI_HOST_HOST_H
#define DOFI_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Numbers as Linux assigns them; random where they are unknown, so that they equal no other's. */
struct dofi_host {
	uint8_t boot[16];		/* boot_id of the kernel */
	uint64_t pid_space;		/* inode of the PID namespace */
	uint32_t pid;			/* in its namespace */
};

/* Reads the calling process's. Returns 0 or a negative errno. Any thread. */
int dofi_host_read(struct dofi_host *host);

/* Returns whether both are in one PID namespace of one host: PIDs are valid for each other. */
bool dofi_host_shares_pids(const struct dofi_host *a, const struct dofi_host *b);

/*
 * The memory of another process. A process that grants access keeps a word for the grant, of a
 * value that is never used again, and changes it when the grant ends. process_vm_readv() reads the
 * word after the data: its value proves that the grant stood, and that the PID is the peer's.
 */
#define DOFI_PEER_SEGMENTS 8

/* Eight bytes of the peer's memory, and their value while the grant is in force. */
struct dofi_peer_word {
	uint64_t addr;
	uint64_t value;
};

/*
 * Copies @m segments of process @pid into @n of ours, of equal total length, at most
 * DOFI_PEER_SEGMENTS each. @from may be anything. Returns 0; -ESTALE for another word; -EINVAL for
 * lengths or numbers; or an error of the kernel, after which @to may be written, within its bounds.
 */
int dofi_peer_pull(pid_t pid, const struct iovec *to, size_t n, const struct iovec *from, size_t m,
		   const struct dofi_peer_word *word);

/*
 * Copies @len bytes at @offset of the @n segments @from to address @to of process @pid, which is
 * known to be the peer. Writes the last word last: programs poll it. Returns 0, -EINVAL, or an
 * error of the kernel, after which some bytes may be written.
 */
int dofi_peer_push(pid_t pid, const struct iovec *from, size_t n, size_t offset, size_t len,
		   uint64_t to);

/* Checks whether dofi_peer_pull() works with this peer: like a call of no bytes. */
int dofi_peer_probe(pid_t pid, const struct dofi_peer_word *word);

#endif
