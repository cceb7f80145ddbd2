/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of the EP: members of dofi_xport. EP lock held. */
#ifndef DOFI_XPORT_RDM_SEND_H
#define DOFI_XPORT_RDM_SEND_H

#include "xport/rdm/rdm.h"

int rdm_submit(struct dofi_ep *ep, struct dofi_dto *dto);

/* dofi_xport.holds. Bytes that were copied into frames need no memory of the program. */
bool rdm_holds(const struct dofi_ep *ep, const struct dofi_dto *dto);

#endif
