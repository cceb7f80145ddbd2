/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: rings in place of a fabric, between peers on one host. */

#include "xport/rdm/rdm.h"

#include "xport/rdm/peer.h"

#include <errno.h>

/*
 * Where other fabrics have an address: the layout of what is shared, which both ends have to
 * know.
 */
static const char layout[] = "rings/1";

/* The end that asks sends the link and its doorbell, the other one its doorbell. */
enum { LINK_FD, BELL_FD, REQUEST_FDS };

int rdm_link_open(struct rdm_conn *conn, struct rdm_peer *peer)
{
	int ret = peer->link ? 0 : dofi_link_make(&peer->link);

	if (ret)
		return ret;
	peer->link->owner = conn;
	conn->link = peer->link;
	return 0;
}

static bool is_our_layout(const struct dofi_side_msg *msg)
{
	return msg->addr_len == sizeof(layout) && !memcmp(msg->addr, layout, sizeof(layout));
}

int rdm_link_learn(struct rdm_peer *peer, const struct dofi_side_msg *msg)
{
	if (!is_our_layout(msg))
		return -EHOSTUNREACH;
	if (peer->link)
		return dofi_link_meet(peer->link, msg->n_fds ? msg->fd[0] : -1);
	if (msg->n_fds != REQUEST_FDS)
		return -EMFILE;
	return dofi_link_join(msg->fd[LINK_FD], msg->fd[BELL_FD], &peer->link);
}

void rdm_link_introduce(const struct rdm_conn *conn, struct dofi_side_msg *msg)
{
	const int bell = dofi_rings_doorbell(conn->zone->rings);

	msg->frame_size = DOFI_LINK_FRAME;
	msg->addr_len = sizeof(layout);
	msg->addr = layout;
	if (conn->link->made)
		msg->fd[msg->n_fds++] = conn->link->fd;
	msg->fd[msg->n_fds++] = bell;
}

void rdm_links_rest(struct rdm_ia *ria)
{
	struct rdm_zone *zone;

	LIST_FOREACH(zone, &ria->zones, link)
		dofi_rings_sleep_begin(zone->rings);
}

void rdm_links_rise(struct rdm_ia *ria)
{
	struct rdm_zone *zone;

	LIST_FOREACH(zone, &ria->zones, link)
		dofi_rings_sleep_end(zone->rings);
}
