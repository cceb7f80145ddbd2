/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams over rings: how the ends of an exchange get their inboxes, and when these end. */

#include "xport/ud/parts.h"

#include "base/ring.h"
#include "nomem.h"
#include "xport/cm/address.h"
#include "xport/ud/ud.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LONG DAT_TIMEOUT_INFINITE

static DAT_PSP_HANDLE psp;		/* of far */
static DAT_CONN_QUAL qual;
static struct ud_peer *near_ah, *far_ah; /* of near, and of far: address handles of each other */

static void init(void)
{
	ud_init_both();
	psp = ud_listen_any(&ud_far, &qual);
}

TestSuite(xport_ud_inbox, .init = init, .fini = ud_fini, .timeout = 60);

static struct ud_peer *established(const struct ud_side *s, DAT_IB_EXT_TYPE type)
{
	const DAT_EVENT event = ud_ended(s, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, type, "");

	return ud_ah_of(&event);
}

/* The end of an exchange, at either end. */
static struct ud_peer *any_established(const struct ud_side *s)
{
	const DAT_EVENT event =
		event_await(s->evd, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);

	return ud_ah_of(&event);
}

/* near calls far. */
static void meet(void)
{
	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	near_ah = established(&ud_near, DAT_IB_UD_REMOTE_AH);
	far_ah = established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH);
}

struct inboxes_call {
	const struct ud_side *s;
	unsigned n;
};

static void count_inboxes(void *arg)
{
	struct inboxes_call *c = arg;
	const struct dofi_inbox *inbox;

	TAILQ_FOREACH(inbox, &ud_part(c->s)->rings->inboxes, all)
		c->n++;
}

static unsigned inboxes(const struct ud_side *s)
{
	struct inboxes_call call = { .s = s };

	dofi_progress_call(&ia->progress, count_inboxes, &call);
	return call.n;
}

/* Waits until @s has @n inboxes. */
static void inboxes_become(const struct ud_side *s, unsigned n)
{
	const int64_t until = dofi_now() + 30 * 1000000000LL;

	while (inboxes(s) != n && dofi_now() < until)
		;
	cr_expect_eq(inboxes(s), n);
}

static bool has_net(const struct ud_side *s)
{
	const struct dofi_ep *ep = s->ep;

	cr_expect_eq(!ep->second_cq, !ud_part(s)->net.domain);
	return ud_part(s)->net.domain;
}

static void both_work(void)
{
	ud_works(&ud_near, near_ah, &ud_far, 100);
	ud_works(&ud_far, far_ah, &ud_near, 100);
}

static const struct dofi_pz *ud_far_pz(void)
{
	return ud_part(&ud_far)->pz;
}

/* Exchanges */

Test(xport_ud_inbox, is_given_to_each_end)
{
	const size_t most = ia->datagram_size, size[] = { 0, 1, 36, 37, most - 1, most };
	unsigned i;

	meet();
	cr_assert(near_ah->out && far_ah->out);
	cr_expect_eq(inboxes(&ud_near), 1);
	cr_expect_eq(inboxes(&ud_far), 1);
	/* connections use the same outbox, for RDMA as well */
	cr_expect_eq(!near_ah->out->grants, !ud_far_pz()->domain.grants.book);
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		ud_works(&ud_near, near_ah, &ud_far, size[i]);
	both_work();
	cr_expect(!has_net(&ud_near) && !has_net(&ud_far));
}

Test(xport_ud_inbox, is_given_once)
{
	struct ud_peer *first;

	meet();
	first = near_ah;
	meet();
	cr_expect_eq(near_ah, first);
	cr_expect_eq(inboxes(&ud_near), 1);
	cr_expect_eq(inboxes(&ud_far), 1);
	ud_put(near_ah);
	both_work();
}

