/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a public call reaches its provider: the checks each of them begins with.
 *
 * The macros return from the function they stand in. HANDLE must be live and of KIND;
 * a function that the provider's table lacks is not implemented.
 */
#ifndef DREG_DISPATCH_H
#define DREG_DISPATCH_H

#include "err.h"
#include "handle.h"

/* The whole body of a call that only passes its arguments on, nearly always by its first branch. */
#define FORWARD(KIND, func, handle, ...)						\
	do {										\
		const DAT_PROVIDER *to;							\
											\
		if (__builtin_expect(							\
			dreg_handle_route_first(handle, DAT_HANDLE_TYPE_##KIND, 0, &to) && \
			to->func, 1))							\
			return to->func(handle, ##__VA_ARGS__);				\
		to = dreg_handle_route(handle, DAT_HANDLE_TYPE_##KIND);			\
		if (!to)								\
			return DREG_BAD_HANDLE(KIND);					\
		NEEDS(to, func);							\
		return to->func(handle, ##__VA_ARGS__);					\
	} while (0)

/* Looks HANDLE up into *OBJ, a struct dreg_handle. */
#define LOOK_UP(obj, KIND, handle)							\
	do {										\
		if (!dreg_handle_live(handle, DAT_HANDLE_TYPE_##KIND, obj))		\
			return DREG_BAD_HANDLE(KIND);					\
	} while (0)

/* A further handle, of KIND, must fit the provider, or INVALID_HANDLE_WHAT is returned. */
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
