/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts: failures of a network that do not occur within a machine. The cable between the
 * hosts is pulled, loses packets, or has lost its other end.
 *
 * Each role has its own network namespace, and both share a /dev/shm that no other process sees.
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

/* Seconds without a packet from the peer; its end is detected within about twice that time. */
#define KEEPALIVE "1"
#define END_LIMIT 4000		/* ms, on a machine with other load */

enum { SENT = MESSAGES, WRITTEN = 2 * MESSAGES, READ, OPS };	/* cookies; below: receives */

/* All kinds of operations at once, in both directions. */
struct exchange {
	struct link l;		/* the peer reads one half of its memory and writes the other */
	struct mem in;		/* destination of receives and of reads */
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

/* Lengths that the provider transfers in different ways. */
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

/* All messages arrive, complete and in order. */
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

/* Reaps completions of @evd. Operations that need the peer must not succeed. */
static void exchange_reap(struct exchange *x, DAT_EVD_HANDLE evd)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		SAME(event.event_number, DAT_DTO_COMPLETION_EVENT);
		d = &event.event_data.dto_completion_event_data;
		CHECK(d->user_cookie.as_64 < OPS, "unknown cookie");
		x->completed[d->user_cookie.as_64]++;
		if (d->user_cookie.as_64 < SENT || d->user_cookie.as_64 >= WRITTEN)
			CHECK(d->status != DAT_DTO_SUCCESS, "operation %llu succeeded",
			      (unsigned long long)d->user_cookie.as_64);
	}
}

/* Each outstanding operation has completed exactly once. */
static void exchange_flushed(struct exchange *x)
{
	unsigned i;

	exchange_reap(x, x->l.n.req);
	exchange_reap(x, x->l.n.recv);
	for (i = 0; i < OPS; i++)
		CHECK(x->completed[i] == 1, "operation %u completed %u times", i, x->completed[i]);
}

/* A cable that is down for a moment */

static void pulled_briefly(struct pair *p)
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

/* Random loss, where the kernel has netem; and a narrow link with a short queue. */
static const char netem[] = "netem delay 2ms 1ms loss 3%";
static const char congested[] = "tbf rate 200mbit burst 10kb limit 20kb";

/* Packets that this end's queueing discipline has dropped. */
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
	pair_note("%u outgoing packets were lost", lost);
}

/* An unreachable peer */

/* One connection that is in use when the peer becomes unreachable, and one that is idle. */
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
	      *busy_ended ? "the idle EP" : *idle_ended ? "the busy EP" : "each EP", limit);
	CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN, "%s",
	      event_name(event.event_number));
	ended = event.event_data.connect_event_data.ep_handle == b->idle ? idle_ended : busy_ended;
	CHECK(!*ended, "the connection ended twice");
	*ended = true;
	if (ended == busy_ended)
		exchange_flushed(&b->x);
	pair_note("%s got the event after %lld ms",
		  ended == idle_ended ? "the idle EP" : "the busy EP",
		  (long long)(pair_now() - b->since) / 1000);
}

/* Each connection reports its end once and in time, and no operation remains outstanding. */
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
		CHECK(!m->base[i], "byte %zu was written after its operation completed", i);
}

/* Connects again, and checks that bytes of the former connection do not reach its memory now. */
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

/* Both the process and its network disappear, and no packet from them arrives. */
static void victim(struct pair *p)
{
	struct both b;

	both_open(p, &b, KEEPALIVE);
	cable_pull();
	raise(SIGKILL);
}

/* A program may disconnect without waiting until the network failure is detected. */
static void disconnects(struct pair *p)
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
	pair_note("disconnected within %lld ms", (long long)(pair_now() - b.since) / 1000);
	CHECK(pair_now() - b.since < pair_scaled(END_LIMIT) * INT64_C(1000),
	      "disconnecting took too long");
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

/* Opening the next IA removes the files that the peer left. */
static void survivor(struct pair *p)
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

/* Unreachable addresses */