/* Both begin an exchange before they answer. */
Test(xport_ud_inbox, is_given_once_by_exchanges_that_cross)
{
	struct ud_side other_far = ud_far;
	DAT_CR_HANDLE at_far, at_near;
	DAT_CONN_QUAL near_qual;

	ud_listen_any(&ud_near, &near_qual);
	other_far.ep = ud_ep_make(&ud_far);
	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	succeed(ud_call_at(&other_far, near_qual, LONG, ""));
	at_far = ud_request(&ud_far, "");
	at_near = ud_request(&ud_near, "");
	succeed(dofi_cr_accept(at_far, ud_far.ep, 0, NULL));
	succeed(dofi_cr_accept(at_near, ud_near.ep, 0, NULL));
	near_ah = any_established(&ud_near);
	cr_expect_eq(any_established(&ud_near), near_ah);
	far_ah = any_established(&ud_far);
	cr_expect_eq(any_established(&ud_far), far_ah);
	inboxes_become(&ud_near, 1);
	inboxes_become(&ud_far, 1);
	both_work();
}

Test(xport_ud_inbox, of_a_pz_from_itself)
{
	struct ud_side other = ud_far;

	other.evd = evd_make(64, EVD_ALL_FLAGS);
	other.ep = ud_ep_make(&other);
	succeed(ud_call_at(&other, qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	far_ah = established(&other, DAT_IB_UD_REMOTE_AH);
	cr_expect_eq(established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH), far_ah);
	cr_expect_eq(inboxes(&ud_far), 1);
	ud_works(&other, far_ah, &ud_far, 10);
	succeed(dofi_ep_free(other.ep));
	succeed(dofi_evd_free(other.evd));
}

Test(xport_ud_inbox, of_a_rejected_request_is_dropped)
{
	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	succeed(dofi_cr_reject(ud_request(&ud_far, ""), 0, NULL));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, "");
	cr_expect_eq(inboxes(&ud_near), 0);
	cr_expect_eq(inboxes(&ud_far), 0);
}

/* The requester has withdrawn its inbox. */
Test(xport_ud_inbox, of_a_request_that_timed_out_is_not_claimed)
{
	DAT_CR_HANDLE cr;

	succeed(ud_call_at(&ud_near, qual, 500000, ""));
	cr = ud_request(&ud_far, "");
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "");
	cr_expect_eq(inboxes(&ud_near), 0);
	succeed(dofi_cr_accept(cr, ud_far.ep, 0, NULL));
	ud_ended(&ud_far, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "");
	inboxes_become(&ud_far, 0);
	meet();
	both_work();
}

/* Accepts requests at far until the exchange of near has ended. */
static void exchange_ends(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	while (dofi_evd_wait(ud_near.evd, 1000, 1, &event, &more)) {
		if (dofi_evd_wait(ud_far.evd, 1000, 1, &event, &more))
			continue;
		if (event.event_number == DAT_IB_UD_CONNECTION_REQUEST_EVENT)
			dofi_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ud_far.ep,
				       0, NULL);
	}
}

Test(xport_ud_inbox, may_lack_memory)
{
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		if (!ud_call_at(&ud_near, qual, 1000000, ""))
			exchange_ends();
		if (!nomem_failed())
			break;
	}
	cr_expect(n > 9 && n < NOMEM_MOST, "%d", n);
	cr_expect_eq(ud_calls(), 0);
}

/* Ends */

Test(xport_ud_inbox, ends_with_the_address_handle)
{
	meet();
	ud_works(&ud_near, near_ah, &ud_far, 10);
	ud_put(near_ah);
	inboxes_become(&ud_far, 0);
	cr_expect_eq(inboxes(&ud_near), 1);
	ud_works(&ud_far, far_ah, &ud_near, 10);
	ud_put(far_ah);
	inboxes_become(&ud_near, 0);
	meet();
	both_work();
}

