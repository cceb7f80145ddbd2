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

static void add_point(struct perf_plot *plot, struct json_object *point)
{
	int t = test_of(point), s;
	struct json_object *cell;

	for (s = 0; t >= 0 && s < PERF_NSIDES; s++)
		if (json_object_object_get_ex(point, perf_side_name(s), &cell))
			perf_plot_add(plot, t, s, number_of(point, "size"),
				      number_of(cell, "lat_us"), number_of(cell, "bw_MBps"));
}

/* The run's name: what is measured, and the file instead if two runs are alike. */
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
	struct json_object *results, *bidir;
	int before = plot->ncurves;
	size_t i;

	if (!json_object_object_get_ex(run, "results", &results) ||
	    !json_object_is_type(results, json_type_array))
		return -1;
	plot->nruns++;
	name_run(plot, run, path);
	if (json_object_object_get_ex(run, "bidir", &bidir) && json_object_get_boolean(bidir))
		plot->bidir = true;
	for (i = 0; i < json_object_array_length(results); i++)
		add_point(plot, json_object_array_get_idx(results, i));
	return plot->ncurves == before ? -1 : 0;
}

/* The title has what all runs have in common, or the first run of one. */
static void title(struct perf_plot *plot, struct json_object *run)
{
	if (plot->nruns == 1)
		snprintf(plot->title, sizeof(plot->title), "%s, libfabric %.16s; %.64s, %.10s",
			 plot->run[0], text_of(run, "libfabric", "?"), text_of(run, "host", "?"),
			 text_of(run, "date", "?"));
	else
		snprintf(plot->title, sizeof(plot->title), "Latency and bandwidth of %d runs",
			 plot->nruns);
}

static int add_file(struct perf_plot *plot, const char *path, char *err, size_t errlen)
{
	struct json_object *run = json_object_from_file(path);
	int rc;

	if (!run) {
		snprintf(err, errlen, "%s: %s", path, json_util_get_last_err());
		err[strcspn(err, "\n")] = '\0';
		return -1;
	}
	rc = add_run(plot, run, path);
	if (rc)
		snprintf(err, errlen, "%s: no results of datperf --json", path);
	else
		title(plot, run);
	json_object_put(run);
	return rc;
}

int perf_plot_files(const struct perf_opts *opts, char *err, size_t errlen)
{
	struct perf_plot *plot = calloc(1, sizeof(*plot));
	int i, rc = 0;

	if (!plot) {
		snprintf(err, errlen, "out of memory");
		return -1;
	}
	for (i = 0; !rc && i < opts->nfiles; i++)
		rc = add_file(plot, opts->files[i], err, errlen);
	if (!rc)
		rc = perf_plot_draw(plot, opts->plot, err, errlen);
	free(plot);
	return rc;
}
