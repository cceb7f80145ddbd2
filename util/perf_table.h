/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of a table that fits the terminal. */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Adds cells to the current line. In the format, [ and ] enclose cells that a narrow terminal
 * lacks; { and } enclose cells that it lacks, too, if the line is still too long.
 */
void perf_cells(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Selects the cells of all lines, so that the current line, a heading, has at most @width columns;
 * 0: all cells. Returns false if the line is still too long.
 */
bool perf_cells_fit(size_t width);
void perf_cells_drop(void);
/* Prints the current line. */
void perf_cells_end(void);

#endif
