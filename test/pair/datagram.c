/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams between two processes: addresses, data, several EPs, waiting receivers. 2.0 only. */

#include "datagram.h"

#include "../robust/robust.h"

#include <pthread.h>
#include <unistd.h>

/* A datagram arrives at @u, in @offset of its memory. */
static void arrived(struct ud *u, uint64_t cookie, size_t offset, size_t length, unsigned seed)
{
	static const unsigned char zeros[GRH];

	ud_done(u->n.recv, u->ep, cookie, DAT_IB_DTO_RECV_UD, GRH + length);
	/* hardware writes InfiniBand's header there */
	if (!node_is_on_verbs(&u->n))
		CHECK(!memcmp(u->m.base + offset, zeros, GRH), "the header is not zero");
	verify(u->m.base + offset + GRH, length, seed);
}

static size_t size_of_round(const struct ud *u, unsigned i)
{
	const size_t sizes[] = { 0, 1, 2, 7, 64, 255, u->most / 2, u->most - 1, u->most };

	return sizes[i];
}

#define ROUNDS 9

static void echo_server(struct pair *p)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < ROUNDS; i++) {
		const size_t length = size_of_round(&u, i);

		post_recv(u.ep, &u.m, 0, GRH + length, i);
		pair_sync(p);
		arrived(&u, i, 0, length, i);
		ud_send(&u, &u.to, GRH, length, i);
	}
	ud_close(p, &u);
}

static void echo_client(struct pair *p)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < ROUNDS; i++) {
		const size_t length = size_of_round(&u, i);

		post_recv(u.ep, &u.m, 0, GRH + length, i);
		fill(u.m.base + UD_HALF, length, i);
		pair_sync(p);
		ud_send(&u, &u.to, UD_HALF, length, i);
		arrived(&u, i, 0, length, i);
	}
	ud_close(p, &u);
}

/* The end of an exchange of ep or of door, which come in any order. */
static void exchanged(struct ud *u)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;

	expect_event(u->n.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, &event);
	ep = event.event_data.connect_event_data.ep_handle;
	x = ud_ext(&event);
	CHECK(x.remote_ah.ah == u->to.ah, "another address handle");
	SAME(x.type, ep == u->ep ? DAT_IB_UD_REMOTE_AH : DAT_IB_UD_PASSIVE_REMOTE_AH);
	SAME(x.remote_ah.qpn, ep == u->ep ? u->to_door.qpn : u->to.qpn);
	OK(dat_ib_ud_ah_free(ep, &x.remote_ah));
}

/* Each end requests the address of the other one, as OFED's dtestx does. */
static void both_call(struct pair *p)
{
	struct listener mine, theirs;
	DAT_PSP_HANDLE psp;
	struct ud u;

	ud_open(p, &u);
	psp = node_listen(&u.n, &mine.qual);
	mine.address = u.n.address;
	pair_send(p, &mine, sizeof(mine));
	pair_recv(p, &theirs, sizeof(theirs));
	ud_call(u.ep, &theirs);
	OK(dat_cr_accept(ud_request(&u), u.door, 0, NULL));
	exchanged(&u);
	exchanged(&u);
	OK(dat_psp_free(psp));
	ud_close(p, &u);
}

static void reject_server(struct pair *p)
{
	unsigned char data[48];
	struct ud u;

	ud_open(p, &u);
	fill(data, sizeof(data), 9);
	OK(dat_cr_reject(ud_request(&u), sizeof(data), data));
	OK(dat_cr_reject(ud_request(&u), 0, NULL));
	ud_close(p, &u);
}

static void reject_client(struct pair *p)
{
	struct listener nothing;
	struct ud u;

	ud_open(p, &u);
	ud_call(u.ep, &u.listener);
	ud_ended(&u, u.ep, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, 48, 9);
	ud_call(u.ep, &u.listener);
	ud_ended(&u, u.ep, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, 0, 0);
	nothing = u.listener;
	nothing.qual ^= 0x5a5a00000000;	/* no service point */
	ud_call(u.ep, &nothing);
	ud_ended(&u, u.ep, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, 0, 0);
	ud_close(p, &u);
}

/* Immediate data */

static const uint32_t immed[] = { 1, 0, UINT32_MAX, 0x12345678 };
#define N_IMMED (sizeof(immed) / sizeof(immed[0]))

