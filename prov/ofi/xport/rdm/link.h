/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that are handed to the fabric, and credits. EP lock held. */
#ifndef DOFI_XPORT_RDM_LINK_H
#define DOFI_XPORT_RDM_LINK_H

#include "xport/rdm/op.h"

/* The bytes that @frame, whose kind, beside and length are set, takes before its data. */
size_t rdm_head_size(const struct rdm_conn *conn, const struct rdm_frame *frame);

/*
 * Sends a frame, behind which are @size bytes of @iov from @offset on. 0, -FI_EAGAIN when it is to
 * be tried again, or another negative errno.
 */
int rdm_transmit(struct rdm_conn *conn, struct rdm_frame *frame, const struct iovec *iov,
		 size_t n, size_t offset, size_t size);
/*
 * Several frames at once, all short enough to be injected. rdm_batch_begin() returns false if nothing can be sent now,
 * and what waits will be tried again. rdm_batch_add() sends a frame with @size bytes of @dto from @offset on, and
 * returns what rdm_transmit() does.
 */
bool rdm_batch_begin(struct rdm_conn *conn);
int rdm_batch_add(struct rdm_conn *conn, struct rdm_frame *frame, const struct dofi_dto *dto, size_t offset,
		  size_t size);
void rdm_batch_end(struct rdm_conn *conn);
/* Sends one frame, too long to be injected, which the fabric takes from the program's memory. */
int rdm_transmit_zero_copy(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *frame);
/*
 * Sends a frame with @size bytes of @dto from @offset on, from a copy; @dto is done when the fabric has passed them on,
 * not before.
 */
int rdm_transmit_copy(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *frame, size_t offset,
		      size_t size);
/* Names the memory of @dto, for the peer to read it. */
void rdm_name_segments(struct rdm_frame *frame, const struct dofi_dto *dto);
/* Ends the connection with a peer that is not what it says. */
void rdm_peer_error(struct rdm_conn *conn, const char *how);
/* How what @task asked for has ended. False if the peer cannot be told yet. */
bool rdm_ack(struct rdm_conn *conn, const struct rdm_task *task);
/* The peer's memory that @frame names, as long as the peer lets us read. 0 or a negative errno. */
int rdm_pull(struct rdm_conn *conn, const struct iovec *to, size_t n,
	     const struct rdm_frame *frame);

/* Gives the peer its credits back, if they are enough for a frame of their own. */
void rdm_give_credits(struct rdm_conn *conn);
/* Sends the frames that open the connection, those of them that are due. */
void rdm_send_hellos(struct rdm_conn *conn);

#endif
