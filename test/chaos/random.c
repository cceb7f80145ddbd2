/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections at once between two processes, with random operations, sizes, waits and ends.
 * Both roles draw the same plan from CHAOS_SEED, so each knows the other's operations. Checked for
 * every connection:
 *
 *	Each DTO completes exactly once, in the order of its queue, with the length and the bytes of
 *	the plan. A suppressed request has a completion only if it fails.
 *	After the first completion of a queue that is no success, there is no success.
 *	There is one event for the end of the connection, and no further one.
 *	If the connection ends gracefully, all DTOs of both roles succeed.
 *
 * Some connections receive into the buffers of an SRQ, and some name the peer's memory by an RMR,
 * bound once all are established. Another thread waits for the CNO, ends, and is started anew.
 *
 * DAT 2.0: the roles also exchange the addresses of a datagram EP each, and send datagrams while
 * the connections work. Each send succeeds, once. A datagram may be lost or overtaken; it arrives
 * at most once, with the length and the bytes of the plan. Receives that remain are flushed when
 * the EP is freed.
 *
 * At the end no event is left, the IA closes gracefully, and the process has as many threads and
 * descriptors as after the round before.
 *
 * Environment: CHAOS_SEED         the plan (1)
 *              CHAOS_CONNECTIONS  connections, at most 64 (16)
 *              CHAOS_OPS          operations of each role on a connection, at most 64 (24)
 */
#include "../pair/pair.h"

#if DAT_VERSION_MAJOR >= 2
#include "../pair/datagram.h"
#endif

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CONNECTIONS 64u
#define MOST_OPS 64u
#define ROUNDS 2u
#define BUFFER 8192u /* of the SRQ */

enum kind {
	SEND,
	WRITE,
	READ
};

/* How the connection ends: the closer has posted all, or some, of its operations. */
enum end {
	GRACEFUL,
	ABRUPT,
	FREED
};

struct op {
	enum kind kind;
	uint32_t size;
	bool suppressed;
};

/* The plan and the progress of a role on a connection. */
struct part {
	struct op ops[MOST_OPS];
	unsigned n;	/* operations */
	unsigned sends; /* of them */
};

/* The areas of a connection's memory; each has a slot for each operation. */
enum area {
	SOURCE,
	RECEIVED,
	TARGET,
	SINK,
	AREAS
};

struct conn {
	unsigned number;
	uint32_t slot;	      /* bytes */
	struct part parts[2]; /* of the client, of the server */
	enum end end;
	bool on_srq[2]; /* the client's receives, the server's */
	bool by_rmr;
	bool server_closes;
	unsigned close_after; /* operations that the closer posts */
	/* of this role */
	struct part *mine, *theirs;
	bool closes;
	DAT_EP_HANDLE ep;
	DAT_RMR_HANDLE rmr;
	struct mem m;
	struct grant grant;
	unsigned posted, done, received;
	bool requests_failed, receives_failed;
	bool connected, closed, ended;
	/* before it is connected: an attempt failed, or is accepted; receives flushed; a request */
	bool lost, accepting;
	unsigned withdrawn;
	DAT_CR_HANDLE cr;
};

static struct plan {
	struct conn conns[MOST_CONNECTIONS];
	unsigned n, ops;
	uint64_t seed, state;
	bool server;
	DAT_EVD_HANDLE requests, receives, connections;
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp; /* of the server */
	DAT_SRQ_HANDLE srq; /* null: no connection of this role has it */
	struct mem buffers; /* of the SRQ */
	pthread_t bystander;
	atomic_bool bystander_ended;
	unsigned binding; /* RMRs without a completion of the bind */
	unsigned left;	  /* connections that have not ended */
	bool fails;	  /* attempts to connect may fail */
	bool breaks;	  /* operations may fail, and connections break */
	unsigned limit;	  /* ms, of an attempt to connect */
	int64_t deadline;
} plan;

static unsigned number_of(const char *name, unsigned usual, unsigned most)
{
	const char *text = getenv(name);
	const unsigned long n = text ? strtoul(text, NULL, 0) : usual;

	return n < 1 ? 1 : n < most ? (unsigned)n : most;
}

/* The next of the numbers that the state determines (splitmix64), below @n. */
static unsigned draw(uint64_t *state, unsigned n)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (unsigned)((x ^ x >> 31) >> 32) % n;
}

/* The plan */

/* The last operation is a send: its arrival tells that all others have been executed. */
static void part_draw(struct part *part, const struct conn *c, uint64_t *state)
{
	unsigned i;

	part->n = 1 + draw(state, plan.ops);
	part->sends = 0;
	for (i = 0; i < part->n; i++) {
		struct op *op = &part->ops[i];
		const bool last = i == part->n - 1;

		op->kind = last ? SEND : (enum kind)draw(state, 3);
		op->size = draw(state, 8) ? 1 + draw(state, c->slot) : op->kind == SEND ? 0 : 1;
		op->suppressed = !last && !draw(state, 4);
		part->sends += op->kind == SEND;
	}
}

