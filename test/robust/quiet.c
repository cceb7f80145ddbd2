/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steady state must not allocate, use a processor while waiting, wake late, or wake the
 * progress thread for events that the program polls for.
 *
 * syscalls.sh traces a case of this program for system calls of the steady state, and
 * instructions.sh counts the instructions of operations in others.
 *
 * DAT_TEST_IDLE: duration of a measured wait, in seconds (default 2), multiplied by
 * DAT_TEST_SCALE. DAT_TEST_TURNS: number of messages in each direction (default 1000).
 */

#include "robust.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIZE 256
#define TURNS 1000

/*
 * Interposes the C library's allocator and counts the calls from this project's libraries. With a
 * checker that replaces the allocator, too, this is left out, and the case is skipped.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS false
#endif
#endif
#ifndef COUNTS
#define COUNTS true
#endif

struct range {
	uintptr_t begin, end;
};

static struct range own_ranges[8];
static unsigned n_own_ranges;
static unsigned long own_calls, other_calls;

static inline void count(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	unsigned i;

	for (i = 0; i < n_own_ranges; i++)
		if (at >= own_ranges[i].begin && at < own_ranges[i].end) {
			__atomic_add_fetch(&own_calls, 1, __ATOMIC_RELAXED);
			return;
		}
	__atomic_add_fetch(&other_calls, 1, __ATOMIC_RELAXED);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

void *malloc(size_t size)
{
	count(__builtin_return_address(0));
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count(__builtin_return_address(0));
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	count(__builtin_return_address(0));
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	count(__builtin_return_address(0));
	return __libc_memalign(alignment, size);
}

void free(void *p)
{
	count(__builtin_return_address(0));
	__libc_free(p);
}
#endif

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct range r = { .begin = UINTPTR_MAX, .end = 0 };
	int i;

	name = name ? name + 1 : info->dlpi_name;
	if (strncmp(name, "libdat", 6) && strncmp(name, "libdaplofi", 10))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD)
			continue;
		if (at < r.begin)
			r.begin = at;
		if (at + h->p_memsz > r.end)
			r.end = at + h->p_memsz;
	}
	CHECK(n_own_ranges < sizeof(own_ranges) / sizeof(own_ranges[0]), "too many libraries");
	own_ranges[n_own_ranges++] = r;
	return 0;
}

/* A role that plays ping-pong by polling, with each kind of operation. */
struct player {
	struct node n;
	DAT_EP_HANDLE ep;
	struct mem m;		/* sent, received, written by the peer, read by the peer */
	struct grant peer;
	bool server;
};

/*
 * Connecting leaves work to the provider's thread, such as freeing a listener, which may run late
 * when all processors poll. The thread does this work before it answers a call.
 */
static void settle(struct node *n)
{
	DAT_PZ_HANDLE pz;

	OK(dat_pz_create(n->ia, &pz));
	OK(dat_pz_free(pz));
}

/*
 * Handles can collide in the registry's table, and a call with a colliding handle costs more.
 * Objects that come and go first change the values of the handles.
 */
static void others_come_and_go(struct player *x)
{
	unsigned i;

	for (i = 0; i < env_count("DAT_TEST_BEFORE", 0); i++) {
		node_open(&x->n);
		OK(dat_ep_free(node_ep(&x->n, NULL)));
		node_close(&x->n);
	}
}

static void player_open(struct pair *p, struct player *x)
{
	others_come_and_go(x);
	node_open(&x->n);
	x->server = p->server;
	x->ep = node_ep(&x->n, NULL);
	mem_get(&x->n, &x->m, 4 * SIZE);
	post_recv(x->ep, &x->m, SIZE, SIZE, 1);
	pair_link(p, &x->n, x->ep);
	pair_grant(p, &x->m);
	pair_granted(p, &x->peer);
	settle(&x->n);
}

static void player_close(struct pair *p, struct player *x)
{
	DAT_EVENT event;

	pair_unlink(p, &x->n, x->ep);
	OK(dat_ep_free(x->ep));
	while (dat_evd_dequeue(x->n.recv, &event) == DAT_SUCCESS)
		;
	mem_put(&x->m);
	node_close(&x->n);
}

