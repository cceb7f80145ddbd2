/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reservations of an endpoint's entries for peers. */

#include "xport/rdm/shm/reserve.h"

#include <criterion/criterion.h>
#include <string.h>

static struct dofi_places places;
static struct dofi_claim claim[6];

static void init(void)
{
	memset(claim, 0, sizeof(claim));
	dofi_places_init(&places);
}

TestSuite(places, .init = init);

static bool claims(int i, unsigned room, const char *key)
{
	return dofi_place_claim(&places, &claim[i], room, key, strlen(key));
}

static void let_go(int i)
{
	dofi_place_let_go(&claim[i]);
}

Test(places, there_are_as_many_as_there_is_room)
{
	cr_expect(!claims(0, 0, "a"));
	cr_expect(claims(0, 2, "a"));
	cr_expect(claims(1, 2, "b"));
	cr_expect(!claims(2, 2, "c"));
	let_go(2);	/* which has none */
	cr_expect_eq(places.claimed, 2);
	let_go(0);
	cr_expect(claims(2, 2, "c"));
	cr_expect_eq(places.claimed, 2);
}

Test(places, the_same_one_has_one)
{
	cr_expect(claims(0, 1, "a"));
	cr_expect(claims(1, 1, "a"));
	cr_expect(claims(2, 0, "a"));
	cr_expect(!claims(3, 1, "aa"));
	cr_expect_eq(places.claimed, 1);
	let_go(0);
	cr_expect(!claims(3, 1, "b"));
	let_go(2);
	cr_expect(!claims(3, 1, "b"));
	let_go(1);
	let_go(1);
	cr_expect_eq(places.claimed, 0);
	cr_expect(TAILQ_EMPTY(&places.claims));
	cr_expect(claims(3, 1, "b"));
}
