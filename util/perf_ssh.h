/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf --ssh: the server, as a process on another host. */
#ifndef PERF_SSH_H
#define PERF_SSH_H

#include "datperf.h"

#include <sys/types.h>

/* The last words of the server's line on standard error when it listens. */
#define PERF_SSH_LISTENING "waiting for a client on port"

struct perf_ssh {
	pid_t pid; /* of ssh */
	int in;	   /* ssh's standard input; its end ends the server */
	FILE *err; /* ssh's standard error, and the server's */
};

/*
 * Starts the server, and waits until it listens. Prints the errors of ssh and the server. Returns
 * 0, or -1 with an error text in @err.
 */
int perf_ssh_start(struct perf_ssh *ssh, const struct perf_opts *opts, char *err, size_t errlen);

/*
 * Ends the server: at once, or with @served when it has released its resources, which takes a few
 * seconds at most. Prints its errors. Returns its exit status as waitpid() does.
 */
int perf_ssh_end(struct perf_ssh *ssh, bool served);

#endif
