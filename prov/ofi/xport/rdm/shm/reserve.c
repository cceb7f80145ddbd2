/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reservations of an endpoint's entries for peers; those with the same key count once. */

#include "xport/rdm/shm/reserve.h"

#include <string.h>

void dofi_places_init(struct dofi_places *places)
{
	TAILQ_INIT(&places->claims);
	places->claimed = 0;
}

static struct dofi_claim *claim_find(struct dofi_places *places, const void *key, size_t len)
{
	struct dofi_claim *claim;

	TAILQ_FOREACH(claim, &places->claims, link)
		if (claim->key_len == len && !memcmp(claim->key, key, len))
			return claim;
	return NULL;
}

bool dofi_place_claim(struct dofi_places *places, struct dofi_claim *claim, unsigned room,
		      const void *key, size_t len)
{
	claim->counts = !claim_find(places, key, len);
	if (claim->counts && places->claimed >= room)
		return false;
	claim->key_len = len;
	memcpy(claim->key, key, len);
	claim->of = places;
	places->claimed += claim->counts;
	TAILQ_INSERT_TAIL(&places->claims, claim, link);
	return true;
}

void dofi_place_let_go(struct dofi_claim *claim)
{
	struct dofi_places *places = claim->of;
	struct dofi_claim *other;

	if (!places)
		return;
	claim->of = NULL;
	TAILQ_REMOVE(&places->claims, claim, link);
	other = claim->counts ? claim_find(places, claim->key, claim->key_len) : NULL;
	if (other)
		other->counts = true;
	else
		places->claimed -= claim->counts;
}
