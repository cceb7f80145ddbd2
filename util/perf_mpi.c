/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pattern of MPI libraries: a message is an RDMA write to the target's next buffer. The target
 * polls the last byte of the buffer, and meanwhile dequeues completions of its own operations. It
 * sends a credit for every half of the buffers, so that the writer can reuse them. Credits use the
 * last connection if there are several.
 */
#include "perf_loop.h"

static inline size_t slot_off(const struct perf_run *r, uint64_t i)
{
	return i % r->slots * r->stride;
}

/* Differs from the byte that the previous message to this buffer ended with. */
static inline unsigned char mark(const struct perf_run *r, uint64_t i)
{
	return (unsigned char)(i / r->slots % 251 + 1);
}

static inline unsigned char *mark_of(const struct perf_run *r, size_t area, uint64_t i)
{
	return r->x->mem + area + slot_off(r, i) + r->size - 1;
}

static inline void select_lane(const struct perf_run *r, unsigned int lane)
{
	if (r->x->lanes > 1)
		r->x->ops->select(r->x, lane);
}

void perf_mpi_prep(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->slots; i++)
		*mark_of(r, r->x->lay.rx, i) = 0;
}

static inline bool may_put(const struct perf_run *r, uint64_t i)
{
	return i < r->slots + r->rx * r->credit && r->sent - r->tx < r->slots;
}

/* Writes message @i, when the peer has a buffer for it and its source may change. */
static inline int put(struct perf_run *r, uint64_t i)
{
	struct perf_xport *x = r->x;

	RUN_UNTIL(r, may_put(r, i));
	if (perf_run_refill(r, r->rx + r->slots))
		return -1;
	*mark_of(r, x->lay.tx, i) = mark(r, i);
	select_lane(r, 0);
	RUN_POST(r, x->ops->post_write(x, x->lay.tx + slot_off(r, i), r->size,
				       x->lay.rx + slot_off(r, i), PERF_COOKIE_TX));
	r->sent++;
	return 0;
}

static int give_credit(struct perf_run *r)
{
	struct perf_xport *x = r->x;

	RUN_UNTIL(r, r->sent - r->tx < r->slots);
	select_lane(r, x->lanes - 1);
	RUN_POST(r, x->ops->post_send(x, x->lay.note_tx, PERF_NOTE_LEN, PERF_COOKIE_TX));
	r->sent++;
	return 0;
}

static inline bool has_arrived(const struct perf_run *r, uint64_t i)
{
	return __atomic_load_n(mark_of(r, r->x->lay.rx, i), __ATOMIC_ACQUIRE) == mark(r, i);
}

/* Waits for message @i, and lets the peer reuse the buffers of taken messages. */
static inline int take(struct perf_run *r, uint64_t i)
{
	RUN_UNTIL(r, has_arrived(r, i));
	return (i + 1) % r->credit ? 0 : give_credit(r);
}

/* Until all operations of this side, and the peer's credits, are complete. */
static int finish(struct perf_run *r)
{
	RUN_UNTIL(r, r->tx == r->sent && r->rx == perf_run_receives(r));
	return 0;
}

int perf_mpi_client(struct perf_run *r)
{
	uint64_t i, last = perf_now_ns(), now;

	for (i = 0; i < r->iters; i++) {
		if (perf_run_pace(r, i, &last) || put(r, i) || take(r, i))
			return -1;
		now = perf_now_ns();
		r->samples[i] = now - last;
		last = now;
	}
	return finish(r);
}

int perf_mpi_server(struct perf_run *r)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++)
		if (take(r, i) || put(r, i))
			return -1;
	return finish(r);
}

/*
 * Writes all messages; ends when the server reports that it has taken the last one. With @verify
 * they have the pattern, in which the mark replaces the last byte.
 */
static inline int source(struct perf_run *r, bool verify)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, may_put(r, i) && perf_run_is_due(r, i));
		if (verify)
			perf_pattern_fill(r->x->mem + r->x->lay.tx + slot_off(r, i), r->size - 1,
					  r->seed, (uint32_t)i);
		if (put(r, i))
			return -1;
	}
	if (finish(r))
		return -1;
	RUN_UNTIL(r, r->x->crx > 0);
	return 0;
}

/* Takes all messages. With @verify it counts messages without the pattern. */
static inline int sink(struct perf_run *r, bool verify)
{
	uint64_t i;

	for (i = 0; i < r->iters; i++) {
		RUN_UNTIL(r, has_arrived(r, i));
		if (verify && perf_pattern_check(r->x->mem + r->x->lay.rx + slot_off(r, i),
						 r->size - 1, r->seed, (uint32_t)i) >= 0)
			r->bad++;
		if (take(r, i))
			return -1;
	}
	RUN_UNTIL(r, r->tx == r->sent);
	return 0;
}

int perf_mpi_source(struct perf_run *r)
{
	return source(r, false);
}

int perf_mpi_sink(struct perf_run *r)
{
	return sink(r, false);
}

int perf_mpi_verify_source(struct perf_run *r)
{
	return source(r, true);
}

int perf_mpi_verify_sink(struct perf_run *r)
{
	return sink(r, true);
}

/* Each side is as many messages ahead of its receives as one credit stands for. */
int perf_mpi_both_ways(struct perf_run *r)
{
	const uint64_t ahead = r->slots - r->credit;
	uint64_t i;

	for (i = 0; i < r->iters + ahead; i++)
		if ((i < r->iters && put(r, i)) || (i >= ahead && take(r, i - ahead)))
			return -1;
	return finish(r);
}
