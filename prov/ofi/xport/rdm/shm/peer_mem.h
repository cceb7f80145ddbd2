/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the memory of another process, and proves in the same breath that it still may.
 *
 * A process that has granted others to read keeps a word that says so, of a value that never
 * comes again, and changes it when the grant ends. It is read behind the data, in the order in
 * which Linux carries out process_vm_readv(): if it still has its value then, all that was read is
 * what was granted. It also proves that the number of the process means whom one thinks.
 */
#ifndef DOFI_SHM_PEER_MEM_H
#define DOFI_SHM_PEER_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define DOFI_PEER_SEGMENTS 8

/* Eight bytes of the peer's memory, and what they are while its grant lasts. */
struct dofi_peer_word {
	uint64_t addr;
	uint64_t value;
};

/*
 * Copies from the @m segments of process @pid's memory into our @n segments, of the same length
 * together, each at most DOFI_PEER_SEGMENTS. @from may be anything that the peer sent. 0; -ESTALE:
 * the word had another value, or has it where memory is missing; -EINVAL: lengths or numbers that
 * cannot be; else what the kernel says, -EFAULT, -EPERM, -ESRCH. Unless 0, @to may have been written
 * to, never beyond its bounds.
 */
int dofi_peer_pull(pid_t pid, const struct iovec *to, size_t n, const struct iovec *from, size_t m,
		   const struct dofi_peer_word *word);

/* Whether dofi_peer_pull() may be used with this peer: as it, of no bytes. */
int dofi_peer_probe(pid_t pid, const struct dofi_peer_word *word);

#endif
