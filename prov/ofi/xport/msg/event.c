/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: connection events of the fabric. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "fab/quirks.h"
#include "obj/ep/ep_cm.h"
#include "xport/ports.h"
#include "xport/wire.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

static void accepted(struct dofi_ep *ep, const void *data, size_t size)
{
	struct dofi_wire msg;

	if (!ep->local_port)
		msg_show_port(ep);
	if (dofi_wire_unpack(data, size, &msg) || msg.kind != DOFI_WIRE_ACCEPT) {
		dofi_ep_no_connection(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
				      "the acceptor is not this provider");
		return;
	}
	dofi_mutex_lock(&ep->lock);
	ep->peer_secret = msg.secret;
	msg_bye_learn(ep, &msg.mailbox);
	ep->preambles = msg.preambles;
	dofi_mutex_unlock(&ep->lock);
	dofi_ep_established(ep, msg.data, msg.data_size);
}

void msg_peer_ended(struct dofi_source *source)
{
	struct dofi_watch *watch = (struct dofi_watch *)source;
	struct dofi_ep *ep = msg_watch_owner(watch);
	bool lost;

	if (watch->fd < 0)
		return;
	lost = dofi_watch_is_lost(watch);
	if (lost && dofi_port_attempt_lost(ep, DAT_CONNECTION_EVENT_UNREACHABLE,
					   "the host does not respond"))
		return;
	/* if the fabric also detects the end, it reports that before the timer fires */
	dofi_ep_last_receives(ep, lost ? DAT_CONNECTION_EVENT_BROKEN :
					 DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* An EP of an SRQ posts one receive at a time, so it may still receive the peer's last messages. */
static void peer_left(struct dofi_ep *ep)
{
	bool more = false;

	if (ep->srq) {
		dofi_cq_ask(ep->cq, ep->shard);
		dofi_cq_drain(ep->cq);
		dofi_mutex_lock(&ep->lock);
		more = ep->state == DAT_EP_STATE_CONNECTED &&
		       (ep->obj.ia->fabric.quirk->shutdown_overtakes || msg_srq_waits(ep));
		dofi_mutex_unlock(&ep->lock);
	}
	if (more) {
		dofi_ep_last_receives(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else if (!dofi_port_attempt_lost(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					 DOFI_NO_ANSWER)) {
		dofi_mutex_lock(&ep->lock);
		dofi_ep_lost(ep, false);
		dofi_mutex_unlock(&ep->lock);
	}
}

void msg_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry, size_t len)
{
	struct dofi_ia *ia = dofi_ia_of(p);
	size_t data_size = len > sizeof(*entry) ? len - sizeof(*entry) : 0;
	struct dofi_ep *ep;

	if (event == FI_CONNREQ) {
		msg_arrived(ia, entry->fid, entry->info, entry->data, data_size);
		return;
	}
	ep = msg_ep_of(ia, entry->fid);
	if (!ep)
		return;
	if (event == FI_SHUTDOWN)
		peer_left(ep);
	if (event != FI_CONNECTED)
		return;
	if (ia->fabric.quirk->misses_end_while_blocked &&
	    dofi_watch_open(&msg_part(ep)->watch, &ia->progress, ep->fid, msg_peer_ended))
		dofi_ep_log(ep, DOFI_INFO, DOFI_CM, "its socket was not found");
	if (dofi_ep_state_now(ep) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		accepted(ep, entry->data, data_size);
	else
		dofi_ep_established(ep, NULL, 0);
}

/*
 * A rejection differs from a refusal by our header in its data alone. In place of a time-out, the
 * provider's errno may show that an acceptor answered and left.
 */
void msg_error(struct dofi_progress *p, const struct fi_eq_err_entry *e)
{
	struct dofi_ep *ep = msg_ep_of(dofi_ia_of(p), e->fid);
	struct dofi_wire msg = { .kind = 0 };
	int err = abs(e->err);
	bool ours;

	if (!ep)
		return;
	if (dofi_ep_state_now(ep) != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) {
		if (!dofi_port_attempt_lost(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					    DOFI_NO_ANSWER))
			dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
		return;
	}
	ours = e->err_data_size && !dofi_wire_unpack(e->err_data, e->err_data_size, &msg);
	if (ours && msg.kind == DOFI_WIRE_REJECT) {
		dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, msg.data, msg.data_size);
		return;
	}
	if (ep->obj.ia->fabric.quirk->reason_in_prov_errno && err == FI_ETIMEDOUT && e->prov_errno)
		err = abs(e->prov_errno);
	msg_connect_failed(ep, err, ours ? DOFI_NO_LISTENER : NULL);
}
