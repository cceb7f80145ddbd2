/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three threads wait, poll, wait on a CNO or make no calls, in all combinations. Each has EVDs of
 * its own, all fed by the CQ of one PZ. A completion that is not delivered blocks its thread, and
 * the case fails by its time limit.
 *
 * DAT_TEST_SECONDS: duration of all combinations together (default 10).
 */

#include "robust.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 3
#define SIZE 64

/* How a lane's thread gets its events, in both roles. */
enum kind {
	WAITS,		/* in dat_evd_wait(), with a long or a short time-out at random */
	POLLS,
	CNO,		/* in dat_cno_wait() */
	SILENT,		/* server: no calls; client: waits for RDMA reads of the server's memory */
	KINDS,
};

static const char *const kind_name[] = { "waits", "polls", "cno", "silent" };

struct mixture {
	char name[64];
	enum kind kind[LANES];
	unsigned ms;
};

struct lane {
	struct node *n;
	enum kind kind;
	bool server;
	unsigned ms;
	unsigned seed;			/* for this thread's random numbers */
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE req, recv;
	DAT_EVD_HANDLE nothing;		/* never gets an event */
	DAT_EP_HANDLE ep;
	struct mem m;			/* sent, received, read */
	struct grant peer;
	unsigned rounds;
};

/* A message. */
struct message {
	unsigned round;
	unsigned last;
};

static unsigned lane_random(struct lane *l, unsigned below)
{
	return (unsigned)rand_r(&l->seed) % below;
}

/* Waits on the EVD without events: the wait is not too short and returns no event. */
static void time_out(struct lane *l, unsigned us)
{
	int64_t begin = pair_now();
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(l->nothing, us, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CHECK(pair_now() - begin >= us, "a time-out of %u us took %lld us", us,
	      (long long)(pair_now() - begin));
	SAME(more, 0);
}

/*
 * Pauses for a random time: sometimes long enough for the progress thread to take over the CQ,
 * sometimes not at all.
 */
static void pause_randomly(struct lane *l)
{
	static const unsigned most[] = { 1, 1, 1, 50, 300, 3000 };
	unsigned us = lane_random(l, most[lane_random(l, sizeof(most) / sizeof(most[0]))]);

	if (us)
		time_out(l, us);
}

/* Returns true and the next event of @evd, or false if there is none yet. */
typedef bool next_fn(struct lane *l, DAT_EVD_HANDLE evd, DAT_EVENT *event);

static bool next_by_wait(struct lane *l, DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_TIMEOUT us = lane_random(l, 3) ? pair_scaled(PAIR_LIMIT) * 1000 : lane_random(l, 2000);
	int64_t begin = pair_now();
	DAT_COUNT more;
	DAT_RETURN ret = dat_evd_wait(evd, us, 1, event, &more);

	if (ret == DAT_SUCCESS)
		return true;
	SAME(DAT_GET_TYPE(ret), DAT_TIMEOUT_EXPIRED);
	CHECK(pair_now() - begin >= us, "the time-out was too early");
	return false;
}

static bool next_by_poll(struct lane *l, DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_RETURN ret = dat_evd_dequeue(evd, event);

	if (ret == DAT_SUCCESS)
		return true;
	SAME(ret, DAT_QUEUE_EMPTY);
	sched_yield();
	return false;
}

static bool next_by_cno(struct lane *l, DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_EVD_HANDLE triggered;
	DAT_RETURN ret = dat_evd_dequeue(evd, event);

	if (ret == DAT_SUCCESS)
		return true;
	SAME(ret, DAT_QUEUE_EMPTY);
	OK(dat_cno_wait(l->cno, pair_scaled(PAIR_LIMIT) * 1000, &triggered));
	return false;
}

/* Expects a completion with this cookie next on @evd. */
static void lane_expect(struct lane *l, DAT_EVD_HANDLE evd, uint64_t cookie)
{
	static next_fn *const next[] = { next_by_wait, next_by_poll, next_by_cno, next_by_wait };
	const int64_t deadline = pair_deadline(PAIR_LIMIT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	while (!next[l->kind](l, evd, &event))
		CHECK(pair_now() < deadline, "%s: round %u", kind_name[l->kind], l->rounds);
	d = &event.event_data.dto_completion_event_data;
	SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CHECK(d->ep_handle == l->ep, "wrong EP");
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, DAT_DTO_SUCCESS);
}

static struct message *lane_message(const struct lane *l, bool theirs)
{
	return (struct message *)(l->m.base + (theirs ? SIZE : 0));
}

static void lane_send(struct lane *l, unsigned last)
{
	*lane_message(l, false) = (struct message){ .round = l->rounds, .last = last };
	post_send(l->ep, &l->m, 0, SIZE, l->rounds);
	lane_expect(l, l->req, l->rounds);
}

static unsigned lane_receive(struct lane *l)
{
	unsigned last;

	lane_expect(l, l->recv, l->rounds);
	SAME(lane_message(l, true)->round, l->rounds);
	last = lane_message(l, true)->last;
	if (!last)
		post_recv(l->ep, &l->m, SIZE, SIZE, l->rounds + 1);
	return last;
}

/* Answers each message until the last one. */
static void *server_run(void *arg)
{
	struct lane *l = arg;
	unsigned last;

	do {
		last = lane_receive(l);
		pause_randomly(l);
		lane_send(l, last);
		l->rounds++;
	} while (!last);
	return NULL;
}

static void *client_run(void *arg)
{
	struct lane *l = arg;
	const int64_t end = pair_now() + l->ms * 1000LL;
	unsigned last;

	do {
		last = pair_now() >= end;
		lane_send(l, last);
		SAME(lane_receive(l), last);
		pause_randomly(l);
		l->rounds++;
	} while (!last);
	return NULL;
}

static void *reader_run(void *arg)
{
	struct lane *l = arg;
	const int64_t end = pair_now() + l->ms * 1000LL;

	while (pair_now() < end) {
		post_read(l->ep, &l->m, 2 * SIZE, SIZE, l->rounds, &l->peer, 0);
		lane_expect(l, l->req, l->rounds);
		verify(l->m.base + 2 * SIZE, SIZE, 7);
		pause_randomly(l);
		l->rounds++;
	}
	return NULL;
}

static DAT_EVD_HANDLE lane_evd(struct lane *l)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(l->n->ia, 16, l->cno, DAT_EVD_DTO_FLAG, &evd));
	return evd;
}

