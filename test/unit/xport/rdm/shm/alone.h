/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of files that dead processes leave in /dev/shm. Opening any IA removes such files, so a
 * concurrent test may do that.
 */
#ifndef UNIT_SHM_ALONE_H
#define UNIT_SHM_ALONE_H

#include "child.h"
#include "xport/rdm/shm/files.h"

#include <errno.h>
#include <unistd.h>

/* Whether the test has a /dev/shm of its own, which requires root. */
static bool alone;

/* A suite's .init */
static void be_alone(void)
{
	alone = enter_dev_shm(NULL);
}

/*
 * Whether a call about a dead owner's file returned @expected, or -ENOENT if another process may
 * have removed the file.
 */
static bool is_of_dead_owner(int ret, int expected)
{
	return ret == expected || (!alone && ret == -ENOENT);
}

/*
 * Removes the files of all dead owners. Returns what that came to for @name: 0 if it was removed,
 * -EBUSY if its owner lives, or an error of dofi_shm_file_open().
 */
static inline int reap_one(const char *name)
{
	const int before = dofi_shm_file_open(name);
	int after;

	dofi_shm_files_reap();
	if (before != -ESTALE && before < 0)
		return before;
	if (before >= 0)
		close(before);
	after = dofi_shm_file_open(name);
	if (after >= 0)
		close(after);
	return after == -ENOENT ? 0 : -EBUSY;
}

#endif