static void immed_server(struct pair *p)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < N_IMMED; i++)
		post_recv(u.ep, &u.m, 1024 * i, 1024, i);
	pair_sync(p);
	for (i = 0; i < N_IMMED; i++) {
		SAME(ud_done(u.n.recv, u.ep, i, DAT_IB_DTO_RECV_UD_IMMED, GRH + 10 * i), immed[i]);
		verify(u.m.base + 1024 * i + GRH, 10 * i, i);
	}
	ud_close(p, &u);
}

static void immed_client(struct pair *p)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	pair_sync(p);
	for (i = 0; i < N_IMMED; i++) {
		DAT_LMR_TRIPLET iov = mem_segment(&u.m, 0, 10 * i);

		fill(u.m.base, 10 * i, i);
		OK(dat_ib_post_send_ud_immed(u.ep, 1, &iov, &u.to, ud_cookie(i), immed[i],
					     DAT_COMPLETION_DEFAULT_FLAG));
		ud_done(u.n.req, u.ep, i, DAT_IB_DTO_SEND_UD, 10 * i);
	}
	ud_close(p, &u);
}

/* Several EPs, one address handle */

#define EPS 4

static void eps_server(struct pair *p)
{
	DAT_EP_HANDLE ep[EPS];
	DAT_IB_ADDR_HANDLE ah[EPS];
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < EPS; i++) {
		ep[i] = ud_ep(&u, u.n.pz, u.n.recv);
		post_recv(ep[i], &u.m, 1024 * i, GRH + 100, i);
		ah[i] = ud_accept(&u, ep[i]);
	}
	/* the peer sends to the last one first */
	for (i = EPS; i-- > 0;) {
		pair_sync(p);
		ud_done(u.n.recv, ep[i], i, DAT_IB_DTO_RECV_UD, GRH + 100);
		verify(u.m.base + 1024 * i + GRH, 100, i);
	}
	for (i = 0; i < EPS; i++) {
		OK(dat_ib_ud_ah_free(u.ep, &ah[i]));
		OK(dat_ep_free(ep[i]));
	}
	ud_close(p, &u);
}

/* Any EP of the PZ sends to the address handle. */
static void eps_client(struct pair *p)
{
	DAT_EP_HANDLE ep[EPS];
	DAT_IB_ADDR_HANDLE ah[EPS];
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < EPS; i++) {
		ep[i] = ud_ep(&u, u.n.pz, u.n.recv);
		ud_call(u.ep, &u.listener);
		ah[i] = ud_called(&u, u.ep);
	}
	for (i = EPS; i-- > 0;) {
		fill(u.m.base, 100, i);
		pair_sync(p);
		OK(ud_send_from(ep[i], &u.m, &ah[i], 0, 100, i));
		ud_done(u.n.req, ep[i], i, DAT_IB_DTO_SEND_UD, 100);
	}
	for (i = 0; i < EPS; i++) {
		OK(dat_ib_ud_ah_free(u.ep, &ah[i]));
		OK(dat_ep_free(ep[i]));
	}
	ud_close(p, &u);
}

static void other_pz(struct pair *p)
{
	DAT_IB_ADDR_HANDLE none;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	struct mem m;
	struct ud u;

	ud_open(p, &u);
	none = u.to;
	none.ah = NULL;
	OK(dat_pz_create(u.n.ia, &pz));
	ep = ud_ep(&u, pz, u.n.recv);
	mem_get_with(&u.n, pz, &m, 4096, PRIV_LOCAL);
	FAILS(ud_send_from(ep, &m, &u.to, 0, 10, 1), DAT_INVALID_PARAMETER);
	FAILS(ud_send_from(ep, &m, &none, 0, 10, 1), DAT_INVALID_PARAMETER);
	FAILS(dat_ib_ud_ah_free(ep, &u.to), DAT_INVALID_PARAMETER);
	/* the memory has to be of the EP's PZ */
	FAILS(ud_send_from(u.ep, &m, &u.to, 0, 10, 1), DAT_PROTECTION_VIOLATION);
	OK(dat_ep_free(ep));
	mem_put(&m);
	OK(dat_pz_free(pz));
	ud_close(p, &u);
}

/* An SRQ of two EPs */

