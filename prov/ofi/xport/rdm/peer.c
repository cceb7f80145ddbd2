/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the report of each end of a connection about itself. */

#include "xport/rdm/peer.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In place of a fabric address: the layout of the shared memory, which both ends have to know. */
static const char layout[] = "rings/4";

/* Descriptors: of the sender's inbox, of its doorbell, and of its grants, if any. */
enum { INBOX_FD, DOORBELL_FD, NEEDED_FDS, GRANTS_FD = NEEDED_FDS, MOST_FDS };

struct rdm_peer *rdm_peer_new(struct dofi_cm_conn *cm)
{
	struct rdm_peer *peer = calloc(1, sizeof(*peer));

	if (peer)
		peer->cm = cm;
	return peer;
}

void rdm_peer_answered(struct rdm_peer *peer)
{
	if (peer->port)
		dofi_port_put(peer->port);
	peer->port = NULL;
}

void rdm_peer_free(struct rdm_peer *peer)
{
	rdm_peer_answered(peer);
	dofi_cm_close(peer->cm);
	dofi_inbox_offer_end(peer->inbox);
	dofi_outbox_unmap(peer->offer);
	free(peer);
}

/* Maps the inbox that the peer offers. Too few descriptors: this process could not take them. */
static int rings_learn(struct rdm_peer *peer, const struct dofi_cm_msg *msg)
{
	const int grants = msg->n_fds == MOST_FDS ? msg->fd[GRANTS_FD] : -1;

	if (msg->addr_len != sizeof(layout) || memcmp(msg->addr, layout, sizeof(layout)))
		return -EHOSTUNREACH;
	if (msg->n_fds < NEEDED_FDS)
		return -EMFILE;
	return dofi_outbox_map(msg->fd[INBOX_FD], msg->fd[DOORBELL_FD], grants, &peer->offer);
}

/* libfabric's shm looks for an endpoint with the first message, and then never gives up. */
int rdm_peer_learn(const struct rdm_ia *ria, struct rdm_peer *peer, const struct dofi_cm_msg *msg)
{
	int ret = 0;

	if (strcmp(msg->fabric, dofi_fabric_name(ria->fabric)) || !msg->window ||
	    msg->frame_size < RDM_FRAME_LEAST || msg->addr_len > DOFI_RDM_ADDRESS)
		return -EHOSTUNREACH;
	if (ria->rings)
		ret = rings_learn(peer, msg);
	else if (ria->fabric->shared_memory && !dofi_host_shares_pids(&ria->host, &msg->host))
		ret = -EHOSTUNREACH;
	if (ret) {
		dofi_log(DOFI_INFO, DOFI_CM, "a peer shares no memory: %s", strerror(-ret));
		return ret;
	}
	peer->msg = *msg;
	if (msg->window > UINT16_MAX)
		peer->msg.window = UINT16_MAX;
	peer->msg.addr = memcpy(peer->addr, msg->addr, msg->addr_len);
	if (msg->data_size)
		peer->msg.data = memcpy(peer->data, msg->data, msg->data_size);
	return 0;
}

void rdm_peer_refuse(struct rdm_peer *peer, enum dofi_cm_reason reason)
{
	dofi_cm_decline(peer->cm, reason, NULL, 0);
	rdm_peer_free(peer);
}

void rdm_introduce(const struct rdm_conn *conn, enum dofi_cm_kind kind, struct dofi_cm_msg *msg)
{
	const struct dofi_ep *ep = conn->ep;
	const struct dofi_grant_book *book = conn->rpz->pz->domain.grants.book;
	const char *fabric = dofi_fabric_name(rdm_fabric(conn));
	const struct dofi_rdm *rdm;

	*msg = (struct dofi_cm_msg){
		.kind = kind,
		.conn_id = conn->id,
		.secret = ep->secret,
		.window = conn->window,
		.srq = ep->srq,
		.alive_addr = (uintptr_t)&conn->id,
		.host = conn->rpz->ria->host,
		.data_size = ep->request.data_size,
		.data = ep->request.data,
	};
	strncpy(msg->fabric, fabric, sizeof(msg->fabric) - 1);
	if (conn->rpz->rings) {
		msg->frame_size = DOFI_LINK_FRAME;
		msg->addr_len = sizeof(layout);
		msg->addr = layout;
		msg->fd[msg->n_fds++] = conn->peer->inbox->fd;
		msg->fd[msg->n_fds++] = conn->rpz->rings->doorbell_fd;
		if (book)
			msg->fd[msg->n_fds++] = dofi_grant_book_fd(book);
		return;
	}
	rdm = &conn->rpz->rdm;
	msg->frame_size = (uint32_t)rdm->frame_size;
	msg->addr_format = rdm->address_format;
	msg->addr_len = rdm->address_len;
	msg->addr = rdm->address;
}