static void spin_for(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event;
	DAT_RETURN ret;

	while ((ret = dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY)
		;
	OK(ret);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

static void ping(struct player *x)
{
	post_write(x->ep, &x->m, 0, SIZE, 2, &x->peer, 2 * SIZE);
	spin_for(x->n.req, 2);
	post_read(x->ep, &x->m, 3 * SIZE, SIZE, 3, &x->peer, 0);
	spin_for(x->n.req, 3);
	post_send(x->ep, &x->m, 0, SIZE, 4);
	spin_for(x->n.req, 4);
}

static void pong(struct player *x)
{
	spin_for(x->n.recv, 1);
	post_recv(x->ep, &x->m, SIZE, SIZE, 1);
}

static unsigned turns(void)
{
	return env_count("DAT_TEST_TURNS", TURNS);
}

static void play(struct player *x, unsigned turns)
{
	unsigned i;

	for (i = 0; i < turns; i++) {
		if (x->server) {
			pong(x);
			ping(x);
		} else {
			ping(x);
			pong(x);
		}
	}
}

static void allocations(struct pair *p)
{
	unsigned long in_setup, others;
	struct player x;

	if (!COUNTS || !memory_is_measurable())
		pair_skip("the allocator is replaced by a checker");
	/* the first open loads the provider, which can be found only then */
	node_open(&x.n);
	node_close(&x.n);
	dl_iterate_phdr(note_library, NULL);
	CHECK(n_own_ranges >= 2, "the registry and the provider are not among the libraries");
	player_open(p, &x);
	in_setup = own_calls;
	CHECK(in_setup, "no allocation was counted");
	play(&x, turns() / 5);
	pair_sync(p);
	own_calls = other_calls = 0;
	play(&x, turns());
	others = other_calls;
	SAME(own_calls, 0);
	pair_note("%u turns: no allocation by the provider (%lu while connecting), %lu by others",
		  turns(), in_setup, others);
	pair_sync(p);
	player_close(p, &x);
}

/* A mark is a system call that does nothing and is easily found in a trace. */
static void mark(const char *text)
{
	if (write(-1, text, strlen(text)) >= 0)
		pair_fail(__FILE__, __LINE__, "a write to an invalid descriptor");
}

/* few, because a traced process is slow */
#define TRACED_TURNS 20

/* For syscalls.sh: stops until a tracer is attached and continues it. */
static void traced(struct pair *p)
{
	struct player x;

	player_open(p, &x);
	play(&x, turns() / 5);
	pair_sync(p);
	if (getenv("DAT_TEST_STOP")) {
		pair_note("stops as process %d", (int)getpid());
		raise(SIGSTOP);
	}
	pair_sync(p);
	/* the first turn may include effects of the tracer's start */
	play(&x, 1);
	mark("steady state begins");
	play(&x, TRACED_TURNS);
	mark("steady state ends");
	pair_sync(p);
	player_close(p, &x);
}

/* Instructions: instructions.sh finds the counted functions by their names. */

#define COUNTED_BATCH 32
#define COUNTED_SIZE 8

static unsigned empty_polls;
/* DAT_TEST_FLAGS: of sends; DAT_TEST_SEGMENTS: how many a send has, of 8 bytes each (at most 2) */
static DAT_COMPLETION_FLAGS counted_flags;
static DAT_COUNT counted_segments;

/* The progress thread may hold the queue, and a checker runs one thread at a time. */
static inline void counted_dequeue(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event)) {
		empty_polls++;
		sched_yield();
	}
}

__attribute__((noinline)) void counted_send(struct player *x, const DAT_LMR_TRIPLET *segment);
void counted_send(struct player *x, const DAT_LMR_TRIPLET *segment)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	if (!dat_ep_post_send(x->ep, counted_segments, (DAT_LMR_TRIPLET *)segment, cookie,
			      counted_flags))
		counted_dequeue(x->n.req);
}

