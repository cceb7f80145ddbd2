/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer is killed at any moment: the survivor gets one end, each operation completes once, the
 * EP can be used again, and nothing of the dead process remains. A peer that is merely stopped
 * causes none of this.
 *
 * DAT_TEST_ROUNDS: number of peers that die (default 20). DAT_TEST_MOMENTS: a kind of moment,
 * such as idle or stream, to test deaths of this kind only.
 */

#include "robust.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_LIMIT 3000		/* ms from the death to its event, on a busy machine */
#define OPS 100			/* outstanding when the peer dies */
#define OPS_MAX 20000		/* in one round */
#define MEM (256 * 1024)
#define SMALL 512		/* size of the bystander's messages */
#define PART (16 * 1024)		/* lengths up to this are random: some exceed a frame */
#define GROWTH (4 * 1024 * 1024)	/* for memory that allocators keep */
/* Pages of libfabric's shm become resident as its queues are used. */
#define SHARED_GROWTH (12 * 1024 * 1024)

/* When the victim dies. */
enum moment {
	/* the survivor connects */
	BEFORE_ACCEPT,		/* victim dies when the request has arrived */
	AFTER_ACCEPT,		/* victim dies when dat_cr_accept() has returned */
	IDLE_PASSIVE,		/* victim is killed when connected */
	BLOCKED_PASSIVE,	/* victim is killed with OPS operations outstanding */
	STREAM_PASSIVE,		/* victim is killed while both post and reap at full speed */
	/* the survivor listens */
	AFTER_CONNECT,		/* victim dies when dat_ep_connect() has returned */
	REQUEST_PENDING,	/* victim is killed before its request is accepted */
	IDLE_ACTIVE,
	BLOCKED_ACTIVE,
	STREAM_ACTIVE,
	MOMENTS,
	NOT_KILLED = MOMENTS,	/* the victim disconnects, and the test ends */
};

static const struct {
	const char *name;
	const char *kind;	/* for DAT_TEST_MOMENTS */
} moments[] = {
	[BEFORE_ACCEPT] = { "before the accept", "accept" },
	[AFTER_ACCEPT] = { "after the accept", "accept" },
	[IDLE_PASSIVE] = { "connected and idle, passive", "idle" },
	[BLOCKED_PASSIVE] = { "with blocked operations, passive", "blocked" },
	[STREAM_PASSIVE] = { "while streaming, passive", "stream" },
	[AFTER_CONNECT] = { "after dat_ep_connect()", "connect" },
	[REQUEST_PENDING] = { "with a pending request", "request" },
	[IDLE_ACTIVE] = { "connected and idle, active", "idle" },
	[BLOCKED_ACTIVE] = { "with blocked operations, active", "blocked" },
	[STREAM_ACTIVE] = { "while streaming, active", "stream" },
	[NOT_KILLED] = { "not at all", "" },
};

static bool victim_connects(enum moment m)
{
	return m >= AFTER_CONNECT && m < MOMENTS;
}

/* Exchanged by survivor and victim before a round. */
struct hello {
	pid_t pid;
	struct listener listener;
	struct grant grant;
	unsigned round;
	enum moment moment;	/* the survivor's choice */
};

static struct grant grant_of(const struct mem *m)
{
	struct grant g;

	memset(&g, 0, sizeof(g));
	g.address = (uintptr_t)m->base;
	g.size = m->size;
	g.rmr_context = m->rmr_context;
	return g;
}

