/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machine and the time of a measurement, for saved results. */
#ifndef PERF_HOST_H
#define PERF_HOST_H

struct perf_host {
	char name[256];
	char date[32]; /* of now: UTC, ISO 8601 */
	char kernel[128];
	char cpu[128]; /* model name; empty if the kernel does not report it */
	int cpus;      /* processors that this process may use */
};

/* Unknown members stay empty or 0. */
void perf_host_get(struct perf_host *host);

#endif
