/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests the counters of a process's IAs. */
#ifndef INFO_COUNT_H
#define INFO_COUNT_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Copies the counters of process @pid to @out, one text for each IA. Returns the number of IAs;
 * reports errors on stderr.
 */
int count_show(FILE *out, pid_t pid);

#endif