static DAT_EP_HANDLE start_connect(struct node *n, struct sockaddr_in address, unsigned timeout_ms)
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	struct listener listener = { .qual = 4711 };

	memcpy(&listener.address, &address, sizeof(address));
	connect_with(ep, &listener, timeout_ms, 0, NULL);
	return ep;
}

static void expect_no_answer(struct node *n, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number)
{
	expect_conn(n->conn, number, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_free(ep));
}

/*
 * No route leads to one address, then one that forbids it, and no host answers at two others: one
 * attempt has a shorter time-out than the kernel, one a longer one.
 */
static void unreachable(struct pair *p)
{
	static const char *const routes[] = { "prohibit", "unreachable", "blackhole" };
	const struct sockaddr_in elsewhere = { AF_INET, 0, { htonl(0xcb007101) }, { 0 } };
	DAT_EP_HANDLE no_route, short_attempt, long_attempt;
	unsigned i;
	struct node n;

	cable_lay_alone();
	node_open(&n);
	no_route = start_connect(&n, elsewhere, PAIR_LIMIT);
	expect_no_answer(&n, no_route, DAT_CONNECTION_EVENT_UNREACHABLE);
	for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		command("ip route replace %s 203.0.113.1", routes[i]);
		no_route = start_connect(&n, elsewhere, PAIR_LIMIT);
		expect_no_answer(&n, no_route, DAT_CONNECTION_EVENT_UNREACHABLE);
		command("ip route del %s 203.0.113.1", routes[i]);
	}
	long_attempt = start_connect(&n, cable_address(77), PAIR_LIMIT);
	short_attempt = start_connect(&n, cable_address(78), 500);
	expect_no_answer(&n, short_attempt, DAT_CONNECTION_EVENT_TIMED_OUT);
	expect_no_answer(&n, long_attempt, DAT_CONNECTION_EVENT_UNREACHABLE);
	expect_quiet(n.conn);
	node_close(&n);
}

