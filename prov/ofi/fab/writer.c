/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers that write to this process's memory by themselves. */

#include "fab/writer.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A piece takes less than a millisecond, if the writer has a processor. */
int64_t dofi_writer_patience_ns = 5 * INT64_C(1000000000);

#define SPINS 1000

/*
 * Waits for a millisecond, or until the process ends. Returns whether it has ended. *@fd is -1 or a
 * descriptor of the process; without one (before Linux 5.3) only the limit ends the wait.
 */
static bool ends_soon(pid_t pid, int *fd)
{
	struct pollfd p = { .events = POLLIN };

	if (*fd < 0)
		*fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*fd < 0 && errno == ESRCH)
		return true;
	p.fd = *fd;
	return poll(&p, 1, 1) > 0;
}

/* Waits while the mark is @busy. */
static void await(struct dofi_writer *writer, uint64_t busy)
{
	const int64_t until = dofi_now() + dofi_writer_patience_ns;
	int fd = -1, spins = 0;

	while (atomic_load(&writer->mark->busy) == busy && writer->given_up != busy) {
		if (spins++ < SPINS)
			continue;
		if (ends_soon(writer->pid, &fd))
			break;
		if (dofi_now() < until)
			continue;
		writer->given_up = busy;
		dofi_log(DOFI_WARN, DOFI_MEM, "process %d is stopped while it writes to memory",
			 (int)writer->pid);
	}
	if (fd >= 0)
		close(fd);
}

void dofi_writer_await(struct dofi_writer *writer, uint32_t page)
{
	const uint64_t busy = atomic_load(&writer->mark->busy);

	if ((busy & ((1u << DOFI_MARK_PAGE_BITS) - 1)) == page)
		await(writer, busy);
}

void dofi_writer_end(struct dofi_writer *writer)
{
	uint64_t busy;

	atomic_store(&writer->mark->over, 1);
	busy = atomic_load(&writer->mark->busy);
	if (busy)
		await(writer, busy);
}
