/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls and clauses that are not implemented yet and are skipped. */

#include "conform.h"

const char *const conform_pending[] = { NULL };
