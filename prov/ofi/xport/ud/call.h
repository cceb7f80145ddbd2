/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exchanges of addresses that this end begins. Progress thread only. */
#ifndef DOFI_XPORT_UD_CALL_H
#define DOFI_XPORT_UD_CALL_H

#include "xport/ud/ud.h"

/* dofi_datagrams.connect */
void ud_connect(struct dofi_exchange *x);
/* Begins exchanges that were delayed: uia->beginning. */
void ud_calls_begin(struct dofi_work *work);
/* Ends the exchanges of @uep that are not reported, without a report. */
void ud_calls_drop(struct ud_ep *uep);

#endif
