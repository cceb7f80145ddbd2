/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The set of live handles. handle_threads.c uses it with many threads. */

#include "handle.h"

#include <criterion/criterion.h>
#include <errno.h>

static DAT_PROVIDER provider, other_provider;

/* Addresses as a pool returns them. They need no memory behind them. */
static DAT_HANDLE nth(uintptr_t n)
{
	return (DAT_HANDLE)(UINTPTR_MAX / 2 + 1 + n * 64);
}

static int add(DAT_HANDLE h, DAT_HANDLE_TYPE kind, DAT_IA_HANDLE owner)
{
	const struct dreg_handle obj = { .provider = &provider, .owner = owner, .kind = kind };

	return dreg_handle_add(h, &obj);
}

static const DAT_PROVIDER *provider_of(DAT_HANDLE h, DAT_HANDLE_TYPE kind)
{
	const DAT_PROVIDER *to = dreg_handle_route(h, kind), *first;

	if (dreg_handle_route_fast(h, kind, 0, &first))
		cr_assert_eq(first, to);
	return to;
}

static bool live(DAT_HANDLE h)
{
	struct dreg_handle obj;

	return dreg_handle_find(h, &obj);
}

static uint64_t serial_of(DAT_HANDLE h)
{
	struct dreg_handle obj;

	cr_assert(dreg_handle_find(h, &obj));
	return obj.serial;
}

static void drop(DAT_HANDLE h)
{
	dreg_handle_drop(h, serial_of(h));
}

Test(handle, empty_set_knows_nothing)
{
	uintptr_t n;

	for (n = 0; n < 5000; n++)
		cr_expect(!live((DAT_HANDLE)n));
	cr_expect(!live((DAT_HANDLE)UINTPTR_MAX));
	cr_expect_null(provider_of(NULL, DAT_HANDLE_TYPE_CR));
	cr_expect_null(provider_of((DAT_HANDLE)1, DAT_HANDLE_TYPE_CR));
}

Test(handle, entry_is_returned_as_added)
{
	const struct dreg_handle in = {
		.provider = &other_provider,
		.owner = nth(7),
		.kind = DAT_HANDLE_TYPE_SRQ,
		.flags = DREG_HAS_EP,
	};
	struct dreg_handle out;

	cr_assert_eq(dreg_handle_add(nth(1), &in), 0);
	cr_assert(dreg_handle_live(nth(1), DAT_HANDLE_TYPE_SRQ, &out));
	cr_expect_eq(out.provider, &other_provider);
	cr_expect_eq(out.owner, nth(7));
	cr_expect_eq(out.flags, DREG_HAS_EP);
	cr_expect_eq(provider_of(nth(1), DAT_HANDLE_TYPE_SRQ), &other_provider);
}

Test(handle, other_kinds_do_not_match)
{
	struct dreg_handle out;

	add(nth(1), DAT_HANDLE_TYPE_EP, nth(0));
	cr_expect_null(provider_of(nth(1), DAT_HANDLE_TYPE_CR));
	cr_expect_null(provider_of(nth(1), DAT_HANDLE_TYPE_EVD));
	cr_expect(!dreg_handle_live(nth(1), DAT_HANDLE_TYPE_EVD, &out));
	cr_expect(provider_of(nth(1), DAT_HANDLE_TYPE_EP) == &provider);
}

Test(handle, sentinels_are_no_handles)
{
	cr_expect_eq(add(NULL, DAT_HANDLE_TYPE_EP, nth(0)), -EINVAL);
	cr_expect_eq(add((DAT_HANDLE)1, DAT_HANDLE_TYPE_EP, nth(0)), -EINVAL);
	dreg_handle_drop(NULL, UINT64_MAX);
	dreg_handle_drop((DAT_HANDLE)1, UINT64_MAX);
	add(nth(1), DAT_HANDLE_TYPE_EP, nth(0));
	drop(nth(1)); /* leaves a vacated slot with key 1 */
	cr_expect(!live((DAT_HANDLE)1));
}

/* The first probe finds most handles, and never one that is not in the set. */
Test(handle, first_slot_usually_matches)
{
	const DAT_PROVIDER *to;
	int i, found = 0;

	for (i = 0; i < 100; i++)
		cr_assert_eq(add(nth(i), DAT_HANDLE_TYPE_EP, nth(0)), 0);
	for (i = 0; i < 100; i++)
		found += dreg_handle_route_fast(nth(i), DAT_HANDLE_TYPE_EP, 0, &to);
	cr_expect_gt(found, 75, "%d", found);
	for (i = 100; i < 5000; i++)
		cr_assert(!dreg_handle_route_fast(nth(i), DAT_HANDLE_TYPE_EP, 0, &to));
	cr_expect(!dreg_handle_route_fast(NULL, DAT_HANDLE_TYPE_EP, 0, &to));
}

Test(handle, flags_are_set_for_good)
{
	struct dreg_handle before, after;
	const DAT_PROVIDER *to;

	cr_assert_eq(add(nth(1), DAT_HANDLE_TYPE_EVD, nth(0)), 0);
	cr_assert(dreg_handle_find(nth(1), &before));
	cr_expect(dreg_handle_route_fast(nth(1), DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS, &to));
	dreg_handle_flag(nth(1), DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS);
	dreg_handle_flag(nth(1), DAT_HANDLE_TYPE_EVD, DREG_EXTENSIONS);
	cr_assert(dreg_handle_find(nth(1), &after));
	cr_expect_eq(after.flags, DREG_TAKES_REQUESTS | DREG_EXTENSIONS);
	cr_expect_eq(after.serial, before.serial);
	cr_expect_eq(after.kind, DAT_HANDLE_TYPE_EVD);
	cr_expect(dreg_handle_route_fast(nth(1), DAT_HANDLE_TYPE_EVD, 0, &to));
	cr_expect(!dreg_handle_route_fast(nth(1), DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS, &to));
}

