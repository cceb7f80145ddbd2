/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: connection events of the fabric. */
#ifndef DOFI_XPORT_MSG_EVENT_H
#define DOFI_XPORT_MSG_EVENT_H

#include "loop/progress.h"

/* dofi_progress_ops.cm_event and .cm_error. */
void msg_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry, size_t len);
void msg_error(struct dofi_progress *p, const struct fi_eq_err_entry *e);

#endif
