/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures against several servers at once. */
#ifndef PERF_HOSTS_H
#define PERF_HOSTS_H

#include "datperf.h"

/*
 * Runs a client process for each of opts->hosts, and prints their results and the sums. Call before
 * DAT and libfabric are used. Returns 0, or -1 with an error text in @err.
 */
int perf_hosts(const struct perf_opts *opts, char *err, size_t errlen);

/*
 * One of these clients, opts->party in its process, comes to its next measurement, and then waits
 * for the others for up to @ms. Returns 1 if all have come, 0 if not yet, or -1 if one has failed.
 */
void perf_party_come(struct perf_party *p);
int perf_party_wait(struct perf_party *p, unsigned int ms);
/* Returns whether this client shows the progress. */
bool perf_party_leads(const struct perf_party *p);
/* Returns the memory for the results of this client. */
struct perf_row *perf_party_rows(struct perf_party *p);
/* Stores the number @n of sizes that this client has measured, and its fabric. */
void perf_party_end(struct perf_party *p, const struct perf_fabric *fabric, int n);

#endif
