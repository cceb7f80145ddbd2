/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Freeing LMRs and RMRs: operations that were posted before must not use the memory any more. */
#ifndef DOFI_OBJ_EP_REVOKE_H
#define DOFI_OBJ_EP_REVOKE_H

#include "obj/dat.h"

DAT_RETURN dofi_lmr_free(DAT_LMR_HANDLE lmr_handle);
DAT_RETURN dofi_rmr_free(DAT_RMR_HANDLE rmr_handle);

#endif