__attribute__((noinline)) void counted_recv_post(struct player *x, const DAT_LMR_TRIPLET *segment);
void counted_recv_post(struct player *x, const DAT_LMR_TRIPLET *segment)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	dat_ep_post_recv(x->ep, 1, (DAT_LMR_TRIPLET *)segment, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

__attribute__((noinline)) void counted_recv_end(struct player *x);
void counted_recv_end(struct player *x)
{
	counted_dequeue(x->n.recv);
}

__attribute__((noinline)) DAT_RETURN counted_poll(struct player *x);
DAT_RETURN counted_poll(struct player *x)
{
	DAT_EVENT event;

	return dat_evd_dequeue(x->n.recv, &event);
}

/*
 * The client sends in batches to receives that are posted. The server takes each batch once all of
 * it is there.
 */
static unsigned counted_play(struct pair *p, struct player *x)
{
	const unsigned sends = 4 * turns() / COUNTED_BATCH * COUNTED_BATCH;
	const DAT_LMR_TRIPLET out[] = { mem_segment(&x->m, 0, COUNTED_SIZE),
					mem_segment(&x->m, COUNTED_SIZE, COUNTED_SIZE) },
			      in = mem_segment(&x->m, SIZE, 2 * COUNTED_SIZE);
	unsigned i, j;

	counted_flags = (DAT_COMPLETION_FLAGS)env_count("DAT_TEST_FLAGS", 0);
	counted_segments = (DAT_COUNT)env_count("DAT_TEST_SEGMENTS", 1);

	/* the program polls from now on: the progress thread leaves the CQ to it */
	play(x, turns() / 10);
	for (i = 0; i < sends; i += COUNTED_BATCH) {
		for (j = 0; p->server && j < COUNTED_BATCH; j++)
			counted_recv_post(x, &in);
		pair_sync(p);
		for (j = 0; !p->server && j < COUNTED_BATCH; j++)
			counted_send(x, out);
		pair_sync(p);
		for (j = 0; p->server && j < COUNTED_BATCH; j++)
			counted_recv_end(x);
	}
	pair_sync(p);
	return sends;
}

/* Of sends to a peer that already has receives for them: as many as sends of the client. */
static void counted_sends(struct pair *p)
{
	struct player x;
	unsigned n;

	player_open(p, &x);
	n = counted_play(p, &x);
	if (!p->server)
		pair_note("counted: %u, empty polls: %u", n, empty_polls);
	player_close(p, &x);
}

static void counted_recvs(struct pair *p)
{
	struct player x;
	unsigned n;

	player_open(p, &x);
	n = counted_play(p, &x);
	if (p->server)
		pair_note("counted: %u, empty polls: %u", n, empty_polls);
	player_close(p, &x);
}

/* Of polls that find nothing, with DAT_TEST_EPS connections (default 1). */
static void counted_polls(struct pair *p)
{
	const unsigned eps = env_count("DAT_TEST_EPS", 1), polls = 4 * turns();
	DAT_EP_HANDLE *more = calloc(eps, sizeof(*more));
	struct player x;
	unsigned i;

	player_open(p, &x);
	for (i = 1; i < eps; i++) {
		more[i] = node_ep(&x.n, NULL);
		pair_link(p, &x.n, more[i]);
	}
	settle(&x.n);
	/* the program polls from now on */
	play(&x, turns() / 10);
	pair_sync(p);
	for (i = 0; !p->server && i < polls; i++)
		SAME(counted_poll(&x), DAT_QUEUE_EMPTY);
	if (!p->server)
		pair_note("counted: %u, empty polls: 0", polls);
	for (i = 1; i < eps; i++) {
		pair_unlink(p, &x.n, more[i]);
		OK(dat_ep_free(more[i]));
	}
	player_close(p, &x);
	free(more);
}

/* Waiting */

/* The consumption of all threads of the process so far. */
struct consumption {
	int64_t us;	/* of processor time */
	long sleeps;	/* voluntary, each followed by a wakeup */
};

static struct consumption consumption(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (struct consumption){
		.us = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) +
		      u.ru_utime.tv_usec + u.ru_stime.tv_usec,
		.sleeps = u.ru_nvcsw,
	};
}

/*
 * Occasional polling shows as wakeups, which do not depend on the processor's speed; a
 * long poll shows as processor time. The threads of sockets have work of their own each second.
 */
#define IDLE_WAKES 10			/* per second */
#define ANY_WAKES 1000000
#define IDLE_PROCESSOR 1000		/* at most 1/1000 of a processor */
#define IDLE_PROCESSOR_SOCKETS 200

/*
 * Waits for @us on each of two EVDs, which takes less than 1/@part of a processor and at most
 * @wakes wakeups per second. A hypervisor's pauses of a running thread count as the thread's time,
 * so one of three attempts suffices.
 */
