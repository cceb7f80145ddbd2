/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reservations of an endpoint's entries for peers, where a fabric has few of them.
 *
 * A connection request names the local endpoint that the peer has to use, before the peer is known
 * to the fabric. So an entry for it is reserved before. Reservations with equal keys share an
 * entry.
 */
#ifndef DOFI_XPORT_RDM_RESERVE_H
#define DOFI_XPORT_RDM_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#define DOFI_RESERVATION_KEY 256

struct dofi_reservations;

/* A reservation; all zero before it is made. */
struct dofi_reservation {
	TAILQ_ENTRY(dofi_reservation) link;
	struct dofi_reservations *of;	/* NULL unless it is reserved */
	bool counts;			/* false if another reservation with an equal key counts */
	size_t key_len;
	unsigned char key[DOFI_RESERVATION_KEY];
};

struct dofi_reservations {
	TAILQ_HEAD(, dofi_reservation) list;
	unsigned reserved;
};

void dofi_reservations_init(struct dofi_reservations *reservations);

/*
 * Reserves an entry. Returns false if @entries of them are reserved already. @key, of at most
 * DOFI_RESERVATION_KEY bytes, identifies the peer.
 */
bool dofi_reserve(struct dofi_reservations *reservations, struct dofi_reservation *reservation,
		  unsigned entries, const void *key, size_t len);

/* Releases the entry; does nothing if none is reserved. */
void dofi_release(struct dofi_reservation *reservation);

#endif
