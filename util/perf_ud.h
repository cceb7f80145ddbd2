/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's phases with datagrams. A datagram may be lost, so a phase counts arrivals, and
 * ends by time and by control messages, which a connection carries.
 */
#ifndef PERF_UD_H
#define PERF_UD_H

#include "perf.h"

/* The space for any header, in addition to the largest message. */
#define PERF_UD_EXTRA 64

/* These return 0, or -1 with an error text in x->err. */

/* Client: opens datagram endpoints at both ends, and posts their receives. */
int perf_ud_open(struct perf_xport *x, bool rotate);
/* Server: as a client's @request asks for. */
int perf_ud_accept(struct perf_xport *x, const struct perf_ctl *request);

/* As perf_run_point() and perf_run_serve(), for PERF_UD. */
int perf_ud_point(struct perf_xport *x, struct perf_point *point);
int perf_ud_serve(struct perf_xport *x, const struct perf_ctl *start);

#endif