static void wait_cheaply(struct node *n, unsigned us, int part, long wakes)
{
	struct consumption before, after;
	int64_t begun, took;
	unsigned tries;
	DAT_EVENT event;
	DAT_COUNT more;

	for (tries = 1;; tries++) {
		begun = pair_now();
		before = consumption();
		FAILS(dat_evd_wait(n->recv, us, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		FAILS(dat_evd_wait(n->conn, us, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		after = consumption();
		took = pair_now() - begun;
		pair_note("%lld us of processor time and %ld wakeups in %lld us of waiting",
			  (long long)(after.us - before.us), after.sleeps - before.sleeps,
			  (long long)took);
		CHECK(took >= 2 * (int64_t)us, "the waits were too short");
		if (!memory_is_measurable())
			return;
		CHECK((after.sleeps - before.sleeps) * 1000000 <= wakes * took,
		      "more than %ld wakeups per second", wakes);
		if ((after.us - before.us) * part < took)
			return;
		CHECK(tries < 3, "more than 1/%d of a processor", part);
	}
}

static void idle(struct pair *p)
{
	/*
	 * long enough to make the one-time cost of sleeping and waking negligible on a slow
	 * processor
	 */
	const unsigned us = pair_scaled(env_count("DAT_TEST_IDLE", 2)) * 500000;
	int part = pair_fabric_is("sockets") ? IDLE_PROCESSOR_SOCKETS : IDLE_PROCESSOR;
	struct player x;
	DAT_EVENT event;
	DAT_COUNT more;

	player_open(p, &x);
	play(&x, turns() / 5);
	pair_sync(p);
	/* a first wait lets the work after the last message finish */
	FAILS(dat_evd_wait(x.n.recv, 100000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	pair_sync(p);
	wait_cheaply(&x.n, us, part, IDLE_WAKES);
	pair_sync(p);
	player_close(p, &x);
}

/*
 * Messages without receives wait in the fabric, and keep the CQ's descriptor readable on tcp up to
 * libfabric 1.17. Waits end in time all the same, and neither they nor the idle process spin. The
 * thread that waits posts the receives afterwards.
 */
#define UNRECEIVED 3
#define UNRECEIVED_PROCESSOR 20		/* less than 1/20 of a processor */

static void unreceived(struct pair *p, size_t size)
{
	struct player x;
	DAT_EVENT event;
	DAT_COUNT more;
	unsigned i;

	node_open(&x.n);
	x.ep = node_ep(&x.n, NULL);
	mem_get(&x.n, &x.m, (UNRECEIVED + 1) * SIZE);
	pair_link(p, &x.n, x.ep);
	for (i = 0; !p->server && i < UNRECEIVED; i++)
		post_send(x.ep, &x.m, 0, size, i);
	pair_sync(p);
	/* a first wait lets the messages arrive */
	FAILS(dat_evd_wait(x.n.recv, 100000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	wait_cheaply(&x.n, pair_scaled(300000),
		     pair_fabric_is("sockets") ? 0 : UNRECEIVED_PROCESSOR, ANY_WAKES);
	for (i = 0; p->server && i < UNRECEIVED; i++)
		post_recv(x.ep, &x.m, (i + 1) * SIZE, SIZE, i);
	for (i = 0; i < UNRECEIVED; i++)
		expect_dto(p->server ? x.n.recv : x.n.req, i, DAT_DTO_SUCCESS, size);
	player_close(p, &x);
}

static void unreceived_empty(struct pair *p)
{
	unreceived(p, 0);
}

static void unreceived_short(struct pair *p)
{
	unreceived(p, 64);
}

static void unreceived_long(struct pair *p)
{
	unreceived(p, SIZE);
}

#define WAKES 201
#define QUIET_US 2000		/* no thread polls after this time */
#define WAKE_LIMIT_US 5000	/* on a machine with other load */

static int by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The time for a message to a peer that sleeps in its wait, and for the answer to this role,
 * which sleeps, too.
 */
static int64_t wake(struct player *x)
{
	const int64_t begun = pair_now();

	post_send(x->ep, &x->m, 0, SIZE, 4);
	expect_dto(x->n.recv, 1, DAT_DTO_SUCCESS, SIZE);
	return pair_now() - begun;
}

static void wakes(struct pair *p)
{
	int64_t took[WAKES], median;
	struct player x;
	DAT_EVENT event;
	DAT_COUNT more;
	unsigned i;

	player_open(p, &x);
	for (i = 0; i < WAKES; i++) {
		if (x.server) {
			expect_dto(x.n.recv, 1, DAT_DTO_SUCCESS, SIZE);
			post_recv(x.ep, &x.m, SIZE, SIZE, 1);
			post_send(x.ep, &x.m, 0, SIZE, 4);
		} else {
			FAILS(dat_evd_wait(x.n.recv, QUIET_US, 1, &event, &more),
			      DAT_TIMEOUT_EXPIRED);
			took[i] = wake(&x);
			post_recv(x.ep, &x.m, SIZE, SIZE, 1);
		}
		expect_dto(x.n.req, 4, DAT_DTO_SUCCESS, SIZE);
	}
	pair_sync(p);
	player_close(p, &x);
	if (x.server)
		return;
	qsort(took, WAKES, sizeof(took[0]), by_size);
	median = took[WAKES / 2] / 2;
	pair_note("wakeup latency: median %lld us, 90th percentile %lld us",
		  (long long)median, (long long)took[WAKES * 9 / 10] / 2);
	if (memory_is_measurable())
		CHECK(median < WAKE_LIMIT_US, "more than %u us", WAKE_LIMIT_US);
}

/* Polling */

#define POLLED_US 1000000
#define POLLED_WAKES 2000		/* per second: one look per tick, with a margin */
#define THREAD "dat-ofi"

/* Both roles poll; the client marks its last message. Returns the number of turns. */
static unsigned play_for(struct player *x, int64_t us)
{
	const int64_t until = pair_now() + us;
	unsigned turns = 0;
	bool last;

	do {
		if (x->server) {
			pong(x);
			last = x->m.base[SIZE];
			ping(x);
		} else {
			x->m.base[0] = last = pair_now() >= until;
			ping(x);
			pong(x);
		}
		turns++;
	} while (!last);
	return turns;
}

/*
 * When a polling thread loses its processor it seems to have stopped polling, and the progress
 * thread takes over. A busy machine may double the wakeups, but not to one in two turns: if
 * messages woke the thread there would be three to five per turn, for a write, a read and a
 * message in each direction.
 */
static bool few_wakeups(unsigned long wakes, unsigned turns, int64_t us)
{
	const unsigned long most = POLLED_WAKES * us / 1000000;

	return wakes < most || (wakes < 2 * most && wakes < turns / 2);
}

static void polled(struct pair *p)
{
	unsigned long before, wakes;
	int64_t begun, took;
	struct player x;
	unsigned n;

	player_open(p, &x);
	play(&x, turns() / 5);
	pair_sync(p);
	before = thread_sleeps(THREAD);
	CHECK(before, "no thread is called " THREAD);
	begun = pair_now();
	n = play_for(&x, POLLED_US);
	took = pair_now() - begun;
	wakes = thread_sleeps(THREAD) - before;
	pair_note("%u turns in %lld us; the progress thread slept %lu times", n, (long long)took,
		  wakes);
	if (memory_is_measurable())
		CHECK(few_wakeups(wakes, n, took), "%u or more wakeups per second", POLLED_WAKES);
	pair_sync(p);
	player_close(p, &x);
}

static struct pair_case cases[] = {
	{ .name = "posting_allocates_nothing", .server = allocations, .client = allocations,
	  .seconds = 120 },
	{ .name = "waiting_costs_nothing", .server = idle, .client = idle },
	{ .name = "empty_messages_without_receives_cost_nothing", .server = unreceived_empty,
	  .client = unreceived_empty },
	{ .name = "short_messages_without_receives_cost_nothing", .server = unreceived_short,
	  .client = unreceived_short },
	{ .name = "messages_without_receives_cost_nothing", .server = unreceived_long,
	  .client = unreceived_long },
	{ .name = "polling_wakes_no_thread", .server = polled, .client = polled },
	{ .name = "a_message_wakes_a_waiter", .server = wakes, .client = wakes,
	  .not_sockets = "its threads wake late" },
	{ .name = "counted_sends", .server = counted_sends, .client = counted_sends,
	  .seconds = 120 },
	{ .name = "counted_recvs", .server = counted_recvs, .client = counted_recvs,
	  .seconds = 120 },
	{ .name = "counted_polls", .server = counted_polls, .client = counted_polls,
	  .seconds = 120 },
	{ .name = "steady_state", .server = traced, .client = traced },
};

int main(int argc, char **argv)
{
	cases[1].seconds = 30 + env_count("DAT_TEST_IDLE", 2);
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