static void srq_server(struct pair *p)
{
	DAT_SRQ_ATTR srq_attr = {
		.max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_IB_ADDR_HANDLE ah[2];
	DAT_EP_HANDLE ep[2];
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	ud_attr(&u.n, &attr);
	OK(dat_srq_create(u.n.ia, u.n.pz, &srq_attr, &srq));
	for (i = 0; i < 2; i++) {
		OK(dat_ep_create_with_srq(u.n.ia, u.n.pz, u.n.recv, u.n.req, u.n.conn, srq, &attr,
					  &ep[i]));
		ah[i] = ud_accept(&u, ep[i]);
	}
	for (i = 0; i < 6; i++) {
		DAT_LMR_TRIPLET iov = mem_segment(&u.m, 1024 * i, 1024);

		OK(dat_srq_post_recv(srq, 1, &iov, ud_cookie(i)));
	}
	pair_sync(p);
	for (i = 0; i < 6; i++) {
		ud_done(u.n.recv, ep[i % 2], i, DAT_IB_DTO_RECV_UD, GRH + 50 + i);
		verify(u.m.base + 1024 * i + GRH, 50 + i, i);
	}
	for (i = 0; i < 2; i++) {
		OK(dat_ib_ud_ah_free(u.ep, &ah[i]));
		OK(dat_ep_free(ep[i]));
	}
	OK(dat_srq_free(srq));
	ud_close(p, &u);
}

static void srq_client(struct pair *p)
{
	DAT_IB_ADDR_HANDLE ah[2];
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < 2; i++) {
		ud_call(u.ep, &u.listener);
		ah[i] = ud_called(&u, u.ep);
	}
	pair_sync(p);
	for (i = 0; i < 6; i++) {
		fill(u.m.base, 50 + i, i);
		ud_send(&u, &ah[i % 2], 0, 50 + i, i);
	}
	for (i = 0; i < 2; i++)
		OK(dat_ib_ud_ah_free(u.ep, &ah[i]));
	ud_close(p, &u);
}

/* Datagrams that no receive takes, or that are too long for it */

static void dropped_server(struct pair *p)
{
	DAT_UINT64 dropped;
	DAT_EVENT event;
	struct ud u;

	ud_open(p, &u);
	pair_sync(p);
	pair_sync(p);			/* the peer has sent */
	do
		OK(dat_ib_query_counters(u.n.ia, DCNT_IA_DIAG_ERR_RQ_UDSDPRD, &dropped, 0));
	while (dropped < 2 && (usleep(1000), true));
	post_recv(u.ep, &u.m, 0, GRH + 99, 1);
	post_recv(u.ep, &u.m, 0, GRH + 100, 2);
	pair_sync(p);
	expect_event(u.n.recv, DAT_IB_DTO_EVENT, &event);
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_LOCAL_LENGTH);
	arrived(&u, 2, 0, 100, 7);
	SAME(ep_state(u.ep), DAT_EP_STATE_CONNECTED);
	ud_close(p, &u);
}

static void dropped_client(struct pair *p)
{
	struct ud u;

	ud_open(p, &u);
	fill(u.m.base, 100, 7);
	pair_sync(p);
	ud_send(&u, &u.to, 0, 100, 1);
	ud_send(&u, &u.to, 0, 100, 2);
	pair_sync(p);
	pair_sync(p);
	ud_send(&u, &u.to, 0, 100, 3);
	ud_send(&u, &u.to, 0, 100, 4);
	ud_close(p, &u);
}

/* Receivers that poll, wait, and sleep */

#define TURNS 300

static void await(struct ud *u, bool polls, uint64_t cookie)
{
	const int64_t until = pair_deadline(PAIR_LIMIT);
	DAT_EVENT event;

	if (!polls) {
		ud_done(u->n.recv, u->ep, cookie, DAT_IB_DTO_RECV_UD, GRH + 8);
		return;
	}
	while (dat_evd_dequeue(u->n.recv, &event) != DAT_SUCCESS)
		CHECK(pair_now() < until, "nothing arrives");
	SAME(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	SAME(event.event_data.dto_completion_event_data.transfered_length, GRH + 8);
}

static void turns(struct pair *p, bool polls)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	post_recv(u.ep, &u.m, 0, GRH + 8, 0);
	pair_sync(p);
	for (i = 0; i < TURNS; i++) {
		if (!p->server)
			ud_send(&u, &u.to, UD_HALF, 8, i);
		await(&u, polls, i);
		post_recv(u.ep, &u.m, 0, GRH + 8, i + 1);
		if (p->server)
			ud_send(&u, &u.to, UD_HALF, 8, i);
	}
	ud_close(p, &u);
}

static void polling(struct pair *p)
{
	turns(p, true);
}

static void waiting(struct pair *p)
{
	turns(p, false);
}

/* A thread of this process that waits without a time-out. */
struct sleeper {
	pthread_t thread;
	pid_t tid;
	struct ud *u;
	DAT_EVENT event;
};

static void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;
	DAT_COUNT more;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	OK(dat_evd_wait(s->u->n.recv, DAT_TIMEOUT_INFINITE, 1, &s->event, &more));
	return NULL;
}

