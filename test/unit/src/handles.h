/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of a single file above the set of live handles: adds and finds handles, and makes
 * additions fail. The program is linked with --wrap=dreg_handle_add, and without a log.
 */
#ifndef UNIT_HANDLES_H
#define UNIT_HANDLES_H

#include "err.h"
#include "handle.h"
#include "log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>

/* Addresses without memory behind them. */
#define NTH(n) ((DAT_HANDLE)(uintptr_t)(0x5000000000 + (n) * 64))

static int adds_left = INT_MAX; /* additions until the set is full */

int __real_dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h);
int __wrap_dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h);
int __wrap_dreg_handle_add(DAT_HANDLE handle, const struct dreg_handle *h)
{
	if (adds_left != INT_MAX && !adds_left--)
		return -ENOMEM;
	return __real_dreg_handle_add(handle, h);
}

static int errors_logged;

void dreg_log(enum dreg_log_type type, const char *fmt, ...)
{
	errors_logged += type == DREG_LOG_ERROR;
}

static inline void enter(DAT_HANDLE h, DAT_HANDLE_TYPE kind, const DAT_PROVIDER *provider,
			 DAT_IA_HANDLE owner, unsigned int flags)
{
	const struct dreg_handle obj = { provider, owner, kind, flags, 0 };

	cr_assert_eq(__real_dreg_handle_add(h, &obj), 0);
}

static inline struct dreg_handle found(DAT_HANDLE h)
{
	struct dreg_handle obj;

	cr_assert(dreg_handle_find(h, &obj));
	return obj;
}

static inline bool is_live(DAT_HANDLE h)
{
	struct dreg_handle obj;

	return dreg_handle_find(h, &obj);
}

#endif
