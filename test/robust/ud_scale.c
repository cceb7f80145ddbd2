/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it costs one process to talk to many: the time until it has an address handle of each of N
 * datagram EPs, or a connection with each, until the first message has gone to each and come back,
 * the memory and descriptors of this, and the time of the close. Prints a line, or with -c
 * comma-separated values.
 *
 *	ud_scale2 [-m ud|rc] [-p PROCESSES] [-c] [-n DESCRIPTORS] [N]
 *
 * The peers are spread over the processes, each in a PZ of its own; by default each has a process.
 * With -n the one process may open so many descriptors for its peers. Exits with 3 if the fabric
 * has a limit below N, after a line with the event; the provider logs the reason.
 */

#include "robust.h"

#include <dat2/dat_ib_extensions.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define EXIT_FABRIC_LIMIT 3
#define PEERS_MAX 20000
#define SPARE 32		/* receives in addition to one for each peer */
#define HEADER 40		/* bytes in front of a datagram */
#define SLOT 64			/* a buffer: the header and the number of a peer */
#define AGAIN_MS 1000		/* a message without an answer is sent again */

struct crowd {
	unsigned peers, processes, each, descriptors;
	bool ud, csv;
	struct listener *listener;	/* of each process; in shared memory */
	pid_t *pid;
	int ready[2];			/* processes that listen write a byte */
};

/* The hub, or a process of peers. */
struct side {
	struct node n;
	DAT_EVD_HANDLE cr, conn, req, recv;
	unsigned n_eps;
	DAT_EP_HANDLE *ep;
	DAT_IB_ADDR_HANDLE *ah;
};

static DAT_COUNT least(DAT_COUNT a, DAT_COUNT b)
{
	return a < b ? a : b;
}

static unsigned patience_ms(const struct crowd *c)
{
	return pair_scaled(PAIR_LIMIT + 100 * c->peers);
}

/* Opens an IA, and EVDs for @n peers. */
static void side_open(struct side *s, unsigned n)
{
	memset(s, 0, sizeof(*s));
	node_open(&s->n);
	s->cr = node_evd(&s->n, n + SPARE, DAT_EVD_CR_FLAG);
	s->conn = node_evd(&s->n, 2 * n + SPARE, DAT_EVD_CONNECTION_FLAG);
	s->req = node_evd(&s->n, 2 * n + SPARE, DAT_EVD_DTO_FLAG);
	s->recv = node_evd(&s->n, 2 * (n + SPARE), DAT_EVD_DTO_FLAG);
	s->ep = calloc(n, sizeof(DAT_EP_HANDLE));
	s->ah = calloc(n, sizeof(*s->ah));
	CHECK(s->ep && s->ah, "no memory");
}

static DAT_EP_HANDLE make_ep(struct side *s, DAT_PZ_HANDLE pz, bool ud, unsigned depth)
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	node_ep_attr(&s->n, &attr);
	if (ud) {
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
		/* sends wait while the fabric connects to their peers */
		attr.max_recv_dtos = attr.max_request_dtos =
			least((DAT_COUNT)depth, s->n.attr.max_dto_per_ep);
	}
	OK(dat_ep_create(s->n.ia, pz, s->recv, s->req, s->conn, ud ? &attr : NULL, &ep));
	return ep;
}

static void await(DAT_EVD_HANDLE evd, DAT_TIMEOUT us, DAT_EVENT *event)
{
	DAT_COUNT more;

	OK(dat_evd_wait(evd, us, 1, event, &more));
}

static DAT_IB_ADDR_HANDLE address(const DAT_EVENT *event)
{
	return ((const DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data)->remote_ah;
}

/* Sends @number from buffer @i of @m, on EP @ep to @ah or to the EP's peer. */
static void send_number(DAT_EP_HANDLE ep, DAT_IB_ADDR_HANDLE *ah, const struct mem *m, unsigned i,
			unsigned number)
{
	DAT_LMR_TRIPLET segment = mem_segment(m, i * SLOT, sizeof(number));
	DAT_DTO_COOKIE cookie = { .as_64 = i };
	const DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_SUPPRESS_FLAG;

	memcpy(m->base + i * SLOT, &number, sizeof(number));
	if (ah)
		OK(dat_ib_post_send_ud(ep, 1, &segment, ah, cookie, flags));
	else
		OK(dat_ep_post_send(ep, 1, &segment, cookie, flags));
}

/* Peers */

struct peer {
	DAT_PZ_HANDLE pz;
	struct mem in, out;
};

static void peer_open(struct peer *k, struct side *s, bool ud, unsigned i)
{
	OK(dat_pz_create(s->n.ia, &k->pz));
	mem_get_with(&s->n, k->pz, &k->in, 2 * SLOT, PRIV_LOCAL);
	mem_get_with(&s->n, k->pz, &k->out, SLOT, PRIV_LOCAL);
	s->ep[i] = make_ep(s, k->pz, ud, SPARE);
	post_recv(s->ep[i], &k->in, 0, SLOT, i);
	post_recv(s->ep[i], &k->in, SLOT, SLOT, i);
}

/* Takes the request of the hub for each EP; the answer names the EP. */
static void peers_accept(const struct crowd *c, struct side *s, unsigned process)
{
	unsigned i, number;
	DAT_EVENT event;

	for (i = 0; i < s->n_eps; i++) {
		await(s->cr, DAT_TIMEOUT_INFINITE, &event);
		number = process * c->each + i;
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s->ep[i],
				 sizeof(number), &number));
		await(s->conn, DAT_TIMEOUT_INFINITE, &event);
		if (c->ud)
			s->ah[i] = address(&event);
	}
}