static void conn_draw(struct conn *c, unsigned number, uint64_t *state)
{
	static const uint32_t slots[] = { 64, 256, 8192, 65536 };
	unsigned i;

	memset(c, 0, sizeof(*c));
	c->number = number;
	c->slot = slots[draw(state, 4)];
	part_draw(&c->parts[0], c, state);
	part_draw(&c->parts[1], c, state);
	c->end = (enum end)draw(state, 3);
	for (i = 0; i < 2; i++)
		c->on_srq[i] = !draw(state, 3) && c->slot <= BUFFER;
	c->by_rmr = !draw(state, 3);
	c->server_closes = draw(state, 2);
	c->mine = &c->parts[plan.server];
	c->theirs = &c->parts[!plan.server];
	c->closes = c->server_closes == plan.server;
	c->close_after = draw(state, c->parts[c->server_closes].n + 1);
}

static void plan_draw(unsigned round)
{
	uint64_t state = plan.seed * ROUNDS + round;
	unsigned i;

	plan.n = plan.left = number_of("CHAOS_CONNECTIONS", 16, MOST_CONNECTIONS);
	plan.ops = number_of("CHAOS_OPS", 24, MOST_OPS);
	for (i = 0; i < plan.n; i++)
		conn_draw(&plan.conns[i], i, &state);
	plan.state = state + plan.server; /* of choices that need not agree */
}

/* Whether DAT_CHAOS has a rate for the faults of a kind; the last one counts. */
static bool has_faults(const char *kind)
{
	const char *at = getenv("DAT_CHAOS");
	bool has = false;

	while (at && (at = strstr(at, kind))) {
		at += strlen(kind);
		has = strtoul(at, NULL, 0);
	}
	return has;
}

static bool may_break(const struct conn *c)
{
	return c->end != GRACEFUL || plan.breaks;
}

static bool has_srq(const struct conn *c)
{
	return c->on_srq[plan.server];
}

static bool has_all(const struct conn *c)
{
	return c->done == c->mine->n && c->received == c->theirs->sends;
}

/* Memory */

static size_t slot_at(const struct conn *c, enum area area, unsigned i)
{
	return ((size_t)area * plan.ops + i) * c->slot;
}

/* The seed of the bytes in slot @i of the source of a role, of connection @number. */
static unsigned pattern(unsigned number, bool server, unsigned i)
{
	return (unsigned)plan.seed * 7919 + (number * 2 + server) * MOST_OPS + i;
}

static void memory_get(struct conn *c, struct node *n)
{
	unsigned i;

	mem_get(n, &c->m, (size_t)AREAS * plan.ops * c->slot);
	for (i = 0; i < plan.ops; i++)
		fill(c->m.base + slot_at(c, SOURCE, i), c->slot,
		     pattern(c->number, plan.server, i));
}

static void verify_slot(const struct conn *c, enum area area, unsigned slot, uint32_t size,
			unsigned i)
{
	verify(c->m.base + slot_at(c, area, slot), size, pattern(c->number, !plan.server, i));
}

/* The index among the peer's operations of its @nth send. */
static unsigned send_of(const struct conn *c, unsigned nth)
{
	unsigned i;

	for (i = 0; c->theirs->ops[i].kind != SEND || nth--; i++)
		;
	return i;
}

/* The peer's writes are here when its last send is. */
static void writes_verify(const struct conn *c)
{
	unsigned i;

	for (i = 0; i < c->theirs->n; i++)
		if (c->theirs->ops[i].kind == WRITE)
			verify_slot(c, TARGET, i, c->theirs->ops[i].size, i);
}

/*
 * Operations. A cookie has the connection, the queue and the index; or that a buffer of the SRQ was
 * filled, and its number; or that an RMR was bound.
 */
#define SRQ_COOKIE (UINT64_C(1) << 32)
#define BIND_COOKIE (UINT64_C(1) << 33)

static uint64_t cookie_of(const struct conn *c, bool receive, unsigned i)
{
	return (uint64_t)c->number << 16 | (unsigned)receive << 15 | i;
}

static void buffer_post(unsigned i)
{
	DAT_LMR_TRIPLET segment = mem_segment(&plan.buffers, (size_t)i * BUFFER, BUFFER);
	const DAT_DTO_COOKIE cookie = { .as_64 = SRQ_COOKIE | i };

	OK(dat_srq_post_recv(plan.srq, 1, &segment, cookie));
}

