/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An allocation that fails when a test requests it. */
#ifndef UNIT_NOMEM_H
#define UNIT_NOMEM_H

#include <stdbool.h>

/* Makes one allocation fail, on any thread: the next one if @n is 0, else the @n-th after it. */
void nomem_after(int n);
/* Ends that. Returns whether the allocation was reached and failed. */
bool nomem_failed(void);

/* Loops over failing allocations need no more iterations than this. */
#define NOMEM_MOST 50

#endif
