/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The InfiniBand extension of DAT 2.0: one call with many meanings. */
#ifndef DOFI_EXT_H
#define DOFI_EXT_H

#include "obj/ia.h"

#if DAT_VERSION_MAJOR >= 2
#include <stdarg.h>

DAT_RETURN dofi_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);
#endif

/* Opens the IA of this name without an EVD; for DAT_IB_OPEN_QUERY_OP. */
DAT_RETURN dofi_prov_open_bare(const char *name, struct dofi_ia **ia);

#endif