static void receives_post(struct conn *c)
{
	unsigned i;

	if (has_srq(c))
		return;
	for (i = 0; i < c->theirs->sends; i++)
		post_recv(c->ep, &c->m, slot_at(c, RECEIVED, i), c->slot, cookie_of(c, true, i));
}

static DAT_RETURN op_post(struct conn *c, unsigned i)
{
	const struct op *op = &c->mine->ops[i];
	const bool last = i == c->mine->n - 1;
	const DAT_DTO_COOKIE cookie = { .as_64 = cookie_of(c, false, i) };
	const DAT_COMPLETION_FLAGS flags =
		(DAT_COMPLETION_FLAGS)((op->suppressed ? DAT_COMPLETION_SUPPRESS_FLAG : 0) |
				       (last ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0));
	DAT_LMR_TRIPLET local =
		mem_segment(&c->m, slot_at(c, op->kind == READ ? SINK : SOURCE, i), op->size);
	DAT_RMR_TRIPLET remote = remote_segment(
		&c->grant, slot_at(c, op->kind == READ ? SOURCE : TARGET, i), op->size);

	switch (op->kind) {
	case SEND:
		return dat_ep_post_send(c->ep, 1, &local, cookie, flags);
	case WRITE:
		return dat_ep_post_rdma_write(c->ep, 1, &local, cookie, &remote, flags);
	default:
		return dat_ep_post_rdma_read(c->ep, 1, &local, cookie, &remote, flags);
	}
}

