/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that arrive. EP lock held. */
#ifndef DOFI_XPORT_RDM_RECV_H
#define DOFI_XPORT_RDM_RECV_H

#include "xport/rdm/op.h"

void rdm_arrived(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock);
/* Processes pending frames, as far as that is possible now. */
void rdm_process_pending(struct rdm_conn *conn, struct dofi_sink *sink) DOFI_NEEDS(conn->ep->lock);
/* Whether the oldest pending frame was carried out, and its ACK could not be sent yet. */
bool rdm_owes_ack(const struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/* Repeats what the fabric did not take before. */
void rdm_go_on(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);

#endif
