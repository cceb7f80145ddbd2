/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_evd_wait. */
#ifndef DOFI_OBJ_EVD_WAIT_H
#define DOFI_OBJ_EVD_WAIT_H

#include "obj/evd.h"

DAT_RETURN dofi_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);

#endif