/* The peer may end the connection between any two calls, if it closes in the middle. */
static void posted(struct conn *c, DAT_RETURN ret)
{
	if (may_break(c) && DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
		return;
	CHECK(!ret, "connection %u: posting operation %u: 0x%x", c->number, c->posted,
	      (unsigned)ret);
	c->posted++;
}

static void conn_close(struct conn *c)
{
	DAT_RETURN ret;

	c->closed = true;
	if (c->end == FREED) {
		OK(dat_ep_free(c->ep));
		c->ep = DAT_HANDLE_NULL;
		c->ended = true;
		plan.left--;
	} else {
		ret = dat_ep_disconnect(c->ep, c->end == GRACEFUL ? DAT_CLOSE_GRACEFUL_FLAG :
								    DAT_CLOSE_ABRUPT_FLAG);
		CHECK(!ret || (plan.breaks && DAT_GET_TYPE(ret) == DAT_INVALID_STATE),
		      "connection %u: disconnecting: 0x%x", c->number, (unsigned)ret);
	}
}

/* Posts some of the next operations, or ends the connection. */
static void conn_advance(struct conn *c)
{
	const unsigned most = c->closes && c->end != GRACEFUL ? c->close_after : c->mine->n;
	unsigned batch = 1 + draw(&plan.state, 8);

	while (batch-- && c->posted < most && !c->requests_failed)
		posted(c, op_post(c, c->posted));
	if (c->closes && c->posted == most && (c->end != GRACEFUL || has_all(c)))
		conn_close(c);
}

/* Datagrams */

#if DAT_VERSION_MAJOR >= 2

#define LONGEST 2048u	     /* datagram, in bytes */
#define SLOT (GRH + LONGEST) /* of memory: the receives, then the sends */

static struct {
	DAT_EP_HANDLE ep;	    /* null: the IA has no datagrams, or the EP was freed */
	uint32_t size[2][MOST_OPS]; /* of the client's datagrams, the server's */
	unsigned n[2];		    /* of these */
	unsigned receives, posted;
	uint64_t completed[2], taken; /* a bit for each send, each receive; each of the peer's */
	DAT_IB_ADDR_HANDLE to;	      /* the peer's, after an exchange */
	bool exchanging;
	struct mem m;
	uint64_t state; /* of the plan, then of choices that need not agree */
} ud;

/* An IA has no datagrams if their fabric cannot be opened. */
static bool both_have_datagrams(struct pair *p, const struct node *n)
{
	const char *value = named_attr(n, DAT_IB_ATTR_UD);
	const bool mine = value && !strcmp(value, "TRUE");
	bool theirs;

	pair_send(p, &mine, sizeof(mine));
	pair_recv(p, &theirs, sizeof(theirs));
	CHECK(mine == theirs || plan.fails, "only one role has datagrams");
	return mine && theirs;
}

/* Draws from a state of its own: a seed has the connections that it has without datagrams. */
static void datagrams_get(struct pair *p, struct node *n, unsigned round)
{
	unsigned most, role, i;
	DAT_EP_ATTR attr;

	memset(&ud, 0, sizeof(ud));
	if (!both_have_datagrams(p, n))
		return;
	most = (unsigned)atoi(named_attr(n, "OFI_DATAGRAM_SIZE"));
	most = most < LONGEST ? most : LONGEST;
	ud.state = ~(plan.seed * ROUNDS + round);
	for (role = 0; role < 2; role++) {
		ud.n[role] = draw(&ud.state, MOST_OPS + 1);
		for (i = 0; i < MOST_OPS; i++)
			ud.size[role][i] = draw(&ud.state, 8) ? draw(&ud.state, most + 1) : most;
	}
	ud.state += plan.server;
	ud.receives = draw(&ud.state, 2) ? MOST_OPS : draw(&ud.state, MOST_OPS);
	mem_get(n, &ud.m, 2 * MOST_OPS * SLOT);
	ud_attr(n, &attr);
	OPENS(dat_ep_create(n->ia, n->pz, plan.receives, plan.requests, plan.connections, &attr,
			    &ud.ep));
	for (i = 0; i < ud.receives; i++)
		post_recv(ud.ep, &ud.m, i * SLOT, SLOT, MOST_OPS + i);
}

/* The client requests an exchange, again after a failure. Returns whether it has succeeded. */
static bool datagrams_exchange(const struct listener *listener)
{
	if (ud.ep && !plan.server && !ud.exchanging)
		connect_with(ud.ep, listener, plan.limit, 0, NULL);
	ud.exchanging = true;
	return !ud.ep || ud.to.ah;
}

/* Sends some of the next datagrams, with their numbers. */
static void datagrams_advance(void)
{
	unsigned batch = draw(&ud.state, 8);

	for (; batch-- && ud.posted < ud.n[plan.server]; ud.posted++) {
		const size_t at = (MOST_OPS + ud.posted) * SLOT;
		DAT_LMR_TRIPLET iov = mem_segment(&ud.m, at, ud.size[plan.server][ud.posted]);

		fill(ud.m.base + at, LONGEST, pattern(MOST_CONNECTIONS, plan.server, ud.posted));
		OK(dat_ib_post_send_ud_immed(ud.ep, 1, &iov, &ud.to, ud_cookie(ud.posted),
					     ud.posted, DAT_COMPLETION_DEFAULT_FLAG));
	}
}

static bool datagrams_left(void)
{
	return (unsigned)__builtin_popcountll(ud.completed[0]) < ud.n[plan.server];
}

static void bit_set(uint64_t *bits, unsigned i, const char *what)
{
	CHECK(!(*bits >> i & 1), "datagrams: %s %u again", what, i);
	*bits |= UINT64_C(1) << i;
}

static void datagram_completed(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *e = &event->event_data.dto_completion_event_data;
	const uint64_t cookie = e->user_cookie.as_64;
	const unsigned i = cookie % MOST_OPS, sent = ud_ext(event).val.immed.data;
	const bool receive = cookie >= MOST_OPS;

	CHECK(cookie < 2 * MOST_OPS && i < (receive ? ud.receives : ud.posted),
	      "datagrams: cookie %llx", (unsigned long long)cookie);
	bit_set(&ud.completed[receive], i, receive ? "receive" : "send");
	if (receive && !ud.ep && e->status == DAT_DTO_ERR_FLUSHED)
		return;
	SAME(e->status, DAT_DTO_SUCCESS);
	if (!receive) {
		SAME(e->transfered_length, ud.size[plan.server][i]);
		return;
	}
	CHECK(sent < ud.n[!plan.server], "datagrams: number %u", sent);
	bit_set(&ud.taken, sent, "number");
	SAME(e->transfered_length, GRH + ud.size[!plan.server][sent]);
	verify(ud.m.base + i * SLOT + GRH, ud.size[!plan.server][sent],
	       pattern(MOST_CONNECTIONS, !plan.server, sent));
}

/* Returns false if the event is no datagram's. */
static bool datagrams_take(const DAT_EVENT *event)
{
	switch ((int)event->event_number) {
	case DAT_IB_DTO_EVENT:
		datagram_completed(event);
		return true;
	case DAT_IB_UD_CONNECTION_REQUEST_EVENT:
		OPENS(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, ud.ep, 0,
				    NULL));
		return true;
	case DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED:
		CHECK(!ud.to.ah, "datagrams: the peer's exchange failed, this one did not");
		ud.to = ud_ext(event).remote_ah;
		return true;
	case DAT_IB_UD_CONNECTION_REJECT_EVENT:
	case DAT_IB_UD_CONNECTION_ERROR_EVENT:
		CHECK(plan.fails && !ud.to.ah, "datagrams: no exchange of addresses");
		ud.exchanging = false;
		return true;
	default:
		return false;
	}
}

static void datagrams_end(void)
{
	if (!ud.ep)
		return;
	OK(dat_ib_ud_ah_free(ud.ep, &ud.to));
	OK(dat_ep_free(ud.ep));
	ud.ep = DAT_HANDLE_NULL;
}

