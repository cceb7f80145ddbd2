/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of files that dead processes leave in /dev/shm. Opening any IA removes such files, so a
 * concurrent test may do that.
 */
#ifndef UNIT_FAB_SHM_ALONE_H
#define UNIT_FAB_SHM_ALONE_H

#include "child.h"

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
static bool gave_of_the_dead(int ret, int expected)
{
	return ret == expected || (!alone && ret == -ENOENT);
}

#endif
