/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA within a host that this end carries out alone, without the peer's processor. EP lock held.
 */
#ifndef DOFI_XPORT_RDM_ONESIDED_H
#define DOFI_XPORT_RDM_ONESIDED_H

#include "xport/rdm/rdm.h"

/*
 * Carries out the write or read @dto. Returns 0 when the bytes are in place. Returns -EAGAIN if the
 * peer has to carry @dto out: it does so if this end cannot, and refuses what its grants do not
 * permit. Returns -EIO if the peer has unmapped the memory.
 */
int rdm_onesided(struct rdm_conn *conn, const struct dofi_dto *dto) DOFI_NEEDS(conn->ep->lock);

/* dofi_xport.write and .read: like rdm_onesided(), or -FI_EAGAIN for all that is not done. */
dofi_rdma rdm_fast_write;
dofi_rdma rdm_fast_read;

#endif
