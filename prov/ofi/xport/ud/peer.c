/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles: the peers of a PZ. */

#include "xport/ud/ud.h"

#include "base/log.h"
#include "base/pool.h"

#include <errno.h>
#include <string.h>

/* The tag of a valid address handle in the pool. */
#define VALID 1

static struct dofi_pool peers = DOFI_POOL_INIT("ah", struct ud_peer, NULL);

/*
 * Descriptors of a message between peers on one host: of the sender's inbox, of its doorbell, and
 * of its grants, if any, as connections use the same outbox.
 */
enum { INBOX_FD, DOORBELL_FD, NEEDED_FDS, GRANTS_FD = NEEDED_FDS, MOST_FDS };

bool ud_intro_take(struct ud_intro *intro, const struct dofi_cm_msg *msg, bool local)
{
	const int grants = msg->n_fds == MOST_FDS ? msg->fd[GRANTS_FD] : -1;

	if (!msg->number || !msg->key || !msg->addr_len || msg->addr_len > sizeof(intro->addr))
		return false;
	*intro = (struct ud_intro){
		.number = msg->number, .key = msg->key, .host = msg->host,
		.frame_size = msg->frame_size, .addr_len = msg->addr_len,
	};
	memcpy(intro->fabric, msg->fabric, sizeof(intro->fabric));
	memcpy(intro->addr, msg->addr, msg->addr_len);
	if (!local)
		return true;
	intro->local = true;
	return msg->n_fds >= NEEDED_FDS && msg->addr_len == sizeof(UD_LAYOUT) &&
	       !memcmp(msg->addr, UD_LAYOUT, sizeof(UD_LAYOUT)) &&
	       !dofi_outbox_map(msg->fd[INBOX_FD], msg->fd[DOORBELL_FD], grants, &intro->offer);
}

void ud_intro_drop(struct ud_intro *intro)
{
	dofi_outbox_unmap(intro->offer);
	intro->offer = NULL;
}

bool ud_intro_suits(const struct ud_ia *uia, const struct ud_intro *intro)
{
	if (intro->local)
		return uia->rings;
	return uia->fabric && !strcmp(intro->fabric, uia->fabric->info->fabric_attr->prov_name) &&
	       (!uia->fabric->shared_memory || dofi_host_shares_pids(&uia->host, &intro->host));
}

void ud_introduce(const struct ud_ep *uep, const struct dofi_inbox *inbox,
		  struct dofi_cm_msg *msg)
{
	const struct ud_pz *upz = uep->upz;
	const char *fabric = inbox ? DOFI_RINGS_NAME :
				     upz->uia->fabric->info->fabric_attr->prov_name;

	msg->number = uep->number;
	msg->key = upz->key;
	msg->frame_size = (uint32_t)upz->uia->frame_size;
	msg->host = upz->uia->host;
	strncpy(msg->fabric, fabric, sizeof(msg->fabric) - 1);
	if (inbox) {
		msg->addr = UD_LAYOUT;
		msg->addr_len = sizeof(UD_LAYOUT);
		msg->fd[msg->n_fds++] = inbox->fd;
		msg->fd[msg->n_fds++] = upz->rings->doorbell_fd;
		if (upz->pz->domain.grants.book)
			msg->fd[msg->n_fds++] = dofi_grant_book_fd(upz->pz->domain.grants.book);
	} else {
		msg->addr_format = upz->rdm.address_format;
		msg->addr_len = (uint16_t)upz->rdm.address_len;
		msg->addr = upz->rdm.address;
	}
}

/* The table */

static struct ud_peer *peer_of(struct dofi_table_link *link)
{
	return DOFI_CONTAINER_OF(link, struct ud_peer, in_table);
}

/* Keys are random. */
static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)(key ^ key >> 32);
}

/* The lock keeps other threads from sending: the address vector of verbs has none. */
static void leave(struct ud_peer *peer)
{
	struct ud_pz *upz = peer->upz;

	if (peer->out) {
		dofi_outbox_put(peer->out, ud_bell(upz->uia));
		return;
	}
	dofi_mutex_lock(&upz->lock);
	dofi_rdm_peer_remove(&upz->rdm, peer->to);
	dofi_mutex_unlock(&upz->lock);
}

