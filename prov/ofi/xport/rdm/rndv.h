/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages longer than a frame, at both ends. EP lock held, unless stated otherwise. */
#ifndef DOFI_XPORT_RDM_RNDV_H
#define DOFI_XPORT_RDM_RNDV_H

#include "xport/rdm/op.h"

/* Sends @dto eagerly; returns as rdm_submit(). Once done, it uses no memory. */
int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock);
/* Adds the bytes of a MORE frame to the message. */
void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock);

/* Sends an RTS for @dto in @frame, with its cq_data set. Returns as rdm_submit(). */
int rdm_rndv_rts(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *frame)
	DOFI_NEEDS(conn->ep->lock);
/* Processes a CTS for the message @dto. */
void rdm_rndv_cts(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag)
	DOFI_NEEDS(conn->ep->lock);
/* Sends messages after their CTS arrived, as far as the fabric takes them. */
void rdm_rndv_go_on(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/*
 * Processes an RTS after its message was matched with @dto: reads the message from the sender's
 * memory, or sends a CTS. Returns false if the call is to be repeated.
 */
bool rdm_rndv_take(struct rdm_conn *conn, struct rdm_task *task, struct dofi_dto *dto,
		   struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock);
/* Processes a DATA frame. */
void rdm_rndv_data(struct rdm_conn *conn, const struct rdm_frame *frame, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock);

#endif
