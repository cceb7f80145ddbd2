/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams while peers are killed, address handles are freed early, receives are missing and
 * foreign bytes arrive: nothing hangs or leaks, and no EP gets a datagram that is not for it. 2.0
 * only.
 *
 * DAT_TEST_ROUNDS: number of senders that die (default 20).
 */

#include "../pair/datagram.h"
#include "robust.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROWTH (4 * 1024 * 1024)	/* for memory that allocators keep */
#define SHARED_GROWTH (12 * 1024 * 1024)	/* see death.c */

/* Datagrams that carry their purpose */

#define SENDERS 3
#define EPS 4				/* of the receiver */
#define RECEIVES 8			/* of each: often too few */
#define SLOT 512			/* bytes of a receive */
#define BODY 400			/* most bytes behind the head */
#define BURST 16			/* the receiver answers one in so many */

struct head {
	uint32_t target;		/* number of the EP, as the sender knows it */
	uint32_t sender, life;		/* which sender, and which process of it */
	uint32_t sequence, size, sum;
};

static uint32_t sum_of(const struct head *h, const unsigned char *body)
{
	uint32_t sum = h->target * 31 + h->sender * 37 + h->life * 41 + h->sequence * 43 + h->size;
	uint32_t i;

	for (i = 0; i < h->size; i++)
		sum = sum * 33 + body[i];
	return sum;
}

/* Writes a datagram for @target at @at. Returns its size. */
static size_t compose(unsigned char *at, uint32_t target, uint32_t sender, uint32_t life,
		      uint32_t sequence)
{
	struct head h = {
		.target = target, .sender = sender, .life = life, .sequence = sequence,
		.size = next_random(BODY),
	};

	fill(at + sizeof(h), h.size, sequence);
	h.sum = sum_of(&h, at + sizeof(h));
	memcpy(at, &h, sizeof(h));
	return sizeof(h) + h.size;
}

/* The datagram in a receive at @at, which must be whole. */
static struct head parse(const unsigned char *at, uint64_t length)
{
	struct head h;

	CHECK(length >= GRH + sizeof(h), "%llu bytes", (unsigned long long)length);
	memcpy(&h, at + GRH, sizeof(h));
	SAME(length, GRH + sizeof(h) + h.size);
	SAME(h.sum, sum_of(&h, at + GRH + sizeof(h)));
	return h;
}

/* The messages between a sender and the receiver. */
struct hello {
	uint32_t sender, life;
};

struct life {
	struct hello hello;
	DAT_IB_ADDR_HANDLE to;
	bool known;
	unsigned heard;			/* datagrams of this process */
};

/* The receiver. All its events come to one EVD. */
struct receiver {
	struct pair *p;
	struct ud u;			/* its EPs are idle */
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep[EPS];
	uint32_t number[EPS];		/* as the peers know it; 0: not known yet */
	struct mem m;
	struct life sender[SENDERS];
	unsigned lives;			/* that were heard */
	uint32_t sequence;
	unsigned accepted;
};

#define ALL (DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG)

static void receive_again(struct receiver *r, unsigned i, unsigned slot)
{
	post_recv(r->ep[i], &r->m, (i * RECEIVES + slot) * SLOT, SLOT, i * RECEIVES + slot);
}

static void receiver_open(struct receiver *r, struct pair *p)
{
	DAT_EP_ATTR attr;
	unsigned i, k;

	r->p = p;
	ud_node_open(&r->u);
	r->evd = node_evd(&r->u.n, 8 * NODE_QLEN, ALL);
	mem_get(&r->u.n, &r->m, (EPS * RECEIVES + 1) * SLOT);
	ud_attr(&r->u.n, &attr);
	for (i = 0; i < EPS; i++) {
		OK(dat_ep_create(r->u.n.ia, r->u.n.pz, r->evd, r->evd, r->evd, &attr, &r->ep[i]));
		for (k = 0; k < RECEIVES; k++)
			receive_again(r, i, k);
	}
}

static unsigned index_of(const struct receiver *r, DAT_EP_HANDLE ep)
{
	unsigned i;

	for (i = 0; i < EPS && r->ep[i] != ep; i++)
		;
	CHECK(i < EPS, "an event of an unknown EP");
	return i;
}