/* After the end, when all EVDs have been empty: each receive has completed, and nothing comes. */
static void datagrams_put(void)
{
	DAT_EVENT event;

	SAME(__builtin_popcountll(ud.completed[1]), ud.receives);
	while (!dat_evd_dequeue(plan.requests, &event) || !dat_evd_dequeue(plan.receives, &event))
		CHECK((int)event.event_number != DAT_IB_DTO_EVENT, "datagrams: an event is left");
	if (ud.m.base)
		mem_put(&ud.m);
}

#else

#define datagrams_get(p, n, round) ((void)0)
#define datagrams_exchange(listener) ((void)(listener), true)
#define datagrams_advance() ((void)0)
#define datagrams_left() false
#define datagrams_take(event) ((void)(event), false)
#define datagrams_end() ((void)0)
#define datagrams_put() ((void)0)

#endif

/* Events */

/* Requests before @i without a completion are suppressed ones that have succeeded. */
static void request_completed(struct conn *c, unsigned i, const DAT_DTO_COMPLETION_EVENT_DATA *e)
{
	const bool success = e->status == DAT_DTO_SUCCESS;
	const struct op *op = &c->mine->ops[i];

	CHECK(i >= c->done && i < c->posted, "connection %u: request %u again, or never posted",
	      c->number, i);
	for (; c->done < i; c->done++)
		CHECK(c->mine->ops[c->done].suppressed && !c->requests_failed,
		      "connection %u: no completion of request %u before %u", c->number, c->done,
		      i);
	c->done++;
	if (success) {
		CHECK(!c->requests_failed, "connection %u: request %u succeeds after an error",
		      c->number, i);
		CHECK(!op->suppressed, "connection %u: completion of suppressed request %u",
		      c->number, i);
		SAME(e->transfered_length, op->size);
		if (op->kind == READ)
			verify_slot(c, SINK, i, op->size, i);
		return;
	}
	CHECK(may_break(c), "connection %u: request %u has status %d", c->number, i, e->status);
	c->requests_failed = true;
}

static void receive_completed(struct conn *c, unsigned i, const unsigned char *at,
			      const DAT_DTO_COMPLETION_EVENT_DATA *e)
{
	CHECK(i == c->received, "connection %u: receive %u, not %u", c->number, i, c->received);
	c->received++;
	if (e->status == DAT_DTO_SUCCESS) {
		const unsigned op = send_of(c, i);

		CHECK(!c->receives_failed, "connection %u: receive %u succeeds after an error",
		      c->number, i);
		SAME(e->transfered_length, c->theirs->ops[op].size);
		verify(at, c->theirs->ops[op].size, pattern(c->number, !plan.server, op));
		if (c->received == c->theirs->sends)
			writes_verify(c);
		return;
	}
	CHECK(may_break(c), "connection %u: receive %u has status %d", c->number, i, e->status);
	CHECK(e->status == DAT_DTO_ERR_FLUSHED, "connection %u: receive %u has status %d",
	      c->number, i, e->status);
	c->receives_failed = true;
}

/* NULL: the EP was freed. */
static struct conn *conn_of(DAT_EP_HANDLE ep)
{
	unsigned i;

	for (i = 0; i < plan.n; i++)
		if (plan.conns[i].ep == ep)
			return &plan.conns[i];
	return NULL;
}

static void connection_changed(const DAT_EVENT *event)
{
	struct conn *c = conn_of(event->event_data.connect_event_data.ep_handle);

	CHECK(c, "%s of an unknown EP", event_name(event->event_number));
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		CHECK(!c->connected, "connection %u: established twice", c->number);
		c->connected = true;
		return;
	}
	if (!c->connected) {
		CHECK(plan.fails, "connection %u: %s", c->number, event_name(event->event_number));
		c->lost = true;
		c->accepting = false;
		return;
	}
	CHECK(event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
		      (event->event_number == DAT_CONNECTION_EVENT_BROKEN && may_break(c)),
	      "connection %u: %s", c->number, event_name(event->event_number));
	CHECK(c->connected && !c->ended, "connection %u ends twice", c->number);
	c->ended = true;
	plan.left--;
}

static bool queue_take(DAT_EVD_HANDLE evd, unsigned most);

/* Takes connection events first, as a completion may precede them in the other EVD. */
static bool is_connected(const struct conn *c)
{
	if (!c->connected)
		queue_take(plan.connections, UINT32_MAX);
	return c->connected;
}

/* A buffer that was flushed is posted again, as the other connections count on it. */
static void srq_completed(const DAT_DTO_COMPLETION_EVENT_DATA *e)
{
	const unsigned i = e->user_cookie.as_64 & (SRQ_COOKIE - 1);
	struct conn *c = conn_of(e->ep_handle);

	if (e->status != DAT_DTO_SUCCESS) {
		CHECK(e->status == DAT_DTO_ERR_FLUSHED, "buffer %u has status %d", i, e->status);
		buffer_post(i);
	} else if (c) {
		CHECK(is_connected(c), "connection %u: a message before it is established",
		      c->number);
		receive_completed(c, c->received, plan.buffers.base + (size_t)i * BUFFER, e);
	}
}