/* Connects with the round as private data, which identifies the request. */
static void connect_in_round(DAT_EP_HANDLE ep, const struct listener *to, unsigned round)
{
	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to->address, to->qual,
			  pair_scaled(PAIR_LIMIT) * 1000, sizeof(round), &round,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/*
 * The request of this round if it arrives within @ms, else NULL. Rejects requests of earlier
 * rounds.
 */
static DAT_CR_HANDLE request_of(struct node *n, unsigned round, unsigned ms)
{
	int64_t deadline = pair_deadline(ms);
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	DAT_COUNT more;
	unsigned theirs;

	for (;;) {
		int64_t left = deadline - pair_now();

		if (dat_evd_wait(n->cr, left > 0 ? left : 0, 1, &event, &more) != DAT_SUCCESS)
			return DAT_HANDLE_NULL;
		SAME(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		SAME(param.private_data_size, sizeof(theirs));
		memcpy(&theirs, param.private_data, sizeof(theirs));
		if (theirs == round)
			return cr;
		OK(cr_reject(cr, 0, NULL));
	}
}

/* A process with outstanding operations; cookies are indexes. */
struct worker {
	struct node n;
	struct mem mem;		/* for operations of this process and its peer */
	struct mem own;
	DAT_EP_HANDLE ep;
	struct grant peer;
	unsigned posted, completed;
	unsigned outstanding_requests, outstanding_receives;
	unsigned char state[OPS_MAX];
};

enum { FREE, POSTED, COMPLETED };

#define RECV_COOKIE (1u << 20)

static void worker_open(struct worker *w)
{
	DAT_EP_ATTR attr;

	node_open(&w->n);
	node_ep_attr(&w->n, &attr);
	attr.max_request_dtos = attr.max_recv_dtos = OPS;
	w->ep = node_ep(&w->n, &attr);
	mem_get(&w->n, &w->mem, MEM);
	mem_get(&w->n, &w->own, 2 * PART);
}

static void worker_close(struct worker *w)
{
	OK(dat_ep_free(w->ep));
	mem_put(&w->mem);
	mem_put(&w->own);
	node_close(&w->n);
}

static void worker_begin(struct worker *w)
{
	w->posted = w->completed = 0;
	w->outstanding_requests = w->outstanding_receives = 0;
	memset(w->state, FREE, sizeof(w->state));
}

enum op { RECV, SEND, WRITE, READ };

/* Posts one operation of random size at a random address. */
static void post_one(struct worker *w, enum op op)
{
	size_t length = 1 + next_random(PART), at = next_random(MEM - PART);
	uint64_t cookie = w->posted;

	SAME(w->state[cookie], FREE);
	w->state[cookie] = POSTED;
	w->posted++;
	if (op == RECV)
		w->outstanding_receives++;
	else
		w->outstanding_requests++;
	switch (op) {
	case RECV:
		post_recv(w->ep, &w->mem, at, PART, cookie | RECV_COOKIE);
		break;
	case SEND:
		post_send(w->ep, &w->mem, at, length, cookie);
		break;
	case WRITE:
		post_write(w->ep, &w->mem, at, length, cookie, &w->peer, next_random(MEM - PART));
		break;
	case READ:
		post_read(w->ep, &w->mem, at, length, cookie, &w->peer, next_random(MEM - PART));
		break;
	}
}

/* Reaps all completions of @evd; each must be the first one of its operation. */
static void reap(struct worker *w, DAT_EVD_HANDLE evd)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;
	uint64_t index;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
		d = &event.event_data.dto_completion_event_data;
		CHECK(d->ep_handle == w->ep, "wrong EP");
		index = d->user_cookie.as_64 & ~(uint64_t)RECV_COOKIE;
		CHECK(index < w->posted, "cookie %#llx was never posted",
		      (unsigned long long)d->user_cookie.as_64);
		CHECK(w->state[index] == POSTED, "operation %llu completed twice",
		      (unsigned long long)index);
		w->state[index] = COMPLETED;
		w->completed++;
		if (d->user_cookie.as_64 & RECV_COOKIE)
			w->outstanding_receives--;
		else
			w->outstanding_requests--;
	}
}

static void reap_both(struct worker *w)
{
	reap(w, w->n.req);
	reap(w, w->n.recv);
}

/* Keeps OPS / 2 requests and OPS / 2 receives outstanding. */
static void stream(struct worker *w)
{
	while (w->outstanding_receives < OPS / 2 && w->posted < OPS_MAX)
		post_one(w, RECV);
	while (w->outstanding_requests < OPS / 2 && w->posted < OPS_MAX)
		post_one(w, SEND + next_random(3));
	reap_both(w);
}

/* The victim */

static void die(void)
{
	raise(SIGKILL);
}

static void victim_link(struct worker *w, const struct hello *theirs)
{
	DAT_CR_HANDLE cr;

	if (victim_connects(theirs->moment)) {
		connect_in_round(w->ep, &theirs->listener, theirs->round);
		if (theirs->moment == AFTER_CONNECT)
			die();
	} else {
		cr = request_of(&w->n, theirs->round, PAIR_LIMIT);
		CHECK(cr, "no request");
		if (theirs->moment == BEFORE_ACCEPT)
			die();
		OK(dat_cr_accept(cr, w->ep, 0, NULL));
		if (theirs->moment == AFTER_ACCEPT)
			die();
	}
	expect_conn(w->n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, w->ep);
}

