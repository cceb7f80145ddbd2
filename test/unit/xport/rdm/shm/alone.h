/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests of what the dead leave in /dev/shm: whoever opens an IA removes it, as a test beside may. */
#ifndef UNIT_FAB_SHM_ALONE_H
#define UNIT_FAB_SHM_ALONE_H

#include "child.h"

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

#endif
