/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy of a completion queue. */

#include "fab/cq_policy.h"

#include "base/env.h"

/* The wakeups that are kept after polling, as no wakeup would show a write otherwise. */
#define WAKEUPS_FIRST 2

void dofi_cq_policy_init(struct dofi_cq_policy *policy)
{
	*policy = (struct dofi_cq_policy){
		.pause_us = dofi_settings.probe_us, .wakeups_kept = WAKEUPS_FIRST,
	};
}

/*
 * Returns whether a thread polls in a loop, by the processor time for each poll: a program that
 * reads memory also polls, once per completion. A long read counts as polling, as it copies what
 * has arrived. Where hardware moves the data, no peer depends on the answer.
 */
#define POLLS_PER_PROBE 4		/* DAT_OFI_PROBE_US */

static bool polls_in_loop(const struct dofi_cq_seen *seen)
{
	const int64_t time = seen->ran < seen->passed ? seen->ran : seen->passed,
		      longest = dofi_settings.probe_us * 1000 / POLLS_PER_PROBE;

	return seen->reads ||
	       (seen->polls && (seen->offloaded || time / seen->polls <= longest));
}

/* A peer writes to a program that works, polls in no loop, and got no event by a wakeup. */
bool dofi_cq_suspects_memory(const struct dofi_cq_seen *seen)
{
	return seen->woken && (seen->posted || seen->polls || seen->took_queued) &&
	       !polls_in_loop(seen) && !seen->led && !seen->has_leader;
}

/* The longest time between two looks by the clock, in ticks: a look takes ten microseconds. */
#define RAREST_LOOK 4

/*
 * The pause before the next look: short at first and while the program only posts, then growing
 * slowly, as the peers of a program that polls in bursts wait for answers. Below a leader it is at
 * least a tick: both threads would wake otherwise.
 */
static long next_pause(const struct dofi_cq_policy *policy, const struct dofi_cq_seen *seen,
		       bool posts_alone, bool led)
{
	const long tick = dofi_settings.tick_us, most = tick * RAREST_LOOK;
	long pause = policy->pause_us + (policy->pause_us + 3) / 4;

	if (seen->armed || posts_alone)
		pause = dofi_settings.probe_us;
	if (led && pause < tick)
		pause = tick;
	return pause < most ? pause : most;
}

/*
 * How long a proof that the program reads memory lasts: between two writes of its peer it polls in
 * a loop, or waits, for its own write.
 */
#define WAKEUPS_PROVEN 32

/*
 * One look that finds posts alone does not prove that the program reads memory: a long post, or
 * many in a row, delay the next poll. So looks are counted, up for posts alone and down for work.
 */
#define POST_ONLY_LOOKS 4

/*
 * A program that has events queued, or posts, does not poll for a while. If the progress thread
 * armed the CQ then, it would queue events again, and each completion would cost two switches of
 * threads. So it reads the CQ once per look, as other EVDs and peers need that.
 *
 * A program that waits for its peer by reading memory (the eager RDMA of MPI libraries) calls
 * nothing meanwhile: its CQ has to be served as if it slept. Where hardware moves the data there is
 * nothing to serve.
 *
 * A thread that lacks a processor counts as polling: where processors are few it may be kept
 * waiting for longer than any pause. If the CQ were armed then, its peers would send a wakeup with
 * each message, and the progress threads that these wake would keep all polling threads waiting
 * for longer still.
 */
enum dofi_cq_turn dofi_cq_turn(struct dofi_cq_policy *policy, const struct dofi_cq_seen *seen)
{
	const bool polls = polls_in_loop(seen);
	const bool at_work = polls || seen->took_queued || seen->led;
	const bool posts_alone = seen->posted && !at_work && !seen->offloaded;

	if (seen->eventless)
		policy->wakeups_kept = WAKEUPS_PROVEN;
	/* also with a leader: a program that reads memory may wait for its own completions */
	if (seen->woken && policy->wakeups_kept) {
		policy->wakeups_kept--;
		return DOFI_CQ_ARM;
	}
	/* the leader also woke; the next look finds if it does not read the CQ */
	if (seen->woken && seen->has_leader && !seen->sleeper && !seen->sweep) {
		policy->pause_us = next_pause(policy, seen, false, true);
		return DOFI_CQ_LEAVE;
	}
	if (posts_alone && policy->post_only_looks < POST_ONLY_LOOKS)
		policy->post_only_looks++;
	else if (at_work && policy->post_only_looks)
		policy->post_only_looks--;
	if (seen->sleeper || policy->post_only_looks == POST_ONLY_LOOKS ||
	    (!at_work && !seen->posted && !seen->preempted)) {
		if (!seen->armed && policy->wakeups_kept < WAKEUPS_FIRST)
			policy->wakeups_kept = WAKEUPS_FIRST;
		return DOFI_CQ_ARM;
	}
	policy->pause_us = next_pause(policy, seen, posts_alone, seen->led);
	return polls ? DOFI_CQ_LEAVE : DOFI_CQ_READ_AND_LEAVE;
}

/*
 * A descriptor may stay readable with nothing to read. Data may still arrive, for other connections
 * or for RDMA writes, so epoll reports each arrival, which costs nothing meanwhile. A program that
 * posts a receive drains the CQ itself (dofi_cq_kick()). Many arrivals without a completion may be
 * an effect of reading (nested epoll sets before Linux 5.6), and are ignored from then on. The CQ
 * is also read after growing times, for arrivals that epoll does not report, and to end this.
 */
#define STUCK_WAKEUPS 64

enum dofi_cq_watch dofi_cq_watch(struct dofi_cq_policy *policy, bool stuck, bool woken)
{
	const long most = dofi_settings.tick_us * RAREST_LOOK;
	const bool was_stuck = policy->stuck;

	policy->stuck = stuck;
	if (!stuck)
		return DOFI_CQ_ONCE;
	if (!was_stuck) {
		policy->stuck_wakeups = 0;
		policy->stuck_us = dofi_settings.tick_us;
		return DOFI_CQ_ARRIVALS;
	}
	policy->stuck_us = policy->stuck_us < most / 2 ? policy->stuck_us * 2 : most;
	if (woken && ++policy->stuck_wakeups == STUCK_WAKEUPS) {
		policy->stuck_us = dofi_settings.probe_us;
		return DOFI_CQ_NOTHING;
	}
	return DOFI_CQ_AS_BEFORE;
}

#define UNREPORTED_TICKS 200	/* or an idle program would feel it */

long dofi_cq_rest_us(const struct dofi_cq_policy *policy, bool sweep, bool unreported)
{
	if (sweep)
		return dofi_settings.tick_us;
	if (policy->stuck)
		return policy->stuck_us;
	return unreported ? dofi_settings.tick_us * UNREPORTED_TICKS : -1;
}