Test(xport_ud_inbox, ends_with_an_ep_whose_event_nobody_dequeued)
{
	DAT_EP_HANDLE ep = ud_near.ep;

	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	/* near's event is queued: far's event follows the confirmation of near */
	established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH);
	ud_near.ep = ud_ep_make(&ud_near);
	succeed(dofi_ep_free(ep));
	cr_expect(event_none(ud_near.evd));
	inboxes_become(&ud_far, 0);
}

Test(xport_ud_inbox, ends_after_its_last_datagrams)
{
	enum { N = 20 };
	unsigned i;

	meet();
	for (i = 0; i < N; i++)
		ud_recv(&ud_far, 64 * i, 64, i);
	for (i = 0; i < N; i++)
		ud_send(&ud_near, near_ah, &ud_far, i, 1, i);
	ud_put(near_ah);
	for (i = 0; i < N; i++)
		ud_received(&ud_far, i, 1);
	inboxes_become(&ud_far, 0);
}

Test(xport_ud_inbox, ends_with_the_pz_of_the_sender)
{
	meet();
	ud_side_close(&ud_near);
	inboxes_become(&ud_far, 0);
}

static void rename_bell(void *arg)
{
	strcpy(TAILQ_FIRST(&ud_part(arg)->rings->inboxes)->link->bell, "nobody");
}

/* The next exchange finds it. */
Test(xport_ud_inbox, ends_with_the_process_of_the_sender)
{
	meet();
	dofi_progress_call(&ia->progress, rename_bell, &ud_far);
	near_ah = NULL;
	ud_side_open(&ud_third);
	succeed(ud_call_at(&ud_third, qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	established(&ud_third, DAT_IB_UD_REMOTE_AH);
	established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH);
	cr_expect_eq(inboxes(&ud_far), 1);
}

/* Full rings: far does not read while the test holds the lock of its CQ. */

#define LENGTH 1400

static struct dofi_mutex *far_lock(void)
{
	return &ud_part(&ud_far)->local.domain->cq.lock;
}

static unsigned waiting(void)
{
	struct ud_pz *upz = ud_part(&ud_near);
	unsigned n;

	dofi_mutex_lock(&upz->lock);
	n = near_ah->n_waiting;
	dofi_mutex_unlock(&upz->lock);
	return n;
}

/* Sends until copies wait. Returns how many datagrams that were. */
static unsigned fill(void)
{
	unsigned n = 0;

	while (!waiting() && !ia->count.dropped_sends) {
		ud_near.memory[n] = (unsigned char)n;
		ud_send(&ud_near, near_ah, &ud_far, n, LENGTH, n);
		ud_sent_one(&ud_near, n++);
	}
	return n;
}

Test(xport_ud_inbox, a_full_inbox_delays_datagrams)
{
	unsigned n, i;

	meet();
	for (i = 0; i < 100; i++)
		ud_recv(&ud_far, 0, UD_GRH + LENGTH, i);
	dofi_mutex_lock(far_lock());
	n = fill();
	cr_expect(n > 20 && n < 100, "%u", n);
	cr_expect_eq(waiting(), 1);
	dofi_mutex_unlock(far_lock());
	for (i = 0; i < n; i++)
		ud_received(&ud_far, i, LENGTH);
	cr_expect_eq(waiting(), 0);
	cr_expect_eq(ia->count.dropped_sends, 0);
}

Test(xport_ud_inbox, a_full_inbox_delays_no_other_peer)
{
	struct ud_peer *third_ah;
	DAT_CONN_QUAL third_qual;

	meet();
	ud_side_open(&ud_third);
	ud_listen_any(&ud_third, &third_qual);
	succeed(ud_call_at(&ud_near, third_qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_third, ""), ud_third.ep, 0, NULL));
	third_ah = established(&ud_near, DAT_IB_UD_REMOTE_AH);
	established(&ud_third, DAT_IB_UD_PASSIVE_REMOTE_AH);
	dofi_mutex_lock(far_lock());
	fill();
	ud_recv(&ud_third, 0, 100, 1);
	ud_send(&ud_near, third_ah, &ud_third, 0, 10, 2);
	ud_sent_one(&ud_near, 2);
	ud_received(&ud_third, 1, 10);
	cr_expect_eq(waiting(), 1);
	dofi_mutex_unlock(far_lock());
}

