/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics, carried out by the fabric, by this end alone, or by the peer. EP lock held. */
#ifndef DOFI_XPORT_RDM_RMA_H
#define DOFI_XPORT_RDM_RMA_H

#include "xport/rdm/op.h"

/*
 * onesided.c: carries out the write or read @dto within a host, without the peer's processor.
 * Returns 0 when the bytes are in place. Returns -EAGAIN if the peer has to carry @dto out: it does
 * so if this end cannot, and refuses an access that its grants do not permit. Returns -EIO if the
 * peer has unmapped the memory.
 */
int rdm_onesided(struct rdm_conn *conn, const struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);
/* dofi_xport.write and .read: like rdm_onesided(), but -FI_EAGAIN for each error. */
dofi_rdma rdm_fast_write;
dofi_rdma rdm_fast_read;

/* Submits RDMA or an atomic; returns what rdm_submit() returns. */
int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);
/*
 * Processes the ACK @frame of the read @dto, or of a part of it, which has the bytes or names the
 * peer's memory. Returns 0 when they have been stored, or a positive error.
 */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *frame)
	DOFI_NEEDS(conn->ep->lock);
/*
 * Carries out the write @dto, once, without the peer if that is possible. Returns 0 if it has been
 * carried out, and otherwise like rdm_onesided().
 */
int rdm_write_alone(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);
/*
 * Has the fabric carry out the write @dto, which a message follows. Returns 0 once the write has
 * completed, -FI_EAGAIN until then, or another negative errno.
 */
int rdm_write_before_message(struct rdm_conn *conn, struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock);
/* The remote CQ data of the message that follows the write @dto. */
uint64_t rdm_write_cq_data(const struct dofi_dto *dto);

/*
 * target.c: carries out @task for the peer, once, and sends an ACK. Returns false if the call is to
 * be repeated. A write with immediate data turns into a message, which the caller then matches with
 * a receive.
 */
bool rdm_carry_out(struct rdm_conn *conn, struct rdm_task *task) DOFI_NEEDS(conn->ep->lock);

#endif
