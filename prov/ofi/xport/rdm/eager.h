/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages sent eagerly in several frames, at both ends. EP lock held. */
#ifndef DOFI_XPORT_RDM_EAGER_H
#define DOFI_XPORT_RDM_EAGER_H

#include "xport/rdm/rdm.h"

/*
 * Sends @dto in several frames; returns what rdm_submit() returns. A message that is done uses no
 * memory of the program.
 */
int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock);
/*
 * Starts to fill the receive @dto with the message that begins with the frame @f. It must fit.
 */
void rdm_eager_begin(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
	DOFI_NEEDS(conn->ep->lock);
/* Adds the bytes of a MORE frame to the message. */
void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock);

#endif
