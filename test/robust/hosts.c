/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts: what a network does to connections that one machine's memory never does. The cable
 * between them is pulled, loses packets, or has no other end any more.
 *
 * The roles are in networks of their own, and all of them see a /dev/shm that nobody else does.
 */

#include "robust.h"

#include "../pair/cable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define SIZE 65536
#define MESSAGES 8

/* Seconds without a sign of life from the peer; its end is known within about twice that. */
#define KEEPALIVE "1"
#define END_LIMIT 4000		/* ms, on a machine that has other things to do */

enum { SENT = MESSAGES, WRITTEN = 2 * MESSAGES, READ, OPS };	/* cookies; receives are before them */

/* Everything at a time that goes over a connection, both ways at once. */
struct exchange {
	struct link l;		/* of its memory half is read by the peer, and half is written */
	struct mem in;		/* what is received, and read, comes here */
	unsigned completed[OPS];
};

static void exchange_open(struct pair *p, struct exchange *x)
{
	link_open(p, &x->l, 2 * SIZE);
	mem_get(&x->l.n, &x->in, (MESSAGES + 1) * SIZE);
	fill(x->l.m.base, SIZE, p->server);
}

static void exchange_close(struct pair *p, struct exchange *x)
{
	mem_put(&x->in);
	link_close(p, &x->l);
}

/* Of different ways to go. */
static size_t length_of(unsigned message)
{
	static const size_t lengths[] = { 8, 1000, 5000, SIZE };

	return lengths[message % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void exchange_begin(struct exchange *x)
{
	const DAT_EP_HANDLE ep = x->l.ep;
	unsigned i;

	memset(x->in.base, 0, x->in.size);
	memset(x->completed, 0, sizeof(x->completed));
	for (i = 0; i < MESSAGES; i++)
		post_recv(ep, &x->in, i * SIZE, SIZE, i);
	for (i = 0; i < MESSAGES; i++)
		post_send(ep, &x->l.m, 0, length_of(i), SENT + i);
	post_write(ep, &x->l.m, 0, SIZE, WRITTEN, &x->l.theirs, SIZE);
	post_read(ep, &x->in, MESSAGES * SIZE, SIZE, READ, &x->l.theirs, 0);
}

/* All of it arrives, whole and in order. */
static void exchange_end(struct pair *p, struct exchange *x)
{
	unsigned i;

	for (i = 0; i < MESSAGES; i++)
		expect_dto(x->l.n.recv, i, DAT_DTO_SUCCESS, length_of(i));
	for (i = 0; i < MESSAGES; i++)
		expect_dto(x->l.n.req, SENT + i, DAT_DTO_SUCCESS, length_of(i));
	expect_dto(x->l.n.req, WRITTEN, DAT_DTO_SUCCESS, SIZE);
	expect_dto(x->l.n.req, READ, DAT_DTO_SUCCESS, SIZE);
	for (i = 0; i < MESSAGES; i++)
		verify(x->in.base + i * SIZE, length_of(i), !p->server);
	verify(x->in.base + MESSAGES * SIZE, SIZE, !p->server);
	pair_sync(p);
	verify(x->l.m.base + SIZE, SIZE, !p->server);
	memset(x->l.m.base + SIZE, 0, SIZE);
	pair_sync(p);
}

/* Completions on @evd; those that the peer must have had a part in are no success. */
static void exchange_reap(struct exchange *x, DAT_EVD_HANDLE evd)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
		d = &event.event_data.dto_completion_event_data;
		CHECK(d->user_cookie.as_64 < OPS, "a completion of nothing");
		x->completed[d->user_cookie.as_64]++;
		if (d->user_cookie.as_64 < SENT || d->user_cookie.as_64 >= WRITTEN)
			CHECK(d->status != DAT_DTO_SUCCESS, "operation %llu succeeded",
			      (unsigned long long)d->user_cookie.as_64);
	}
}