/* Without the patience for a peer that is slow. */
static void is_dropped_at_once(void)
{
	const unsigned n = fill();

	cr_expect(n < 100, "%u", n);
	cr_expect_eq(waiting(), 0);
	cr_expect(ia->count.dropped_sends > 0);
	ud_send(&ud_near, near_ah, &ud_far, 0, LENGTH, n);
	ud_sent_one(&ud_near, n);
	cr_expect_eq(waiting(), 0);
}

Test(xport_ud_inbox, of_a_dead_process_that_is_full_drops_datagrams)
{
	meet();
	strcpy(near_ah->out->bell, "nobody");
	dofi_mutex_lock(far_lock());
	is_dropped_at_once();
	dofi_mutex_unlock(far_lock());
}

Test(xport_ud_inbox, of_a_freed_pz_that_is_full_drops_datagrams)
{
	struct ud_side other = ud_far;

	meet();
	other.ep = NULL;
	succeed(dofi_psp_free(psp));
	succeed(dofi_lmr_free(ud_far.lmr));
	succeed(dofi_ep_free(ud_far.ep));
	succeed(dofi_pz_free(ud_far.pz));
	ud_far = ud_near;		/* any number of an EP */
	is_dropped_at_once();
	ud_far = other;
	ud_far.pz = NULL;
}

/* A program that polls */

