/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy of a completion queue: a table of looks, and its promises to each kind of program. */

#include "fab/cq_policy.h"

#include "base/env.h"

#include <criterion/criterion.h>

#define PROBE 20
#define TICK 1000
#define US 1000LL
#define MANY 1000000

static void init(void)
{
	dofi_settings_read();
	dofi_settings.probe_us = PROBE;
	dofi_settings.tick_us = TICK;
}

TestSuite(cq_policy, .init = init);

/* A look that finds a loop of polls, of a thread that had the processor all the time. */
#define LOOP .polls = MANY, .ran = TICK * US, .passed = TICK * US
/* Polls too rare for a loop: one in 100 us. */
#define RARE .polls = 10, .ran = TICK * US, .passed = TICK * US
#define WOKEN .armed = true, .woken = true
#define ONE_POLL .polls = 1, .ran = TICK * US, .passed = TICK * US

static const struct row {
	const char *what;
	struct dofi_cq_policy before;
	struct dofi_cq_seen seen;
	enum dofi_cq_turn turn;
	long pause_us;		/* of LEAVE and READ_AND_LEAVE */
	int kept;		/* wakeups_kept afterwards */
} rows[] = {
	/* armed, and woken */
	{ "no thread of the program uses the CQ",
	  { .pause_us = PROBE },
	  { WOKEN },
	  DOFI_CQ_ARM, 0, 0 },
	{ "the program polls in a loop",
	  { .pause_us = PROBE },
	  { WOKEN, LOOP },
	  DOFI_CQ_LEAVE, PROBE, 0 },
	{ "a poll is in progress",
	  { .pause_us = PROBE },
	  { WOKEN, .reads = true },
	  DOFI_CQ_LEAVE, PROBE, 0 },
	{ "the program took what another thread read",
	  { .pause_us = PROBE },
	  { WOKEN, .took_queued = true },
	  DOFI_CQ_READ_AND_LEAVE, PROBE, 0 },
	{ "the program posted, and its event arrived",
	  { .pause_us = PROBE },
	  { WOKEN, .posted = true },
	  DOFI_CQ_READ_AND_LEAVE, PROBE, 0 },
	{ "the program posted, and no event arrived",
	  { .pause_us = PROBE },
	  { WOKEN, .posted = true, .eventless = true },
	  DOFI_CQ_ARM, 0, 31 },
	{ "it polls for its own write between two writes of its peer",
	  { .pause_us = PROBE, .wakeups_kept = 31 },
	  { WOKEN, LOOP },
	  DOFI_CQ_ARM, 0, 30 },
	{ "it waits for its own write between two writes of its peer",
	  { .pause_us = PROBE, .wakeups_kept = 31 },
	  { WOKEN, .has_leader = true },
	  DOFI_CQ_ARM, 0, 30 },
	{ "the proof is used up",
	  { .pause_us = PROBE, .wakeups_kept = 0 },
	  { WOKEN, LOOP },
	  DOFI_CQ_LEAVE, PROBE, 0 },
	{ "a leader was woken too",
	  { .pause_us = PROBE },
	  { WOKEN, .has_leader = true },
	  DOFI_CQ_LEAVE, TICK, 0 },
	{ "a leader cannot sweep",
	  { .pause_us = PROBE },
	  { WOKEN, .has_leader = true, .sweep = true },
	  DOFI_CQ_ARM, 0, 0 },
	{ "another thread sleeps beside the leader",
	  { .pause_us = PROBE },
	  { WOKEN, .has_leader = true, .sleeper = true },
	  DOFI_CQ_ARM, 0, 0 },
	{ "the leader had left again",
	  { .pause_us = PROBE },
	  { WOKEN, .led = true },
	  DOFI_CQ_READ_AND_LEAVE, TICK, 0 },
	{ "the last pause was long",
	  { .pause_us = 4 * TICK },
	  { WOKEN, LOOP },
	  DOFI_CQ_LEAVE, PROBE, 0 },

	/* left to the program */
	{ "the program stopped",
	  { .pause_us = 100 },
	  { .posted = false },
	  DOFI_CQ_ARM, 0, 2 },
	{ "a few polls are no loop",
	  { .pause_us = 100 },
	  { RARE },
	  DOFI_CQ_ARM, 0, 2 },
	{ "the same polls of a thread that had the processor for 40 us",
	  { .pause_us = 100 },
	  { .polls = 10, .ran = 40 * US, .passed = TICK * US },
	  DOFI_CQ_LEAVE, 125, 0 },
	{ "processor time that is not known counts as the time that passed",
	  { .pause_us = 100 },
	  { .polls = 10, .ran = INT64_MAX, .passed = 40 * US },
	  DOFI_CQ_LEAVE, 125, 0 },
	{ "it still polls",
	  { .pause_us = 100 },
	  { LOOP },
	  DOFI_CQ_LEAVE, 125, 0 },
	{ "the longest pause",
	  { .pause_us = 4 * TICK },
	  { LOOP },
	  DOFI_CQ_LEAVE, 4 * TICK, 0 },
	{ "only posts: it is looked at soon",
	  { .pause_us = TICK },
	  { .posted = true },
	  DOFI_CQ_READ_AND_LEAVE, PROBE, 0 },
	{ "only posts, for the fourth time",
	  { .pause_us = TICK, .post_only_looks = 3 },
	  { .posted = true },
	  DOFI_CQ_ARM, 0, 2 },
	{ "a poller without a processor",
	  { .pause_us = 100 },
	  { .preempted = true },
	  DOFI_CQ_READ_AND_LEAVE, 125, 0 },
	{ "it took events",
	  { .pause_us = 100 },
	  { .took_queued = true },
	  DOFI_CQ_READ_AND_LEAVE, 125, 0 },
	{ "a leader read it",
	  { .pause_us = 100 },
	  { .led = true },
	  DOFI_CQ_READ_AND_LEAVE, TICK, 0 },
	{ "a thread sleeps",
	  { .pause_us = 100 },
	  { .sleeper = true, .took_queued = true, LOOP },
	  DOFI_CQ_ARM, 0, 2 },

	/* hardware moves the data */
	{ "one poll is enough",
	  { .pause_us = PROBE },
	  { .offloaded = true, ONE_POLL },
	  DOFI_CQ_LEAVE, 25, 0 },
	{ "posts alone are no reason to serve it",
	  { .pause_us = TICK, .post_only_looks = 3 },
	  { .offloaded = true, .posted = true },
	  DOFI_CQ_READ_AND_LEAVE, 5 * TICK / 4, 0 },
};

