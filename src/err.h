/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Return codes of the registry. */
#ifndef DREG_ERR_H
#define DREG_ERR_H

#include "dat_select.h"

#include <errno.h>

#define DREG_ERR(type, subtype)		\
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_UINT32)(type) | (DAT_UINT32)(subtype)))

/* DAT has no subtype for an EVD as such; other registries use this one. */
#define DAT_INVALID_HANDLE_EVD	DAT_INVALID_HANDLE_EVD_REQUEST

#define DREG_BAD_HANDLE(what)	DREG_ERR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##what)
/* for the calls that take a handle of any kind */
#define DREG_BAD_ANY_HANDLE	DREG_ERR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)
#define DREG_BAD_ARG(n)		DREG_ERR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define DREG_NO_MEMORY		DREG_ERR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY)
/* DAT has no subtype for descriptors: they count as a device resource. @err: negative errno. */
#define DREG_OUT_OF(err)		\
	((err) == -ENOMEM ? DREG_NO_MEMORY :						\
			    DREG_ERR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE))
#define DREG_NOT_IMPLEMENTED	DREG_ERR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)

#endif
