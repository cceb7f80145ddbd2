/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reservations of an endpoint's entries for peers. */

#include "xport/rdm/reserve.h"

#include <criterion/criterion.h>
#include <string.h>

static struct dofi_reservations reservations;
static struct dofi_reservation reservation[6];

static void init(void)
{
	memset(reservation, 0, sizeof(reservation));
	dofi_reservations_init(&reservations);
}

TestSuite(reservations, .init = init);

static bool reserves(int i, unsigned room, const char *key)
{
	return dofi_reserve(&reservations, &reservation[i], room, key, strlen(key));
}

static void let_go(int i)
{
	dofi_release(&reservation[i]);
}

Test(reservations, there_are_as_many_as_there_is_room)
{
	cr_expect(!reserves(0, 0, "a"));
	cr_expect(reserves(0, 2, "a"));
	cr_expect(reserves(1, 2, "b"));
	cr_expect(!reserves(2, 2, "c"));
	let_go(2);	/* has no reservation */
	cr_expect_eq(reservations.reserved, 2);
	let_go(0);
	cr_expect(reserves(2, 2, "c"));
	cr_expect_eq(reservations.reserved, 2);
}

Test(reservations, a_process_has_one_reservation_for_all_of_its_uses)
{
	cr_expect(reserves(0, 1, "a"));
	cr_expect(reserves(1, 1, "a"));
	cr_expect(reserves(2, 0, "a"));
	cr_expect(!reserves(3, 1, "aa"));
	cr_expect_eq(reservations.reserved, 1);
	let_go(0);
	cr_expect(!reserves(3, 1, "b"));
	let_go(2);
	cr_expect(!reserves(3, 1, "b"));
	let_go(1);
	let_go(1);
	cr_expect_eq(reservations.reserved, 0);
	cr_expect(TAILQ_EMPTY(&reservations.list));
	cr_expect(reserves(3, 1, "b"));
}
