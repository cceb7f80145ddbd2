/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exchanges of addresses that this end begins. */

#include "xport/ud/ud.h"

#include "base/clock.h"
#include "base/log.h"
#include "xport/cm/address.h"
#include "xport/cm/listen.h"
#include "xport/ports.h"
#include "xport/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most exchanges begun and not answered: each has a descriptor. The others wait. */
#define CALLS_MOST 128

/* How long and often a request is repeated: programs that start together have no listeners yet. */
#define REPEAT_NS (500 * 1000000LL)
#define REPEAT_EVERY_NS (10 * 1000000LL)
/* The rest of REPEAT_NS when a PZ opens its endpoint of the net for a peer of this host. */
#define NET_NS (REPEAT_NS / 2)

/* An exchange that this end began. */
struct ud_call {
	struct dofi_exchange *x;
	struct ud_ep *uep;
	struct dofi_cm_conn *cm;	/* NULL while it is delayed */
	bool here;			/* to an address of this host, where the IA has rings */
	bool local;			/* the attempt is to the local socket of the qualifier */
	struct dofi_inbox *inbox;	/* offered by that attempt, or NULL */
	unsigned attempt;		/* which of the qualifier's ports is being tried */
	bool begun;
	bool foreign;			/* a port had a peer of another fabric */
	int64_t repeat_until;
	struct dofi_timer timer;	/* the deadline of the program */
	struct dofi_timer repeat;	/* until the next round of attempts */
	TAILQ_ENTRY(ud_call) delay;	/* in uia->delayed unless begun */
	LIST_ENTRY(ud_call) link;	/* in uep->calls */
};

static struct ud_ia *uia_of(const struct ud_call *call)
{
	return call->uep->upz->uia;
}

static void attempt_close(struct ud_call *call)
{
	dofi_cm_close(call->cm);
	call->cm = NULL;
	dofi_inbox_offer_end(call->inbox);
	call->inbox = NULL;
}

/* Frees @call; another exchange may begin. */
static void call_free(struct ud_call *call)
{
	struct ud_ia *uia = uia_of(call);

	dofi_timer_stop(&uia->ia->progress, &call->timer);
	dofi_timer_stop(&uia->ia->progress, &call->repeat);
	attempt_close(call);
	LIST_REMOVE(call, link);
	if (call->begun)
		uia->n_calls--;
	else
		TAILQ_REMOVE(&uia->delayed, call, delay);
	free(call);
	if (!TAILQ_EMPTY(&uia->delayed))
		dofi_progress_post(&uia->ia->progress, &uia->beginning);
}

static void call_end(struct ud_call *call, const struct dofi_exchanged *how)
{
	struct dofi_exchange *x = call->x;

	x->xport = NULL;
	call_free(call);
	dofi_exchange_end(x, how);
}

static void call_fail(struct ud_call *call, DAT_EVENT_NUMBER event, const char *why)
{
	const struct dofi_exchanged how = { .event = event };

	dofi_ep_log(call->x->ep, DOFI_WARN, DOFI_CM, "no address of a peer for qualifier %llu: %s",
		    (unsigned long long)call->x->request.conn_qual, why);
	call_end(call, &how);
}

static void on_timeout(struct dofi_timer *timer)
{
	struct ud_call *call = DOFI_CONTAINER_OF(timer, struct ud_call, timer);

	call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, "no answer within the time-out");
}

/* The peer reports the exchange only after READY, so both ends report the same result. */
static void established(struct ud_call *call, const struct dofi_cm_msg *msg)
{
	static const struct dofi_cm_msg ready = { .kind = DOFI_CM_READY };
	struct dofi_exchanged how = {
		.event = DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
		.number = msg->number, .data = msg->data, .data_size = msg->data_size,
	};
	struct ud_peer *peer;
	struct ud_intro intro = { .offer = NULL };
	int ret = ud_intro_take(&intro, msg, call->local) ? 0 : -EPROTO;

	if (!ret)
		ret = ud_peer_get(call->uep->upz, &intro, &peer);
	ud_intro_drop(&intro);
	if (ret) {
		call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, strerror(-ret));
		return;
	}
	how.ah = peer;
	dofi_cm_send(call->cm, &ready);
	attempt_close(call);
	call_end(call, &how);
}

