/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking a process for the counters of its IAs. */
#ifndef INFO_COUNT_H
#define INFO_COUNT_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Copies what the process @pid tells to @out: one text for each of its IAs. How many there were;
 * what went wrong with any is said on stderr.
 */
int count_show(FILE *out, pid_t pid);

#endif
