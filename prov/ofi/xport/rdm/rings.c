/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: rings in place of a fabric, between peers on one host. */

#include "xport/rdm/rings.h"

#include "xport/cm/wire.h"

#include <errno.h>
#include <string.h>

/*
 * Stands in place of the fabric address: names the layout of the shared memory, which both ends
 * have to know.
 */
static const char layout[] = "rings/1";

/* Descriptors of a request. An answer has the doorbell alone. */
enum { LINK_FD, DOORBELL_FD, REQUEST_FDS };

int rdm_rings_open(struct rdm_conn *conn, struct dofi_link **ring)
{
	int ret = *ring ? 0 : dofi_link_make(ring);

	if (ret)
		return ret;
	(*ring)->owner = conn;
	conn->ring = *ring;
	return 0;
}

static bool is_our_layout(const struct dofi_cm_msg *msg)
{
	return msg->addr_len == sizeof(layout) && !memcmp(msg->addr, layout, sizeof(layout));
}

int rdm_rings_learn(struct dofi_link **ring, const struct dofi_cm_msg *msg)
{
	if (!is_our_layout(msg))
		return -EHOSTUNREACH;
	if (*ring)
		return dofi_link_meet(*ring, msg->n_fds ? msg->fd[0] : -1);
	if (msg->n_fds != REQUEST_FDS)
		return -EMFILE;
	return dofi_link_join(msg->fd[LINK_FD], msg->fd[DOORBELL_FD], ring);
}

void rdm_rings_introduce(const struct rdm_conn *conn, struct dofi_cm_msg *msg)
{
	const int doorbell = dofi_rings_doorbell(conn->rpz->rings);

	msg->frame_size = DOFI_LINK_FRAME;
	msg->addr_len = sizeof(layout);
	msg->addr = layout;
	if (conn->ring->made)
		msg->fd[msg->n_fds++] = conn->ring->fd;
	msg->fd[msg->n_fds++] = doorbell;
}

void rdm_rings_rest(struct rdm_ia *ria)
{
	struct rdm_ring_guest *guest;
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &ria->pzs, link)
		dofi_rings_sleep_begin(rpz->rings);
	LIST_FOREACH(guest, &ria->ring_guests, link)
		dofi_rings_sleep_begin(guest->rings);
}

void rdm_rings_rise(struct rdm_ia *ria)
{
	struct rdm_ring_guest *guest;
	struct rdm_pz *rpz;

	LIST_FOREACH(rpz, &ria->pzs, link)
		dofi_rings_sleep_end(rpz->rings);
	LIST_FOREACH(guest, &ria->ring_guests, link)
		dofi_rings_sleep_end(guest->rings);
}
