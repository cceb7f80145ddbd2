/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room for who is not a peer yet, where a fabric has room for a few.
 *
 * Who is to be a peer is known only when a request was answered, and must not be turned away then:
 * so it claims its place before. The same one has one place however often it claims it.
 */
#ifndef DOFI_FAB_PLACES_H
#define DOFI_FAB_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#define DOFI_PLACE_KEY 256

struct dofi_claim {
	TAILQ_ENTRY(dofi_claim) link;
	bool stands;
	bool counts;			/* not one of several of the same */
	size_t key_len;
	unsigned char key[DOFI_PLACE_KEY];	/* who it is for */
};

struct dofi_places {
	TAILQ_HEAD(, dofi_claim) claims;
	unsigned claimed;
};

void dofi_places_init(struct dofi_places *places);

/*
 * False if there is no room for another beside the claims that stand. @key says who it is for, and
 * is not longer than DOFI_PLACE_KEY.
 */
bool dofi_place_claim(struct dofi_places *places, struct dofi_claim *claim, unsigned room,
		      const void *key, size_t len);

/* It is answered: a peer now, or none. Nothing happens to a claim that does not stand. */
void dofi_place_let_go(struct dofi_places *places, struct dofi_claim *claim);

#endif