/* A freed EP's completions may come, but need not. */
static void dto_completed(const DAT_DTO_COMPLETION_EVENT_DATA *e)
{
	const uint64_t cookie = e->user_cookie.as_64;
	const unsigned i = cookie & (MOST_OPS - 1);
	struct conn *c;

	CHECK(cookie >> 16 < plan.n, "cookie %llx", (unsigned long long)cookie);
	c = &plan.conns[cookie >> 16];
	if (!is_connected(c)) {
		CHECK(plan.fails && e->status == DAT_DTO_ERR_FLUSHED && cookie & 1 << 15,
		      "connection %u: cookie %llx, status %d, before it is established", c->number,
		      (unsigned long long)cookie, e->status);
		c->withdrawn++;
		return;
	}
	if (c->end == FREED && c->closed)
		return;
	if (cookie & 1 << 15)
		receive_completed(c, i, c->m.base + slot_at(c, RECEIVED, i), e);
	else
		request_completed(c, i, e);
}

static void event_take(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *e = &event->event_data.dto_completion_event_data;

	plan.deadline = pair_deadline(PAIR_LIMIT);
	if (datagrams_take(event))
		return;
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		plan.binding--;
	else if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		connection_changed(event);
	else if (e->user_cookie.as_64 & SRQ_COOKIE)
		srq_completed(e);
	else
		dto_completed(e);
}

static bool queue_take(DAT_EVD_HANDLE evd, unsigned most)
{
	DAT_EVENT event;
	bool any = false;

	while (most-- && !dat_evd_dequeue(evd, &event)) {
		event_take(&event);
		any = true;
	}
	return any;
}

/* Polls, waits on one of the EVDs, or on the CNO of all. */
static void events_take(void)
{
	const DAT_EVD_HANDLE evds[] = { plan.requests, plan.receives, plan.connections };
	const DAT_EVD_HANDLE evd = evds[draw(&plan.state, 3)];
	DAT_EVD_HANDLE at = DAT_HANDLE_NULL;
	DAT_EVENT event;
	DAT_COUNT more;
	unsigned i;

	switch (draw(&plan.state, 8)) {
	case 0:
		if (!dat_evd_wait(evd, draw(&plan.state, 3000), 1, &event, &more))
			event_take(&event);
		break;
	case 1:
		dat_cno_wait(plan.cno, draw(&plan.state, 3000), &at);
		break;
	default:
		break;
	}
	for (i = 0; i < 3; i++)
		queue_take(evds[i], 1 + draw(&plan.state, 64));
}

/* Rounds */

static void evds_get(struct node *n)
{
	const DAT_COUNT most = (DAT_COUNT)((plan.n + 1) * (MOST_OPS + 4));

	OPENS(dat_cno_create(n->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &plan.cno));
	OPENS(dat_evd_create(n->ia, most, plan.cno,
			     (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG),
			     &plan.requests));
	OPENS(dat_evd_create(n->ia, most, plan.cno, DAT_EVD_DTO_FLAG, &plan.receives));
	OPENS(dat_evd_create(n->ia, most, plan.cno, DAT_EVD_CONNECTION_FLAG, &plan.connections));
}

/*
 * An SRQ with as many buffers as its connections receive messages, and a reserve: a connection that
 * breaks flushes the buffer of a message that has begun, which is missing until it is posted again.
 */
