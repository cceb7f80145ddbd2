/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In place of perf_plot_json.c in a build without json-c. */
#include "perf_plot.h"

int perf_plot_files(const struct perf_opts *opts, char *err, size_t errlen)
{
	(void)opts;
	snprintf(err, errlen, "--from: this datperf was built without json-c: install "
		 "libjson-c-dev (json-c-devel) and build it again");
	return -1;
}
