/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inboxes: links over which peers on this host send to a PZ. */

#include "xport/ud/ud.h"

#include <stdlib.h>
#include <string.h>

/*
 * Each new inbox probes this many older ones for dead peers, so stale inboxes never outnumber live
 * ones.
 */
#define PROBES 2

static struct dofi_cq *cq_of(const struct ud_pz *upz)
{
	return &upz->near.domain->cq;
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

static bool has_datagrams(struct ud_inbox *inbox)
{
	struct dofi_cq *cq = cq_of(inbox->upz);
	bool has;

	dofi_mutex_lock(&cq->lock);
	has = dofi_ring_has(&inbox->link->in);
	dofi_mutex_unlock(&cq->lock);
	return has;
}

/* Delivers the last datagrams of a peer that has stopped writing, and frees its inbox. */
static void inbox_end(struct ud_inbox *inbox)
{
	if (has_datagrams(inbox))
		dofi_cq_drain(cq_of(inbox->upz));
	inbox_free(inbox);
}

/* Ends the inboxes of dead peers among the first few, which go to the end of the list. */
static void probe(struct ud_pz *upz)
{
	struct ud_inbox *inbox;
	unsigned i;

	for (i = 0; i < PROBES && (inbox = TAILQ_FIRST(&upz->inboxes)); i++) {
		TAILQ_REMOVE(&upz->inboxes, inbox, all);
		TAILQ_INSERT_TAIL(&upz->inboxes, inbox, all);
		if (inbox->bell[0] && !ud_bell_exists(inbox->bell))
			inbox_end(inbox);
	}
}

static int join(struct ud_inbox *inbox)
{
	struct ud_pz *upz = inbox->upz;
	struct dofi_cq *cq = cq_of(upz);
	int ret;

	inbox->link->owner = inbox;
	dofi_mutex_lock(&cq->lock);
	ret = dofi_rings_add(upz->rings, inbox->link);
	dofi_mutex_unlock(&cq->lock);
	return ret;
}

int ud_inbox_open(struct ud_pz *upz, struct ud_inbox **out)
{
	struct ud_inbox *inbox = calloc(1, sizeof(*inbox));
	int ret;

	if (!inbox)
		return -ENOMEM;
	inbox->upz = upz;
	ret = dofi_link_make(&inbox->link);
	if (!ret)
		ret = join(inbox);
	if (ret) {
		dofi_link_free(inbox->link);
		free(inbox);
		return ret;
	}
	probe(upz);
	TAILQ_INSERT_TAIL(&upz->inboxes, inbox, all);
	*out = inbox;
	return 0;
}

void ud_inbox_show(const struct ud_inbox *inbox, struct dofi_cm_msg *msg)
{
	const struct ud_pz *upz = inbox->upz;

	msg->addr = UD_LAYOUT;
	msg->addr_len = sizeof(UD_LAYOUT);
	memcpy(msg->fabric, DOFI_RINGS_NAME, sizeof(DOFI_RINGS_NAME));
	memcpy(msg->bell, upz->uia->bell_name, sizeof(msg->bell));
	msg->fd[msg->n_fds++] = inbox->link->fd;
	msg->fd[msg->n_fds++] = dofi_rings_doorbell(upz->rings);
}

void ud_inbox_settle(struct ud_inbox *inbox, const char *bell)
{
	if (!inbox)
		return;
	if (dofi_link_withdraw(inbox->link)) {
		inbox_free(inbox);
		return;
	}
	dofi_link_meet(inbox->link, -1);	/* closes the descriptor */
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
