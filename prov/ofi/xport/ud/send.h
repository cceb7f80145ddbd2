/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends, and the copies that wait. */
#ifndef DOFI_XPORT_UD_SEND_H
#define DOFI_XPORT_UD_SEND_H

#include "xport/ud/ud.h"

/* Makes and frees the copies of @upz. 0 or a negative errno. */
int ud_sends_open(struct ud_pz *upz);
/* Registers them for the net, which is open, if the fabric needs that. 0 or a negative errno. */
int ud_sends_register(struct ud_pz *upz);
void ud_sends_unregister(struct ud_pz *upz);
void ud_sends_close(struct ud_pz *upz);

/* dofi_xport.submit. EP lock held. */
int ud_submit(struct dofi_ep *ep, struct dofi_dto *dto);

/* Whether @buffer is that of a copy, and not one that datagrams arrive in. */
static inline bool ud_is_copy(const struct ud_pz *upz, const struct dofi_rdm_buffer *buffer)
{
	return (uintptr_t)buffer - (uintptr_t)upz->send < UD_SENDS * sizeof(*upz->send);
}

/* The fabric is done with the copy @buffer, or failed with a positive @err. CQ lock held. */
void ud_sent(struct dofi_rdm_buffer *buffer, int err);

/* Callback of a way's sweeper: sends the waiting copies of all peers. CQ lock held. */
void ud_swept(struct dofi_sweeper *sweeper);

/* Whether copies wait for the fabric. */
bool ud_sends_wait(struct ud_pz *upz);

/* Removes @uep, which is being closed, from the list of sweeps. First way's CQ lock held. */
void ud_unstall(struct ud_ep *uep) DOFI_NEEDS_NOT(uep->upz->lock);

#endif
