/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: how an orderly end differs from a connection that is lost.
 *
 * On the stream fabrics a peer that disconnects, a peer that was killed, and a fabric that refuses an
 * RDMA operation all look alike: the stream ends. So the last that an orderly end sends is a goodbye:
 * an RDMA write of no bytes to no memory, whose remote CQ data names the connection. It needs no
 * receive and no key. A stream that ends without it was broken.
 *
 * The number of a mailbox says that its owner says goodbye (MSG_SAYS_BYE). A peer of an older version
 * does not, and its end is taken for orderly, as it was then; it ignores our goodbye.
 */
#ifndef DOFI_XPORT_MSG_BYE_H
#define DOFI_XPORT_MSG_BYE_H

#include "obj/ep.h"

/* In the number of a mailbox. */
#define MSG_SAYS_BYE (1u << 31)

/*
 * Adds to @own, the mailbox of @ep that the peer learns of, that this side says goodbye. Does nothing unless
 * fabric.says_bye.
 */
void msg_bye_offer(const struct dofi_ep *ep, struct dofi_mailbox *own);

/* @ep, which connects, learns the peer's mailbox. EP lock held. */
void msg_bye_learn(struct dofi_ep *ep, const struct dofi_mailbox *peers);

/* Says goodbye on @fid, the endpoint of @ep, which is about to be shut down. Progress thread. */
void msg_bye_say(struct dofi_ep *ep, struct fid_ep *fid);

/* A write came with @data. Returns whether that is a goodbye. Any thread, no EP's lock held. */
bool msg_bye_heard(uint64_t data);

#endif