/* Everything that was under way has completed, once. */
static void exchange_flushed(struct exchange *x)
{
	unsigned i;

	exchange_reap(x, x->l.n.req);
	exchange_reap(x, x->l.n.recv);
	for (i = 0; i < OPS; i++)
		CHECK(x->completed[i] == 1, "operation %u completed %u times", i, x->completed[i]);
}

/* A cable that is pulled for a moment */

static void pulled_shortly(struct pair *p)
{
	struct exchange x;

	cable_lay(p);
	exchange_open(p, &x);
	exchange_begin(&x);
	exchange_end(p, &x);
	if (p->server)
		cable_pull();
	pair_sync(p);
	exchange_begin(&x);
	expect_quiet(x.l.n.conn);
	expect_quiet(x.l.n.recv);
	pair_sync(p);
	cable_mend(p);
	exchange_end(p, &x);
	exchange_close(p, &x);
}

/* A cable that loses packets */

/* At random, if the kernel can; and what comes faster than it goes, of which little is kept. */
static const char netem[] = "netem delay 2ms 1ms loss 3%";
static const char narrow[] = "tbf rate 200mbit burst 10kb limit 20kb";

/* Packets that our end has not sent. */
static unsigned dropped(void)
{
	FILE *f = popen("tc -s qdisc show dev cable", "re");
	unsigned n = 0;
	char line[256];

	CHECK(f, "%s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "dropped "))
			sscanf(strstr(line, "dropped "), "dropped %u", &n);
	pclose(f);
	return n;
}

#define LOSSY_TURNS 10

static void lossy(struct pair *p)
{
	unsigned i, lost, theirs;
	struct exchange x;

	cable_lay(p);
	command("tc qdisc add dev cable root %s", (const char *)pair_arg());
	exchange_open(p, &x);
	for (i = 0; i < LOSSY_TURNS; i++) {
		exchange_begin(&x);
		exchange_end(p, &x);
	}
	exchange_close(p, &x);
	lost = dropped();
	pair_send(p, &lost, sizeof(lost));
	pair_recv(p, &theirs, sizeof(theirs));
	CHECK(lost + theirs, "no packet was lost");
	pair_note("%u packets were lost on their way out", lost);
}

/* A peer that is out of reach */

/* One connection that is used when the way to the peer ends, and one that is not. */
struct both {
	struct exchange x;
	DAT_EP_HANDLE idle;
	int64_t since;
};

static void both_open(struct pair *p, struct both *b, const char *keepalive)
{
	setenv("DAT_OFI_KEEPALIVE_S", keepalive, 1);
	cable_lay(p);
	exchange_open(p, &b->x);
	b->idle = node_ep(&b->x.l.n, NULL);
	pair_link(p, &b->x.l.n, b->idle);
	exchange_begin(&b->x);
	exchange_end(p, &b->x);
}

static void both_free(struct both *b)
{
	OK(dat_ep_free(b->idle));
	OK(dat_ep_free(b->x.l.ep));
	mem_put(&b->x.in);
	mem_put(&b->x.l.m);
	node_close(&b->x.l.n);
}

static void expect_end_of(struct both *b, bool *busy_ended, bool *idle_ended)
{
	const unsigned past = (unsigned)((pair_now() - b->since) / 1000);
	const unsigned limit = pair_scaled(END_LIMIT);
	DAT_EVENT event;
	DAT_COUNT more;
	bool *ended;

	CHECK(dat_evd_wait(b->x.l.n.conn, past < limit ? (limit - past) * 1000 : 0, 1, &event,
			   &more) == DAT_SUCCESS, "%s is still connected after %u ms",
	      *busy_ended ? "who was idle" : *idle_ended ? "who was at work" : "everybody", limit);
	CHECK(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	      event.event_number == DAT_CONNECTION_EVENT_BROKEN, "%s", event_name(event.event_number));
	ended = event.event_data.connect_event_data.ep_handle == b->idle ? idle_ended : busy_ended;
	CHECK(!*ended, "a second end");
	*ended = true;
	if (ended == busy_ended)
		exchange_flushed(&b->x);
	pair_note("%s knows after %lld ms", ended == idle_ended ? "who is idle" : "who is at work",
		  (long long)(pair_now() - b->since) / 1000);
}

/* Each learns of it once, in time, and nothing is left of what was under way. */
static void expect_both_ends(struct both *b)
{
	bool busy_ended = false, idle_ended = false;

	expect_end_of(b, &busy_ended, &idle_ended);
	expect_end_of(b, &busy_ended, &idle_ended);
	expect_quiet(b->x.l.n.conn);
	expect_quiet(b->x.l.n.req);
	expect_quiet(b->x.l.n.recv);
	SAME(ep_state(b->x.l.ep), DAT_EP_STATE_DISCONNECTED);
	SAME(ep_state(b->idle), DAT_EP_STATE_DISCONNECTED);
}

static void all_zero(const struct mem *m)
{
	size_t i;

	for (i = 0; i < m->size; i++)
		CHECK(!m->base[i], "byte %zu was written when its operation was over", i);
}

/* The fabric may still have had something of the end's, which must not come out of it now. */
static void connect_again(struct pair *p, struct both *b)
{
	struct mem old = b->x.in;

	memset(old.base, 0, old.size);
	mem_get(&b->x.l.n, &b->x.in, old.size);
	OK(dat_ep_reset(b->x.l.ep));
	pair_link(p, &b->x.l.n, b->x.l.ep);
	exchange_begin(&b->x);
	exchange_end(p, &b->x);
	all_zero(&old);
	mem_put(&old);
}

static void pulled(struct pair *p)
{
	struct both b;

	both_open(p, &b, KEEPALIVE);
	if (p->server)
		cable_pull();
	pair_sync(p);
	b.since = pair_now();
	exchange_begin(&b.x);
	expect_both_ends(&b);
	OK(dat_ep_free(b.idle));
	pair_sync(p);
	cable_mend(p);
	connect_again(p, &b);
	exchange_close(p, &b.x);
}

/* Both the process and its network go, and no packet of theirs gets here. */
static void vanishes(struct pair *p)
{
	struct both b;

	both_open(p, &b, KEEPALIVE);
	cable_pull();
	raise(SIGKILL);
}

/* Whoever does not want to wait for what the network finds out need not. */
static void leaves(struct pair *p)
{
	struct both b;

	both_open(p, &b, "1000");
	if (p->server)
		cable_pull();
	pair_sync(p);
	b.since = pair_now();
	exchange_begin(&b.x);
	OK(dat_ep_disconnect(b.idle, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(b.x.l.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.idle);
	OK(dat_ep_disconnect(b.x.l.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(b.x.l.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.x.l.ep);
	exchange_flushed(&b.x);
	expect_quiet(b.x.l.n.conn);
	both_free(&b);
	pair_note("left within %lld ms", (long long)(pair_now() - b.since) / 1000);
	CHECK(pair_now() - b.since < pair_scaled(END_LIMIT) * INT64_C(1000), "it took too long");
	pair_sync(p);
}

static unsigned files_in_dev_shm(void)
{
	DIR *dir = opendir("/dev/shm");
	const struct dirent *e;
	unsigned n = 0;

	CHECK(dir, "/dev/shm: %s", strerror(errno));
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* What it left goes with the next IA. */
static void survives(struct pair *p)
{
	struct node next;
	struct both b;

	both_open(p, &b, KEEPALIVE);
	pair_wait_gone(p);
	b.since = pair_now();
	exchange_begin(&b.x);
	expect_both_ends(&b);
	both_free(&b);
	node_open(&next);
	node_close(&next);
	SAME(files_in_dev_shm(), 0);
}

/* Nobody there */

static DAT_EP_HANDLE call(struct node *n, struct sockaddr_in address, unsigned timeout_ms)
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	struct place place = { .qual = 4711 };

	memcpy(&place.address, &address, sizeof(address));
	connect_with(ep, &place, timeout_ms, 0, NULL);
	return ep;
}

static void expect_no_answer(struct node *n, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number)
{
	expect_conn(n->conn, number, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_free(ep));
}

/* No route leads there; and nobody answers: for a shorter and a longer time than the system asks. */
static void nobody(struct pair *p)
{
	const struct sockaddr_in elsewhere = { AF_INET, 0, { htonl(0xcb007101) }, { 0 } };
	DAT_EP_HANDLE far, hasty, patient;
	struct node n;

	(void)p;
	cable_lay_alone();
	node_open(&n);
	far = call(&n, elsewhere, PAIR_LIMIT);
	expect_no_answer(&n, far, DAT_CONNECTION_EVENT_UNREACHABLE);
	patient = call(&n, cable_address(77), PAIR_LIMIT);
	hasty = call(&n, cable_address(78), 500);
	expect_no_answer(&n, hasty, DAT_CONNECTION_EVENT_TIMED_OUT);
	expect_no_answer(&n, patient, DAT_CONNECTION_EVENT_UNREACHABLE);
	expect_quiet(n.conn);
	node_close(&n);
}

/* Strangers that say nothing, and of whose end nothing is heard */

#define STRANGERS 5
#define PATIENCE 5000	/* ms, at the ports of fabrics without connections */

static void strangers(struct pair *p)
{
	struct sockaddr_in to;
	struct place place;
	int i, fd;

	cable_lay(p);
	pair_learn_place(p, &place);
	memcpy(&to, &place.address, sizeof(to));
	to.sin_port = htons((uint16_t)place.qual);
	for (i = 0; i < STRANGERS; i++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "%s", strerror(errno));
	}
	pair_sync(p);
	cable_pull();
	pair_sync(p);
}

static void expect_fds(unsigned least, unsigned most, unsigned ms)
{
	int64_t deadline = pair_deadline(ms);
	unsigned fds;

	while ((fds = holdings_settled().fds) < least || fds > most)
		CHECK(pair_now() < deadline, "%u descriptors, not %u to %u", fds, least, most);
}

/* The fabric keeps them while somebody listens; we do not. */
static void meets_strangers(struct pair *p)
{
	struct holdings before;
	unsigned listening;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	cable_lay(p);
	node_open(&n);
	before = holdings_settled();
	psp = node_listen(&n, &qual);
	listening = holdings_settled().fds;
	pair_tell_place(p, &n, qual);
	expect_fds(listening + STRANGERS, listening + STRANGERS, PATIENCE);
	pair_sync(p);
	if (pair_fabric_is("rxm"))
		expect_fds(0, listening, PATIENCE);
	OK(dat_psp_free(psp));
	expect_fds(0, before.fds, PATIENCE);
	pair_sync(p);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("the cable is pulled for a moment", pulled_shortly, pulled_shortly),
	PAIR_CASE("the cable is pulled", pulled, pulled),
	PAIR_CASE("the peer's host vanishes", survives, vanishes, .client_killed = true),
	PAIR_CASE("both leave while the cable is pulled", leaves, leaves),
	PAIR_CASE("nobody there", NULL, nobody),
	PAIR_CASE("strangers without a word", meets_strangers, strangers),
	PAIR_CASE("packets get lost", lossy, lossy, .arg = netem),
	PAIR_CASE("packets get lost in a jam", lossy, lossy, .arg = narrow),
};

/* Being root */

static bool file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool wrote = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return wrote;
}

/* In a world of its own, if the system lets users have one. */
static bool root_become(void)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid());
	return !geteuid() || (!unshare(CLONE_NEWUSER) && file_write("/proc/self/uid_map", map));
}

int main(int argc, char **argv)
{
	if (!root_become() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, NULL)) {
		printf("1..0 # SKIP namespaces are not allowed: %s\n", strerror(errno));
		return 77;
	}
	unsetenv("DAT_TEST_WARM");	/* libfabric is to find each role's own network */
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
