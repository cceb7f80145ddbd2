/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of the EP, frames that arrive, and the fast path of both. EP lock held. */
#ifndef DOFI_XPORT_RDM_SEND_H
#define DOFI_XPORT_RDM_SEND_H

#include "xport/rdm/op.h"

/* dofi_xport.submit. */
int rdm_submit(struct dofi_ep *ep, struct dofi_dto *dto);
/* dofi_xport.holds. Bytes that were copied into frames need no memory of the program. */
bool rdm_holds(const struct dofi_ep *ep, const struct dofi_dto *dto);

/* recv.c: returns the receive for the next message, or NULL; *@matched counts up its number. */
struct dofi_dto *rdm_receive_find(struct dofi_ep *ep, uint32_t *matched) DOFI_NEEDS(ep->lock);
void rdm_arrived(struct rdm_conn *conn, struct rdm_task *task, struct dofi_sink *sink)
	DOFI_NEEDS(conn->ep->lock);
/* dofi_rdm.arrived: a frame of any connection of the PZ. CQ lock held, not the EP's. */
dofi_rdm_arrived rdm_buffer_arrived;
/* dofi_rings_user.arrived, of the rdm_pz @owner. CQ lock held, not the EP's. */
void rdm_rings_arrived(void *owner, struct dofi_inbox *inbox, const unsigned char *frame,
		       size_t len, struct dofi_sink *sink);
/* Processes pending frames, as far as that is possible now. */
void rdm_process_pending(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/* Whether the oldest pending frame was carried out, and its ACK could not be sent yet. */
bool rdm_ack_pending(const struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/* Repeats the operations that the fabric did not take before. */
void rdm_go_on(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);

/* fast.c: dofi_xport.fast and its functions. */
void rdm_fast(struct dofi_ep *ep, struct dofi_fast *fast);
dofi_send rdm_fast_send;
dofi_recv rdm_fast_recv;
/* The user of the PZ's rings. */
extern const struct dofi_rings_user rdm_rings_user;

#endif
