/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of the doorbell: all interleavings of a producer and a consumer, each step one access to
 * shared memory, all of them sequentially consistent. No wakeup and no frame is lost. The model
 * finds the losses with each of some wrong orders.
 *
 * The steps are from dofi_outbox_send() and dofi_outbox_notify() (rings/outbox.[ch]) against
 * dofi_rings_sleep_begin() and a read of the set (rings/rings.c). A change there belongs here too.
 */

#include "rings/link.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 2
#define POLLS 2

/* One access is out of order. */
enum wrong {
	RIGHT,
	/* the producer loads the peer's wish before it publishes the frame */
	WANTS_BEFORE_FRAME,
	/* the consumer searches the rings before it stores its wish */
	SEARCH_BEFORE_WANTS,
	/* the consumer looks at the ring before it clears the mark */
	LOOK_BEFORE_CLEAR,
};

enum producer {
	PUBLISH,
	LOAD_WANTS,
	LOAD_MARK,
	SET_MARK,
	LOAD_WANTS_AGAIN,
	CLEAR_WAKE,
	WAKE,
	SENT,
};

enum consumer {
	POLL,
	CLEAR_MARK,
	LOOK,
	WANT_WAKE,
	SET_ALL_DUE,
	TAKE_ALL_DUE,
	SEARCH,
	SLEEP,
	WANT_NOTHING,
	RECEIVED,
};

struct model {
	uint8_t frames, mark, wants, all_due, woken;	/* shared */
	uint8_t producer, seen;					/* the producer's */
	uint8_t consumer, due, taken, polls;			/* the consumer's */
};

static enum wrong wrong;
static bool sleeps;	/* the consumer sleeps when it finds nothing; or makes POLLS polls */
static unsigned lost, states;
static uint64_t *visited;

#define BITS 28

static uint32_t number_of(const struct model *m)
{
	uint32_t n = m->frames;

	n = n << 2 | m->taken;
	n = n << 1 | m->mark;
	n = n << 2 | m->wants;
	n = n << 1 | m->all_due;
	n = n << 1 | m->woken;
	n = n << 4 | m->producer;
	n = n << 4 | m->consumer;
	n = n << 2 | m->seen;
	n = n << 1 | m->due;
	n = n << 3 | m->polls;
	cr_assert(n < 1u << BITS);
	return n;
}

/* Returns false if @m was visited before. */
static bool visit(const struct model *m)
{
	const uint32_t n = number_of(m);
	const uint64_t bit = 1ull << n % 64;

	if (visited[n / 64] & bit)
		return false;
	visited[n / 64] |= bit;
	states++;
	return true;
}

static void next_frame(struct model *m)
{
	m->producer = m->frames < FRAMES ? PUBLISH : SENT;
}

/* After the frame, and the load of the peer's wish. */
static void act_on_wants(struct model *m)
{
	if (m->seen & DOFI_DOORBELL_MARK)
		m->producer = LOAD_MARK;
	else if (m->seen & DOFI_DOORBELL_WAKE)
		m->producer = CLEAR_WAKE;
	else
		next_frame(m);
}

/* Returns false if the producer cannot do a step. */
static bool produce(struct model *m)
{
	switch ((enum producer)m->producer) {
	case PUBLISH:
		if (wrong == WANTS_BEFORE_FRAME)
			m->seen = m->wants;
		m->producer = LOAD_WANTS;
		if (wrong != WANTS_BEFORE_FRAME)
			m->frames++;
		break;
	case LOAD_WANTS:
		if (wrong == WANTS_BEFORE_FRAME)
			m->frames++;
		else
			m->seen = m->wants;
		act_on_wants(m);
		break;
	case LOAD_MARK:
		m->producer = m->mark ? LOAD_WANTS_AGAIN : SET_MARK;
		break;
	case SET_MARK:
		m->mark = 1;
		m->producer = LOAD_WANTS_AGAIN;
		break;
	case LOAD_WANTS_AGAIN:
		m->seen = m->wants & DOFI_DOORBELL_WAKE;
		act_on_wants(m);
		break;
	case CLEAR_WAKE:
		m->seen = m->wants & DOFI_DOORBELL_WAKE;
		m->wants &= ~DOFI_DOORBELL_WAKE;
		if (m->seen)
			m->producer = WAKE;
		else
			next_frame(m);
		break;
	case WAKE:
		m->woken = 1;
		next_frame(m);
		break;
	case SENT:
		return false;
	}
	return true;
}

