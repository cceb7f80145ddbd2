/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queues without a descriptor: how the thread rests while only a peer wakes it. */

#include "loop/progress.h"

#include "base/clock.h"
#include "loop/one.h"

/* Connectionless fabrics: no events, and completion queues may have no descriptor */

static _Atomic bool asleep;		/* a peer that clears it wakes the thread */
static _Atomic unsigned rests, arrived;
static bool nobody_rings;
static _Atomic unsigned comes_late;	/* this many arrive just after rest() requested wakeups */
static struct dofi_cq polled_cq;

static bool rest(struct dofi_progress *p)
{
	cr_expect(dofi_progress_on_thread(p));
	cr_expect(!asleep && dofi_served_relies_on_peer(&cq.served));
	cr_expect(!polled_cq.fid || dofi_served_relies_on_peer(&polled_cq.served),
		  "the program reads it");
	rests++;
	if (nobody_rings)
		return false;
	if (comes_late) {
		comes_late--;
		fake_complete((void *)'l', 0);
	}
	asleep = true;
	return true;
}

static void rise(struct dofi_progress *p)
{
	cr_expect(dofi_progress_on_thread(p));
	cr_expect(!nobody_rings);
	asleep = false;
}

static void arrives(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	arrived++;
	dofi_cq_delivered(&cq);
	sem_post(&traced);
}

static const struct dofi_progress_ops rdm_ops = {
	.completed = arrives, .failed = failed, .sleep_begin = rest, .sleep_end = rise,
};

static void open_cq(void *arg)
{
	dofi_cq_init(arg);
	cr_assert_eq(dofi_cq_open(arg, &progress, progress.fabric, &fake.domain, progress.ops), 0);
}

static void close_cqs(void *arg)
{
	dofi_cq_close(&cq);
	if (polled_cq.fid)
		dofi_cq_close(&polled_cq);
}

static int start_rdm(const struct dofi_progress_ops *with)
{
	struct fi_info *info = fake_info("shm", "");
	int ret;

	info->ep_attr->type = FI_EP_RDM;
	ret = dofi_fabric_start(&progress, with, info);
	fi_freeinfo(info);
	return ret;
}

static void init_rdm_with(const struct dofi_progress_ops *with)
{
	dofi_settings_read();
	dofi_settings.tick_us = 10;	/* short enough to notice a thread that ticks */
	dofi_longest_sleep_ns = 3600 * INT64_C(1000000000);
	fake_init();
	fake.replace_fabric = true;
	fake.fault.eq_open = -FI_ENOSYS;
	fake.fault.no_cq_fd = true;
	sem_init(&traced, 0, 0);
	cr_assert_eq(start_rdm(with), 0);
	dofi_progress_call(&progress, open_cq, &cq);
}

static void init_rdm(void)
{
	init_rdm_with(&rdm_ops);
}

static void fini_rdm(void)
{
	dofi_progress_call(&progress, close_cqs, NULL);
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
	cr_expect(!asleep);
	cr_expect_eq(fake.trywaits, 0);
}

TestSuite(rest, .init = init_rdm, .fini = fini_rdm);

/* Sends as a peer does. */
static void peer_sends(void)
{
	fake_complete((void *)'p', 0);
	if (atomic_exchange(&asleep, false))
		dofi_progress_wake(&progress);
}

/* Whether the thread works without being woken. It may still be about to sleep. */
static bool is_busy(void)
{
	unsigned reads;

	settle();
	reads = fake.cq_reads;
	usleep(20000);		/* 2000 ticks */
	return fake.cq_reads - reads > 20;
}

Test(rest, an_idle_thread_sleeps)
{
	cr_expect(!is_busy());
	cr_expect(rests > 0);
	cr_expect(asleep);
}