static void forget(struct receiver *r, struct life *life)
{
	if (life->known)
		OK(dat_ib_ud_ah_free(r->ep[0], &life->to));
	life->known = false;
}

static void on_request(struct receiver *r, DAT_CR_HANDLE cr)
{
	OK(dat_cr_accept(cr, r->ep[r->accepted++ % EPS], 0, NULL));
}

/* The end of an exchange. Its peer may be dead. */
static void on_exchange(struct receiver *r, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *d = &event->event_data.connect_event_data;
	DAT_IB_EXTENSION_EVENT_DATA x = ud_ext(event);
	struct hello hello;
	struct life *life;

	CHECK(x.context.as_ptr, "no exchange");
	if (event->event_number == DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED) {
		SAME(d->private_data_size, sizeof(hello));
		memcpy(&hello, d->private_data, sizeof(hello));
		life = &r->sender[hello.sender % SENDERS];
		if (life->hello.life != hello.life)
			life->heard = 0;
		forget(r, life);
		*life = (struct life){
			.hello = hello, .to = x.remote_ah, .known = true, .heard = life->heard,
		};
	}
	OK(dat_ib_ud_cm_free(d->ep_handle, x.context.as_ptr));
}

static void answer(struct receiver *r, struct life *life)
{
	unsigned char *at = r->m.base + EPS * RECEIVES * SLOT;
	size_t size;

	if (!life->known)
		return;
	size = compose(at, life->to.qpn, life->hello.sender, life->hello.life, r->sequence++);
	OK(ud_send_from(r->ep[0], &r->m, &life->to, EPS * RECEIVES * SLOT, size, UINT64_MAX));
}

#define ENOUGH 20			/* datagrams of a process before it may die */

static void on_datagram(struct receiver *r, const DAT_DTO_COMPLETION_EVENT_DATA *d)
{
	const unsigned i = index_of(r, d->ep_handle);
	const unsigned slot = (unsigned)(d->user_cookie.as_64 % RECEIVES);
	const struct head h = parse(r->m.base + d->user_cookie.as_64 * SLOT,
				    d->transfered_length);
	struct life *life = &r->sender[h.sender % SENDERS];

	SAME(d->user_cookie.as_64 / RECEIVES, i);
	if (!r->number[i])
		r->number[i] = h.target;
	SAME(h.target, r->number[i]);
	receive_again(r, i, slot);
	if (!life->known || life->hello.life != h.life)
		return;
	if (++life->heard == ENOUGH) {
		pair_send(r->p, &life->hello, sizeof(life->hello));
		r->lives++;
	}
	if (h.sequence % BURST == 0)
		answer(r, life);
}

static void on_event(struct receiver *r, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event->event_data.dto_completion_event_data;

	switch ((int)event->event_number) {
	case DAT_IB_UD_CONNECTION_REQUEST_EVENT:
		on_request(r, event->event_data.cr_arrival_event_data.cr_handle);
		break;
	case DAT_IB_DTO_EVENT:
		SAME(d->status, DAT_DTO_SUCCESS);
		if ((int)d->operation != DAT_IB_DTO_SEND_UD)
			on_datagram(r, d);
		break;
	default:
		on_exchange(r, event);
	}
}

static void receiver_close(struct receiver *r)
{
	unsigned i;

	for (i = 0; i < SENDERS; i++)
		forget(r, &r->sender[i]);
	for (i = 0; i < EPS; i++)
		OK(dat_ep_free(r->ep[i]));
	OK(dat_ep_free(r->u.ep));
	OK(dat_ep_free(r->u.door));
	OK(dat_evd_free(r->evd));
	OK(dat_evd_free(r->u.knocks));
	mem_put(&r->m);
	mem_put(&r->u.m);
	node_close(&r->u.n);
}

static unsigned rounds(void)
{
	return env_count("DAT_TEST_ROUNDS", 20);
}