static void attempt_next(struct ud_call *call, const char *why);
static void round_again(struct ud_call *call);

/* Another program may have the port, or another IA of this qualifier. */
static void on_answer(struct dofi_cm_conn *cm, const struct dofi_cm_msg *msg)
{
	struct ud_call *call = dofi_cm_owner(cm);
	const struct dofi_exchanged rejected = {
		.event = DAT_IB_UD_CONNECTION_REJECT_EVENT,
		.data = msg->data, .data_size = msg->data_size,
	};

	if (msg->kind == DOFI_CM_DATAGRAM_ACCEPT) {
		established(call, msg);
	} else if (msg->kind == DOFI_CM_REJECT) {
		call_end(call, &rejected);
	} else if (msg->kind != DOFI_CM_REFUSE) {
		return;
	} else if (msg->reason == DOFI_CM_NO_LISTENER) {
		attempt_next(call, DOFI_NO_LISTENER);
	} else if (msg->reason == DOFI_CM_NO_PATH) {
		call->foreign |= !call->local;
		attempt_next(call, NULL);
	} else {
		call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, "the peer has no memory");
	}
}

/*
 * Whether the peer may yet begin to listen on this host. An attempt over the net opens the PZ's
 * endpoint there, which each poll reads from then on.
 */
static bool waits_for_local(const struct ud_call *call, int err)
{
	return err == -ECONNREFUSED && !call->uep->upz->net.domain &&
	       dofi_now() + NET_NS < call->repeat_until;
}

/* After some errors, of a connection without an answer, another port may have the peer. */
static void on_failure(struct dofi_cm_conn *cm, int err)
{
	struct ud_call *call = dofi_cm_owner(cm);
	const bool absent = err == -ECONNREFUSED || err == -ECONNRESET || err == -EPROTO ||
			    err == -EPROTONOSUPPORT || !err;

	/* -EAGAIN: the peer's queue of connections is full */
	if (call->local && (err == -EAGAIN || waits_for_local(call, err)))
		round_again(call);
	else if (call->local || absent)
		attempt_next(call, "no datagram endpoint of the peer listens there");
	else
		call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, strerror(-err));
}

static const struct dofi_cm_ops active_ops = { .message = on_answer, .ended = on_failure };

/* Descriptors of an exchange within the host: a socket, an inbox, and three from the answer. */
#define NEAR_FDS 5

/* Returns 0 if as many descriptors as an exchange needs are free, or else -EMFILE or -ENFILE. */
static int descriptors_check(const struct ud_call *call)
{
	const int any = call->uep->upz->rings->doorbell_fd;
	int fd[NEAR_FDS], n, ret = 0;

	for (n = 0; n < NEAR_FDS && !ret; n++) {
		fd[n] = fcntl(any, F_DUPFD_CLOEXEC, 0);
		ret = fd[n] < 0 ? -errno : 0;
	}
	n -= ret != 0;
	while (n)
		close(fd[--n]);
	return ret;
}

static int attempt(struct ud_call *call)
{
	const struct dofi_request *r = &call->x->request;
	struct dofi_progress *p = &uia_of(call)->ia->progress;
	struct sockaddr_storage address;
	struct dofi_cm_msg msg = {
		.kind = DOFI_CM_DATAGRAM_REQUEST, .conn_qual = r->conn_qual, .data = r->data,
		.data_size = (uint16_t)r->data_size,
	};
	int ret;

	if (dofi_port_address_of_none(&r->peer))
		return -ENETUNREACH;
	if (!call->local && !uia_of(call)->fabric)
		return -EHOSTUNREACH;
	if (call->local) {
		ret = descriptors_check(call);
		if (!ret)
			ret = dofi_inbox_open(call->uep->upz->rings, &call->inbox);
	} else {
		ret = ud_pz_open_net(call->uep->upz);
	}
	if (ret)
		return ret;
	ud_introduce(call->uep, call->inbox, &msg);
	if (call->local)
		return dofi_local_connect(p, DOFI_LOCAL_DATAGRAMS, r->conn_qual, &r->peer,
					  &active_ops, call, &msg, &call->cm);
	dofi_port_address(&address, &r->peer, false,
			  dofi_wire_datagram_port(r->conn_qual, call->attempt));
	return dofi_cm_connect(p, (struct sockaddr *)&address, NULL, &active_ops, call, &msg,
			       &call->cm);
}

