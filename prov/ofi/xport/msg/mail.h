/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomic operations over connections that lack them: each end has a mailbox, memory into which its
 * peer writes.
 *
 * A request is an RDMA write into the target's mailbox, with the number of its EP as remote CQ
 * data. It completes no receive, but the thread that polls the target's CQ gets the number. That
 * thread carries out the request, and writes a reply into the requester's mailbox in return.
 * Requests are numbered, and each number has its slot. A write without a request of the next number
 * has no effect.
 */
#ifndef DOFI_XPORT_MSG_MAIL_H
#define DOFI_XPORT_MSG_MAIL_H

#include "obj/ep.h"

#define MSG_MAIL_SLOTS 16		/* most outstanding requests of each end */

struct msg_mail;

/* Whether connections of @ia have mailboxes. */
bool msg_mail_offered(const struct dofi_ia *ia);

/*
 * Makes the mailbox of @ep for a connection, and sets @own for the peer. Returns 0, also if no
 * mailbox is offered, or a negative errno. Progress thread, no lock held.
 */
int msg_mail_open(struct dofi_ep *ep, struct msg_mail **mail, struct dofi_mailbox *own);
/*
 * Frees @mail, which no connection uses any more. NULL is ignored. Progress thread, no lock held.
 */
void msg_mail_close(struct msg_mail *mail);

/* dofi_xport.submit of an atomic. */
int msg_mail_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/* Processes a write that arrived with remote CQ data @data. Any thread, no EP lock held. */
void msg_mail_arrived(uint64_t data, struct dofi_sink *sink);

/* dofi_xport.resume: sends replies that the fabric did not take before. EP lock held. */
void msg_mail_resume(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#endif
