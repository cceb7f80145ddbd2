/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages that are announced, at either end. EP lock held. */
#ifndef DOFI_XPORT_RDM_RNDV_H
#define DOFI_XPORT_RDM_RNDV_H

#include "xport/rdm/op.h"

/* Announces @dto, whose frame is @frame; as rdm_submit(). */
int rdm_rndv_rts(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *frame);
/* The peer has a receive for the message that @dto announced. */
void rdm_rndv_cts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag, bool direct);
/* Sends messages for which the peer has a receive, as far as the fabric takes them. */
void rdm_rndv_go_on(struct rdm_conn *conn);

/*
 * The message that @task announces has met the receive @dto: reads it from the sender's memory, or asks for it. False
 * if that is to be tried again.
 */
bool rdm_rndv_take(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto, struct dofi_sink *sink);
/* Bytes of a message that was asked for. */
void rdm_rndv_data(struct rdm_conn *conn, const struct rdm_frame *frame, struct dofi_sink *sink);

#endif
