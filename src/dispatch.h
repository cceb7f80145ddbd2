/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Routes a public call to its provider, after the checks that all calls share.
 *
 * The macros return from the enclosing function. HANDLE must be live and of KIND. A function that
 * the provider's table lacks yields NOT_IMPLEMENTED.
 */
#ifndef DREG_DISPATCH_H
#define DREG_DISPATCH_H

#include "err.h"
#include "handle.h"

/* Body of a call that only forwards its arguments. The first branch is the fast path. */
#define FORWARD(KIND, func, handle, ...)						\
	do {										\
		const DAT_PROVIDER *to;							\
											\
		if (__builtin_expect(							\
			dreg_handle_route_fast(handle, DAT_HANDLE_TYPE_##KIND, 0, &to) && \
			to->func, 1))							\
			return to->func(handle, ##__VA_ARGS__);				\
		to = dreg_handle_route(handle, DAT_HANDLE_TYPE_##KIND);			\
		if (!to)								\
			return DREG_BAD_HANDLE(KIND);					\
		NEEDS(to, func);							\
		return to->func(handle, ##__VA_ARGS__);					\
	} while (0)

/* Declares OBJ, the entry of HANDLE. */
#define LOOK_UP(obj, KIND, handle)							\
	struct dreg_handle obj;								\
											\
	if (!dreg_handle_live(handle, DAT_HANDLE_TYPE_##KIND, &obj))			\
		return DREG_BAD_HANDLE(KIND)

/* Returns INVALID_HANDLE_WHAT unless dreg_handle_arg() accepts ARG as a handle of KIND. */
#define CHECK_ARG(provider, KIND, arg, WHAT)						\
	do {										\
		if (!dreg_handle_arg(provider, arg, DAT_HANDLE_TYPE_##KIND))		\
			return DREG_BAD_HANDLE(WHAT);					\
	} while (0)

#define NEEDS(provider, func)								\
	do {										\
		if (__builtin_expect(!(provider)->func, 0))				\
			return DREG_NOT_IMPLEMENTED;					\
	} while (0)

#endif
