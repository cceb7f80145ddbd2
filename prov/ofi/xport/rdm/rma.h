/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics, carried out by the fabric, by this end alone, or by the peer. EP lock held. */
#ifndef DOFI_XPORT_RDM_RMA_H
#define DOFI_XPORT_RDM_RMA_H

#include "xport/rdm/op.h"

/* dofi_xport.write and .read, carried out by this end alone, or -FI_EAGAIN. */
dofi_rdma rdm_fast_write;
dofi_rdma rdm_fast_read;

/* Submits RDMA or an atomic; returns as rdm_submit(). */
int rdm_rma(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);
/* Processes the ACK of the read @dto, with bytes or an address. 0 or a positive error. */
int rdm_take_data(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *frame)
	DOFI_NEEDS(conn->ep->lock);
/* Carries out the write @dto, once, without the peer. 0, or -FI_EAGAIN if the peer has to. */
int rdm_write_alone(struct rdm_conn *conn, struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);
/* Has the fabric carry out @dto before a message: 0 once completed, -FI_EAGAIN, or an error. */
int rdm_write_before_message(struct rdm_conn *conn, struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock);
/* The remote CQ data of the message that follows the write @dto. */
uint64_t rdm_write_cq_data(const struct dofi_dto *dto);

/*
 * target.c: carries out @task for the peer, once, and sends an ACK. Returns false if the call is to
 * be repeated. A write with immediate data turns into a message, which the caller then matches with
 * a receive.
 */
bool rdm_target_execute(struct rdm_conn *conn, struct rdm_task *task) DOFI_NEEDS(conn->ep->lock);

#endif
