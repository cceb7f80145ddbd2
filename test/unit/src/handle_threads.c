/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of live handles with many threads, without the unit test framework, which does not work
 * with ThreadSanitizer.
 *
 * Each thread adds and drops handles of its own. It must find them exactly while they are live,
 * although the other threads make the table grow. One handle stays, and all threads must find it.
 */

#include "handle.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8, ROUNDS = 400, BATCH = 100 };

static DAT_PROVIDER provider;

static DAT_HANDLE nth(uintptr_t n)
{
	return (DAT_HANDLE)(UINTPTR_MAX / 2 + 1 + n * 64);
}

static int add(DAT_HANDLE h, DAT_HANDLE_TYPE kind)
{
	const struct dreg_handle obj = { .provider = &provider, .owner = nth(0), .kind = kind };

	return dreg_handle_add(h, &obj);
}

static const DAT_PROVIDER *provider_of(DAT_HANDLE h, DAT_HANDLE_TYPE kind)
{
	return dreg_handle_route(h, kind);
}

static bool live(DAT_HANDLE h)
{
	struct dreg_handle obj;

	return dreg_handle_find(h, &obj);
}

static void drop(DAT_HANDLE h)
{
	struct dreg_handle obj;

	if (dreg_handle_find(h, &obj))
		dreg_handle_drop(h, obj.serial);
}

static void *come_and_go(void *arg)
{
	uintptr_t base = (uintptr_t)arg * 1000000, wrong = 0, round, n;

	for (round = 0; round < ROUNDS; round++) {
		for (n = 0; n < BATCH; n++)
			wrong += add(nth(base + n), DAT_HANDLE_TYPE_EP) != 0;
		for (n = 0; n < BATCH; n++) {
			wrong += provider_of(nth(base + n), DAT_HANDLE_TYPE_EP) != &provider;
			wrong += provider_of(nth(0), DAT_HANDLE_TYPE_IA) != &provider;
			wrong += live(nth(base + BATCH + n));
		}
		/* One handle of each round stays, so that the table grows. */
		for (n = 1; n < BATCH; n++)
			drop(nth(base + n));
		for (n = 1; n < BATCH; n++)
			wrong += live(nth(base + n));
		base += 2 * BATCH;
	}
	return (void *)wrong;
}

int main(void)
{
	const struct dreg_table *first = dreg_table_now();
	uintptr_t i, n, wrong = 0;
	pthread_t thread[THREADS];
	void *ret;

	add(nth(0), DAT_HANDLE_TYPE_IA);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, come_and_go, (void *)(i + 1)))
			return 99;
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &ret);
		wrong += (uintptr_t)ret;
	}
	for (i = 1; i <= THREADS; i++)
		for (n = 0; n < ROUNDS; n++)
			wrong += !live(nth(i * 1000000 + n * 2 * BATCH));
	dreg_handle_drop_owned(nth(0), dreg_handle_serial());
	wrong += live(nth(0)) + live(nth(1000000));

	if (wrong || dreg_table_now() == first) {
		printf("%lu wrong answers%s\n", (unsigned long)wrong,
		       dreg_table_now() == first ? ", and the table never grew" : "");
		return 1;
	}
	return 0;
}
