/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures of results: collects the curves, and runs gnuplot on the program of perf_plot_script.c.
 */
#include "perf_plot.h"
#include "perf_host.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int plot_fail(char *err, size_t errlen, const char *what, int error)
{
	snprintf(err, errlen, "%s: %s", what, strerror(error));
	return -1;
}

/* --- curves ------------------------------------------------------------- */

/* A curve for each run, test and side fits the plot. */
static struct perf_curve *curve_of(struct perf_plot *plot, enum perf_test test, enum perf_side side)
{
	int i, run = plot->nruns - 1;

	for (i = 0; i < plot->ncurves; i++)
		if (plot->curve[i].run == run && plot->curve[i].test == test &&
		    plot->curve[i].side == side)
			return &plot->curve[i];
	plot->curve[i] = (struct perf_curve){ .run = run, .test = test, .side = side };
	plot->ncurves++;
	return &plot->curve[i];
}

static bool has_logarithm(double value)
{
	return value > 0 && isfinite(value);
}

void perf_plot_add(struct perf_plot *plot, enum perf_test test, enum perf_side side,
		   const struct perf_plot_point *point)
{
	struct perf_curve *curve;

	if (!has_logarithm(point->size) || !has_logarithm(point->lat) || !has_logarithm(point->bw))
		return;
	curve = curve_of(plot, test, side);
	if (curve->n < PERF_MAX_SIZES)
		curve->point[curve->n++] = *point;
}

/* --- gnuplot ------------------------------------------------------------ */

/* Starts gnuplot with @in as its input and @out as its output; closes both here. */
static int start(const char *argument, int in, int out, pid_t *pid, char *err, size_t errlen)
{
	char program[] = "gnuplot", text[16];
	char *argv[] = { program, text, NULL };
	posix_spawn_file_actions_t actions;
	int rc;

	snprintf(text, sizeof(text), "%s", argument);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	rc = posix_spawnp(pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(in);
	close(out);
	if (rc == ENOENT) {
		snprintf(err, errlen, "--plot needs the program gnuplot, which is not installed");
		return -1;
	}
	return rc ? plot_fail(err, errlen, "gnuplot", rc) : 0;
}

static int finish(pid_t pid, char *err, size_t errlen)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	snprintf(err, errlen, "gnuplot failed");
	return -1;
}

static int open_null(int flags)
{
	return open("/dev/null", flags | O_CLOEXEC);
}

int perf_plot_check(char *err, size_t errlen)
{
	pid_t pid;

	if (start("--version", open_null(O_RDONLY), open_null(O_WRONLY), &pid, err, errlen))
		return -1;
	return finish(pid, err, errlen);
}

/* Lets gnuplot draw to the descriptor @out, which is closed. */
static int draw(const struct perf_plot *plot, int out, char *err, size_t errlen)
{
	int fd[2];
	pid_t pid;
	FILE *to;

	if (pipe2(fd, O_CLOEXEC)) {
		close(out);
		return plot_fail(err, errlen, "pipe", errno);
	}
	if (start("-", fd[0], out, &pid, err, errlen)) {
		close(fd[1]);
		return -1;
	}
	to = fdopen(fd[1], "w");
	if (to) {
		perf_plot_script(plot, to);
		fclose(to);
	} else {
		close(fd[1]);
	}
	return finish(pid, err, errlen);
}

const char *perf_plot_terminal(const char *path)
{
	const char *suffix = strrchr(path, '.');

	if (suffix && !strcmp(suffix, ".svg"))
		return "svg font 'sans-serif,14'";
	/* a point of this terminal is larger than a pixel */
	if (suffix && !strcmp(suffix, ".png"))
		return "pngcairo font 'sans-serif,10'";
	return NULL;
}

int perf_plot_draw(struct perf_plot *plot, const char *path, char *err, size_t errlen)
{
	size_t len = strlen(path) + sizeof(".part");
	char *part = malloc(len);
	int out, rc = -1;

	if (!part)
		return plot_fail(err, errlen, path, ENOMEM);
	plot->terminal = perf_plot_terminal(path);
	snprintf(part, len, "%s.part", path);
	/* gnuplot may exit before it has read its whole input */
	signal(SIGPIPE, SIG_IGN);
	out = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0)
		plot_fail(err, errlen, part, errno);
	else if (draw(plot, out, err, errlen))
		unlink(part);
	else if (rename(part, path))
		plot_fail(err, errlen, path, errno);
	else
		rc = 0;
	free(part);
	return rc;
}

/* --- this run ----------------------------------------------------------- */

static void title(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  struct perf_plot *plot)
{
	struct perf_host host;

	perf_host_get(&host);
	snprintf(plot->title, sizeof(plot->title), "%s on %s%s, libfabric %s; %.64s, %.10s",
		 opts->side[PERF_SIDE_DAT] ? opts->device : "bare libfabric", fabric->provider,
		 opts->wait ? ", waiting" : "", fabric->libfabric, host.name, host.date);
}

int perf_plot_rows(const struct perf_opts *opts, const struct perf_fabric *fabric,
		   const struct perf_row *rows, char *err, size_t errlen)
{
	struct perf_plot *plot = calloc(1, sizeof(*plot));
	const struct perf_cell *cell;
	struct perf_plot_point point;
	int t, s, i, rc;

	if (!plot)
		return plot_fail(err, errlen, opts->plot, ENOMEM);
	title(opts, fabric, plot);
	plot->nruns = 1;
	plot->bidir = opts->bidir;
	for (t = 0; t < PERF_NTESTS; t++) {
		for (s = 0; s < PERF_NSIDES; s++) {
			for (i = 0; opts->test[t] && opts->side[s] && i < opts->nsizes; i++) {
				cell = &rows[i].cell[t][s];
				point = (struct perf_plot_point){
					(double)rows[i].size, cell->lat.median, cell->bw,
					cell->lat_scatters, cell->bw_scatters,
				};
				perf_plot_add(plot, t, s, &point);
			}
		}
	}
	rc = perf_plot_draw(plot, opts->plot, err, errlen);
	free(plot);
	return rc;
}
