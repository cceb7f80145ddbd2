/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machine's description in saved results. */
#include "perf_host.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

Test(perf_host, name_and_processors)
{
	struct perf_host host;
	char name[256] = "";

	perf_host_get(&host);
	gethostname(name, sizeof(name) - 1);
	cr_expect_str_eq(host.name, name);
	cr_expect_geq(host.cpus, 1);
	cr_expect(*host.kernel);
}

Test(perf_host, date_is_now_in_utc)
{
	struct perf_host host;
	time_t before = time(NULL), date;
	struct tm tm = { 0 };
	char rest = 0;

	perf_host_get(&host);
	cr_assert_eq(sscanf(host.date, "%d-%d-%dT%d:%d:%dZ%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			    &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &rest), 6, "%s", host.date);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	date = timegm(&tm);
	cr_expect_geq(date, before);
	cr_expect_leq(date, time(NULL));
}

/* The kernel reports a model on x86 only. */
Test(perf_host, processor_is_the_kernel_s_first)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	struct perf_host host;
	char line[512], want[128] = "";

	perf_host_get(&host);
	while (f && fgets(line, sizeof(line), f) && !*want)
		sscanf(line, "model name : %127[^\n]", want);
	if (f)
		fclose(f);
	cr_expect_str_eq(host.cpu, want);
}
