/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: how an orderly end differs from a lost connection.
 *
 * On stream fabrics the stream ends without a reason, whether the peer disconnects, is killed, or
 * refuses an RDMA operation. So an orderly end sends a goodbye last: an RDMA write of no bytes to
 * no memory. Its remote CQ data identifies the connection. It needs no receive and no key. A
 * stream that ends without a goodbye was broken.
 *
 * The number of a mailbox reports that its owner sends a goodbye (MSG_SENDS_BYE). A peer of an older
 * version does not; its end counts as orderly, as in that version, and it ignores our goodbye.
 */
#ifndef DOFI_XPORT_MSG_BYE_H
#define DOFI_XPORT_MSG_BYE_H

#include "obj/ep.h"

/* A flag in the number of a mailbox. */
#define MSG_SENDS_BYE (1u << 31)

/* Sets MSG_SENDS_BYE in @own, the mailbox of @ep that the peer gets, if fabric.sends_bye. */
void msg_bye_offer(const struct dofi_ep *ep, struct dofi_mailbox *own);

/* Processes the peer's mailbox for @ep, which connects. EP lock held. */
void msg_bye_learn(struct dofi_ep *ep, const struct dofi_mailbox *peers) DOFI_NEEDS(ep->lock);

/* Sends a goodbye on @fid, the endpoint of @ep, before it is shut down. Progress thread. */
void msg_bye_send(struct dofi_ep *ep, struct fid_ep *fid);

/*
 * Processes a write that arrived with remote CQ data @data. Returns whether it is a goodbye. Any
 * thread, no EP lock held.
 */
bool msg_bye_arrived(uint64_t data);

#endif
