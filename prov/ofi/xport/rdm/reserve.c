/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reservations of an endpoint's entries for peers; reservations with equal keys share an entry. */

#include "xport/rdm/reserve.h"

#include <string.h>

void dofi_reservations_init(struct dofi_reservations *reservations)
{
	TAILQ_INIT(&reservations->list);
	reservations->reserved = 0;
}

static struct dofi_reservation *reservation_find(struct dofi_reservations *reservations,
						 const void *key, size_t len)
{
	struct dofi_reservation *reservation;

	TAILQ_FOREACH(reservation, &reservations->list, link)
		if (reservation->key_len == len && !memcmp(reservation->key, key, len))
			return reservation;
	return NULL;
}

bool dofi_reserve(struct dofi_reservations *reservations, struct dofi_reservation *reservation,
		  unsigned entries, const void *key, size_t len)
{
	reservation->counts = !reservation_find(reservations, key, len);
	if (reservation->counts && reservations->reserved >= entries)
		return false;
	reservation->key_len = len;
	memcpy(reservation->key, key, len);
	reservation->of = reservations;
	reservations->reserved += reservation->counts;
	TAILQ_INSERT_TAIL(&reservations->list, reservation, link);
	return true;
}

void dofi_release(struct dofi_reservation *reservation)
{
	struct dofi_reservations *reservations = reservation->of;
	struct dofi_reservation *other;

	if (!reservations)
		return;
	reservation->of = NULL;
	TAILQ_REMOVE(&reservations->list, reservation, link);
	other = reservation->counts ?
			reservation_find(reservations, reservation->key, reservation->key_len) :
			NULL;
	if (other)
		other->counts = true;
	else
		reservations->reserved -= reservation->counts;
}
