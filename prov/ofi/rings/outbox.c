/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sender's end of a link. */

#include "rings/outbox.h"

#include "base/cond.h"
#include "base/log.h"
#include "base/shm.h"
#include "rings/rings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dofi_outbox_map(int link, int doorbell, int grants, struct dofi_outbox **offer)
{
	struct dofi_outbox *outbox = calloc(1, sizeof(*outbox));
	void *at;
	int ret, i;

	if (!outbox)
		return -ENOMEM;
	ret = dofi_sealed_map(link, sizeof(*outbox->link), &at);
	if (ret)
		goto free;
	outbox->link = at;
	if (outbox->link->magic != DOFI_LINK_MAGIC ||
	    outbox->link->version != DOFI_LINK_VERSION)
		ret = -EPROTO;
	if (!ret)
		ret = dofi_sealed_map(doorbell, sizeof(*outbox->doorbell), &at);
	if (ret)
		goto free;
	outbox->doorbell = at;
	outbox->peer = outbox->doorbell->key;
	memcpy(outbox->bell, outbox->doorbell->bell, sizeof(outbox->bell) - 1);
	outbox->mark = atomic_load(&outbox->link->slot) % DOFI_DOORBELL_MARKS;
	outbox->out.ring = &outbox->link->ring;
	dofi_mutex_init(&outbox->lock);
	for (i = 0; i < DOFI_WRITINGS; i++)
		dofi_mutex_init(&outbox->writes[i].lock);
	ret = grants < 0 ? 0 : dofi_grant_pages_map(grants, &outbox->grants);
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "the peer's grants cannot be read: %s",
			 strerror(-ret));
	*offer = outbox;
	return 0;

free:
	dofi_outbox_unmap(outbox);
	return ret;
}

void dofi_outbox_unmap(struct dofi_outbox *outbox)
{
	if (!outbox)
		return;
	if (outbox->link)
		dofi_sealed_unmap(outbox->link, sizeof(*outbox->link));
	if (outbox->doorbell)
		dofi_sealed_unmap(outbox->doorbell, sizeof(*outbox->doorbell));
	dofi_grant_pages_unmap(outbox->grants);
	free(outbox);
}

/* From now on each user takes the outbox's lock. */
static void share(struct dofi_outbox *outbox)
{
	struct dofi_mutex *sole = outbox->sole;

	if (!sole)
		return;
	dofi_mutex_lock(sole);
	outbox->sole = NULL;
	dofi_mutex_unlock(sole);
}

int dofi_outbox_get(struct dofi_rings *rings, struct dofi_outbox **offer, struct dofi_mutex *sole,
		    struct dofi_outbox **out)
{
	struct dofi_outbox *outbox;
	uint32_t offered = DOFI_LINK_OFFERED;

	/* not one that the peer has shut: it broke its ring */
	LIST_FOREACH(outbox, &rings->outboxes, all)
		if (outbox->peer == (*offer)->peer &&
		    atomic_load(&outbox->link->use) != DOFI_LINK_SHUT)
			break;
	if (outbox) {
		share(outbox);
	} else {
		outbox = *offer;
		outbox->sole = sole;
		atomic_store(&outbox->link->pid, (uint32_t)getpid());
		atomic_store(&outbox->link->key, rings->doorbell->key);
		memcpy(outbox->link->bell, rings->doorbell->bell, sizeof(outbox->link->bell));
		if (!atomic_compare_exchange_strong(&outbox->link->use, &offered,
						    DOFI_LINK_CLAIMED))
			return -ECONNRESET;
		*offer = NULL;
		LIST_INSERT_HEAD(&rings->outboxes, outbox, all);
	}
	outbox->uses++;
	*out = outbox;
	return 0;
}

void dofi_outbox_put(struct dofi_outbox *outbox, const struct dofi_bell *bell)
{
	if (!outbox || --outbox->uses)
		return;
	LIST_REMOVE(outbox, all);
	atomic_store(&outbox->link->use, DOFI_LINK_ENDED);
	atomic_store(&outbox->doorbell->ended, 1);
	dofi_bell_ring(bell, outbox->bell);
	dofi_outbox_unmap(outbox);
}

bool dofi_outbox_has_ended(const struct dofi_outbox *outbox, const struct dofi_bell *bell)
{
	return atomic_load(&outbox->link->use) == DOFI_LINK_SHUT ||
	       !dofi_bell_ring(bell, outbox->bell);
}

void dofi_outbox_notify_slow(struct dofi_outbox *outbox, const struct dofi_bell *bell)
{
	const uint64_t mark = 1ull << outbox->mark;
	const uint32_t wakes = DOFI_DOORBELL_WAKE | DOFI_DOORBELL_LEADER;
	struct dofi_doorbell *doorbell = outbox->doorbell;
	uint32_t wants = atomic_load(&doorbell->wants);

	if (wants & DOFI_DOORBELL_MARK) {
		if (!(atomic_load(&doorbell->marks) & mark))
			atomic_fetch_or(&doorbell->marks, mark);
		wants = atomic_load(&doorbell->wants);
	}
	if (!(wants & wakes))
		return;
	wants = atomic_fetch_and(&doorbell->wants, ~wakes);
	if (wants & DOFI_DOORBELL_LEADER)
		dofi_word_wake(&doorbell->wants);
	if (wants & DOFI_DOORBELL_WAKE)
		dofi_bell_ring(bell, outbox->bell);
}