/* Returns whether the consumer took a frame. */
static bool take(struct model *m)
{
	if (m->taken == m->frames)
		return false;
	m->taken++;
	return true;
}

static void after_poll(struct model *m)
{
	if (sleeps)
		m->consumer = wrong == SEARCH_BEFORE_WANTS ? SEARCH : WANT_WAKE;
	else
		m->consumer = ++m->polls < POLLS ? POLL : RECEIVED;
}

static void look(struct model *m, enum consumer next)
{
	if (take(m))
		return;
	m->due = 0;
	if (next == POLL)
		after_poll(m);
	else
		m->consumer = next;
}

/* Returns false if the consumer cannot do a step. */
static bool consume(struct model *m)
{
	if (m->taken == FRAMES)
		return false;
	switch ((enum consumer)m->consumer) {
	case POLL:
		if (m->mark)
			m->consumer = wrong == LOOK_BEFORE_CLEAR ? LOOK : CLEAR_MARK;
		else
			after_poll(m);
		break;
	case CLEAR_MARK:
		m->due = wrong == LOOK_BEFORE_CLEAR ? 0 : m->mark;
		m->mark = 0;
		if (m->due)
			m->consumer = LOOK;
		else
			after_poll(m);
		break;
	case LOOK:
		look(m, wrong == LOOK_BEFORE_CLEAR ? CLEAR_MARK : POLL);
		break;
	case WANT_WAKE:
		m->wants |= DOFI_DOORBELL_WAKE;
		m->consumer = wrong == SEARCH_BEFORE_WANTS ? SLEEP : SET_ALL_DUE;
		break;
	case SET_ALL_DUE:
		m->all_due = 1;
		m->consumer = TAKE_ALL_DUE;
		break;
	case TAKE_ALL_DUE:
		m->due = m->all_due;
		m->all_due = 0;
		m->consumer = SEARCH;
		break;
	case SEARCH:
		if (take(m))
			m->consumer = WANT_NOTHING;
		else
			m->consumer = wrong == SEARCH_BEFORE_WANTS ? WANT_WAKE : SLEEP;
		break;
	case SLEEP:
		if (!m->woken)
			return false;
		m->woken = 0;
		m->consumer = WANT_NOTHING;
		break;
	case WANT_NOTHING:
		m->wants &= ~DOFI_DOORBELL_WAKE;
		m->due = 0;
		m->consumer = POLL;
		break;
	case RECEIVED:
		return false;
	}
	return true;
}

/* Both have stopped: a consumer that does not sleep polls once more. */
static void ended(const struct model *m)
{
	const bool finds = !sleeps && (m->due || m->mark);

	lost += m->taken < FRAMES && !finds;
}

static void explore(const struct model *m)
{
	struct model by_producer = *m, by_consumer = *m;
	bool produced, consumed;

	if (!visit(m))
		return;
	produced = produce(&by_producer);
	consumed = consume(&by_consumer);
	if (produced)
		explore(&by_producer);
	if (consumed)
		explore(&by_consumer);
	if (!produced && !consumed)
		ended(m);
}

/* Returns the number of final states in which a frame is missing. */
static unsigned losses(enum wrong order, bool marks, bool with_sleep)
{
	const struct model begin = { .wants = marks ? DOFI_DOORBELL_MARK : 0 };

	wrong = order;
	sleeps = with_sleep;
	lost = states = 0;
	visited = calloc((1u << BITS) / 64, sizeof(*visited));
	cr_assert(visited);
	explore(&begin);
	free(visited);
	cr_expect(states > 50, "%u states", states);
	return lost;
}

TestSuite(rings_model, .timeout = 60);

Test(rings_model, no_wakeup_is_lost)
{
	cr_expect_eq(losses(RIGHT, false, true), 0);
	cr_expect_eq(losses(RIGHT, true, true), 0);
}

Test(rings_model, no_marked_frame_is_lost_to_polls)
{
	cr_expect_eq(losses(RIGHT, true, false), 0);
}

Test(rings_model, wrong_orders_lose_wakeups)
{
	/* with marks, the second load of the peer's wish hides this error */
	cr_expect(losses(WANTS_BEFORE_FRAME, false, true));
	cr_expect(losses(SEARCH_BEFORE_WANTS, false, true));
	cr_expect(losses(SEARCH_BEFORE_WANTS, true, true));
}

Test(rings_model, wrong_orders_lose_marked_frames)
{
	cr_expect(losses(LOOK_BEFORE_CLEAR, true, false));
}