/* A lost wakeup makes the test hang, because nothing else wakes the thread. */
Test(rest, nothing_is_lost_between_the_last_read_and_sleep, .timeout = 20)
{
	unsigned i;

	for (i = 0; i < 2000; i++) {
		peer_sends();
		await(1);
	}
	cr_expect_eq(arrived, 2000);
}

static void rest_briefly(void *arg)
{
	dofi_longest_sleep_ns = 1000000;
}

/* A faulty peer withdraws the request that all peers see. */
Test(rest, a_withdrawn_request_delays_others_for_a_limited_time, .timeout = 20)
{
	dofi_progress_call(&progress, rest_briefly, NULL);
	settle();
	atomic_store(&asleep, false);
	peer_sends();
	await(1);
}

Test(rest, what_comes_when_peers_are_asked_to_ring_is_found, .timeout = 20)
{
	comes_late = 5;
	dofi_progress_wake(&progress);
	await(5);
	cr_expect_eq(arrived, 5);
	cr_expect(!is_busy());
}

Test(rest, work_runs_during_a_flood, .timeout = 20)
{
	comes_late = 1000000;
	dofi_progress_wake(&progress);
	await(10);
	settle();	/* work runs meanwhile */
	dofi_progress_call(&progress, close_cqs, NULL);
	dofi_progress_call(&progress, open_cq, &cq);
}

Test(rest, a_sleeper_is_served, .timeout = 20)
{
	dofi_cq_sleep_begin(&cq);
	cr_expect(!is_busy());
	peer_sends();
	await(1);
	dofi_cq_sleep_end(&cq);
}

/* rest() checks that no wakeup is requested for a CQ that the program reads. */
Test(rest, peers_do_not_wake_it_for_what_the_program_reads, .timeout = 20)
{
	unsigned i;

	settle();
	for (i = 0; i < 2000; i++) {
		peer_sends();
		while (arrived <= i)
			dofi_cq_poll(&cq, NULL);
	}
	cr_expect_eq(arrived, 2000);
	peer_sends();
	while (arrived < 2001)
		usleep(10);	/* the program has stopped polling: a tick or a wakeup */
}

static _Atomic bool found;

static void *poll_the_other(void *arg)
{
	while (!found)
		dofi_cq_poll(&polled_cq, NULL);
	return NULL;
}

static void is_owned(void *arg)
{
	*(bool *)arg = !atomic_load(&polled_cq.armed);
}

Test(rest, an_unread_queue_is_served_while_another_is_polled, .timeout = 20)
{
	bool owned = false;
	pthread_t thread;

	dofi_progress_call(&progress, open_cq, &polled_cq);
	pthread_create(&thread, NULL, poll_the_other, NULL);
	while (!owned)
		dofi_progress_call(&progress, is_owned, &owned);
	peer_sends();	/* wakes only on request, and none is made while the other CQ is read */
	await(1);
	found = true;
	pthread_join(thread, NULL);
}

static void init_deaf(void)
{
	nobody_rings = true;
	init_rdm();
}

Test(rest, without_wakeups_it_reads_by_the_clock, .init = init_deaf, .timeout = 20)
{
	fake_complete((void *)'p', 0);
	await(1);
	fake_complete((void *)'p', 0);
	await(1);
}

static const struct dofi_progress_ops bare_ops = { .completed = arrives, .failed = failed };

static void init_bare(void)
{
	init_rdm_with(&bare_ops);
}

Test(rest, without_rest_it_reads_by_the_clock, .init = init_bare, .timeout = 20)
{
	fake_complete((void *)'p', 0);
	await(1);
}

Test(rest, queues_with_descriptors_need_no_peers, .timeout = 20)
{
	dofi_progress_call(&progress, close_cqs, NULL);
	fake.fault.no_cq_fd = false;
	dofi_progress_call(&progress, open_cq, &cq);
	settle();
	rests = 0;
	fake_complete((void *)'p', 0);
	await(1);
	settle();
	cr_expect_eq(rests, 0);
	fake.trywaits = 0;
}