Test(cq_policy, each_look_has_its_turn)
{
	struct dofi_cq_policy policy;
	enum dofi_cq_turn turn;
	const struct row *row;

	for (row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++) {
		policy = row->before;
		turn = dofi_cq_turn(&policy, &row->seen);
		cr_expect_eq(turn, row->turn, "%s: %d", row->what, turn);
		if (turn != DOFI_CQ_ARM)
			cr_expect_eq(policy.pause_us, row->pause_us, "%s: %ld", row->what,
				     policy.pause_us);
		cr_expect_eq(policy.wakeups_kept, row->kept, "%s: %d", row->what,
			     policy.wakeups_kept);
	}
}

/* The n-th of all combinations that a look can see. */
static struct dofi_cq_seen combination(unsigned n)
{
	static const unsigned polls[] = { 0, 1, 5, MANY };
	struct dofi_cq_seen seen = {
		.offloaded = n & 1, .armed = n & 2, .sleeper = n & 4, .sweep = n & 8,
		.has_leader = n & 16, .led = n & 32, .took_queued = n & 64, .posted = n & 128,
		.reads = n & 256, .polls = polls[n >> 9 & 3], .ran = n & 2048 ? 1 : TICK * US,
		.passed = TICK * US, .preempted = n & 4096,
	};

	seen.woken = seen.armed && n & 8192;
	seen.eventless = dofi_cq_suspects_memory(&seen) && n & 16384;
	return seen;
}

#define COMBINATIONS 32768

Test(cq_policy, whatever_a_look_sees)
{
	struct dofi_cq_policy policy;
	struct dofi_cq_seen seen;
	enum dofi_cq_turn turn;
	bool used;
	unsigned n;

	for (n = 0; n < COMBINATIONS; n++) {
		dofi_cq_policy_init(&policy);
		policy.pause_us = PROBE + n % (5 * TICK);
		policy.wakeups_kept = n % 3;
		seen = combination(n);
		used = seen.polls || seen.reads || seen.took_queued || seen.led || seen.posted ||
		       seen.preempted || (seen.woken && seen.has_leader);
		turn = dofi_cq_turn(&policy, &seen);
		if (seen.sleeper)
			cr_assert_eq(turn, DOFI_CQ_ARM, "%u: a sleeper is served", n);
		if (!used)
			cr_assert_eq(turn, DOFI_CQ_ARM, "%u: an idle program is served", n);
		if (seen.eventless)
			cr_assert_eq(turn, DOFI_CQ_ARM, "%u: a memory reader is served", n);
		if (!seen.sleeper && !seen.woken && seen.polls == MANY)
			cr_assert_eq(turn, DOFI_CQ_LEAVE, "%u: a poller is left alone", n);
		if (turn == DOFI_CQ_ARM)
			continue;
		cr_assert(policy.pause_us >= PROBE, "%u: %ld", n, policy.pause_us);
		cr_assert(policy.pause_us <= 4 * TICK, "%u: %ld", n, policy.pause_us);
	}
}

/* How often the progress thread looks at a program that polls for @us. */
static unsigned looks_at_poller(long us)
{
	const struct dofi_cq_seen woken = { WOKEN, LOOP }, seen = { LOOP };
	struct dofi_cq_policy policy;
	unsigned looks = 0;
	long passed = 0;

	dofi_cq_policy_init(&policy);
	while (dofi_cq_turn(&policy, &woken) == DOFI_CQ_ARM)
		looks++;
	for (; passed < us; passed += policy.pause_us, looks++)
		cr_assert_eq(dofi_cq_turn(&policy, &seen), DOFI_CQ_LEAVE);
	return looks;
}

