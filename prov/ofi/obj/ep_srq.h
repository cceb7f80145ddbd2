/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an endpoint of an SRQ gets buffers from it. */
#ifndef DOFI_OBJ_EP_SRQ_H
#define DOFI_OBJ_EP_SRQ_H

#include "obj/srq.h"

/* @user of an EP that is not published gets its feed(). */
void dofi_ep_srq_init(struct dofi_srq_user *user);

/*
 * For a message that has come to @ep: the SRQ's oldest buffer, as the newest of the EP's receives.
 * NULL if the SRQ has none: then the EP stands in line, and is fed when its turn has come. NULL,
 * too, if it has as many receives as it may: one that retires makes room (dofi_xport.resume). A
 * hard watermark that it passes ends the connection. EP lock held, as for the next.
 */
struct dofi_dto *dofi_srq_buffer(struct dofi_ep *ep);

/* What @dto was posted with may have ended since: 0, or a positive error. */
int dofi_srq_buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto);

/*
 * The same for a transport that matches: the receive is in its hands, as if it had come by
 * dofi_xport.submit(), with DOFI_DTO_SHARED and a beside of 0. NULL as above, and if the
 * connection ends, be it by a watermark or because the buffer may not be used any more.
 */
struct dofi_dto *dofi_srq_receive(struct dofi_ep *ep);

#endif
