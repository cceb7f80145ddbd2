/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of a table that fits the terminal. */
#include "perf_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The cells that a line lacks: none, cells in [], cells in [] and {}. */
enum { ALL, FEWER, FEWEST };

static char line[1024];
static size_t used;
static int level;

void perf_cells(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line + used, sizeof(line) - used, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(line) - used)
		used += (size_t)n;
	line[used] = '\0';
}

/* Copies the line to @out, at least as long, without what @at leaves out. Returns its length. */
static size_t reduce(int at, char *out)
{
	int skipped = ALL;
	size_t i, n = 0;

	for (i = 0; i < used; i++) {
		if (line[i] == '[')
			skipped = FEWER;
		else if (line[i] == '{')
			skipped = FEWEST;
		else if (line[i] == ']' || line[i] == '}')
			skipped = ALL;
		else if (!skipped || at < skipped)
			out[n++] = line[i];
	}
	out[n] = '\0';
	return n;
}

bool perf_cells_fit(size_t width)
{
	char out[sizeof(line)];

	if (!width)
		width = sizeof(line);
	for (level = ALL; level < FEWEST && reduce(level, out) > width;)
		level++;
	return reduce(level, out) <= width;
}

void perf_cells_drop(void)
{
	used = 0;
}

void perf_cells_end(void)
{
	char out[sizeof(line)];

	reduce(level, out);
	puts(out);
	perf_cells_drop();
}
