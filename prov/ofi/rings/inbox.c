/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The receiver's end of a link. */

#include "rings/inbox.h"

#include "base/shm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each new inbox probes so many older ones for dead peers: live inboxes outnumber stale ones. */
#define PROBES 2

static void inbox_free(struct dofi_inbox *inbox)
{
	struct dofi_cq *cq = inbox->rings->cq;

	dofi_grants_remove_writer(inbox->rings->grants, &inbox->writer);
	dofi_mutex_lock(&cq->lock);
	dofi_rings_remove(inbox->rings, inbox);
	dofi_mutex_unlock(&cq->lock);
	TAILQ_REMOVE(&inbox->rings->inboxes, inbox, all);
	dofi_sealed_unmap(inbox->link, sizeof(*inbox->link));
	if (inbox->fd >= 0)
		close(inbox->fd);
	free(inbox);
}

/* Reads of the CQ for the last frames: one is enough unless other peers send without end. */
#define DRAINS 16

/* Delivers the last frames of a peer that sends no more, and frees its inbox. */
static void inbox_end(struct dofi_inbox *inbox)
{
	struct dofi_cq *cq = inbox->rings->cq;
	bool any = true;
	int i;

	for (i = 0; i < DRAINS && any; i++) {
		dofi_mutex_lock(&cq->lock);
		any = dofi_ring_has(&inbox->in);
		dofi_mutex_unlock(&cq->lock);
		if (any)
			dofi_cq_drain(cq);
	}
	inbox_free(inbox);
}

/* Whether the process that has claimed @inbox has ended. Its memory may have any bytes. */
static bool is_dead(const struct dofi_inbox *inbox)
{
	char bell[DOFI_BELL_NAME] = "";

	memcpy(bell, inbox->link->bell, sizeof(bell) - 1);
	return !dofi_bell_exists(bell);
}

int dofi_inbox_open(struct dofi_rings *rings, struct dofi_inbox **out)
{
	struct dofi_inbox *inbox = calloc(1, sizeof(*inbox));
	struct dofi_cq *cq = rings->cq;
	struct dofi_inbox *old;
	void *at;
	int ret, i;

	if (!inbox)
		return -ENOMEM;
	inbox->fd = dofi_sealed_make(sizeof(*inbox->link), &at);
	if (inbox->fd < 0) {
		ret = inbox->fd;
		goto free_inbox;
	}
	inbox->rings = rings;
	inbox->link = at;
	inbox->link->magic = DOFI_LINK_MAGIC;
	inbox->link->version = DOFI_LINK_VERSION;
	inbox->in.ring = &inbox->link->ring;
	dofi_ring_seek(&inbox->in, 0);
	inbox->writer.writing = inbox->link->writing;
	inbox->writer.pid = &inbox->link->pid;
	dofi_mutex_lock(&cq->lock);
	ret = dofi_rings_add(rings, inbox);
	dofi_mutex_unlock(&cq->lock);
	if (ret)
		goto unmap;
	dofi_grants_add_writer(rings->grants, &inbox->writer);
	/* probed inboxes go to the end of the list */
	for (i = 0; i < PROBES && (old = TAILQ_FIRST(&rings->inboxes)); i++) {
		TAILQ_REMOVE(&rings->inboxes, old, all);
		TAILQ_INSERT_TAIL(&rings->inboxes, old, all);
		if (old->fd < 0 && is_dead(old))
			inbox_end(old);
	}
	TAILQ_INSERT_TAIL(&rings->inboxes, inbox, all);
	*out = inbox;
	return 0;

unmap:
	dofi_sealed_unmap(at, sizeof(*inbox->link));
	close(inbox->fd);
free_inbox:
	free(inbox);
	return ret;
}

void dofi_inbox_offer_end(struct dofi_inbox *inbox)
{
	uint32_t offered = DOFI_LINK_OFFERED;
	struct dofi_cq *cq;

	if (!inbox)
		return;
	if (atomic_compare_exchange_strong(&inbox->link->use, &offered, DOFI_LINK_SHUT)) {
		inbox_free(inbox);
		return;
	}
	cq = inbox->rings->cq;
	dofi_mutex_lock(&cq->lock);
	inbox->peer = atomic_load(&inbox->link->key);
	dofi_mutex_unlock(&cq->lock);
	close(inbox->fd);
	inbox->fd = -1;
	if (offered == DOFI_LINK_ENDED)
		inbox_end(inbox);
}

void dofi_inboxes_await_writes(struct dofi_rings *rings, uint64_t peer)
{
	struct dofi_grants *grants = rings->grants;
	struct dofi_inbox *inbox;

	dofi_mutex_lock(&grants->lock);
	TAILQ_FOREACH(inbox, &rings->inboxes, all)
		if (dofi_inbox_peer(inbox) == peer)
			dofi_writer_await(&inbox->writer, 0);
	dofi_mutex_unlock(&grants->lock);
}

void dofi_inboxes_reap(struct dofi_rings *rings)
{
	struct dofi_inbox *inbox, *next;

	for (inbox = TAILQ_FIRST(&rings->inboxes); inbox; inbox = next) {
		next = TAILQ_NEXT(inbox, all);
		/* one with a descriptor is still of an exchange */
		if (inbox->fd < 0 && atomic_load(&inbox->link->use) == DOFI_LINK_ENDED)
			inbox_end(inbox);
	}
}

void dofi_inboxes_close(struct dofi_rings *rings)
{
	struct dofi_inbox *inbox;

	while ((inbox = TAILQ_FIRST(&rings->inboxes))) {
		atomic_store(&inbox->link->use, DOFI_LINK_SHUT);
		inbox_free(inbox);
	}
}
