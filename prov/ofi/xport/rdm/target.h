/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA and atomics that the fabric does not do, carried out for the peer. EP lock held. */
#ifndef DOFI_XPORT_RDM_TARGET_H
#define DOFI_XPORT_RDM_TARGET_H

#include "xport/rdm/op.h"

/*
 * Does what @task asks for, once, and answers. False if that is to be tried again. When it has
 * become a message, which tells of a write, it is to be taken as that.
 */
bool rdm_carry_out(struct rdm_conn *conn, struct rdm_task *task);

#endif