/* Answers each message, with the number of its EP, until the process is killed. */
static void peers_answer(const struct crowd *c, struct side *s, struct peer *peer, unsigned process)
{
	for (;;) {
		DAT_EVENT event;
		unsigned i;

		await(s->recv, DAT_TIMEOUT_INFINITE, &event);
		i = (unsigned)event.event_data.dto_completion_event_data.user_cookie.as_64;
		/* a receive fails when the hub ends */
		if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
			continue;
		post_recv(s->ep[i], &peer[i].in, 0, SLOT, i);
		send_number(s->ep[i], c->ud ? &s->ah[i] : NULL, &peer[i].out, 0,
			    process * c->each + i);
	}
}

static void peers_run(const struct crowd *c, unsigned process)
{
	struct listener *l = &c->listener[process];
	struct peer *peer = calloc(c->each, sizeof(*peer));
	DAT_PSP_HANDLE psp;
	struct side s;
	unsigned i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open(&s, c->each);
	s.n_eps = least((DAT_COUNT)c->each, (DAT_COUNT)(c->peers - process * c->each));
	for (i = 0; i < s.n_eps; i++)
		peer_open(&peer[i], &s, c->ud, i);
	OK(dat_psp_create_any(s.n.ia, &l->qual, s.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	l->address = s.n.address;
	CHECK(write(c->ready[1], "", 1) == 1, "%s", strerror(errno));
	peers_accept(c, &s, process);
	peers_answer(c, &s, peer, process);
}

static void peers_start(struct crowd *c)
{
	unsigned i;

	CHECK(!pipe(c->ready), "%s", strerror(errno));
	for (i = 0; i < c->processes; i++) {
		c->pid[i] = fork();
		CHECK(c->pid[i] >= 0, "fork: %s", strerror(errno));
		if (!c->pid[i])
			peers_run(c, i);
	}
	close(c->ready[1]);
}

static void peers_await(const struct crowd *c)
{
	unsigned i;
	char byte;

	for (i = 0; i < c->processes; i++)
		CHECK(read(c->ready[0], &byte, 1) == 1, "a process of peers has ended");
}

static void peers_end(const struct crowd *c)
{
	unsigned i;

	for (i = 0; i < c->processes; i++)
		kill(c->pid[i], SIGKILL);
	for (i = 0; i < c->processes; i++)
		waitpid(c->pid[i], NULL, 0);
}

/* The hub */

struct hub {
	const struct crowd *c;
	struct side s;
	struct mem in, out;
	bool *answered;
	struct resources before, after;
	int64_t handles_us, messages_us, close_us;
	unsigned repeated;	/* messages that were sent again */
};

static DAT_EP_HANDLE hub_ep(const struct hub *h, unsigned i)
{
	return h->s.ep[h->c->ud ? 0 : i];
}

static void hub_post(struct hub *h, unsigned i)
{
	post_recv(hub_ep(h, i), &h->in, i * SLOT, SLOT, i);
}

/* Creates the EP for datagrams, or one for each peer. */
static void hub_create(struct hub *h)
{
	const DAT_COUNT all = (DAT_COUNT)h->c->peers + SPARE;
	struct side *s = &h->s;
	unsigned i, receives = h->c->peers;

	s->n_eps = h->c->ud ? 1 : h->c->peers;
	for (i = 0; i < s->n_eps; i++)
		s->ep[i] = make_ep(s, s->n.pz, h->c->ud, (unsigned)all);
	if (h->c->ud)
		receives = (unsigned)least(all, s->n.attr.max_dto_per_ep);
	for (i = 0; i < receives; i++)
		hub_post(h, i);
}

static void hub_request(struct hub *h)
{
	const struct crowd *c = h->c;
	unsigned i;

	for (i = 0; i < c->peers; i++)
		connect_with(hub_ep(h, i), &c->listener[i / c->each], patience_ms(c), 0, NULL);
}

/* The fabric reaches fewer peers; the provider has logged the reason. */
static void limit_reached(const struct crowd *c, unsigned reached, const DAT_EVENT *event)
{
	printf("%s %s: %u of %u peers were reached, then event %#x %s\n", pair_ia_name(),
	       c->ud ? "ud" : "rc", reached, c->peers, (unsigned)event->event_number,
	       c->ud ? "" : event_name(event->event_number));
	peers_end(c);
	_exit(EXIT_FABRIC_LIMIT);
}

/* A number in the private data names the peer. */
static void hub_reach(struct hub *h)
{
	const DAT_EVENT_NUMBER wanted = h->c->ud ?
		DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED :
		DAT_CONNECTION_EVENT_ESTABLISHED;
	const DAT_CONNECTION_EVENT_DATA *d;
	unsigned i, number;
	DAT_EVENT event;

	d = &event.event_data.connect_event_data;
	for (i = 0; i < h->c->peers; i++) {
		await(h->s.conn, patience_ms(h->c) * 1000, &event);
		if (event.event_number != wanted)
			limit_reached(h->c, i, &event);
		CHECK(d->private_data_size >= (DAT_COUNT)sizeof(number), "no number");
		memcpy(&number, d->private_data, sizeof(number));
		CHECK(number < h->c->peers, "number %u", number);
		if (h->c->ud)
			h->s.ah[number] = address(&event);
	}
}

static void hub_send(struct hub *h)
{
	DAT_IB_ADDR_HANDLE *ah;
	unsigned i;

	for (i = 0; i < h->c->peers; i++) {
		ah = h->c->ud ? &h->s.ah[i] : NULL;
		if (!h->answered[i])
			send_number(hub_ep(h, i), ah, &h->out, i, i);
	}
}

/* Takes an answer. Returns 0 if none comes for a while, or it is a repeated one, else 1. */
static unsigned hub_take(struct hub *h, bool *quiet)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	const unsigned head = h->c->ud ? HEADER : 0;
	unsigned i, number;
	DAT_EVENT event;
	DAT_COUNT more;

	d = &event.event_data.dto_completion_event_data;
	*quiet = dat_evd_wait(h->s.recv, AGAIN_MS * 1000, 1, &event, &more) != DAT_SUCCESS;
	if (*quiet)
		return 0;
	SAME(d->status, DAT_DTO_SUCCESS);
	i = (unsigned)d->user_cookie.as_64;
	memcpy(&number, h->in.base + i * SLOT + head, sizeof(number));
	CHECK(number < h->c->peers, "an answer of peer %u", number);
	hub_post(h, i);
	if (h->answered[h->c->ud ? number : i])
		return 0;
	h->answered[h->c->ud ? number : i] = true;
	return 1;
}

static void hub_exchange(struct hub *h)
{
	const int64_t until = pair_deadline(PAIR_LIMIT + 100 * h->c->peers);
	unsigned n = 0;
	bool quiet;

	hub_send(h);
	while (n < h->c->peers) {
		n += hub_take(h, &quiet);
		CHECK(pair_now() < until, "%u of %u peers have answered", n, h->c->peers);
		/* a datagram may be lost */
		if (quiet && h->c->ud) {
			h->repeated += h->c->peers - n;
			hub_send(h);
		}
	}
}

/* From here on the process may open @more descriptors. */
static void limit_descriptors(unsigned more)
{
	const rlim_t n = resources_settled().fds + more;
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit), "%s", strerror(errno));
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "%s", strerror(errno));
}