static void srq_get(struct node *n)
{
	DAT_SRQ_ATTR attr = { .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_COUNT i;

	plan.srq = DAT_HANDLE_NULL;
	for (i = 0; i < (DAT_COUNT)plan.n; i++)
		attr.max_recv_dtos += has_srq(&plan.conns[i]) ? plan.conns[i].theirs->sends + 2 : 0;
	if (!attr.max_recv_dtos)
		return;
	mem_get(n, &plan.buffers, (size_t)attr.max_recv_dtos * BUFFER);
	OPENS(dat_srq_create(n->ia, n->pz, &attr, &plan.srq));
	for (i = 0; i < attr.max_recv_dtos; i++)
		buffer_post((unsigned)i);
}

/* Each EP has reported once that it takes no more buffers. */
static void srq_put(struct node *n)
{
	DAT_EVENT event;
	unsigned i;

	if (!plan.srq)
		return;
	for (i = 0; i < plan.n; i++) {
		if (!has_srq(&plan.conns[i]) || dat_evd_dequeue(n->async, &event))
			continue;
		SAME(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
		SAME(event.event_data.asynch_error_event_data.reason, DAT_EP_TRANSFER_TO_ERROR);
	}
	OK(dat_srq_free(plan.srq));
	mem_put(&plan.buffers);
}

static void ep_get(struct node *n, struct conn *c)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_recv_dtos = attr.max_request_dtos = MOST_OPS + 1; /* one to bind an RMR */
	if (has_srq(c)) {
		attr.srq_soft_hw = DAT_HW_DEFAULT;
		OPENS(dat_ep_create_with_srq(n->ia, n->pz, plan.receives, plan.requests,
					     plan.connections, plan.srq, &attr, &c->ep));
	} else {
		OPENS(dat_ep_create(n->ia, n->pz, plan.receives, plan.requests, plan.connections,
				    &attr, &c->ep));
	}
}

static void conns_get(struct pair *p, struct node *n)
{
	unsigned i;

	for (i = 0; i < plan.n; i++) {
		struct conn *c = &plan.conns[i];

		memory_get(c, n);
		pair_grant(p, &c->m);
		ep_get(n, c);
		receives_post(c);
		if (c->by_rmr)
			OPENS(dat_rmr_create(n->pz, &c->rmr));
	}
	for (i = 0; i < plan.n; i++)
		pair_granted(p, &plan.conns[i].grant);
}

/* Replaces the granted LMRs of some connections by RMRs. */
static void rmrs_bind(struct pair *p)
{
	unsigned i;

	for (i = 0; i < plan.n; i++) {
		struct conn *c = &plan.conns[i];

		if (!c->by_rmr)
			continue;
		plan.binding++;
		OPENS(bind_part(c->rmr, &c->m, 0, c->m.size, PRIV_BOTH, c->ep, BIND_COOKIE,
				&c->m.rmr_context));
	}
	while (plan.binding) {
		CHECK(pair_now() < plan.deadline, "no completion of %u binds", plan.binding);
		events_take();
	}
	for (i = 0; i < plan.n; i++)
		if (plan.conns[i].by_rmr)
			pair_grant(p, &plan.conns[i].m);
	for (i = 0; i < plan.n; i++)
		if (plan.conns[i].by_rmr)
			pair_granted(p, &plan.conns[i].grant);
}

/* Waits for the CNO some times, and ends. */
static void *bystand(void *arg)
{
	DAT_EVD_HANDLE evd;
	unsigned i;

	for (i = 0; i < 16; i++)
		dat_cno_wait(plan.cno, 200, &evd);
	atomic_store(&plan.bystander_ended, true);
	return arg;
}

static void bystander_start(void)
{
	plan.bystander_ended = false;
	CHECK(!pthread_create(&plan.bystander, NULL, bystand, NULL), "no thread");
}

static void bystander_renew(void)
{
	if (!atomic_load(&plan.bystander_ended))
		return;
	pthread_join(plan.bystander, NULL);
	bystander_start();
}

/* The last request for a connection counts: the peer repeats attempts that fail. */
static void requests_take(struct node *n)
{
	DAT_EVENT event;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	uint32_t number;

	while (!dat_evd_dequeue(n->cr, &event)) {
		if (datagrams_take(&event))
			continue;
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		CHECK(param.private_data_size >= (DAT_COUNT)sizeof(number), "no number");
		memcpy(&number, param.private_data, sizeof(number));
		CHECK(number < plan.n, "connection %u", number);
		CHECK(!plan.conns[number].connected,
		      "connection %u: the client's attempt failed, the server's did not",
		      number);
		if (plan.conns[number].cr)
			OK(cr_reject(plan.conns[number].cr, 0, NULL));
		plan.conns[number].cr = cr;
	}
}

static void conn_start(struct conn *c, const struct listener *listener)
{
	if (!plan.server)
		connect_with(c->ep, listener, plan.limit, sizeof(c->number), &c->number);
}

/* Begins anew when all receives of an attempt that failed are flushed; accepts a request. */
static void conn_retry(struct conn *c, const struct listener *listener)
{
	if (c->lost && (has_srq(c) || c->withdrawn == c->theirs->sends)) {
		OK(dat_ep_reset(c->ep));
		c->lost = false;
		c->withdrawn = 0;
		receives_post(c);
		conn_start(c, listener);
	}
	if (c->cr && !c->accepting && !c->lost && !c->connected) {
		OPENS(dat_cr_accept(c->cr, c->ep, 0, NULL));
		c->accepting = true;
		c->cr = DAT_HANDLE_NULL;
	}
}

static void connect_all(struct pair *p, struct node *n)
{
	struct listener listener;
	unsigned i, established;
	bool exchanged;

	if (p->server) {
		plan.psp = node_listen(n, &listener.qual);
		pair_send_listener(p, n, listener.qual);
	} else {
		pair_recv_listener(p, &listener);
	}
	for (i = 0; i < plan.n; i++)
		conn_start(&plan.conns[i], &listener);
	plan.deadline = pair_deadline(PAIR_LIMIT);
	do {
		CHECK(pair_now() < plan.deadline, "not all connections are established");
		requests_take(n);
		for (i = 0; i < plan.n; i++)
			conn_retry(&plan.conns[i], &listener);
		exchanged = datagrams_exchange(&listener);
		events_take();
		for (i = established = 0; i < plan.n; i++)
			established += plan.conns[i].connected;
	} while (established < plan.n || !exchanged);
}

static void stalled(void)
{
	unsigned i;

	for (i = 0; i < plan.n; i++) {
		const struct conn *c = &plan.conns[i];

		if (!c->ended)
			pair_note("connection %u: end %d%s, %u/%u posted, %u done, %u/%u received",
				  i, c->end, c->closes ? " here" : "", c->posted, c->mine->n,
				  c->done, c->received, c->theirs->sends);
	}
	pair_fail(__FILE__, __LINE__, "no event for %u s, %u connections left", PAIR_LIMIT / 1000,
		  plan.left);
}

/* After the connection's end, when all EVDs are empty. */
static void conn_check(const struct conn *c)
{
	unsigned i;

	if (c->end == FREED && c->closes)
		return;
	CHECK(c->received == c->theirs->sends || (has_srq(c) && may_break(c)),
	      "connection %u: %u of %u receives completed", c->number, c->received,
	      c->theirs->sends);
	for (i = c->done; i < c->posted; i++)
		CHECK(c->mine->ops[i].suppressed && !c->requests_failed,
		      "connection %u: no completion of request %u", c->number, i);
	if (!may_break(c))
		SAME(c->posted, c->mine->n);
}

static void conns_put(struct node *n)
{
	unsigned i;

	for (i = 0; i < plan.n; i++) {
		struct conn *c = &plan.conns[i];

		conn_check(c);
		if (c->ep)
			OK(dat_ep_free(c->ep));
		if (c->by_rmr)
			OK(dat_rmr_free(c->rmr));
		mem_put(&c->m);
	}
	srq_put(n);
	pthread_join(plan.bystander, NULL);
	expect_quiet(plan.connections);
	datagrams_put();
	OK(dat_evd_free(plan.requests));
	OK(dat_evd_free(plan.receives));
	OK(dat_evd_free(plan.connections));
	OK(dat_cno_free(plan.cno));
}

static void round_run(struct pair *p, unsigned round)
{
	struct node n;
	unsigned i;

	plan_draw(round);
	node_open(&n);
	evds_get(&n);
	srq_get(&n);
	datagrams_get(p, &n, round);
	conns_get(p, &n);
	bystander_start();
	connect_all(p, &n);
	rmrs_bind(p);
	while (plan.left || datagrams_left()) {
		for (i = 0; i < 4; i++) {
			struct conn *c = &plan.conns[draw(&plan.state, plan.n)];

			if (!c->ended && !c->closed)
				conn_advance(c);
		}
		datagrams_advance();
		requests_take(&n);
		events_take();
		bystander_renew();
		if (pair_now() > plan.deadline)
			stalled();
	}
	datagrams_end();
	while (queue_take(plan.requests, 1) || queue_take(plan.receives, 1))
		;
	conns_put(&n);
	if (p->server)
		OK(dat_psp_free(plan.psp));
	pair_sync(p);
	node_close(&n);
}

static unsigned entries(const char *directory)
{
	DIR *dir = opendir(directory);
	unsigned n = 0;

	CHECK(dir, "%s", directory);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void random_run(struct pair *p)
{
	unsigned round, threads = 0, descriptors = 0;
	int64_t deadline;

	plan.seed = number_of("CHAOS_SEED", 1, UINT32_MAX);
	plan.server = p->server;
	plan.breaks = has_faults("error=");
	plan.fails = has_faults("open=") || has_faults("accept=") || has_faults("connect=");
	plan.limit = pair_scaled(has_faults("connect=") ? PAIR_LIMIT / 10 : PAIR_LIMIT);
	for (round = 0; round < ROUNDS; round++) {
		round_run(p, round);
		if (round) {
			/* a thread that was joined may not have left the list yet */
			for (deadline = pair_deadline(PAIR_LIMIT);
			     entries("/proc/self/task") > threads; sched_yield())
				CHECK(pair_now() < deadline, "a thread is left");
			CHECK(entries("/proc/self/fd") <= descriptors, "a descriptor is left");
		}
		threads = entries("/proc/self/task");
		descriptors = entries("/proc/self/fd");
	}
}

static const struct pair_case cases[] = {
	PAIR_CASE("random connections", random_run, random_run, .seconds = 120),
};

PAIR_MAIN(cases)
