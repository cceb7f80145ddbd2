/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer of the same user writes at random into all memory that it shares with its victim: rings,
 * doorbells, marks of writers, its own book of grants. The victim does not crash, its calls return,
 * and it loses no message of another peer.
 *
 * Three processes: the server role is the victim, the client role the other peer, and a child of
 * the client is hostile. Whatever happens to the hostile process is its own affair.
 *
 * DAT_TEST_SECONDS: how long (default 2). DAT_TEST_SEED: of the written bytes.
 */

#include "robust.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE 20000		/* the longest; longer than a frame */
#define DEPTH 4			/* receives of an EP */
#define LAST UINT32_MAX		/* number of the last message of the peer */

static int64_t run_us(void)
{
	return env_count("DAT_TEST_SECONDS", 2) * INT64_C(1000000);
}

/* The hostile process */

/* Mappings that are shared, and that this process may write to. */
struct target {
	uint64_t *at;
	size_t words;
};

#define TARGETS 64

static size_t targets_find(struct target *target)
{
	unsigned long begin, end;
	char line[512], mode[8];
	size_t n = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	CHECK(f, "%s", strerror(errno));
	while (n < TARGETS && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3 &&
		    !strcmp(mode, "rw-s") && strstr(line, "/memfd:dat-ofi"))
			target[n++] = (struct target){
				.at = (uint64_t *)begin, .words = (end - begin) / sizeof(uint64_t),
			};
	fclose(f);
	return n;
}

/* Most words that matter are at the beginning, and in the first lines of a ring. */
static size_t place(size_t words)
{
	switch (next_random(4)) {
	case 0:
		return next_random((unsigned)words);
	case 1:
		return next_random(64) * 8;
	default:
		return next_random(64);
	}
}

static uint64_t value(uint64_t before)
{
	switch (next_random(8)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return before + 1;
	case 3:
		return before - 1;
	case 4:
		return before ^ UINT64_C(1) << next_random(64);
	case 5:
		return (uint64_t)next_random(1u << 31) << 32 | next_random(1u << 31);
	default:
		return next_random(10000);
	}
}

/* A child writes for a while, so that the process that has the EPs can go on meanwhile. */
static void scribble(unsigned ms)
{
	const int64_t until = pair_now() + ms * INT64_C(1000);
	struct target target[TARGETS];
	const size_t n = targets_find(target);
	unsigned pause;
	size_t i, at;

	CHECK(n, "no shared memory");
	while (pair_now() < until) {
		i = next_random((unsigned)n);
		at = place(target[i].words);
		if (at < target[i].words)
			target[i].at[at] = value(target[i].at[at]);
		for (pause = next_random(1000); pause; pause--)
			__asm__ volatile("");
	}
	_exit(EXIT_SUCCESS);
}

/* Objects of the hostile process. All results are ignored: anything may fail now. */
static void busy(struct node *n, DAT_EP_HANDLE ep, struct mem *m)
{
	DAT_LMR_TRIPLET s = mem_segment(m, 0, next_random(8) ? 64 : MESSAGE);
	const DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_EVENT event;

	dat_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	dat_ep_post_recv(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	while (dat_evd_dequeue(n->recv, &event) == DAT_SUCCESS ||
	       dat_evd_dequeue(n->req, &event) == DAT_SUCCESS)
		;
}

static void attack(struct node *n, struct mem *m, const struct listener *victim)
{
	static struct grant g;		/* the padding is sent, too */
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_EVENT event;
	DAT_COUNT more;
	pid_t child;

	g.address = (uintptr_t)m->base;
	g.size = m->size;
	g.rmr_context = m->rmr_context;
	connect_with(ep, victim, 2000, sizeof(g), &g);
	if (!dat_evd_wait(n->conn, 3000000, 1, &event, &more) &&
	    event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		child = fork();
		if (!child)
			scribble(20 + next_random(200));
		while (waitpid(child, NULL, WNOHANG) == 0)
			busy(n, ep, m);
	}
	dat_ep_free(ep);
	while (!dat_evd_dequeue(n->conn, &event))
		;
}

static void hostile_run(const struct listener *victim)
{
	struct node n;
	struct mem m;
	unsigned i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = env_count("DAT_TEST_SEED", 1); i; i--)
		next_random(2);
	node_open(&n);
	mem_get(&n, &m, MESSAGE);
	for (;;)
		attack(&n, &m, victim);
}