/* Waits if there is no descriptor now, and one may become free: another exchange has it. */
static void attempt_again(struct ud_call *call)
{
	const struct ud_ia *uia = uia_of(call);
	const int ret = attempt(call);

	if (!ret)
		return;
	if ((ret == -EMFILE || ret == -ENFILE) &&
	    (uia->n_calls > 1 || dofi_now() < call->repeat_until))
		round_again(call);
	else if (call->local && uia->fabric)
		attempt_next(call, NULL);
	else
		call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, strerror(-ret));
}

/* Begins a round of attempts: rings first if the peer is on this host, then the net. */
static void round_begin(struct ud_call *call)
{
	call->local = call->here;
	call->attempt = 0;
	attempt_again(call);
}

static void on_repeat(struct dofi_timer *timer)
{
	round_begin(DOFI_CONTAINER_OF(timer, struct ud_call, repeat));
}

/* Ends the attempt, and tries all again a little later. */
static void round_again(struct ud_call *call)
{
	attempt_close(call);
	dofi_timer_start(&uia_of(call)->ia->progress, &call->repeat,
			 dofi_now() + REPEAT_EVERY_NS);
}

/* Makes the next attempt, over the net or at its next port, or ends the round because of @why. */
static void attempt_next(struct ud_call *call, const char *why)
{
	bool more;

	attempt_close(call);
	if (call->local) {
		call->local = false;
		more = uia_of(call)->fabric;
	} else {
		more = ++call->attempt < DOFI_WIRE_DATAGRAM_PORTS;
	}
	if (more)
		attempt_again(call);
	else if (dofi_now() < call->repeat_until)
		round_again(call);
	else if (call->foreign)
		call_fail(call, DAT_IB_UD_CONNECTION_ERROR_EVENT, "the peer uses another fabric");
	else
		call_fail(call, DAT_IB_UD_CONNECTION_REJECT_EVENT, why);
}

void ud_calls_begin(struct dofi_work *work)
{
	struct ud_ia *uia = DOFI_CONTAINER_OF(work, struct ud_ia, beginning);
	struct ud_call *call;

	while (uia->n_calls < CALLS_MOST && (call = TAILQ_FIRST(&uia->delayed))) {
		TAILQ_REMOVE(&uia->delayed, call, delay);
		call->begun = true;
		call->here = uia->rings && dofi_cm_is_here(&call->x->request.peer);
		call->repeat_until = dofi_now() + REPEAT_NS;
		uia->n_calls++;
		round_begin(call);
	}
}

void ud_connect(struct dofi_exchange *x)
{
	static const struct dofi_exchanged failed = {
		.event = DAT_IB_UD_CONNECTION_ERROR_EVENT,
	};
	struct ud_ep *uep = ud_ep_of(x->ep);
	struct ud_ia *uia = uep->upz->uia;
	struct ud_call *call = calloc(1, sizeof(*call));

	if (!call) {
		dofi_exchange_end(x, &failed);
		return;
	}
	call->x = x;
	call->uep = uep;
	call->timer.fire = on_timeout;
	call->repeat.fire = on_repeat;
	x->xport = call;
	LIST_INSERT_HEAD(&uep->calls, call, link);
	TAILQ_INSERT_TAIL(&uia->delayed, call, delay);
	dofi_timer_start(&uia->ia->progress, &call->timer, x->request.deadline);
	ud_calls_begin(&uia->beginning);
}

void ud_calls_drop(struct ud_ep *uep)
{
	struct ud_call *call;

	while ((call = LIST_FIRST(&uep->calls)))
		call_free(call);
}