Test(handle, what_is_no_such_handle_gets_no_flags)
{
	struct dreg_handle obj;

	cr_assert_eq(add(nth(1), DAT_HANDLE_TYPE_EP, nth(0)), 0);
	dreg_handle_flag(nth(1), DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS);
	dreg_handle_flag(nth(2), DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS);
	dreg_handle_flag(NULL, DAT_HANDLE_TYPE_EVD, DREG_TAKES_REQUESTS);
	cr_assert(dreg_handle_find(nth(1), &obj));
	cr_expect_eq(obj.flags, 0);
	cr_expect(!live(nth(2)));
}

Test(handle, dropped_is_gone)
{
	add(nth(1), DAT_HANDLE_TYPE_EP, nth(0));
	drop(nth(1));
	cr_expect(!live(nth(1)));
	dreg_handle_drop(nth(1), UINT64_MAX);
	cr_expect(!live(nth(1)));
}

/* Another thread got the address between the provider's free and the drop. */
Test(handle, reused_address_survives_the_drop_of_the_older_object)
{
	uint64_t first;

	add(nth(1), DAT_HANDLE_TYPE_EP, nth(0));
	first = serial_of(nth(1));
	add(nth(1), DAT_HANDLE_TYPE_LMR, nth(2));
	dreg_handle_drop(nth(1), first);
	cr_expect(provider_of(nth(1), DAT_HANDLE_TYPE_LMR) == &provider);
	cr_expect_null(provider_of(nth(1), DAT_HANDLE_TYPE_EP));
}

Test(handle, dropping_an_owner_drops_its_handles)
{
	uint64_t newest;
	uintptr_t n;

	add(nth(0), DAT_HANDLE_TYPE_IA, nth(0));
	add(nth(1), DAT_HANDLE_TYPE_IA, nth(1));
	for (n = 2; n < 200; n++)
		add(nth(n), DAT_HANDLE_TYPE_EP, nth(n % 2));
	newest = dreg_handle_serial();
	add(nth(200), DAT_HANDLE_TYPE_EP, nth(0)); /* for a new IA at the address of the old one */
	dreg_handle_drop_owned(nth(0), newest);
	for (n = 0; n < 200; n++)
		cr_expect_eq(live(nth(n)), n % 2, "%lu", (unsigned long)n);
	cr_expect(live(nth(200)));
}

Test(handle, grows)
{
	enum { COUNT = 50000 };
	uintptr_t n;

	for (n = 0; n < COUNT; n++)
		cr_assert_eq(add(nth(n), DAT_HANDLE_TYPE_EP, nth(n)), 0);
	for (n = 0; n < COUNT; n++)
		cr_assert_eq(serial_of(nth(n)), n + 1);
	cr_expect(!live(nth(COUNT)));
	for (n = 0; n < COUNT; n += 2)
		drop(nth(n));
	for (n = 0; n < COUNT; n++)
		cr_assert_eq(live(nth(n)), n % 2);
}

static size_t tables(void)
{
	const struct dreg_table *t;
	size_t n = 0;

	for (t = dreg_table_now(); t; t = t->older)
		n++;
	return n;
}

/* The set must not grow in a program that creates and frees handles forever. */
Test(handle, does_not_grow_with_time)
{
	enum { ALIVE = 100 };
	uintptr_t n;

	for (n = 0; n < ALIVE; n++)
		add(nth(n * n), DAT_HANDLE_TYPE_EP, nth(0));
	for (; n < 300000; n++) {
		add(nth(n * n), DAT_HANDLE_TYPE_EP, nth(0));
		drop(nth((n - ALIVE) * (n - ALIVE)));
	}
	for (n -= ALIVE; n < 300000; n++)
		cr_assert(live(nth(n * n)));
	cr_expect_leq(tables(), 3);
}

Test(handle, arguments_must_be_the_same_providers)
{
	const struct dreg_handle foreign = {
		.provider = &other_provider, .owner = nth(9), .kind = DAT_HANDLE_TYPE_EVD,
	};

	provider.ia_close_func = (DAT_IA_CLOSE_FUNC)(uintptr_t)0x1000;
	other_provider.ia_close_func = (DAT_IA_CLOSE_FUNC)(uintptr_t)0x2000;
	add(nth(1), DAT_HANDLE_TYPE_EVD, nth(0));
	dreg_handle_add(nth(2), &foreign);
	cr_expect(dreg_handle_arg(&provider, NULL, DAT_HANDLE_TYPE_EVD));
	cr_expect(dreg_handle_arg(&provider, nth(1), DAT_HANDLE_TYPE_EVD));
	cr_expect(!dreg_handle_arg(&provider, nth(1), DAT_HANDLE_TYPE_CNO));
	cr_expect(!dreg_handle_arg(&provider, nth(2), DAT_HANDLE_TYPE_EVD));
	cr_expect(!dreg_handle_arg(&provider, nth(3), DAT_HANDLE_TYPE_EVD));
	/* another IA name of one library */
	other_provider.ia_close_func = provider.ia_close_func;
	cr_expect(dreg_handle_arg(&provider, nth(2), DAT_HANDLE_TYPE_EVD));
}