/* The victim */

struct guest {
	DAT_EP_HANDLE ep;
	struct grant g;
};

struct victim {
	struct node n;
	struct mem m, target;
	DAT_EVD_HANDLE cr, conn, dto;	/* of the hostile peer; the node's are of the other */
	struct guest guest;
	unsigned guests, broken;
};

static void guest_leave(struct victim *v)
{
	if (v->guest.ep)
		OK(dat_ep_free(v->guest.ep));
	v->guest.ep = NULL;
}

static void guest_enter(struct victim *v, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;
	int i;

	guest_leave(v);
	OK(dat_ep_create(v->n.ia, v->n.pz, v->dto, v->dto, v->conn, NULL, &v->guest.ep));
	for (i = 0; i < DEPTH; i++)
		post_recv(v->guest.ep, &v->m, MESSAGE, MESSAGE, 1);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	if (param.private_data_size >= (DAT_COUNT)sizeof(v->guest.g))
		memcpy(&v->guest.g, param.private_data, sizeof(v->guest.g));
	/* it may have left */
	dat_cr_accept(cr, v->guest.ep, 0, NULL);
	v->guests++;
}

/* Writes, reads and sends to the hostile peer, which may fail. */
static void guest_post(struct victim *v)
{
	DAT_LMR_TRIPLET s = mem_segment(&v->m, MESSAGE, next_random(8) ? 64 : MESSAGE);
	DAT_RMR_TRIPLET r = remote_segment(&v->guest.g, 0, s.segment_length);
	const DAT_DTO_COOKIE cookie = { .as_64 = 2 };

	if (!v->guest.ep)
		return;
	switch (next_random(3)) {
	case 0:
		dat_ep_post_rdma_write(v->guest.ep, 1, &s, cookie, &r, DAT_COMPLETION_DEFAULT_FLAG);
		break;
	case 1:
		dat_ep_post_rdma_read(v->guest.ep, 1, &s, cookie, &r, DAT_COMPLETION_DEFAULT_FLAG);
		break;
	default:
		dat_ep_post_send(v->guest.ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
}

/* Posts a receive again, unless it was flushed. */
static void guest_receive(struct victim *v, const DAT_DTO_COMPLETION_EVENT_DATA *d)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET s = mem_segment(&v->m, MESSAGE, MESSAGE);

	if (v->guest.ep && d->user_cookie.as_64 == 1 && d->status == DAT_DTO_SUCCESS)
		dat_ep_post_recv(v->guest.ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static void guest_serve(struct victim *v)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(v->cr, &event) == DAT_SUCCESS)
		guest_enter(v, event.event_data.cr_arrival_event_data.cr_handle);
	while (dat_evd_dequeue(v->dto, &event) == DAT_SUCCESS)
		guest_receive(v, &event.event_data.dto_completion_event_data);
	while (dat_evd_dequeue(v->conn, &event) == DAT_SUCCESS)
		v->broken += event.event_number == DAT_CONNECTION_EVENT_BROKEN;
	guest_post(v);
}

/* Memory that peers may write to comes and goes. */
static void memory_renew(struct victim *v)
{
	mem_put(&v->target);
	mem_get(&v->n, &v->target, MESSAGE);
}

static void victim_open(struct victim *v)
{
	node_open(&v->n);
	v->cr = node_evd(&v->n, NODE_QLEN, DAT_EVD_CR_FLAG);
	v->conn = node_evd(&v->n, NODE_QLEN, DAT_EVD_CONNECTION_FLAG);
	v->dto = node_evd(&v->n, NODE_QLEN, DAT_EVD_DTO_FLAG);
	mem_get(&v->n, &v->m, 2 * MESSAGE);
	mem_get(&v->n, &v->target, MESSAGE);
}

/* The length and the contents of message @i. */
static uint32_t length_of(uint32_t i)
{
	return i % 7 ? 8 + i % 4000 : MESSAGE;
}

static bool answer(struct victim *v, DAT_EP_HANDLE ep)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;
	uint32_t i;

	expect_event(v->n.recv, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->status, DAT_DTO_SUCCESS);
	memcpy(&i, v->m.base, sizeof(i));
	if (i == LAST)
		return false;
	SAME(d->transfered_length, length_of(i));
	verify(v->m.base + sizeof(i), length_of(i) - sizeof(i), i);
	post_send(ep, &v->m, 0, length_of(i), i);
	expect_dto(v->n.req, i, DAT_DTO_SUCCESS, length_of(i));
	post_recv(ep, &v->m, 0, MESSAGE, 0);
	return true;
}