static void surviving_receiver(struct pair *p)
{
	const unsigned lives = SENDERS + rounds();
	struct receiver *r = calloc(1, sizeof(*r));
	struct resources before = { .fds = 0 };
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_COUNT more;

	receiver_open(r, p);
	OK(dat_psp_create_any(r->u.n.ia, &qual, r->evd, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &r->u.n, qual);
	while (r->lives < lives) {
		CHECK(dat_evd_wait(r->evd, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more) ==
			      DAT_SUCCESS, "nothing arrives after %u lives", r->lives);
		on_event(r, &event);
		if (!before.fds && r->lives == SENDERS + 5)
			before = resources_settled();
	}
	if (before.fds)
		expect_resources(&before, GROWTH, SHARED_GROWTH);
	OK(dat_psp_free(psp));
	receiver_close(r);
	free(r);
	pair_sync(p);
}

/* The senders: processes that the client forks, and kills */

struct sender {
	struct ud u;
	struct hello hello;
	DAT_IB_ADDR_HANDLE to[EPS];
	uint32_t sequence;
	unsigned in_flight;
};

static void sender_open(struct sender *s, const struct listener *to)
{
	unsigned i;

	ud_node_open(&s->u);
	for (i = 0; i < RECEIVES; i++)
		post_recv(s->u.ep, &s->u.m, UD_HALF + i * SLOT, SLOT, i);
	for (i = 0; i < EPS; i++) {
		connect_with(s->u.ep, to, PAIR_LIMIT, sizeof(s->hello), &s->hello);
		s->to[i] = ud_ended(&s->u, s->u.ep, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
				    DAT_IB_UD_REMOTE_AH, 0, 0);
	}
}

/* Takes answers, which must be for this process. */
static void take_answers(struct sender *s, unsigned ms)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;
	DAT_COUNT more;
	struct head h;

	while (dat_evd_wait(s->u.n.recv, ms * 1000, 1, &event, &more) == DAT_SUCCESS) {
		d = &event.event_data.dto_completion_event_data;
		SAME(d->status, DAT_DTO_SUCCESS);
		h = parse(s->u.m.base + UD_HALF + d->user_cookie.as_64 * SLOT,
			  d->transfered_length);
		SAME(h.sender, s->hello.sender);
		SAME(h.life, s->hello.life);
		post_recv(s->u.ep, &s->u.m, UD_HALF + d->user_cookie.as_64 * SLOT, SLOT,
			  d->user_cookie.as_64);
		ms = 0;
	}
}

static void send_one(struct sender *s)
{
	const DAT_IB_ADDR_HANDLE *to = &s->to[next_random(EPS)];
	const size_t size = compose(s->u.m.base, to->qpn, s->hello.sender, s->hello.life,
				    s->sequence);

	ud_send(&s->u, to, 0, size, s->sequence++);
}

static void sender_main(const struct listener *to, struct hello hello)
{
	static struct sender s;
	unsigned i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	s.hello = hello;
	for (i = 0; i < hello.life * 7 % 100; i++)
		next_random(2);
	sender_open(&s, to);
	for (;;) {
		for (i = 0; i < BURST; i++)
			send_one(&s);
		take_answers(&s, 20);
	}
}

static pid_t sender_start(const struct listener *to, struct hello hello)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (!pid)
		sender_main(to, hello);
	return pid;
}

static void sender_kill(pid_t pid)
{
	int status;

	CHECK(!kill(pid, SIGKILL), "a sender has already ended");
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a sender ended with %#x",
	      status);
}

/* Kills and replaces each sender that was heard; one in three dies once more while it starts. */
static void killer(struct pair *p)
{
	pid_t pid[SENDERS];
	struct listener to;
	struct hello heard;
	uint32_t life = 0;
	unsigned i;

	pair_recv_listener(p, &to);
	for (i = 0; i < SENDERS; i++)
		pid[i] = sender_start(&to, (struct hello){ .sender = i, .life = ++life });
	for (i = 0; i < SENDERS + rounds(); i++) {
		pair_recv(p, &heard, sizeof(heard));
		usleep(next_random(1u << next_random(13)));
		sender_kill(pid[heard.sender]);
		if (i % 3 == 1) {
			pid[heard.sender] = sender_start(&to, (struct hello){
				.sender = heard.sender, .life = ++life });
			usleep(next_random(100000));
			sender_kill(pid[heard.sender]);
		}
		pid[heard.sender] = sender_start(&to, (struct hello){
			.sender = heard.sender, .life = ++life });
	}
	for (i = 0; i < SENDERS; i++)
		sender_kill(pid[i]);
	pair_sync(p);
}