static void hub_run(struct hub *h)
{
	const unsigned n = h->c->peers;
	int64_t begin;

	side_open(&h->s, n);
	mem_get_with(&h->s.n, h->s.n.pz, &h->in, (n + SPARE) * SLOT, PRIV_LOCAL);
	mem_get_with(&h->s.n, h->s.n.pz, &h->out, n * SLOT, PRIV_LOCAL);
	h->answered = calloc(n, sizeof(*h->answered));
	CHECK(h->answered, "no memory");
	if (h->c->ud && strcmp(named_attr(&h->s.n, DAT_IB_ATTR_UD), "TRUE")) {
		peers_end(h->c);
		printf("%s has no datagrams\n", pair_ia_name());
		exit(EXIT_SKIP);
	}
	peers_await(h->c);
	h->before = resources_settled();
	begin = pair_now();
	hub_create(h);
	if (h->c->descriptors)
		limit_descriptors(h->c->descriptors);
	hub_request(h);
	hub_reach(h);
	h->handles_us = pair_now() - begin;
	hub_exchange(h);
	h->messages_us = pair_now() - begin;
	h->after = resources_settled();
}

static void hub_close(struct hub *h)
{
	const int64_t begin = pair_now();

	OK(dat_ia_close(h->s.n.ia, DAT_CLOSE_ABRUPT_FLAG));
	h->close_us = pair_now() - begin;
}

