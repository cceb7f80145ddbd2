/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which fabric fits an IA: dat.conf parameters, FI_PROVIDER and policy in, one fi_info out. */
#ifndef DOFI_FAB_QUERY_H
#define DOFI_FAB_QUERY_H

#include "fab/offers.h"

/*
 * Finds the fabric for @params, and the query that it answered. The caller frees @info. 0;
 * -FI_ENODATA when nothing fits (logged, with the requirements); or another negative errno of
 * fi_getinfo().
 */
int dofi_query_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info);

/* Whether the fabric of @info also satisfies @q. */
bool dofi_query_also(const struct fi_info *info, const struct dofi_query *q);

#endif
