/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics carried out for the peer. EP lock held. */
#ifndef DOFI_XPORT_RDM_TARGET_H
#define DOFI_XPORT_RDM_TARGET_H

#include "xport/rdm/op.h"

/*
 * Carries out @task, once, and sends an ACK. Returns false if the call is to be repeated. A write
 * with immediate data turns into a message, which the caller then matches with a receive.
 */
bool rdm_carry_out(struct rdm_conn *conn, struct rdm_task *task) DOFI_NEEDS(conn->ep->lock);

#endif
