/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that runs out when a test says so. */
#ifndef UNIT_NOMEM_H
#define UNIT_NOMEM_H

#include <stdbool.h>

/* Lets one allocation fail, on any thread: the next if @n is 0, else the n-th after it. */
void nomem_after(int n);
/* Ends that; whether so many were asked for that one has failed. */
bool nomem_failed(void);

/* No loop over failing allocations needs more. */
#define NOMEM_MOST 50

#endif
