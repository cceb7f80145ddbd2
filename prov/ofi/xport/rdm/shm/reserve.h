/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reservations of an endpoint's entries for peers, where a fabric has few of them.
 *
 * A request names the endpoint of ours that the answer is for, before it is known which peer
 * answers, and that peer cannot be sent another way then: its entry is reserved before. Reservations
 * with the same key count once.
 */
#ifndef DOFI_SHM_RESERVE_H
#define DOFI_SHM_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#define DOFI_RESERVATION_KEY 256

struct dofi_reservations;

/* A reservation; all zero before it is made. */
struct dofi_reservation {
	TAILQ_ENTRY(dofi_reservation) link;
	struct dofi_reservations *of;		/* NULL unless it stands */
	bool counts;			/* false where another one with this key does */
	size_t key_len;
	unsigned char key[DOFI_RESERVATION_KEY];
};

struct dofi_reservations {
	TAILQ_HEAD(, dofi_reservation) list;
	unsigned reserved;
};

void dofi_reservations_init(struct dofi_reservations *reservations);

/*
 * Reserves a place. Returns false if @room places are reserved already. @key, of at most
 * DOFI_RESERVATION_KEY bytes, says what the place is for.
 */
bool dofi_reserve(struct dofi_reservations *reservations, struct dofi_reservation *reservation, unsigned room,
		      const void *key, size_t len);

/* Releases the place; does nothing if @claim does not stand. */
void dofi_release(struct dofi_reservation *reservation);

#endif
