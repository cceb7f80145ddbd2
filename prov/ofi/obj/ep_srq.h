/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ gets buffers from it. */
#ifndef DOFI_OBJ_EP_SRQ_H
#define DOFI_OBJ_EP_SRQ_H

#include "obj/ep.h"

/* Sets feed() of @user, of an EP that is not published. */
void dofi_ep_srq_init(struct dofi_srq_user *user);

/*
 * For a message that has come to @ep: takes the oldest buffer of the SRQ as the newest of the EP's
 * receives. Returns NULL if the SRQ has none: the EP joins the line for buffers, and gets one in
 * order. Also returns NULL if the EP has its maximum of receives: dofi_xport.resume tries again
 * when a receive retires. Passing the hard watermark ends the connection. EP lock held, as for the
 * functions below.
 */
struct dofi_dto *dofi_srq_buffer(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Checks the LMRs of @dto, a buffer, again. Returns 0 or a positive error. */
int dofi_srq_buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/*
 * As dofi_srq_buffer(), for a transport that matches: the transport gets the receive as if by
 * dofi_xport.submit(), with DOFI_DTO_SHARED and no data. Also returns NULL if the connection ends,
 * because of a watermark or because the buffer may no longer be used.
 */
struct dofi_dto *dofi_srq_receive(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#endif
