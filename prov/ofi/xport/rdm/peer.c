/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: the report of each end of a connection about itself. */

#include "xport/rdm/peer.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In place of a fabric address: the layout of the shared memory, which both ends have to know. */
static const char layout[] = "rings/3";

/* Descriptors: of the link in a request, of the doorbell, and of the sender's grants, if any. */
enum { LINK_FD, LINK_FDS };
enum { DOORBELL_FD, NEEDED_FDS, GRANTS_FD = NEEDED_FDS, MOST_FDS };

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
	dofi_link_free(peer->ring);
	free(peer);
}

/* Takes the ring, if *@ring is NULL, and the peer's doorbell and grants. 0 or a negative errno. */
static int rings_learn(struct dofi_link **ring, const struct dofi_cm_msg *msg)
{
	const unsigned first = *ring ? 0 : LINK_FDS;
	const int *fd = &msg->fd[first];
	int ret;

	if (msg->addr_len != sizeof(layout) || memcmp(msg->addr, layout, sizeof(layout)))
		return -EHOSTUNREACH;
	if (*ring)
		ret = dofi_link_meet(*ring, msg->n_fds ? fd[DOORBELL_FD] : -1);
	else if (msg->n_fds < LINK_FDS + NEEDED_FDS)
		ret = -EMFILE;
	else
		ret = dofi_link_join(msg->fd[LINK_FD], fd[DOORBELL_FD], ring);
	if (!ret && msg->n_fds == first + MOST_FDS)
		dofi_link_learn_grants(*ring, fd[GRANTS_FD]);
	return ret;
}

/* libfabric's shm looks for an endpoint with the first message, and then never gives up. */
int rdm_peer_learn(const struct rdm_ia *ria, struct rdm_peer *peer, const struct dofi_cm_msg *msg)
{
	int ret = 0;

	if (strcmp(msg->fabric, ria->fabric->info->fabric_attr->prov_name) || !msg->window ||
	    msg->frame_size < RDM_FRAME_LEAST || msg->addr_len > DOFI_RDM_ADDRESS)
		return -EHOSTUNREACH;
	if (ria->rings)
		ret = rings_learn(&peer->ring, msg);
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
	const char *fabric = rdm_fabric(conn)->info->fabric_attr->prov_name;
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
	if (conn->ring) {
		msg->frame_size = DOFI_LINK_FRAME;
		msg->addr_len = sizeof(layout);
		msg->addr = layout;
		if (conn->ring->made)
			msg->fd[msg->n_fds++] = conn->ring->fd;
		msg->fd[msg->n_fds++] = dofi_rings_doorbell(conn->rpz->rings);
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