static void lane_open(struct pair *p, struct lane *l, struct node *n, const struct mixture *mix,
		      unsigned number)
{
	*l = (struct lane){
		.n = n, .kind = mix->kind[number], .server = p->server, .ms = mix->ms,
		.seed = 2 * number + p->server,
		.cno = DAT_HANDLE_NULL,
	};
	if (l->kind == CNO)
		OK(dat_cno_create(n->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &l->cno));
	l->req = lane_evd(l);
	l->recv = lane_evd(l);
	l->nothing = node_evd(n, 1, DAT_EVD_SOFTWARE_FLAG);
	OK(dat_ep_create(n->ia, n->pz, l->recv, l->req, n->conn, NULL, &l->ep));
	mem_get(n, &l->m, 3 * SIZE);
	if (l->kind == SILENT)
		fill(l->m.base, SIZE, 7);
	else
		post_recv(l->ep, &l->m, SIZE, SIZE, 0);
	pair_link(p, n, l->ep);
	pair_grant(p, &l->m);
	pair_granted(p, &l->peer);
}

static void lane_close(struct pair *p, struct lane *l)
{
	pair_unlink(p, l->n, l->ep);
	OK(dat_ep_free(l->ep));
	OK(dat_evd_free(l->req));
	OK(dat_evd_free(l->recv));
	OK(dat_evd_free(l->nothing));
	if (l->cno)
		OK(dat_cno_free(l->cno));
	mem_put(&l->m);
}

/* Returns false if this role's lane makes no calls. */
static bool lane_start(struct lane *l, pthread_t *thread)
{
	void *(*run)(void *) = l->server ? server_run : l->kind == SILENT ? reader_run : client_run;

	if (l->server && l->kind == SILENT)
		return false;
	CHECK(!pthread_create(thread, NULL, run, l), "pthread_create");
	return true;
}

static void mixed(struct pair *p)
{
	const struct mixture *mix = pair_arg();
	struct lane lane[LANES];
	pthread_t thread[LANES];
	bool started[LANES];
	struct node n;
	unsigned i;

	node_open(&n);
	for (i = 0; i < LANES; i++)
		lane_open(p, &lane[i], &n, mix, i);
	for (i = 0; i < LANES; i++)
		started[i] = lane_start(&lane[i], &thread[i]);
	for (i = 0; i < LANES; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
	if (!p->server)
		pair_note("%u, %u and %u rounds", lane[0].rounds, lane[1].rounds, lane[2].rounds);
	pair_sync(p);
	for (i = 0; i < LANES; i++)
		lane_close(p, &lane[i]);
	node_close(&n);
}

/* All combinations of three of the four kinds, with repetition. */
#define MIXTURES 20

static void mixture_make(struct mixture *m, unsigned a, unsigned b, unsigned c)
{
	const unsigned seconds = env_count("DAT_TEST_SECONDS", 10);

	*m = (struct mixture){ .kind = { a, b, c }, .ms = seconds * 1000 / MIXTURES };
	snprintf(m->name, sizeof(m->name), "%s_%s_%s", kind_name[a], kind_name[b], kind_name[c]);
}

int main(int argc, char **argv)
{
	static struct mixture mixture[MIXTURES];
	static struct pair_case cases[MIXTURES];
	unsigned a, b, c, n = 0;

	for (a = 0; a < KINDS; a++)
		for (b = a; b < KINDS; b++)
			for (c = b; c < KINDS; c++)
				mixture_make(&mixture[n++], a, b, c);
	for (n = 0; n < MIXTURES; n++)
		cases[n] = (struct pair_case){
			.name = mixture[n].name, .server = mixed, .client = mixed,
			.seconds = 60 + mixture[n].ms / 1000, .arg = &mixture[n],
		};
	return pair_main(cases, MIXTURES, argc, argv);
}
