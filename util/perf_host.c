/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machine and the time of a measurement, for saved results. */
#include "perf_host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Stores the value of a line "model name : VALUE". Returns 0 for another line. */
static int is_model(const char *line, char *cpu, size_t len)
{
	const char *value;

	if (strncmp(line, "model name", strlen("model name")))
		return 0;
	value = strchr(line, ':');
	if (!value)
		return 0;
	value += strspn(value, ": \t");
	snprintf(cpu, len, "%.*s", (int)strcspn(value, "\n"), value);
	return 1;
}

static void get_cpu(struct perf_host *host)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (is_model(line, host->cpu, sizeof(host->cpu)))
			break;
	if (f)
		fclose(f);
}

void perf_host_get(struct perf_host *host)
{
	time_t now = time(NULL);
	struct utsname system;
	cpu_set_t set;
	struct tm tm;

	memset(host, 0, sizeof(*host));
	/* the last byte stays 0 */
	gethostname(host->name, sizeof(host->name) - 1);
	if (gmtime_r(&now, &tm))
		strftime(host->date, sizeof(host->date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!uname(&system))
		snprintf(host->kernel, sizeof(host->kernel), "%.60s %.60s", system.release,
			 system.machine);
	if (!sched_getaffinity(0, sizeof(set), &set))
		host->cpus = CPU_COUNT(&set);
	get_cpu(host);
}
