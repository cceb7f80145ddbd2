/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: its part of the fast path (obj/fast.h). */
#ifndef DOFI_XPORT_RDM_FAST_H
#define DOFI_XPORT_RDM_FAST_H

#include "xport/rdm/rdm.h"

/* dofi_xport.send and dofi_xport.recv. */
dofi_send rdm_fast_send;
dofi_recv rdm_fast_recv;

/* dofi_progress_ops.poll of a CQ of rings. */
dofi_polled rdm_fast_poll;

#endif
