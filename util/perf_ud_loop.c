/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf's loops with datagrams.
 *
 * Latency and check: the server answers each datagram; the client counts one without an answer as
 * lost. Bandwidth: the receiver reports how many have arrived, and the sender keeps a window in
 * flight. Datagrams without a report for a while leave the window; which of them are lost is known
 * only at the end, from the receiver's count.
 *
 * The first byte of a datagram is a tag, which distinguishes it from earlier phases' datagrams. A
 * report has another length than the data, and the count in bytes 4 to 7. Without --rotate all
 * receives use one buffer, so a later datagram may replace a report before it is read; with traffic
 * in both directions longer data therefore carry the count as well.
 */
#include "perf_ud_loop.h"

#include <arpa/inet.h>
#include <string.h>

#define MS 1000000ull
/* A ping without an answer is lost. */
#define LOST_NS (300 * MS)
/* Datagrams without a report leave the window. */
#define STALL_NS (100 * MS)
/* Empty polls until the clock and the connection are looked at, and until a report is due. */
#define LOOK 64
#define DRAINED 256

static size_t tx_off(const struct perf_xport *x, uint64_t i)
{
	return x->lay.tx + i % x->ud.slots * x->ud.stride;
}

static unsigned char *tx_data(const struct perf_ud_run *u, uint64_t i)
{
	return u->r.x->ud.mem + tx_off(u->r.x, i);
}

int perf_ud_post_recv(struct perf_xport *x, unsigned int slot)
{
	size_t off = x->lay.rx + slot % x->ud.slots * x->ud.stride;
	uint64_t cookie = (uint64_t)slot << 8 | PERF_COOKIE_RX;
	int rc = x->ops->ud->post_recv(x, slot % perf_ud_lanes(x), off, x->size_max, cookie);

	return rc == -EAGAIN ? perf_fail(x, "%s: no room for a receive", x->ops->name) : rc;
}

/* --- one completion ----------------------------------------------------- */

/* Reads the connection's completions without waiting. */
static int poll_control(struct perf_xport *x)
{
	const bool blocking = x->blocking;
	struct perf_comp comp;
	int n;

	x->blocking = false;
	n = x->ops->poll(x, &comp);
	x->blocking = blocking;
	if (n <= 0)
		return n;
	x->crx += !!(comp.cookie & PERF_COOKIE_CRX);
	x->ctx += !!(comp.cookie & PERF_COOKIE_CTX);
	return 0;
}

static int idle(struct perf_ud_run *u)
{
	struct perf_run *r = &u->r;

	if (++r->idle % LOOK == 0 || r->x->blocking) {
		u->now_ns = perf_now_ns();
		if (poll_control(r->x))
			return -1;
	}
	return r->idle < r->spin && !r->x->blocking ? 0 : perf_run_idle(r);
}

static size_t report_len(const struct perf_ud_run *u)
{
	return u->r.size == PERF_NOTE_LEN ? 2 * PERF_NOTE_LEN : PERF_NOTE_LEN;
}

static bool has_count(const struct perf_ud_run *u, size_t len)
{
	return len == report_len(u) || (u->both && len >= PERF_NOTE_LEN);
}

static void put_count(const struct perf_ud_run *u, unsigned char *data)
{
	uint32_t count = htonl((uint32_t)u->r.rx);

	memcpy(data + 4, &count, sizeof(count));
}

static void take_count(struct perf_ud_run *u, const unsigned char *data)
{
	uint32_t count;

	memcpy(&count, data + 4, sizeof(count));
	count = ntohl(count);
	if (count <= u->arrived || count > u->sent)
		return;
	u->arrived = count;
	u->moved_ns = perf_now_ns();
	if (u->given_up > u->sent - u->arrived)
		u->given_up = u->sent - u->arrived;
}

static void take_data(struct perf_ud_run *u, const unsigned char *data, size_t len)
{
	if (data[0] != u->tag)
		return;
	if (has_count(u, len))
		take_count(u, data);
	if (len != u->r.size)
		return;
	u->r.rx++;
	u->unreported++;
	u->r.bad += u->checks && memcmp(tx_data(u, u->sent - 1), data, len);
}

/* Prepares the answer. */
static void take_ping(struct perf_ud_run *u, const unsigned char *data, size_t len)
{
	unsigned char *tx = tx_data(u, 0);

	u->echo = len;
	tx[0] = data[0];
	if (u->copies)
		memcpy(tx, data, len);
}

static int take(struct perf_ud_run *u, const struct perf_comp *comp)
{
	struct perf_xport *x = u->r.x;
	unsigned int slot = PERF_COOKIE_SLOT(comp->cookie);
	const unsigned char *data =
		x->ud.mem + x->lay.rx + slot % x->ud.slots * x->ud.stride + x->ud.head;

	if (u->echoes)
		take_ping(u, data, comp->len);
	else
		take_data(u, data, comp->len);
	return perf_ud_post_recv(x, slot);
}

static int step(struct perf_ud_run *u)
{
	struct perf_comp comp;
	int n = u->ops->poll(u->r.x, &comp);

	if (n < 0)
		return n;
	if (n == 0)
		return idle(u);
	u->r.idle = 0;
	u->r.idle_since = 0;
	if (comp.cookie & PERF_COOKIE_RX)
		return take(u, &comp);
	u->r.tx += !!(comp.cookie & PERF_COOKIE_TX);
	if (comp.cookie & PERF_COOKIE_CTX)
		u->reporting = false;
	return 0;
}