/* Polls @evd until the progress thread leaves the rings of far to the program. */
static void take_over(DAT_EVD_HANDLE evd)
{
	struct dofi_cq *cq = &ud_part(&ud_far)->local.domain->cq;
	DAT_EVENT event;

	while (!atomic_load(&cq->programs_poll))
		cr_assert_eq(dofi_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

static uint64_t counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

Test(xport_ud_inbox, gives_a_datagram_to_the_thread_that_polls)
{
	const struct dofi_evd *evd = ud_far.evd;
	uint64_t straight, queued;
	DAT_EVENT event;
	unsigned i;

	meet();
	for (i = 0; i < 1000; i++) {
		ud_recv(&ud_far, 0, 100, i);
		take_over(ud_far.evd);
		straight = counted(&evd->count_of.straight);
		queued = counted(&evd->count_of.completion);
		ud_send(&ud_near, near_ah, &ud_far, 0, 10, 1);
		ud_sent_one(&ud_near, 1);
		while (dofi_evd_dequeue(ud_far.evd, &event) == DAT_QUEUE_EMPTY)
			;
		cr_expect_eq(event.event_number, DAT_IB_DTO_EVENT);
		cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length,
			     UD_GRH + 10);
		cr_expect_eq(ud_extension(&event)->type, DAT_IB_UD_RECV);
		if (counted(&evd->count_of.straight) == straight + 1)
			return;
		/* the progress thread read the ring after a pause of this thread */
		cr_assert_eq(counted(&evd->count_of.completion), queued + 1);
	}
	cr_assert(false, "each of %u datagrams was queued", i);
}

/* Another thread does not read the ring meanwhile. */
Test(xport_ud_inbox, a_poll_takes_a_datagram_of_any_length)
{
	static const size_t length[] = { 0, 1, 3, 4, 100 };
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	struct dofi_sink sink;
	DAT_EVENT event;
	unsigned i;

	meet();
	for (i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		ud_recv(&ud_far, 0, UD_GRH + 100, i);
		sink = (struct dofi_sink){ .evd = ud_far.evd, .event = &event };
		dofi_mutex_lock(far_lock());
		ud_send(&ud_near, near_ah, &ud_far, 0, length[i], i);
		cr_expect(dofi_rings_poll(&ud_part(&ud_far)->local.domain->cq, &sink), "%zu",
			  length[i]);
		dofi_mutex_unlock(far_lock());
		cr_assert(!sink.evd, "%zu", length[i]);
		d = &event.event_data.dto_completion_event_data;
		cr_expect_eq(d->user_cookie.as_64, i);
		cr_expect_eq(d->transfered_length, UD_GRH + length[i]);
		ud_sent_one(&ud_near, i);
	}
}

Test(xport_ud_inbox, is_read_on_past_the_datagram_of_another_evd)
{
	struct ud_side other = ud_far;

	meet();
	other.evd = evd_make(64, EVD_ALL_FLAGS);
	succeed(ud_ep_try(ud_far.pz, other.evd, &other.ep));
	ud_recv(&other, 200, 100, 1);
	ud_recv(&ud_far, 0, 100, 2);
	take_over(ud_far.evd);
	ud_send(&ud_near, near_ah, &other, 0, 10, 3);
	ud_send(&ud_near, near_ah, &ud_far, 0, 20, 4);
	ud_received(&ud_far, 2, 20);
	cr_expect_eq(dofi_evd_pending(other.evd), 1);
	ud_received(&other, 1, 10);
	ud_sent_one(&ud_near, 3);
	ud_sent_one(&ud_near, 4);
}

/* Peers that send nonsense */

static void write_bytes(const void *bytes, size_t len)
{
	struct dofi_outbox *out = near_ah->out;
	unsigned char *frame;

	dofi_mutex_lock(&out->lock);
	cr_assert_eq(dofi_outbox_reserve(out, len, &frame), 0);
	memcpy(frame, bytes, len);
	dofi_outbox_send(out);
	dofi_mutex_unlock(&out->lock);
	ud_sweep(&ud_far);
}

Test(xport_ud_inbox, with_a_foreign_datagram_goes_on)
{
	unsigned char bytes[UD_FRAME_HEADER + 4] = { 0 };
	struct ud_frame f = { .number = ud_number(ud_far.ep), .key = ud_part(&ud_near)->key };

	meet();
	ud_recv(&ud_far, 0, 100, 1);
	write_bytes("nonsense", 8);
	ud_frame_pack(bytes, &f);
	write_bytes(bytes, sizeof(bytes));
	f.key = ud_part(&ud_far)->key;
	f.number ^= 1;
	ud_frame_pack(bytes, &f);
	write_bytes(bytes, sizeof(bytes));
	ud_counts(&ud_far, &ia->count.dropped_foreign, 3);
	ud_send(&ud_near, near_ah, &ud_far, 0, 10, 2);
	ud_sent_one(&ud_near, 2);
	ud_received(&ud_far, 1, 10);
}

/* The peer finds its ring full, and then the link shut. */
Test(xport_ud_inbox, of_which_the_ring_is_broken_is_not_read)
{
	struct dofi_ring_out *out;

	meet();
	both_work();
	out = &near_ah->out->out;
	atomic_store(dofi_ring_word(out->ring, out->tail), UINT64_MAX - 1);
	ud_sweep(&ud_far);
	cr_expect_eq(rdm_ia_of(ia)->strays, 1);
	cr_expect(dofi_outbox_has_ended(near_ah->out, ud_bell(ud_part(&ud_near)->uia)));
	is_dropped_at_once();
	ud_works(&ud_far, far_ah, &ud_near, 10);
	ud_put(near_ah);
	inboxes_become(&ud_far, 0);
}

Test(xport_ud_inbox, of_which_the_head_is_impossible_fails)
{
	meet();
	dofi_mutex_lock(far_lock());
	atomic_store(&near_ah->out->out.ring->head, UINT64_MAX / 2);
	is_dropped_at_once();
	dofi_mutex_unlock(far_lock());
}

/* Both ways */

static int local_name;

/* Any process may take the local name of a qualifier: then its peers use the net. */
static void name_take(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	succeed(dofi_psp_free(psp));
	local_name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-ofi/datagrams/%" PRIu64,
		 (uint64_t)qual);
	cr_assert_eq(bind(local_name, (struct sockaddr *)&name,
			  dofi_cm_address_len((struct sockaddr *)&name)), 0);
	succeed(dofi_psp_create(ia, qual, ud_far.evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

static void name_return(void)
{
	succeed(dofi_psp_free(psp));
	close(local_name);
	succeed(dofi_psp_create(ia, qual, ud_far.evd, DAT_PSP_CONSUMER_FLAG, &psp));
}

Test(xport_ud_inbox, is_replaced_by_the_net)
{
	struct ud_side other = ud_far;

	name_take();
	meet();
	cr_assert(!near_ah->out && !far_ah->out);
	cr_expect(has_net(&ud_near) && has_net(&ud_far));
	cr_expect_eq(inboxes(&ud_near), 0);
	both_work();
	/* an EP that is made now has both ways as well */
	other.ep = ud_ep_make(&ud_far);
	ud_works(&ud_near, near_ah, &other, 10);
	succeed(dofi_ep_free(other.ep));
	close(local_name);
}

Test(xport_ud_inbox, is_used_beside_the_net)
{
	struct ud_peer *by_net[2];

	name_take();
	meet();
	both_work();
	by_net[0] = near_ah;
	by_net[1] = far_ah;
	name_return();
	meet();
	cr_expect(near_ah != by_net[0] && near_ah->out && far_ah->out);
	both_work();
	ud_works(&ud_near, by_net[0], &ud_far, 50);
	ud_works(&ud_far, by_net[1], &ud_near, 50);
	ud_put(near_ah);
	inboxes_become(&ud_far, 0);
	ud_works(&ud_near, by_net[0], &ud_far, 50);
}

/* The net takes sends from now on, and the close of the PZ sweeps first. */
static void take_and_close(void *arg)
{
	ud_fault.ret = 0;
	succeed(dofi_pz_free(ud_near.pz));
}

Test(xport_ud_inbox, a_pz_with_inboxes_sends_what_waits_for_the_net_before_it_is_closed)
{
	name_take();
	meet();
	both_work();
	name_return();
	ud_recv(&ud_far, 0, 64, 1);
	ud_fault_open();
	ud_fault.ret = -FI_EAGAIN;
	ud_send(&ud_near, near_ah, &ud_far, 0, 1, 2);
	ud_sent_one(&ud_near, 2);
	succeed(dofi_ep_free(ud_near.ep));
	succeed(dofi_lmr_free(ud_near.lmr));
	dofi_progress_call(&ia->progress, take_and_close, NULL);
	ud_received(&ud_far, 1, 1);
}

/* The IA has rings alone */

static void remove_net(void *arg)
{
	ud_ia_of(arg)->fabric = NULL;
}

static void init_alone(void)
{
	ud_init_both();
	dofi_progress_call(&ia->progress, remove_net, ia);
	psp = ud_listen_any(&ud_far, &qual);
}

TestSuite(xport_ud_alone, .init = init_alone, .fini = ud_fini, .timeout = 60);

Test(xport_ud_alone, works)
{
	meet();
	both_work();
	cr_expect(!has_net(&ud_near) && !has_net(&ud_far));
}

Test(xport_ud_alone, rejects_without_a_service_point)
{
	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, "");
	cr_expect_eq(inboxes(&ud_near), 0);
}

Test(xport_ud_alone, waits_for_a_service_point)
{
	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	settle();
	succeed(dofi_psp_create(ia, qual, ud_far.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	near_ah = established(&ud_near, DAT_IB_UD_REMOTE_AH);
	far_ah = established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH);
	both_work();
}

Test(xport_ud_alone, does_not_reach_other_hosts)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	inet_pton(AF_INET, "198.51.100.1", &in.sin_addr);
	succeed(dofi_ep_connect(ud_near.ep, (DAT_IA_ADDRESS_PTR)&in, qual, LONG, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "");
	cr_expect(event_none(ud_far.evd));
}