/* Gets an outbox to the peer, or adds the peer to the address vector. */
static int peer_new(struct ud_pz *upz, struct ud_intro *intro, struct ud_peer **out)
{
	struct ud_peer *peer;
	int ret;

	if (!ud_intro_suits(upz->uia, intro))
		return -EHOSTUNREACH;
	peer = dofi_pool_get(&peers);
	if (!peer)
		return -ENOMEM;
	peer->upz = upz;
	peer->out = NULL;
	peer->gone = false;
	peer->key = intro->key;
	peer->frame_size = intro->frame_size;
	peer->stuck_since = 0;
	STAILQ_INIT(&peer->waiting);
	peer->n_waiting = peer->in_flight = peer->uses = 0;
	peer->addr_len = intro->addr_len;
	memcpy(peer->addr, intro->addr, intro->addr_len);
	if (intro->local) {
		ret = dofi_outbox_get(upz->rings, &intro->offer, NULL, &peer->out);
	} else {
		dofi_mutex_lock(&upz->lock);
		ret = dofi_rdm_peer_add(&upz->rdm, intro->addr, intro->addr_len, &peer->to);
		dofi_mutex_unlock(&upz->lock);
	}
	if (ret)
		goto put;
	ret = dofi_table_add(&upz->table, &peer->in_table, hash_of(peer->key));
	if (ret)
		goto leave;
	*out = peer;
	return 0;

leave:
	leave(peer);
put:
	dofi_pool_put(&peers, peer);
	return ret;
}

/* A peer that waits for its removal becomes valid again. */
int ud_peer_get(struct ud_pz *upz, struct ud_intro *intro, struct ud_peer **out)
{
	struct dofi_table_link *link = dofi_table_find(&upz->table, hash_of(intro->key));
	struct ud_peer *peer = NULL;
	int ret = 0;

	for (; link; link = dofi_table_next(link)) {
		peer = peer_of(link);
		if (peer->key == intro->key && peer->addr_len == intro->addr_len &&
		    !memcmp(peer->addr, intro->addr, intro->addr_len))
			break;
	}
	if (!link)
		ret = peer_new(upz, intro, &peer);
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_CM, "no address handle of a peer over %s: %s",
			 intro->fabric, strerror(-ret));
		return ret;
	}
	peer->uses++;
	dofi_pool_tag_set(peer, VALID);
	*out = peer;
	return 0;
}

static void peer_remove(struct ud_peer *peer)
{
	dofi_table_remove(&peer->upz->table, &peer->in_table);
	leave(peer);
	dofi_pool_put(&peers, peer);
}

void ud_peer_put(struct ud_peer *peer)
{
	struct ud_pz *upz = peer->upz;
	bool busy;

	if (--peer->uses)
		return;
	/* the lock waits for a thread that has checked the handle, and sends */
	dofi_mutex_lock(&upz->lock);
	dofi_pool_tag_set(peer, 0);
	busy = peer->n_waiting || peer->in_flight;
	dofi_mutex_unlock(&upz->lock);
	if (!busy)
		peer_remove(peer);
}

/* Removes a peer that is not used any more; any peer if @all is not NULL. */
static void reap(struct dofi_table_link *link, void *all)
{
	struct ud_peer *peer = peer_of(link);
	struct ud_pz *upz = peer->upz;
	bool busy;

	dofi_mutex_lock(&upz->lock);
	if (all)
		dofi_pool_tag_set(peer, 0);
	busy = peer->uses || peer->n_waiting || peer->in_flight;
	dofi_mutex_unlock(&upz->lock);
	if (all || !busy)
		peer_remove(peer);
}

void ud_peers_reap(struct dofi_work *work)
{
	dofi_table_each(&DOFI_CONTAINER_OF(work, struct ud_pz, reaping)->table, reap, NULL);
}

void ud_peers_close(struct ud_pz *upz)
{
	dofi_table_each(&upz->table, reap, upz);
	dofi_table_fini(&upz->table);
}

bool ud_peer_is_valid(const struct ud_pz *upz, const void *ah)
{
	const struct ud_peer *peer = ah;

	return dofi_pool_owns(&peers, ah) && dofi_pool_tag(ah) == VALID && peer->upz == upz;
}

struct ud_peer *ud_peer_check(const struct ud_pz *upz, const void *ah)
{
	dofi_mutex_assert_held(&upz->lock);
	return ud_peer_is_valid(upz, ah) ? (struct ud_peer *)(uintptr_t)ah : NULL;
}
