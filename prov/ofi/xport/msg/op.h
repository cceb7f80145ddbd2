/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: operations and completions. */
#ifndef DOFI_XPORT_MSG_OP_H
#define DOFI_XPORT_MSG_OP_H

#include "obj/ep.h"

/* dofi_xport.submit, .write and .read. */
int msg_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
ssize_t msg_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		  uint64_t key, void *context);
ssize_t msg_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr, uint64_t key,
		 void *context);

/* dofi_xport.holds and .cancel. */
bool msg_holds(const struct dofi_ep *ep, const struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
void msg_cancel(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/* dofi_progress_ops.completed */
void msg_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/*
 * Variants for fabrics that may lose FI_REMOTE_CQ_DATA of a completion: every message has remote CQ
 * data then, which is not 0.
 */
int msg_marked_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
void msg_marked_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

#endif