/*
 * A message in each direction shows that the connection works, in memory that no peer may write
 * to.
 */
static void exchange_first_messages(struct worker *w, unsigned mine, unsigned theirs)
{
	fill(w->own.base, PART, mine);
	post_recv(w->ep, &w->own, PART, PART, 1);
	post_send(w->ep, &w->own, 0, PART, 2);
	expect_dto(w->n.recv, 1, DAT_DTO_SUCCESS, PART);
	expect_dto(w->n.req, 2, DAT_DTO_SUCCESS, PART);
	verify(w->own.base + PART, PART, theirs);
}

static void victim(struct pair *p)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct hello mine = { .pid = getpid() }, theirs;
	DAT_PSP_HANDLE psp;
	unsigned i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	worker_open(w);
	psp = node_listen(&w->n, &mine.listener.qual);
	mine.listener.address = w->n.address;
	mine.grant = grant_of(&w->mem);
	pair_send(p, &mine, sizeof(mine));
	pair_recv(p, &theirs, sizeof(theirs));
	w->peer = theirs.grant;
	victim_link(w, &theirs);
	exchange_first_messages(w, 2 * theirs.round, 2 * theirs.round + 1);
	worker_begin(w);
	switch (theirs.moment) {
	case STREAM_ACTIVE:
	case STREAM_PASSIVE:
		while (w->posted < OPS_MAX)
			stream(w);
		break;
	case NOT_KILLED:
		OK(dat_ep_disconnect(w->ep, DAT_CLOSE_GRACEFUL_FLAG));
		expect_conn(w->n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, w->ep);
		OK(dat_psp_free(psp));
		worker_close(w);
		free(w);
		exit(EXIT_SUCCESS);
	default:
		for (i = 0; i < 4; i++)
			post_one(w, RECV);
	}
	for (;;)
		pause();
}

/* Forks one victim after the other. The parent makes no DAT call. */
static void fork_victims(struct pair *p)
{
	int status;
	pid_t pid;

	do {
		pid = fork();
		CHECK(pid >= 0, "fork");
		if (!pid)
			victim(p);
		CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	} while (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "a victim exited with status %#x", status);
}

/*
 * A connection of the survivor to itself. On a fabric with one endpoint for all connections it
 * shares this endpoint with the victims' connections, and must not be affected by a victim's
 * death.
 */
struct bystander {
	struct node n;		/* the survivor's IA and PZ, with EVDs of its own */
	struct mem m;
	DAT_EP_HANDLE ep[2];
};

static DAT_EP_HANDLE small_ep(struct node *n)
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.max_request_dtos = attr.max_recv_dtos = 2;
	return node_ep(n, &attr);
}

