/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of a table that fits the terminal. */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Adds cells to the current line. In the format, [ and ] enclose what a terminal that is too narrow
 * leaves out, { and } what it leaves out if the line is still too long.
 */
void perf_cells(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Decides by the current line, a heading, what all lines leave out to have at most @width columns;
 * 0: nothing. Returns false if that is not enough.
 */
bool perf_cells_fit(size_t width);
void perf_cells_drop(void);
/* Prints the current line. */
void perf_cells_end(void);

#endif