/* --- sending ------------------------------------------------------------ */

/* Sends the next datagram, of @len bytes. Returns -EAGAIN if the fabric has no room now. */
static int send_next(struct perf_ud_run *u, size_t len)
{
	struct perf_xport *x = u->r.x;
	size_t off = tx_off(x, u->echoes ? 0 : u->sent);
	unsigned int lane = (unsigned int)(u->sent % perf_ud_lanes(x));
	int rc;

	if (!u->echoes)
		x->ud.mem[off] = u->tag;
	if (u->both && len >= PERF_NOTE_LEN)
		put_count(u, x->ud.mem + off);
	rc = u->ops->post_send(x, lane, off, len, PERF_COOKIE_TX);
	u->sent += !rc;
	return rc;
}

/* The receiver has drained the fabric, or enough has arrived, or all. */
static bool report_is_due(const struct perf_ud_run *u)
{
	if (!u->reports || !u->unreported || u->reporting)
		return false;
	return u->unreported > u->window / 4 || u->r.rx == u->r.iters || u->r.idle >= DRAINED ||
	       (u->r.idle && u->r.x->blocking);
}

static int report(struct perf_ud_run *u)
{
	struct perf_xport *x = u->r.x;
	unsigned char *buf = x->ud.mem + x->lay.note_tx;
	int rc;

	buf[0] = u->tag;
	put_count(u, buf);
	rc = u->ops->post_send(x, 0, x->lay.note_tx, report_len(u), PERF_COOKIE_CTX);
	if (rc)
		return rc;
	u->reporting = true;
	u->unreported = 0;
	return 0;
}

int perf_ud_turn(struct perf_ud_run *u)
{
	int rc = step(u);

	if (!rc && u->echo) {
		rc = send_next(u, u->echo);
		u->echo = rc ? u->echo : 0;
	}
	if (!rc && report_is_due(u))
		rc = report(u);
	return rc == -EAGAIN ? 0 : rc;
}

int perf_ud_drain(struct perf_ud_run *u)
{
	while (u->r.tx < u->sent || u->reporting)
		if (perf_ud_turn(u))
			return -1;
	return 0;
}

static bool is_late(const struct perf_ud_run *u, uint64_t now)
{
	return now - u->r.begin_ns > u->limit_ns;
}

/* --- the client's pings ------------------------------------------------- */

unsigned char perf_ud_tag(uint64_t i)
{
	return (unsigned char)(i % 255 + 1);
}

/* Sends one datagram, and waits for the answer and its own completion until @deadline. */
static int ping(struct perf_ud_run *u, uint64_t deadline)
{
	int rc;

	u->r.rx = 0;
	u->now_ns = 0;
	while ((rc = send_next(u, u->r.size)) == -EAGAIN && u->now_ns < deadline)
		if (perf_ud_turn(u))
			return -1;
	if (rc)
		return rc == -EAGAIN ? 0 : -1;
	while ((!u->r.rx || u->r.tx < u->sent) && u->now_ns < deadline)
		if (perf_ud_turn(u))
			return -1;
	return 0;
}

int perf_ud_pings(struct perf_ud_run *u)
{
	uint64_t i, n = 0, last = perf_now_ns(), now;

	for (i = 0; i < u->r.iters && !is_late(u, last); i++) {
		while (!perf_run_is_due(&u->r, i))
			if (perf_ud_turn(u))
				return -1;
		last = u->r.interval_ns ? perf_now_ns() : last;
		u->tag = perf_ud_tag(u->r.seed + i);
		if (u->checks)
			perf_pattern_fill(tx_data(u, u->sent), u->r.size, u->r.seed, (uint32_t)i);
		if (ping(u, last + LOST_NS))
			return -1;
		now = perf_now_ns();
		if (u->r.rx && u->r.samples)
			u->r.samples[n] = now - last;
		n += !!u->r.rx;
		last = now;
	}
	u->r.iters = n;
	return 0;
}

/* --- streams ------------------------------------------------------------ */

bool perf_ud_stream_is_over(const struct perf_ud_run *u)
{
	return u->sent >= u->r.iters && u->arrived + u->given_up >= u->sent;
}

int perf_ud_stream_some(struct perf_ud_run *u)
{
	int rc = 0;

	while (!rc && u->sent < u->r.iters && u->sent - u->r.tx < u->window &&
	       u->sent - u->arrived - u->given_up < u->window && perf_run_is_due(&u->r, u->sent))
		rc = send_next(u, u->r.size);
	if (u->r.idle && u->now_ns > u->moved_ns + STALL_NS) {
		u->given_up = u->sent - u->arrived;
		u->moved_ns = u->now_ns;
		if (is_late(u, u->now_ns))
			u->r.iters = u->sent;
	}
	return rc == -EAGAIN ? 0 : rc;
}

int perf_ud_stream(struct perf_ud_run *u)
{
	while (!perf_ud_stream_is_over(u))
		if (perf_ud_stream_some(u) || perf_ud_turn(u))
			return -1;
	return 0;
}
