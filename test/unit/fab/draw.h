/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the system draws at random, as a test wants it. */
#ifndef UNIT_FAB_DRAW_H
#define UNIT_FAB_DRAW_H

#include <stdbool.h>
#include <stdint.h>

extern struct draw {
	int interruptions;		/* so many calls are interrupted */
	bool none;			/* all calls fail */
	int zeros;			/* so many draw 0, */
	int fixed;			/* and after those so many draw this: */
	uint32_t number;
} draw;

#endif