/* Output */

#define KIB(bytes) ((double)(bytes) / 1024)

/* Growth for each peer in KiB. */
static double each(const struct hub *h, size_t before, size_t after)
{
	return (KIB(after) - KIB(before)) / h->c->peers;
}

static void print(const struct hub *h)
{
	const struct resources *b = &h->before, *a = &h->after;
	const struct crowd *c = h->c;

	if (c->csv)
		printf("ia,mode,peers,processes,handles_ms,messages_ms,repeated,own_kib,"
		       "own_kib_each,shared_kib,shared_kib_each,fds,fds_more,threads,close_ms\n"
		       "%s,%s,%u,%u,%.1f,%.1f,%u,%.0f,%.2f,%.0f,%.2f,%u,%d,%u,%.1f\n",
		       pair_ia_name(), c->ud ? "ud" : "rc", c->peers, c->processes,
		       (double)h->handles_us / 1000, (double)h->messages_us / 1000, h->repeated,
		       KIB(b->own), each(h, b->own, a->own), KIB(b->shared),
		       each(h, b->shared, a->shared), b->fds, (int)a->fds - (int)b->fds,
		       a->threads, (double)h->close_us / 1000);
	else
		printf("%s %s: %u peers in %u processes: %s %.1f ms, first messages %.1f ms (%u "
		       "again); memory %.0f KiB + %.2f each, shared %.0f KiB + %.2f each; "
		       "descriptors %u + %d, %u threads; closed in %.1f ms\n",
		       pair_ia_name(), c->ud ? "ud" : "rc", c->peers, c->processes,
		       c->ud ? "address handles" : "connections", (double)h->handles_us / 1000,
		       (double)h->messages_us / 1000, h->repeated, KIB(b->own),
		       each(h, b->own, a->own), KIB(b->shared), each(h, b->shared, a->shared),
		       b->fds, (int)a->fds - (int)b->fds, a->threads,
		       (double)h->close_us / 1000);
}

/* Options */

/* Returns 0, or -1 if the command line is wrong. */
static int options(struct crowd *c, int argc, char **argv)
{
	int opt;

	*c = (struct crowd){ .peers = 20, .ud = true };
	while ((opt = getopt(argc, argv, "m:p:cn:")) != -1) {
		if (opt == 'm' && (!strcmp(optarg, "ud") || !strcmp(optarg, "rc")))
			c->ud = *optarg == 'u';
		else if (opt == 'p' && atoi(optarg) > 0)
			c->processes = (unsigned)atoi(optarg);
		else if (opt == 'n' && atoi(optarg) > 0)
			c->descriptors = (unsigned)atoi(optarg);
		else if (opt == 'c')
			c->csv = true;
		else
			return -1;
	}
	if (optind < argc)
		c->peers = (unsigned)atoi(argv[optind++]);
	if (optind < argc || c->peers < 1 || c->peers > PEERS_MAX)
		return -1;
	if (!c->processes || c->processes > c->peers)
		c->processes = c->peers;
	c->each = (c->peers + c->processes - 1) / c->processes;
	c->processes = (c->peers + c->each - 1) / c->each;
	return 0;
}

int main(int argc, char **argv)
{
	struct crowd c;
	struct hub h = { .c = &c };
	sigset_t mask;

	/* the provider's reason for a limit */
	setenv("DAT_OFI_LOG", "1", 0);
	if (!pair_init(&mask))
		return EXIT_FAILURE;
	if (options(&c, argc, argv)) {
		fputs("usage: ud_scale2 [-m ud|rc] [-p processes] [-c] [-n limit] [peers]\n",
		      stderr);
		return 2;
	}
	setbuf(stdout, NULL);
	if (pair_fabric_missing())
		return EXIT_SKIP;
	c.pid = calloc(c.processes, sizeof(*c.pid));
	c.listener = mmap(NULL, c.processes * sizeof(*c.listener), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(c.pid && c.listener != MAP_FAILED, "no memory");
	peers_start(&c);
	hub_run(&h);
	hub_close(&h);
	peers_end(&c);
	print(&h);
	return EXIT_SUCCESS;
}
