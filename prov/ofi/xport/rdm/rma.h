/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics that are asked of the fabric, or of the peer. EP lock held. */
#ifndef DOFI_XPORT_RDM_RMA_H
#define DOFI_XPORT_RDM_RMA_H

#include "xport/rdm/rdm.h"

/* RDMA or an atomic; as rdm_submit(). */
int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto);
/*
 * The peer answers that the read @dto, or its next part, is done: @frame has the bytes, or tells
 * where they are. 0 when they have been stored, or a positive error.
 */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *frame);

/*
 * Has the fabric carry out the write @dto, of which a message is to tell. 0 when that is done; -FI_EAGAIN until then, or
 * another negative errno.
 */
int rdm_write_before_message(struct rdm_conn *conn, struct dofi_dto *dto);
/* What goes with the message that tells of the write @dto. */
uint64_t rdm_write_cq_data(const struct dofi_dto *dto);

#endif
