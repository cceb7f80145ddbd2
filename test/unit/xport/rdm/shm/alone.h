/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of what the dead leave in /dev/shm: whoever opens an IA removes it, as a test beside may. */
#ifndef UNIT_SHM_ALONE_H
#define UNIT_SHM_ALONE_H

#include "child.h"
#include "xport/rdm/shm/files.h"

#include <errno.h>
#include <unistd.h>

/* Whether the test has a /dev/shm of its own, which only root can have. */
static bool alone;

/* A suite's .init */
static void be_alone(void)
{
	alone = enter_dev_shm(NULL);
}

/* Whether a call about a file of the dead gave @expected, or found none where others may remove it. */
static bool gave_of_the_dead(int ret, int expected)
{
	return ret == expected || (!alone && ret == -ENOENT);
}

/*
 * Removes the files of all dead owners. Returns what that came to for @name: 0 if it was removed, -EBUSY if its owner
 * lives, or an error of dofi_shm_file_open().
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
