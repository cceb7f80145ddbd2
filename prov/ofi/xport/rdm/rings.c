/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: rings in place of a fabric, between peers on one host. */

#include "xport/rdm/peer.h"

#include "base/env.h"
#include "base/log.h"
#include "xport/cm/wire.h"

#include <errno.h>
#include <string.h>

/* In place of a fabric address: the layout of the shared memory, which both ends have to know. */
static const char layout[] = "rings/2";

/* Descriptors: of the link in a request, of the doorbell, and of the sender's grants, if any. */
enum { LINK_FD, LINK_FDS };
enum { DOORBELL_FD, NEEDED_FDS, GRANTS_FD = NEEDED_FDS, MOST_FDS };

int rdm_rings_open(struct rdm_conn *conn, struct dofi_link **ring)
{
	int ret = *ring ? 0 : dofi_link_make(ring);

	if (ret)
		return ret;
	(*ring)->owner = conn;
	conn->ring = *ring;
	return 0;
}

int rdm_rings_learn(struct dofi_link **ring, const struct dofi_cm_msg *msg)
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

void rdm_rings_introduce(const struct rdm_conn *conn, struct dofi_cm_msg *msg)
{
	const struct dofi_grant_book *book = conn->rpz->pz->domain.grants.book;

	msg->frame_size = DOFI_LINK_FRAME;
	msg->addr_len = sizeof(layout);
	msg->addr = layout;
	if (conn->ring->made)
		msg->fd[msg->n_fds++] = conn->ring->fd;
	msg->fd[msg->n_fds++] = dofi_rings_doorbell(conn->rpz->rings);
	if (book)
		msg->fd[msg->n_fds++] = dofi_grant_book_fd(book);
}

void rdm_rings_publish(struct rdm_pz *rpz)
{
	int ret = dofi_settings.cma ? dofi_grants_publish(&rpz->pz->domain.grants) : 0;

	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "peers on this host cannot write by themselves: %s",
			 strerror(-ret));
}

void rdm_rings_reach(struct rdm_conn *conn, pid_t pid)
{
	conn->ring->writer.pid = pid;
	dofi_grants_add_writer(&conn->rpz->pz->domain.grants, &conn->ring->writer);
}

void rdm_rings_leave(struct rdm_conn *conn)
{
	dofi_writer_end(&conn->ring->writer);
	dofi_grants_remove_writer(&conn->rpz->pz->domain.grants, &conn->ring->writer);
}

bool rdm_rings_rest(struct dofi_progress *p)
{
	struct rdm_ia *ria = rdm_ia_of(dofi_ia_of(p));
	struct rdm_ring_guest *guest;
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &ria->pzs, link)
		dofi_rings_sleep_begin(rpz->rings);
	LIST_FOREACH(guest, &ria->ring_guests, link)
		dofi_rings_sleep_begin(guest->rings);
	return true;
}

void rdm_rings_rise(struct dofi_progress *p)
{
	struct rdm_ia *ria = rdm_ia_of(dofi_ia_of(p));
	struct rdm_ring_guest *guest;
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &ria->pzs, link)
		dofi_rings_sleep_end(rpz->rings);
	LIST_FOREACH(guest, &ria->ring_guests, link)
		dofi_rings_sleep_end(guest->rings);
}