/* A receiver that dies */

#define SENDS 2000

static void surviving_sender(struct pair *p)
{
	struct listener self;
	DAT_IB_ADDR_HANDLE own, theirs;
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	self = u.listener;
	self.address = u.n.address;
	ud_call(u.door, &self);
	OK(dat_cr_accept(ud_request(&u), u.ep, 0, NULL));
	theirs = ud_ended(&u, u.door, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH,
			  0, 0);
	own = ud_ended(&u, u.ep, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
		       DAT_IB_UD_PASSIVE_REMOTE_AH, UD_DATA, 1);
	for (i = 0; i < SENDS; i++) {
		if (i == SENDS / 10)
			CHECK(!kill(p->peer, SIGKILL), "the peer has ended");
		ud_send(&u, &u.to, 0, i % 200, i);
	}
	pair_wait_gone(p);
	for (i = 0; i < SENDS; i++)
		ud_send(&u, &u.to, 0, i % 200, i);
	/* the PZ is its own peer, which is not stuck */
	post_recv(u.ep, &u.m, 0, SLOT, 7);
	OK(ud_send_from(u.door, &u.m, &theirs, 0, 50, 8));
	ud_done(u.n.req, u.door, 8, DAT_IB_DTO_SEND_UD, 50);
	ud_done(u.n.recv, u.ep, 7, DAT_IB_DTO_RECV_UD, GRH + 50);
	OK(dat_ib_ud_ah_free(u.ep, &own));
	OK(dat_ib_ud_ah_free(u.ep, &theirs));
	OK(dat_ib_ud_ah_free(u.ep, &u.to));
	OK(dat_ib_ud_ah_free(u.ep, &u.to_door));
	FAILS(ud_send_from(u.ep, &u.m, &u.to, 0, 10, 1), DAT_INVALID_PARAMETER);
	OK(dat_psp_free(u.psp));
	OK(dat_ep_free(u.door));
	OK(dat_ep_free(u.ep));
	OK(dat_evd_free(u.knocks));
	mem_put(&u.m);
	node_close(&u.n);
}

static void dying_receiver(struct pair *p)
{
	struct ud u;

	ud_open(p, &u);
	for (;;)
		pause();
}

/* Address handles that are freed right after a send */

#define EXCHANGES 200

static void early_server(struct pair *p)
{
	unsigned i, came = 0;
	DAT_EVENT event;
	struct ud u;

	ud_open(p, &u);
	for (i = 0; i < 250; i++)
		post_recv(u.ep, &u.m, 0, SLOT, i);
	for (i = 0; i < EXCHANGES; i++) {
		DAT_IB_ADDR_HANDLE ah = ud_accept(&u, u.ep);

		OK(dat_ib_ud_ah_free(u.ep, &ah));
	}
	pair_sync(p);
	while (dat_evd_dequeue(u.n.recv, &event) == DAT_SUCCESS)
		came++;
	CHECK(came, "none of %u datagrams arrived", EXCHANGES);
	pair_note("%u of %u datagrams arrived", came, EXCHANGES);
	ud_close(p, &u);
}

static void early_client(struct pair *p)
{
	struct resources before;
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	/* the ones of ud_open() keep the peer */
	OK(dat_ib_ud_ah_free(u.ep, &u.to));
	OK(dat_ib_ud_ah_free(u.ep, &u.to_door));
	for (i = 0; i < EXCHANGES; i++) {
		ud_call(u.ep, &u.listener);
		u.to = ud_called(&u, u.ep);
		ud_send(&u, &u.to, 0, 1 + i, i);
		OK(dat_ib_ud_ah_free(u.ep, &u.to));
		FAILS(ud_send_from(u.ep, &u.m, &u.to, 0, 10, 1), DAT_INVALID_PARAMETER);
		FAILS(dat_ib_ud_ah_free(u.ep, &u.to), DAT_INVALID_PARAMETER);
		if (i == EXCHANGES / 4)
			before = resources_settled();
	}
	expect_resources(&before, GROWTH, SHARED_GROWTH);
	pair_sync(p);
	pair_sync(p);			/* the server's ud_close() */
	OK(dat_ep_free(u.door));
	OK(dat_ep_free(u.ep));
	OK(dat_evd_free(u.knocks));
	mem_put(&u.m);
	node_close(&u.n);
}

