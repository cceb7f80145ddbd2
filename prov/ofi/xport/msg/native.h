/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport on hardware, which has its own immediate data, atomics and fences. */
#ifndef DOFI_XPORT_MSG_NATIVE_H
#define DOFI_XPORT_MSG_NATIVE_H

#include "obj/ep.h"

/*
 * dofi_xport.submit and dofi_progress_ops.completed where dofi_fabric_choice.immed is set: CQs are
 * serial there.
 */
int msg_native_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
void msg_native_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

#endif
