/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reservations of an endpoint's entries for peers, where a fabric has few of them.
 *
 * A request names the endpoint of ours that the answer is for, before it is known which peer
 * answers, and that peer cannot be sent another way then: its entry is reserved before. Reservations
 * with the same key count once.
 */
#ifndef DOFI_FAB_PLACES_H
#define DOFI_FAB_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#define DOFI_PLACE_KEY 256

struct dofi_places;

/* A reservation; all zero before it is made. */
struct dofi_claim {
	TAILQ_ENTRY(dofi_claim) link;
	struct dofi_places *of;		/* NULL unless it stands */
	bool counts;			/* false where another one with this key does */
	size_t key_len;
	unsigned char key[DOFI_PLACE_KEY];
};

struct dofi_places {
	TAILQ_HEAD(, dofi_claim) claims;
	unsigned claimed;
};

void dofi_places_init(struct dofi_places *places);

/*
 * Reserves a place. Returns false if @room places are reserved already. @key, of at most
 * DOFI_PLACE_KEY bytes, says what the place is for.
 */
bool dofi_place_claim(struct dofi_places *places, struct dofi_claim *claim, unsigned room,
		      const void *key, size_t len);

/* Releases the place; does nothing if @claim does not stand. */
void dofi_place_let_go(struct dofi_claim *claim);

#endif