static void victim_run(struct pair *p)
{
	struct listener l = { .qual = 0 };
	struct victim v = { .guests = 0 };
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;

	victim_open(&v);
	OK(dat_psp_create_any(v.n.ia, &l.qual, v.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &v.n, l.qual);
	ep = node_ep(&v.n, NULL);
	post_recv(ep, &v.m, 0, MESSAGE, 0);
	pair_link(p, &v.n, ep);
	while (answer(&v, ep)) {
		guest_serve(&v);
		if (!next_random(50))
			memory_renew(&v);
	}
	pair_note("%u connections of the hostile peer, %u broke", v.guests, v.broken);
	CHECK(v.guests, "nobody was hostile");
	OK(dat_ia_close(v.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The other peer */

static pid_t hostile_start(const struct listener *victim)
{
	const pid_t pid = fork();

	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		hostile_run(victim);
	return pid;
}

/* Sends message @i, and gets it back. Returns how long that took, in us. */
static int64_t ask(struct node *n, DAT_EP_HANDLE ep, struct mem *m, uint32_t i)
{
	const int64_t begin = pair_now();
	const uint32_t length = length_of(i);

	memcpy(m->base, &i, sizeof(i));
	fill(m->base + sizeof(i), length - sizeof(i), i);
	post_recv(ep, m, MESSAGE, MESSAGE, i);
	post_send(ep, m, 0, length, i);
	expect_dto(n->req, i, DAT_DTO_SUCCESS, length);
	expect_dto(n->recv, i, DAT_DTO_SUCCESS, length);
	CHECK(!memcmp(m->base, m->base + MESSAGE, length), "message %u has changed", i);
	return pair_now() - begin;
}

static void peer_run(struct pair *p)
{
	int64_t until, took, longest = 0;
	const uint32_t last = LAST;
	struct listener victim;
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;
	uint32_t i;
	pid_t pid;

	pair_recv_listener(p, &victim);
	pid = hostile_start(&victim);
	node_open(&n);
	mem_get(&n, &m, 2 * MESSAGE);
	ep = node_ep(&n, NULL);
	pair_link(p, &n, ep);
	until = pair_now() + run_us();
	for (i = 0; pair_now() < until; i++) {
		took = ask(&n, ep, &m, i);
		longest = took > longest ? took : longest;
	}
	/* the hostile process ends first: it would find its victim gone */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	memcpy(m.base, &last, sizeof(last));
	post_send(ep, &m, 0, sizeof(last), i);
	expect_dto(n.req, i, DAT_DTO_SUCCESS, sizeof(last));
	pair_note("%u messages, the longest took %.1f ms", i, (double)longest / 1000);
	expect_end(n.conn, ep);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static struct pair_case cases[] = {
	PAIR_CASE("a peer writes into all shared memory", victim_run, peer_run),
};

int main(int argc, char **argv)
{
	setenv("DAT_TEST_IA", "ofi-shm", 0);
	cases[0].seconds = 60 + 2 * env_count("DAT_TEST_SECONDS", 2);
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
