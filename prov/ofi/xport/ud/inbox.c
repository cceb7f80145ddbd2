/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inboxes: links over which peers on this host send to a PZ. */

#include "xport/ud/ud.h"

#include <stdlib.h>
#include <string.h>

/* Each new inbox probes so many older ones for dead peers: live inboxes outnumber stale ones. */
#define PROBES 2

static struct dofi_cq *cq_of(const struct ud_pz *upz)
{
	return &upz->local.domain->cq;
}

static void inbox_free(struct ud_inbox *inbox)
{
	struct ud_pz *upz = inbox->upz;
	struct dofi_cq *cq = cq_of(upz);

	dofi_mutex_lock(&cq->lock);
	dofi_rings_remove(upz->rings, inbox->link);
	dofi_mutex_unlock(&cq->lock);
	TAILQ_REMOVE(&upz->inboxes, inbox, all);
	dofi_link_free(inbox->link);
	free(inbox);
}

/* Delivers the last datagrams of a peer that has stopped writing, and frees its inbox. */
static void inbox_end(struct ud_inbox *inbox)
{
	struct dofi_cq *cq = cq_of(inbox->upz);
	bool any;

	dofi_mutex_lock(&cq->lock);
	any = dofi_ring_has(&inbox->link->in);
	dofi_mutex_unlock(&cq->lock);
	if (any)
		dofi_cq_drain(cq);
	inbox_free(inbox);
}

int ud_inbox_open(struct ud_pz *upz, struct ud_inbox **out)
{
	struct ud_inbox *inbox = calloc(1, sizeof(*inbox)), *old;
	struct dofi_cq *cq = cq_of(upz);
	unsigned i;
	int ret;

	if (!inbox)
		return -ENOMEM;
	inbox->upz = upz;
	ret = dofi_link_make(&inbox->link);
	if (!ret) {
		inbox->link->owner = inbox;
		inbox->link->user = &ud_inbox_user;
		dofi_mutex_lock(&cq->lock);
		ret = dofi_rings_add(upz->rings, inbox->link);
		dofi_mutex_unlock(&cq->lock);
	}
	if (ret) {
		dofi_link_free(inbox->link);
		free(inbox);
		return ret;
	}
	/* probed inboxes go to the end of the list */
	for (i = 0; i < PROBES && (old = TAILQ_FIRST(&upz->inboxes)); i++) {
		TAILQ_REMOVE(&upz->inboxes, old, all);
		TAILQ_INSERT_TAIL(&upz->inboxes, old, all);
		if (old->bell[0] && !dofi_bell_exists(old->bell))
			inbox_end(old);
	}
	TAILQ_INSERT_TAIL(&upz->inboxes, inbox, all);
	*out = inbox;
	return 0;
}

void ud_inbox_offer_end(struct ud_inbox *inbox, const char *bell)
{
	if (!inbox)
		return;
	if (dofi_link_withdraw(inbox->link)) {
		inbox_free(inbox);
		return;
	}
	dofi_link_keep(inbox->link);
	if (bell)
		memcpy(inbox->bell, bell, sizeof(inbox->bell));
	if (dofi_link_has_ended(inbox->link))
		inbox_end(inbox);
}

void ud_inboxes_reap(struct ud_pz *upz)
{
	struct ud_inbox *inbox, *next;

	for (inbox = TAILQ_FIRST(&upz->inboxes); inbox; inbox = next) {
		next = TAILQ_NEXT(inbox, all);
		/* one with a descriptor is still of an exchange */
		if (inbox->link->fd < 0 && dofi_link_has_ended(inbox->link))
			inbox_end(inbox);
	}
}

void ud_inboxes_close(struct ud_pz *upz)
{
	struct ud_inbox *inbox;

	while ((inbox = TAILQ_FIRST(&upz->inboxes))) {
		dofi_link_shut(inbox->link);
		inbox_free(inbox);
	}
}