static void bystander_open(struct bystander *b, const struct node *survivor)
{
	struct listener self = { .address = survivor->address };
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	memcpy(&b->n, survivor, sizeof(b->n));
	b->n.cr = node_evd(&b->n, 4, DAT_EVD_CR_FLAG);
	b->n.conn = node_evd(&b->n, 4, DAT_EVD_CONNECTION_FLAG);
	b->n.req = node_evd(&b->n, 4, DAT_EVD_DTO_FLAG);
	b->n.recv = node_evd(&b->n, 4, DAT_EVD_DTO_FLAG);
	mem_get(&b->n, &b->m, 2 * SMALL);
	b->ep[0] = small_ep(&b->n);
	b->ep[1] = small_ep(&b->n);
	psp = node_listen(&b->n, &self.qual);
	ep_connect(b->ep[0], &self);
	OK(dat_cr_accept(node_request(&b->n), b->ep[1], 0, NULL));
	expect_event(b->n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	expect_event(b->n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	OK(dat_psp_free(psp));
}

/* One message; the sender alternates by @round. */
static void bystander_exchange(struct bystander *b, unsigned round)
{
	DAT_EVENT event;

	fill(b->m.base, SMALL, round);
	post_recv(b->ep[round & 1], &b->m, SMALL, SMALL, round);
	post_send(b->ep[~round & 1], &b->m, 0, SMALL, round);
	expect_dto(b->n.recv, round, DAT_DTO_SUCCESS, SMALL);
	expect_dto(b->n.req, round, DAT_DTO_SUCCESS, SMALL);
	verify(b->m.base + SMALL, SMALL, round);
	FAILS(dat_evd_dequeue(b->n.conn, &event), DAT_QUEUE_EMPTY);
}

static void bystander_close(struct bystander *b)
{
	OK(dat_ep_free(b->ep[0]));
	OK(dat_ep_free(b->ep[1]));
	mem_put(&b->m);
	OK(dat_evd_free(b->n.cr));
	OK(dat_evd_free(b->n.conn));
	OK(dat_evd_free(b->n.req));
	OK(dat_evd_free(b->n.recv));
}

/* The survivor */

struct survivor {
	struct pair *p;
	struct worker w;
	struct bystander by;
	struct listener listener;
	struct hello victim;
	enum moment moment;
	int64_t killed;		/* no later than this, if the victim kills itself */
	int64_t slowest;	/* longest time from a death to its event, in us */
	struct resources before;	/* after one death of each kind */
};

static void kill_victim(struct survivor *s)
{
	s->killed = pair_now();
	CHECK(!kill(s->victim.pid, SIGKILL), "the victim has already ended");
}

/* The next connection event, which must be for this EP and in time. */
static DAT_EVENT_NUMBER next_event(struct survivor *s)
{
	int64_t limit = s->killed + pair_scaled(END_LIMIT) * INT64_C(1000), left;
	DAT_EVENT event;
	DAT_COUNT more;

	left = limit - pair_now();
	if (dat_evd_wait(s->w.n.conn, left > 0 ? left : 0, 1, &event, &more) != DAT_SUCCESS)
		pair_fail(__FILE__, __LINE__, "no event within %u ms of the death %s (state %d)",
			  pair_scaled(END_LIMIT), moments[s->moment].name, ep_state(s->w.ep));
	CHECK(event.event_data.connect_event_data.ep_handle == s->w.ep, "wrong EP");
	return event.event_number;
}

static bool is_end(DAT_EVENT_NUMBER number)
{
	return number == DAT_CONNECTION_EVENT_DISCONNECTED || number == DAT_CONNECTION_EVENT_BROKEN;
}

/* Waits for the connection's end; an attempt that may fail may end with @failed instead. */
static DAT_EVENT_NUMBER expect_end_event(struct survivor *s, DAT_EVENT_NUMBER failed)
{
	DAT_EVENT_NUMBER number = next_event(s);

	if (failed && number == DAT_CONNECTION_EVENT_ESTABLISHED)
		number = next_event(s);
	else if (failed)
		CHECK(number == failed, "%s, not %s", event_name(number), event_name(failed));
	CHECK(is_end(number) || number == failed, "%s does not end a connection",
	      event_name(number));
	if (pair_now() - s->killed > s->slowest)
		s->slowest = pair_now() - s->killed;
	return number;
}

/* All operations have completed, and no event follows the end. */
static void expect_all_completed(struct survivor *s)
{
	struct worker *w = &s->w;

	reap_both(w);
	CHECK(w->completed == w->posted, "%u of %u operations completed before the end (%s)",
	      w->completed, w->posted, moments[s->moment].name);
	expect_quiet(w->n.conn);
	expect_quiet(w->n.req);
	expect_quiet(w->n.recv);
	SAME(ep_state(w->ep), DAT_EP_STATE_DISCONNECTED);
	/* operations posted to a disconnected EP are flushed */
	post_one(w, SEND);
	post_one(w, RECV);
	reap_both(w);
	SAME(w->completed, w->posted);
	OK(dat_ep_reset(w->ep));
	SAME(ep_state(w->ep), DAT_EP_STATE_UNCONNECTED);
}

static void survivor_link(struct survivor *s, unsigned round)
{
	if (victim_connects(s->moment)) {
		DAT_CR_HANDLE cr = request_of(&s->w.n, round, PAIR_LIMIT);

		CHECK(cr, "no request");
		OK(dat_cr_accept(cr, s->w.ep, 0, NULL));
	} else {
		connect_in_round(s->w.ep, &s->victim.listener, round);
	}
	expect_conn(s->w.n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, s->w.ep);
	exchange_first_messages(&s->w, 2 * round + 1, 2 * round);
	worker_begin(&s->w);
}

/* A random moment up to a few milliseconds ahead. */
static int64_t random_moment(void)
{
	return pair_now() + next_random(1u << next_random(13));
}

static void round_connecting(struct survivor *s, unsigned round)
{
	connect_in_round(s->w.ep, &s->victim.listener, round);
	s->killed = pair_now();
	expect_end_event(s, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void round_accepting(struct survivor *s, unsigned round)
{
	bool waits = s->moment == REQUEST_PENDING;
	DAT_CR_HANDLE cr = request_of(&s->w.n, round, waits ? PAIR_LIMIT : 10 * PAIR_QUIET);

	/* the victim may have died before its request was sent */
	if (!cr && !waits)
		return;
	CHECK(cr, "no request");
	if (waits) {
		int64_t until = random_moment();

		kill_victim(s);
		while (pair_now() < until)
			;
	}
	OK(dat_cr_accept(cr, s->w.ep, 0, NULL));
	s->killed = pair_now();
	expect_end_event(s, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

static void round_idle(struct survivor *s, unsigned round)
{
	survivor_link(s, round);
	kill_victim(s);
	SAME(expect_end_event(s, 0), end_by_death(&s->w.n));
}

static void round_blocked(struct survivor *s, unsigned round)
{
	int64_t until;
	int i;

	survivor_link(s, round);
	for (i = 0; i < OPS; i++)
		post_one(&s->w, (enum op)next_random(4));
	SAME(s->w.posted, OPS);
	until = random_moment();
	while (pair_now() < until)
		reap_both(&s->w);
	kill_victim(s);
	expect_end_event(s, 0);
}

static void round_stream(struct survivor *s, unsigned round)
{
	DAT_EVENT event;
	int64_t until;

	survivor_link(s, round);
	until = random_moment();
	while (pair_now() < until)
		stream(&s->w);
	kill_victim(s);
	while (dat_evd_dequeue(s->w.n.conn, &event) != DAT_SUCCESS) {
		CHECK(pair_now() - s->killed < pair_scaled(END_LIMIT) * INT64_C(1000),
		      "no end within %u ms (%s)", pair_scaled(END_LIMIT), moments[s->moment].name);
		stream(&s->w);
	}
	CHECK(is_end(event.event_number), "%s does not end a connection",
	      event_name(event.event_number));
	if (pair_now() - s->killed > s->slowest)
		s->slowest = pair_now() - s->killed;
}

static void (*const round_of[])(struct survivor *s, unsigned round) = {
	[BEFORE_ACCEPT] = round_connecting,
	[AFTER_ACCEPT] = round_connecting,
	[IDLE_PASSIVE] = round_idle,
	[BLOCKED_PASSIVE] = round_blocked,
	[STREAM_PASSIVE] = round_stream,
	[AFTER_CONNECT] = round_accepting,
	[REQUEST_PENDING] = round_accepting,
	[IDLE_ACTIVE] = round_idle,
	[BLOCKED_ACTIVE] = round_blocked,
	[STREAM_ACTIVE] = round_stream,
};

static void exchange_hello(struct survivor *s, unsigned round)
{
	struct hello mine = {
		.listener = s->listener,
		.grant = grant_of(&s->w.mem),
		.round = round,
		.moment = s->moment,
	};

	pair_recv(s->p, &s->victim, sizeof(s->victim));
	s->w.peer = s->victim.grant;
	worker_begin(&s->w);
	pair_send(s->p, &mine, sizeof(mine));
}

/* Fills @chosen with the moments of the kind in DAT_TEST_MOMENTS. Returns their number. */
static unsigned choose_moments(enum moment chosen[MOMENTS])
{
	const char *kind = getenv("DAT_TEST_MOMENTS");
	unsigned n = 0, m;

	for (m = 0; m < MOMENTS; m++)
		if (!kind || !*kind || !strcmp(kind, moments[m].kind))
			chosen[n++] = (enum moment)m;
	CHECK(n, "DAT_TEST_MOMENTS names no kind of moment: %s", kind);
	return n;
}

static void kill_all(struct survivor *s, unsigned rounds)
{
	enum moment chosen[MOMENTS];
	unsigned n = choose_moments(chosen), i;

	for (i = 0; i < rounds; i++) {
		if (i == MOMENTS)
			s->before = resources_settled();
		s->moment = chosen[i % n];
		exchange_hello(s, i);
		round_of[s->moment](s, i);
		if (ep_state(s->w.ep) != DAT_EP_STATE_UNCONNECTED)
			expect_all_completed(s);
		bystander_exchange(&s->by, i);
	}
	if (rounds > MOMENTS)
		expect_resources(&s->before, GROWTH, SHARED_GROWTH);
}

static void survivor(struct pair *p)
{
	struct survivor *s = calloc(1, sizeof(*s));
	unsigned rounds = env_count("DAT_TEST_ROUNDS", 20);
	DAT_PSP_HANDLE psp;

	s->p = p;
	worker_open(&s->w);
	psp = node_listen(&s->w.n, &s->listener.qual);
	s->listener.address = s->w.n.address;
	bystander_open(&s->by, &s->w.n);
	kill_all(s, rounds);
	bystander_close(&s->by);
	s->moment = NOT_KILLED;
	exchange_hello(s, rounds);
	survivor_link(s, rounds);
	expect_conn(s->w.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, s->w.ep);
	OK(dat_psp_free(psp));
	worker_close(&s->w);
	pair_note("%u deaths, each reported within %lld us", rounds, (long long)s->slowest);
	free(s);
}

/* A thread that waits without a time-out. */
struct waiter {
	pthread_t thread;
	pid_t tid;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
};

static void *wait_forever(void *arg)
{
	struct waiter *w = arg;
	DAT_COUNT more;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	OK(dat_evd_wait(w->evd, DAT_TIMEOUT_INFINITE, 1, &w->event, &more));
	return NULL;
}

static void waiter_start(struct waiter *w, DAT_EVD_HANDLE evd)
{
	w->evd = evd;
	w->tid = 0;
	CHECK(!pthread_create(&w->thread, NULL, wait_forever, w), "pthread_create");
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_asleep(w->tid);
}

static void waiter_join(struct waiter *w, int64_t since)
{
	int64_t left = since + pair_scaled(END_LIMIT) * INT64_C(1000) - pair_now();
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (left > 0) {
		ts.tv_sec += left / 1000000;
		ts.tv_nsec += left % 1000000 * 1000;
	}
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	CHECK(!pthread_timedjoin_np(w->thread, NULL, &ts), "the thread still waits");
}

static void waiting_survivor(struct pair *p)
{
	struct waiter conn, recv;
	int64_t killed;
	struct node n;

	node_begin(&n, PART);
	post_recv(n.ep, &n.m, 0, PART, 77);
	pair_link(p, &n, n.ep);
	waiter_start(&conn, n.conn);
	waiter_start(&recv, n.recv);
	killed = pair_now();
	kill(p->peer, SIGKILL);
	waiter_join(&conn, killed);
	waiter_join(&recv, killed);
	CHECK(is_end(conn.event.event_number), "%s does not end a connection",
	      event_name(conn.event.event_number));
	SAME(recv.event.event_number, DAT_DTO_COMPLETION_EVENT);
	SAME(recv.event.event_data.dto_completion_event_data.user_cookie.as_64, 77);
	SAME(recv.event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	node_end(&n);
}

static void linked_victim(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct node n;

	node_open(&n);
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	for (;;)
		pause();
}

#define STOPPED_MS 1500
#define MESSAGES 8

static void stopping(struct pair *p)
{
	struct node n;
	DAT_EVENT event;
	DAT_COUNT more;
	int i;

	node_begin(&n, MESSAGES * PART);
	fill(n.m.base, n.m.size, 5);
	pair_link(p, &n, n.ep);
	kill(p->peer, SIGSTOP);
	for (i = 0; i < MESSAGES; i++)
		post_send(n.ep, &n.m, i * PART, PART, i);
	FAILS(dat_evd_wait(n.conn, STOPPED_MS * 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	SAME(ep_state(n.ep), DAT_EP_STATE_CONNECTED);
	kill(p->peer, SIGCONT);
	for (i = 0; i < MESSAGES; i++)
		expect_dto(n.req, i, DAT_DTO_SUCCESS, PART);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static void stopped(struct pair *p)
{
	struct node n;
	int i;

	node_begin(&n, MESSAGES * PART);
	for (i = 0; i < MESSAGES; i++)
		post_recv(n.ep, &n.m, i * PART, PART, i);
	pair_link(p, &n, n.ep);
	for (i = 0; i < MESSAGES; i++)
		expect_dto(n.recv, i, DAT_DTO_SUCCESS, PART);
	verify(n.m.base, n.m.size, 5);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

static struct pair_case cases[] = {
	{ .name = "killed_at_any_moment", .server = survivor, .client = fork_victims },
	{ .name = "death_wakes_waiters", .server = waiting_survivor, .client = linked_victim,
	  .client_killed = true },
	{ .name = "a_stopped_peer_ends_nothing", .server = stopping, .client = stopped },
};

int main(int argc, char **argv)
{
	/* opening an IA takes most of a second on a loaded machine */
	cases[0].seconds = 30 + 2 * env_count("DAT_TEST_ROUNDS", 20);
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
