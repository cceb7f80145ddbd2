/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Progress of datperf, as a line on a terminal. */
#include "datperf.h"

#include <unistd.h>

#define SECOND_NS 1000000000ull

static struct {
	char text[96];
	bool shown;
	uint64_t run_ns, point_ns; /* begin of the run, and of this point */
	uint64_t due_ns;	   /* when to print the line */
} progress;

void perf_progress(unsigned int done, unsigned int all, const char *what, size_t size)
{
	char buf[32];

	snprintf(progress.text, sizeof(progress.text), "[%u/%u] %s %s", done, all, what,
		 perf_size_name(size, buf, sizeof(buf)));
	progress.point_ns = perf_now_ns();
	if (!progress.run_ns)
		progress.run_ns = progress.point_ns;
	progress.due_ns = progress.run_ns + SECOND_NS;
	perf_progress_tick();
}

void perf_progress_tick(void)
{
	uint64_t now = perf_now_ns();
	unsigned int seconds = (unsigned int)((now - progress.point_ns) / SECOND_NS);

	if (!progress.text[0] || now < progress.due_ns || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%s", progress.text);
	if (seconds)
		fprintf(stderr, ", %u s", seconds);
	fputs("\033[K", stderr);
	fflush(stderr);
	progress.shown = true;
	progress.due_ns = now + SECOND_NS;
}

void perf_progress_clear(void)
{
	if (progress.shown)
		fputs("\r\033[K", stderr);
	progress.shown = false;
}
