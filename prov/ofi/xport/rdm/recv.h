/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What arrives. EP lock held. */
#ifndef DOFI_XPORT_RDM_RECV_H
#define DOFI_XPORT_RDM_RECV_H

#include "xport/rdm/op.h"

void rdm_arrived(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink);
/* Adds to the bare ACK @frame what its bits leave out: which request it answers, and where in it the data goes. */
void rdm_complete_bare(const struct rdm_conn *conn, struct rdm_frame *frame);
/* Deals with frames that wait, as far as that is possible now. */
void rdm_catch_up(struct rdm_conn *conn, struct dofi_sink *sink);
/* What the peer asked for first is done, and may be seen to be, but it was not told. */
bool rdm_owes_ack(const struct rdm_conn *conn);
/* Does what the fabric did not take before. */
void rdm_go_on(struct rdm_conn *conn);

#endif
