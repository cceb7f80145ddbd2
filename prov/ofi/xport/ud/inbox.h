/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inboxes: links over which peers on this host send to a PZ. Progress thread only.
 *
 * Each end of an exchange offers an inbox to the peer. The peer claims it, unless it has an inbox
 * of this PZ. A claimed inbox stays until the peer ends it, with its last address handle of the PZ,
 * or until the peer's process is found dead.
 */
#ifndef DOFI_XPORT_UD_INBOX_H
#define DOFI_XPORT_UD_INBOX_H

#include "xport/ud/ud.h"

/* In place of a fabric address: the layout of links, which both ends have to know. */
#define UD_LAYOUT "datagrams/1"

struct ud_inbox {
	struct ud_pz *upz;
	struct dofi_link *link;
	char bell[DOFI_CM_NAME];	/* the doorbell of the peer; empty: not known */
	TAILQ_ENTRY(ud_inbox) all;	/* in upz->inboxes */
};

/* Makes an inbox for an exchange of @upz, which has rings. 0 or a negative errno. */
int ud_inbox_open(struct ud_pz *upz, struct ud_inbox **inbox);
/* Adds to @msg, of a kind of datagrams, what a peer needs for sending into @inbox. */
void ud_inbox_show(const struct ud_inbox *inbox, struct dofi_cm_msg *msg);
/*
 * The exchange of @inbox has ended: frees the inbox, unless the peer has claimed it. @bell is the
 * doorbell of the peer, or NULL if it is not known. NULL is ignored.
 */
void ud_inbox_settle(struct ud_inbox *inbox, const char *bell);

/* Frees the inboxes of @upz that their peers have ended, with all datagrams delivered. */
void ud_inboxes_reap(struct ud_pz *upz);
/* Frees all inboxes of @upz. */
void ud_inboxes_close(struct ud_pz *upz);

#endif