/* Foreign bytes, sent to the port of udp */

/* Stores the addresses of this process's UDP sockets. Returns their number. */
static unsigned udp_sockets(struct sockaddr_in *in, unsigned most)
{
	unsigned long inodes[64], inode, port, host;
	unsigned n_inodes = 0, n = 0, i;
	char line[512], path[300], link[64];
	const struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");
	FILE *f = fopen("/proc/net/udp", "r");
	ssize_t len;

	CHECK(dir && f, "no /proc");
	while ((e = readdir(dir)) && n_inodes < 64) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = 0;
		n_inodes += sscanf(link, "socket:[%lu]", &inodes[n_inodes]) == 1;
	}
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %lx:%lx %*s %*s %*s %*s %*s %*s %*s %lu", &host, &port,
			   &inode) == 3)
			for (i = 0; i < n_inodes && n < most; i++)
				if (inodes[i] == inode)
					in[n++] = (struct sockaddr_in){
						.sin_family = AF_INET,
						.sin_addr.s_addr = (in_addr_t)host,
						.sin_port = htons((uint16_t)port),
					};
	fclose(f);
	closedir(dir);
	return n;
}

static DAT_UINT64 foreign_count(const struct ud *u)
{
	DAT_UINT64 n;

	OK(dat_ib_query_counters(u->n.ia, DCNT_IA_LNK_ERR_RCV_CONSTRAINT, &n, 0));
	return n;
}

#define NONSENSE 50			/* batches of eight */

/* Bytes that are random, or begin like a datagram. */
static void send_nonsense(int fd, const struct sockaddr_in *to)
{
	unsigned char bytes[1400];
	size_t len = 1 + next_random(next_random(3) ? 64 : sizeof(bytes)), i;

	for (i = 0; i < len; i++)
		bytes[i] = (unsigned char)next_random(256);
	if (len >= 4 && next_random(2))
		memcpy(bytes, "\xd1\0\0", 4);
	CHECK(sendto(fd, bytes, len, 0, (const struct sockaddr *)to, sizeof(*to)) == (ssize_t)len,
	      "sendto");
}

static void nonsense_server(struct pair *p)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in in[4];
	unsigned sockets, i, k;
	DAT_UINT64 before;
	int64_t until;
	struct ud u;

	ud_open(p, &u);
	sockets = udp_sockets(in, 4);
	if (!sockets)
		pair_skip("the datagrams of this fabric are not on UDP");
	SAME(sockets, 1);
	before = foreign_count(&u);
	until = pair_deadline(PAIR_LIMIT);
	post_recv(u.ep, &u.m, 0, SLOT, 1);
	for (i = 0; i < NONSENSE; i++) {
		for (k = 0; k < 8; k++)
			send_nonsense(fd, &in[0]);
		while (foreign_count(&u) < before + 8 * (i + 1)) {
			CHECK(pair_now() < until, "%llu of %u were counted",
			      (unsigned long long)(foreign_count(&u) - before), 8 * (i + 1));
			usleep(500);
		}
	}
	SAME(foreign_count(&u), before + 8 * NONSENSE);
	expect_quiet(u.n.recv);
	pair_sync(p);
	ud_done(u.n.recv, u.ep, 1, DAT_IB_DTO_RECV_UD, GRH + 10);
	close(fd);
	ud_close(p, &u);
}

static void nonsense_client(struct pair *p)
{
	struct ud u;

	ud_open(p, &u);
	pair_sync(p);
	ud_send(&u, &u.to, 0, 10, 1);
	ud_close(p, &u);
}

static struct pair_case cases[] = {
	{ .name = "senders_are_killed", .server = surviving_receiver, .client = killer },
	{ .name = "a_receiver_is_killed", .server = surviving_sender, .client = dying_receiver,
	  .client_killed = true },
	{ .name = "address_handles_are_freed_early", .server = early_server,
	  .client = early_client },
	{ .name = "foreign_bytes_are_dropped", .server = nonsense_server,
	  .client = nonsense_client },
};

int main(int argc, char **argv)
{
	/* opening an IA takes most of a second on a loaded machine */
	cases[0].seconds = 30 + 4 * rounds();
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