/* The hosts lose each other between a request, which has no time-out, and its answer. */
static void accepts_late(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	DAT_COUNT more;
	struct node n;

	setenv("DAT_OFI_KEEPALIVE_S", KEEPALIVE, 1);
	cable_lay(p);
	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	cr = node_request(&n);
	cable_pull();
	pair_sync(p);
	n.ep = node_ep(&n, NULL);
	OK(dat_cr_accept(cr, n.ep, 0, NULL));
	OK(dat_evd_wait(n.conn, pair_scaled(END_LIMIT) * 1000, 1, &event, &more));
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		expect_event_in(n.conn, DAT_CONNECTION_EVENT_BROKEN, END_LIMIT, &event);
	else
		SAME(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	pair_sync(p);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void connects_without_time_out(struct pair *p)
{
	struct listener listener;
	DAT_EVENT event;
	struct node n;

	setenv("DAT_OFI_KEEPALIVE_S", KEEPALIVE, 1);
	cable_lay(p);
	node_open(&n);
	pair_recv_listener(p, &listener);
	n.ep = node_ep(&n, NULL);
	OK(dat_ep_connect(n.ep, (DAT_IA_ADDRESS_PTR)&listener.address, listener.qual,
			  DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	pair_sync(p);
	expect_event_in(n.conn, DAT_CONNECTION_EVENT_UNREACHABLE, END_LIMIT, &event);
	expect_quiet(n.conn);
	SAME(ep_state(n.ep), DAT_EP_STATE_DISCONNECTED);
	pair_sync(p);
	node_end(&n);
}

/*
 * A peer whose connection manager can be reached, but not the fabric: its IA was opened in another
 * network. A route of the client leads there to no host, or no route does.
 */

static const char nowhere[] = "ip route add default via 198.18.0.77";
static const char no_route[] = "true";

static void needs_connectionless_fabric(void)
{
	if (!pair_fabric_is("rxm"))
		pair_skip("the fabric connects to the address of the request");
}

static void out_of_reach(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	needs_connectionless_fabric();
	cable_lay(p);
	command("ip addr flush dev cable && ip addr add 203.0.113.1/24 dev cable");
	node_open(&n);
	psp = node_listen(&n, &qual);
	command("ip addr add 198.18.0.1/24 dev cable");
	pair_send_listener(p, &n, qual);
	n.ep = node_ep(&n, NULL);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, n.ep);
	expect_quiet(n.conn);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void connects_out_of_reach(struct pair *p)
{
	const struct sockaddr_in address = cable_address(1);
	struct listener listener;
	DAT_EP_HANDLE ep;
	struct node n;

	needs_connectionless_fabric();
	setenv("DAT_OFI_KEEPALIVE_S", KEEPALIVE, 1);
	cable_lay(p);
	command("%s", (const char *)pair_arg());
	node_open(&n);
	pair_recv_listener(p, &listener);
	memcpy(&listener.address, &address, sizeof(address));
	ep = node_ep(&n, NULL);
	connect_with(ep, &listener, 2 * PAIR_LIMIT, 0, NULL);
	expect_no_answer(&n, ep, DAT_CONNECTION_EVENT_UNREACHABLE);
	expect_quiet(n.conn);
	node_close(&n);
}

/* Silent foreign clients (TCP clients without DAT) that become unreachable */

#define FOREIGN_CLIENTS 5
#define FDS_LIMIT 5000	/* ms, more than DOFI_CM_PATIENCE_MS */

static void foreign_clients(struct pair *p)
{
	struct sockaddr_in to;
	struct listener listener;
	int i, fd;

	cable_lay(p);
	pair_recv_listener(p, &listener);
	memcpy(&to, &listener.address, sizeof(to));
	to.sin_port = htons((uint16_t)listener.qual);
	for (i = 0; i < FOREIGN_CLIENTS; i++) {
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

	while ((fds = resources_settled().fds) < least || fds > most)
		CHECK(pair_now() < deadline, "%u descriptors, not %u to %u", fds, least, most);
}

/*
 * A fabric may keep foreign clients as long as a PSP listens; the provider's own ports drop them.
 */
static void serves_foreign_clients(struct pair *p)
{
	struct resources before;
	unsigned listening;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	cable_lay(p);
	node_open(&n);
	before = resources_settled();
	psp = node_listen(&n, &qual);
	listening = resources_settled().fds;
	pair_send_listener(p, &n, qual);
	expect_fds(listening + FOREIGN_CLIENTS, listening + FOREIGN_CLIENTS, FDS_LIMIT);
	pair_sync(p);
	if (pair_fabric_is("rxm"))
		expect_fds(0, listening, FDS_LIMIT);
	OK(dat_psp_free(psp));
	expect_fds(0, before.fds, FDS_LIMIT);
	pair_sync(p);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("the cable is pulled briefly", pulled_briefly, pulled_briefly),
	PAIR_CASE("the cable is pulled", pulled, pulled),
	PAIR_CASE("the peer's host disappears", survivor, victim, .client_killed = true),
	PAIR_CASE("both disconnect while the cable is pulled", disconnects, disconnects),
	PAIR_CASE("unreachable addresses", NULL, unreachable),
	PAIR_CASE("the hosts lose each other before the answer", accepts_late,
		  connects_without_time_out),
	PAIR_CASE("no route leads to the fabric of the peer", out_of_reach, connects_out_of_reach,
		  .arg = no_route),
	PAIR_CASE("the fabric of the peer does not answer", out_of_reach, connects_out_of_reach,
		  .arg = nowhere),
	PAIR_CASE("silent foreign clients", serves_foreign_clients, foreign_clients),
	PAIR_CASE("random packet loss", lossy, lossy, .arg = netem),
	PAIR_CASE("packet loss under congestion", lossy, lossy, .arg = congested),
};

/* Becoming root */

static bool file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool wrote = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return wrote;
}

/* Becomes root in a user namespace, if the kernel permits that. */
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
		printf("1..0 # SKIP namespaces are not permitted: %s\n", strerror(errno));
		return 77;
	}
	unsetenv("DAT_TEST_WARM");	/* libfabric must find each role's own network */
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