#define SLEEPS 5

static void sleeping_server(struct pair *p)
{
	struct sleeper s;
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < SLEEPS; i++) {
		post_recv(u.ep, &u.m, 0, GRH + 8, i);
		s = (struct sleeper){ .u = &u };
		CHECK(!pthread_create(&s.thread, NULL, sleep_in_wait, &s), "pthread_create");
		while (!__atomic_load_n(&s.tid, __ATOMIC_ACQUIRE))
			sched_yield();
		wait_asleep(s.tid);
		pair_sync(p);
		CHECK(!pthread_join(s.thread, NULL), "pthread_join");
		SAME(s.event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		verify(u.m.base + GRH, 8, i);
	}
	ud_close(p, &u);
}

static void sleeping_client(struct pair *p)
{
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < SLEEPS; i++) {
		pair_sync(p);
		fill(u.m.base, 8, i);
		ud_send(&u, &u.to, 0, 8, i);
	}
	ud_close(p, &u);
}

/* Counters and attributes */

static void counted_server(struct pair *p)
{
	DAT_UINT64 ep[DCNT_EP_ALL_COUNTERS];
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	for (i = 0; i < 3; i++)
		post_recv(u.ep, &u.m, 1024 * i, 1024, i);
	pair_sync(p);
	for (i = 0; i < 3; i++)
		ud_done(u.n.recv, u.ep, i, DAT_IB_DTO_RECV_UD, GRH + 11);
	OK(dat_ib_query_counters(u.ep, DCNT_EP_ALL_COUNTERS, ep, 0));
	SAME(ep[DCNT_EP_RECV_UD], 3);
	SAME(ep[DCNT_EP_RECV_UD_DATA], 3 * (GRH + 11));
	SAME(ep[DCNT_EP_POST_RECV], 3);
	ud_close(p, &u);
}

static void counted_client(struct pair *p)
{
	DAT_UINT64 ep[DCNT_EP_ALL_COUNTERS], ia[DCNT_IA_ALL_COUNTERS];
	DAT_EP_PARAM param;
	struct ud u;
	unsigned i;

	ud_open(p, &u);
	pair_sync(p);
	for (i = 0; i < 3; i++)
		ud_send(&u, &u.to, 0, 11, i);
	OK(dat_ib_query_counters(u.ep, DCNT_EP_ALL_COUNTERS, ep, 0));
	SAME(ep[DCNT_EP_POST_SEND_UD], 3);
	SAME(ep[DCNT_EP_POST_SEND_UD_DATA], 33);
	SAME(ep[DCNT_EP_POST_SEND], 0);
	OK(dat_ib_query_counters(u.n.ia, DCNT_IA_ALL_COUNTERS, ia, 0));
	SAME(ia[DCNT_IA_CM_AH_REQ_TX], 2);
	SAME(ia[DCNT_IA_CM_AH_RESOLVED], 2);
	SAME(ia[DCNT_IA_LNK_ERR_XMT_DISCARDS], 0);
	OK(dat_ep_query(u.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_attr.max_message_size <= u.most, "longer than a datagram");
	FAILS(ud_send_from(u.ep, &u.m, &u.to, 0, u.most + 1, 1), DAT_LENGTH_ERROR);
	/* as OFED: nothing ends */
	OK(dat_ep_disconnect(u.ep, DAT_CLOSE_ABRUPT_FLAG));
	SAME(ep_state(u.ep), DAT_EP_STATE_CONNECTED);
	ud_close(p, &u);
}

static const struct pair_case cases[] = {
	PAIR_CASE("any_size_both_ways", echo_server, echo_client),
	PAIR_CASE("each_requests_the_address_of_the_other", both_call, both_call),
	PAIR_CASE("requests_are_rejected", reject_server, reject_client),
	PAIR_CASE("immediate_data", immed_server, immed_client),
	PAIR_CASE("eps_share_an_address_handle", eps_server, eps_client),
	PAIR_CASE("an_address_handle_is_of_one_pz", other_pz, other_pz),
	PAIR_CASE("eps_share_receives", srq_server, srq_client),
	PAIR_CASE("no_receive_or_a_short_one", dropped_server, dropped_client),
	PAIR_CASE("polling_receivers", polling, polling),
	PAIR_CASE("waiting_receivers", waiting, waiting),
	PAIR_CASE("a_sleeping_receiver_is_woken", sleeping_server, sleeping_client),
	PAIR_CASE("counters_and_attributes", counted_server, counted_client),
};

PAIR_MAIN(cases)
