/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pictures of results that datperf --json has printed. */
#include "perf_plot.h"

#include <json-c/json.h>

#include <stdlib.h>
#include <string.h>

/* Value of member @name as text; @otherwise if there is none. */
static const char *text_of(struct json_object *object, const char *name, const char *otherwise)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) || !value)
		return otherwise;
	return json_object_get_string(value);
}

/* Value of a number; 0 if there is none. */
static double number_of(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? json_object_get_double(value) : 0;
}

static int test_of(struct json_object *point)
{
	const char *name = text_of(point, "test", "");
	int t;

	for (t = 0; t < PERF_NTESTS; t++)
		if (!strcmp(name, perf_test_name(t)))
			return t;
	return -1;
}

/* False if it is missing. */
static bool flag_of(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) && json_object_get_boolean(value);
}

static void add_point(struct perf_plot *plot, struct json_object *result)
{
	int t = test_of(result), s;
	struct json_object *cell;
	struct perf_plot_point point;

	for (s = 0; t >= 0 && s < PERF_NSIDES; s++) {
		if (!json_object_object_get_ex(result, perf_side_name(s), &cell))
			continue;
		point = (struct perf_plot_point){
			number_of(result, "size"), number_of(cell, "lat_us"),
			number_of(cell, "bw_MBps"), flag_of(cell, "lat_scatters"),
			flag_of(cell, "bw_scatters"),
		};
		perf_plot_add(plot, t, s, &point);
	}
}

/* The run's name: the measurement, and the file instead if two runs are alike. */
static void name_run(struct perf_plot *plot, struct json_object *run, const char *path)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char *name = plot->run[plot->nruns - 1];
	int i;

	snprintf(name, sizeof(plot->run[0]), "%.24s on %.24s%s", text_of(run, "device", "bare"),
		 text_of(run, "provider", "?"),
		 strcmp(text_of(run, "mode", ""), "wait") ? "" : ", waiting");
	for (i = 0; i < plot->nruns - 1; i++)
		if (!strcmp(plot->run[i], name))
			snprintf(name, sizeof(plot->run[0]), "%.96s", file);
}

static int add_run(struct perf_plot *plot, struct json_object *run, const char *path)
{
	struct json_object *results;
	int before = plot->ncurves;
	size_t i;

	if (!json_object_object_get_ex(run, "results", &results) ||
	    !json_object_is_type(results, json_type_array))
		return -1;
	plot->nruns++;
	name_run(plot, run, path);
	plot->bidir |= flag_of(run, "bidir");
	for (i = 0; i < json_object_array_length(results); i++)
		add_point(plot, json_object_array_get_idx(results, i));
	return plot->ncurves == before ? -1 : 0;
}

/*
 * Appends @before, and the first @most bytes of member @name of each run, to the title; equal texts
 * once.
 */
static void title_add(struct perf_plot *plot, const char *before, struct json_object *const *runs,
		      int n, const char *name, int most)
{
	const size_t size = sizeof(plot->title);
	const char *text;
	size_t len;
	int i, k;

	for (i = 0; i < n; i++) {
		text = text_of(runs[i], name, "?");
		for (k = 0; k < i && strncmp(text, text_of(runs[k], name, "?"), most); k++)
			;
		len = strlen(plot->title);
		if (k == i)
			snprintf(plot->title + len, size - len, "%s%.*s", i ? ", " : before, most,
				 text);
	}
}

/* The title has the versions, hosts and days of the runs, and the name of a single run. */
static void title(struct perf_plot *plot, struct json_object *const *runs)
{
	const int n = plot->nruns;

	if (n == 1)
		snprintf(plot->title, sizeof(plot->title), "%.64s", plot->run[0]);
	else
		snprintf(plot->title, sizeof(plot->title), "%d runs", n);
	title_add(plot, ", libfabric ", runs, n, "libfabric", 16);
	title_add(plot, "; ", runs, n, "host", 64);
	title_add(plot, ", ", runs, n, "date", 10);
}

/* Stores the file's document, which the caller frees, in @run. */
static int add_file(struct perf_plot *plot, const char *path, struct json_object **run, char *err,
		    size_t errlen)
{
	*run = json_object_from_file(path);
	if (!*run) {
		snprintf(err, errlen, "%s: %s", path, json_util_get_last_err());
		err[strcspn(err, "\n")] = '\0';
		return -1;
	}
	if (!add_run(plot, *run, path))
		return 0;
	snprintf(err, errlen, "%s: no results of datperf --json", path);
	return -1;
}

int perf_plot_files(const struct perf_opts *opts, char *err, size_t errlen)
{
	struct json_object *run[PERF_FILES_MAX] = { NULL };
	struct perf_plot *plot = calloc(1, sizeof(*plot));
	int i, rc = 0;

	if (!plot) {
		snprintf(err, errlen, "out of memory");
		return -1;
	}
	for (i = 0; !rc && i < opts->nfiles; i++)
		rc = add_file(plot, opts->files[i], &run[i], err, errlen);
	if (!rc) {
		title(plot, run);
		rc = perf_plot_draw(plot, opts->plot, err, errlen);
	}
	for (i = 0; i < opts->nfiles; i++)
		json_object_put(run[i]);
	free(plot);
	return rc;
}
