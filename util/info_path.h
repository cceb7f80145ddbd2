/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks the path from an IA of this host to a datperf server on another one. */
#ifndef INFO_PATH_H
#define INFO_PATH_H

#include "dat_select.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Connects the IA of @info to the datperf server at @host, a name or a numeric address, and
 * exchanges messages, RDMA writes and datagrams with it. Prints one row for each, and for the first
 * that fails its cause and remedy. Returns whether everything works.
 */
bool path_check(FILE *out, const DAT_PROVIDER_INFO *info, const char *host, unsigned port);

#endif
