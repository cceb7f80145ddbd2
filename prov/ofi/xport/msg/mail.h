/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomic operations over connections that have none: each end has a mailbox, memory into which
 * its peer writes.
 *
 * A request is an RDMA write into the target's mailbox, with the number of its EP as remote CQ
 * data: that completes no receive, but shows whoever reads the target's CQ that there is mail.
 * That thread does what is asked and writes a reply into the requester's mailbox likewise.
 * Requests are numbered, and a number has its place. What else rings finds no mail of the next
 * number, and nothing happens.
 */
#ifndef DOFI_XPORT_MSG_MAIL_H
#define DOFI_XPORT_MSG_MAIL_H

#include "obj/ep.h"

#define MSG_MAIL_SLOTS 16		/* requests on their way, of each end */

struct msg_mail;

/* Whether connections of @ia have mailboxes. */
bool msg_mail_offered(const struct dofi_ia *ia);

/*
 * Makes the mailbox of @ep for a connection, and what its peer is told of it; no mailbox, and 0,
 * if none is offered. A negative errno. Progress thread, no lock held, like the next.
 */
int msg_mail_open(struct dofi_ep *ep, struct msg_mail **mail, struct dofi_mailbox *own);
/* Nothing is connected any more that knew of it. @mail may be NULL. */
void msg_mail_close(struct msg_mail *mail);

/* dofi_xport.submit of an atomic. */
int msg_mail_submit(struct dofi_ep *ep, struct dofi_dto *dto);

/* A write came with @data. Any thread, no EP's lock held. */
void msg_mail_arrived(uint64_t data, struct dofi_sink *sink);

/* Sends replies that could not be sent at once: dofi_xport.resume. EP lock held. */
void msg_mail_resume(struct dofi_ep *ep);

#endif
