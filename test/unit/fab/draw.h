/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers of the system, as a test sets them. */
#ifndef UNIT_FAB_DRAW_H
#define UNIT_FAB_DRAW_H

#include <stdbool.h>
#include <stdint.h>

extern struct draw {
	int interruptions;		/* this many calls are interrupted */
	bool none;			/* all calls fail */
	int zeros;			/* this many calls return 0 */
	int fixed;			/* after the zeros, this many return number */
	uint32_t number;
} draw;

#endif
