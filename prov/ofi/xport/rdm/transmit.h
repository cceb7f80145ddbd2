/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending a frame, and credits. EP lock held. */
#ifndef DOFI_XPORT_RDM_TRANSMIT_H
#define DOFI_XPORT_RDM_TRANSMIT_H

#include "xport/rdm/op.h"

/* Sends a frame with @size bytes of @iov from @offset on. 0, -FI_EAGAIN, or a lasting error. */
int rdm_transmit(struct rdm_conn *conn, struct rdm_frame *frame, const struct iovec *iov,
		 size_t n, size_t offset, size_t size) DOFI_NEEDS(conn->ep->lock);
/* Sends all of @dto in a frame that is too long to be injected, from the program's memory. */
int rdm_transmit_zero_copy(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *frame)
	DOFI_NEEDS(conn->ep->lock);
/* Sends a copy of @size bytes of @dto from @offset on. Its completion completes @dto. */
int rdm_transmit_copy(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *frame,
		      size_t offset, size_t size) DOFI_NEEDS(conn->ep->lock);
/* Adds the memory of @dto to @frame, so that the peer can read it. */
void rdm_name_segments(struct rdm_frame *frame, const struct dofi_dto *dto);
/* Ends the connection, because the peer violates the protocol. */
void rdm_peer_error(struct rdm_conn *conn, const char *how) DOFI_NEEDS(conn->ep->lock);
/* Sends an ACK with the result of @task. Returns false if that is to be repeated. */
bool rdm_ack(struct rdm_conn *conn, const struct rdm_task *task) DOFI_NEEDS(conn->ep->lock);
/* Reads the memory that @frame names, while the peer permits that. 0 or a negative errno. */
int rdm_pull(struct rdm_conn *conn, const struct iovec *to, size_t n,
	     const struct rdm_frame *frame) DOFI_NEEDS(conn->ep->lock);

/* Returns credits in a frame of their own. */
void rdm_send_credits(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock);
/* Returns credits, if there are enough of them for a frame of their own. */
static inline void rdm_give_credits(struct rdm_conn *conn) DOFI_NEEDS(conn->ep->lock)
{
	if (conn->credits_owed >= conn->window / 2)
		rdm_send_credits(conn);
}

#endif
