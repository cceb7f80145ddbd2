/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of peers for an address, and the listeners that they come by. Progress thread only. */
#ifndef DOFI_XPORT_UD_REQUEST_H
#define DOFI_XPORT_UD_REQUEST_H

#include "xport/ud/ud.h"

/* dofi_datagrams.accept */
void ud_accept(struct dofi_exchange *x, void *request);
/* Ends the accepted requests that their peers have not confirmed, without a report. */
void ud_answers_drop(struct ud_ep *uep);
/* dofi_xport.reject */
void ud_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);

/* dofi_datagrams.listen and unlisten; service points listen once the IA has a datagram EP. */
void ud_listen(struct dofi_sp *sp);
void ud_unlisten(struct dofi_sp *sp);
/* The IA has its first datagram EP: all its service points listen. */
void ud_listen_all(struct ud_ia *uia);

#endif