Test(cq_policy, a_poller_is_left_alone_after_few_looks)
{
	const unsigned first = looks_at_poller(100 * TICK);

	cr_expect(first < 60, "%u", first);
	cr_expect_eq(looks_at_poller(1000 * TICK) - first, 900 / 4);
}

Test(cq_policy, a_program_that_reads_memory_is_served_at_each_wakeup)
{
	const struct dofi_cq_seen written = { WOKEN, .posted = true,
					      .eventless = true, ONE_POLL };
	const struct dofi_cq_seen own = { WOKEN, LOOP };
	struct dofi_cq_policy policy;
	unsigned i;

	dofi_cq_policy_init(&policy);
	for (i = 0; i < 100; i++) {
		cr_assert_eq(dofi_cq_turn(&policy, &own), DOFI_CQ_ARM, "%u", i);
		cr_assert_eq(dofi_cq_turn(&policy, &written), DOFI_CQ_ARM, "%u", i);
	}
	for (i = 0; dofi_cq_turn(&policy, &own) == DOFI_CQ_ARM; i++)
		cr_assert(i < 100, "it polls in a loop again");
}

Test(cq_policy, only_a_wakeup_of_a_program_that_hardly_polls_can_prove_that)
{
	const struct dofi_cq_seen reader = { WOKEN, .posted = true };
	struct dofi_cq_seen seen = reader;

	cr_expect(dofi_cq_suspects_memory(&seen));
	seen.woken = false;
	cr_expect(!dofi_cq_suspects_memory(&seen));
	seen = reader;
	seen.posted = false;
	cr_expect(!dofi_cq_suspects_memory(&seen), "it does nothing");
	seen.took_queued = true;
	cr_expect(dofi_cq_suspects_memory(&seen));
	seen.polls = MANY;
	cr_expect(!dofi_cq_suspects_memory(&seen));
	seen = reader;
	seen.reads = true;
	cr_expect(!dofi_cq_suspects_memory(&seen));
	seen = reader;
	seen.has_leader = true;
	cr_expect(!dofi_cq_suspects_memory(&seen));
	seen = reader;
	seen.led = true;
	cr_expect(!dofi_cq_suspects_memory(&seen));
}

Test(cq_policy, a_program_that_posts_and_never_polls_is_served_after_four_looks)
{
	const struct dofi_cq_seen posts = { .posted = true };
	const struct dofi_cq_seen woken = { WOKEN, .posted = true };
	const struct dofi_cq_seen polls = { WOKEN, LOOP };
	struct dofi_cq_policy policy;
	unsigned i;

	dofi_cq_policy_init(&policy);
	for (i = 0; dofi_cq_turn(&policy, &posts) != DOFI_CQ_ARM; i++)
		cr_assert_eq(policy.pause_us, PROBE);
	cr_expect_eq(i, 3);
	for (i = 0; i < 20; i++)
		cr_assert_eq(dofi_cq_turn(&policy, &woken), DOFI_CQ_ARM);
	for (i = 0; dofi_cq_turn(&policy, &polls) == DOFI_CQ_ARM; i++)
		cr_assert(i < 8, "a program that polls again gets it back");
}

/* An armed CQ */

Test(cq_policy, an_armed_queue_rests_until_a_wakeup)
{
	struct dofi_cq_policy policy;

	dofi_cq_policy_init(&policy);
	cr_expect_eq(dofi_cq_watch(&policy, false, true), DOFI_CQ_ONCE);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), -1);
	cr_expect_eq(dofi_cq_rest_us(&policy, true, false), TICK, "a sweep is wanted");
	cr_expect_eq(dofi_cq_rest_us(&policy, false, true), 200 * TICK,
		     "no wakeup reports failures");
}

Test(cq_policy, a_stuck_queue_rests_for_growing_times)
{
	struct dofi_cq_policy policy;

	dofi_cq_policy_init(&policy);
	cr_expect_eq(dofi_cq_watch(&policy, true, true), DOFI_CQ_ARRIVALS);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), TICK);
	cr_expect_eq(dofi_cq_rest_us(&policy, true, false), TICK, "a sweep is wanted");
	cr_expect_eq(dofi_cq_watch(&policy, true, false), DOFI_CQ_AS_BEFORE);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), 2 * TICK);
	dofi_cq_watch(&policy, true, false);
	dofi_cq_watch(&policy, true, false);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), 4 * TICK);
	cr_expect_eq(dofi_cq_watch(&policy, false, false), DOFI_CQ_ONCE);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), -1);
}

Test(cq_policy, arrivals_that_reading_causes_are_ignored)
{
	struct dofi_cq_policy policy;
	unsigned i;

	dofi_cq_policy_init(&policy);
	dofi_cq_watch(&policy, true, true);
	for (i = 1; dofi_cq_watch(&policy, true, true) == DOFI_CQ_AS_BEFORE; i++)
		cr_assert(i < 1000);
	cr_expect_eq(i, 64);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), PROBE);
	dofi_cq_watch(&policy, true, false);
	cr_expect_eq(dofi_cq_rest_us(&policy, false, false), 2 * PROBE);
}
