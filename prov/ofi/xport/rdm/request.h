/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests and their answers, active and passive side: members of dofi_xport. All on the progress
 * thread.
 */
#ifndef DOFI_XPORT_RDM_REQUEST_H
#define DOFI_XPORT_RDM_REQUEST_H

#include "obj/cr.h"
#include "xport/rdm/rdm.h"

extern const struct dofi_ports_ops rdm_ports_ops;

int rdm_listen(struct dofi_sp *sp);
void rdm_unlisten(struct dofi_sp *sp);
int rdm_listen_local(struct dofi_sp *sp);
void rdm_unlisten_local(struct dofi_sp *sp);
void rdm_connect(struct dofi_ep *ep);
void rdm_accept(struct dofi_ep *ep);
void rdm_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
void rdm_close(struct dofi_ep *ep);

#endif
