/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends, and the copies that wait. */

#include "xport/ud/ud.h"

#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "obj/ep_dto.h"
#include "xport/ud/frame.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

int ud_sends_open(struct ud_pz *upz)
{
	const size_t stride = upz->uia->frame_size;
	size_t i;

	upz->send = calloc(UD_SENDS, sizeof(*upz->send));
	upz->memory = malloc(UD_SENDS * stride);
	if (!upz->send || !upz->memory) {
		ud_sends_close(upz);
		return -ENOMEM;
	}
	for (i = 0; i < UD_SENDS; i++) {
		dofi_rdm_buffer_init(&upz->send[i].buffer, &upz->rdm, upz->memory + i * stride);
		STAILQ_INSERT_TAIL(&upz->free, &upz->send[i], link);
	}
	return 0;
}

int ud_sends_register(struct ud_pz *upz)
{
	return dofi_local_mr_open(upz->net.domain, upz->memory, UD_SENDS * upz->uia->frame_size,
				  FI_SEND, &upz->mr);
}

void ud_sends_unregister(struct ud_pz *upz)
{
	dofi_local_mr_close(upz->mr);
	upz->mr = NULL;
}

void ud_sends_close(struct ud_pz *upz)
{
	free(upz->send);
	free(upz->memory);
	upz->send = NULL;
	upz->memory = NULL;
}

/* Copies. The most recently used one first: its memory is in the cache. */

static struct ud_send *copy_get(struct ud_pz *upz) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s = STAILQ_FIRST(&upz->free);

	if (s)
		STAILQ_REMOVE_HEAD(&upz->free, link);
	return s;
}

static void copy_put(struct ud_pz *upz, struct ud_send *s) DOFI_NEEDS(upz->lock)
{
	STAILQ_INSERT_HEAD(&upz->free, s, link);
}

/* Packs the datagram of @dto for @peer. Returns its size. */
static size_t pack(const struct ud_peer *peer, const struct dofi_dto *dto, unsigned char *to)
{
	const bool immed = dto->kind == DOFI_DTO_SEND_UD_IMMED;
	const struct ud_frame f = {
		.flags = (immed ? UD_FRAME_IMMED : 0) |
			 (dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG ? UD_FRAME_SOLICITED : 0),
		.number = dto->remote_key, .key = peer->key, .immed = immed ? dto->immed : 0,
	};

	ud_frame_pack(to, &f);
	dofi_iov_gather(to + UD_FRAME_HEADER, dto->iov, dto->n_iov, 0, dto->length);
	return UD_FRAME_HEADER + dto->length;
}

/* Rings */

/* Puts the @len bytes at @data into the ring to @peer. */
static ssize_t put(const struct ud_peer *peer, const void *data, size_t len)
{
	unsigned char *frame;
	const int ret = dofi_link_reserve(peer->link, len, &frame);

	if (ret)
		return ret;
	memcpy(frame, data, len);
	dofi_link_send(peer->link, len);
	return 0;
}

/* At the fabric */

/*
 * libfabric's shm shares the memory of an endpoint of this process instead of mapping it again, and
 * closing the endpoint unmaps it. Its PZ has given up the key by then.
 */
static bool is_unmapped(const struct ud_peer *peer)
{
	return peer->here && atomic_load(peer->here) != peer->key;
}

static ssize_t sendmsg_copy(struct ud_pz *upz, const struct ud_peer *peer, struct ud_send *s)
{
	const struct iovec iov = { s->buffer.data, s->len };
	void *desc = dofi_local_mr_desc(upz->mr);
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer->to,
		.context = &s->buffer,
	};

	return fi_sendmsg(upz->rdm.fid, &msg, FI_COMPLETION);
}

/* Returns whether a send of @len bytes to @peer is copied before the call returns. */
static bool is_injected(const struct ud_pz *upz, const struct ud_peer *peer, size_t len)
{
	return peer->link || len <= upz->inject;
}

/*
 * Hands a datagram to the fabric: the copy @s, or if that is NULL the @len bytes at @data, which
 * are injected.
 */
static ssize_t hand_over(struct ud_pz *upz, const struct ud_peer *peer, struct ud_send *s,
			 const void *data, size_t len)
{
	if (peer->link)
		return put(peer, data, len);
	if (!upz->rdm.fid || is_unmapped(peer))
		return -FI_ENOTCONN;
	return is_injected(upz, peer, len) ? fi_inject(upz->rdm.fid, data, len, peer->to) :
					     sendmsg_copy(upz, peer, s);
}

/* Wakes a sleeping peer on this host: to take the datagram, or to make room for it. */
static void wake(const struct ud_pz *upz, const struct ud_peer *peer)
{
	if (peer->link && dofi_link_notify(peer->link))
		ud_bell_ring(&upz->uia->bell, peer->bell);
}

static void count_dropped(struct ud_pz *upz)
{
	dofi_count_exactly(&upz->uia->ia->count.dropped_sends);
}

/* Notes what the fabric returned for a datagram to @peer: the peer takes some, or is stuck. */
static void judge(struct ud_pz *upz, struct ud_peer *peer, ssize_t ret) DOFI_NEEDS(upz->lock)
{
	wake(upz, peer);
	if (!ret) {
		peer->taken = true;
		peer->stuck_since = 0;
	} else if (ret == -FI_EAGAIN) {
		if (!peer->stuck_since) {
			peer->stuck_since = dofi_now();
			peer->gone = peer->link && ud_peer_has_ended(peer);
		}
	} else {
		count_dropped(upz);
		dofi_log(DOFI_DEBUG, DOFI_EP, "a datagram was not sent: %s",
			 fi_strerror((int)-ret));
	}
}

static bool is_given_up(const struct ud_peer *peer)
{
	return peer->gone ||
	       (peer->stuck_since && dofi_now() - peer->stuck_since > UD_PATIENCE_NS);
}

/* Waiting */

/* The CQ whose sweeps send what waits for @peer. */
static struct dofi_cq *cq_of(const struct ud_pz *upz, const struct ud_peer *peer)
{
	return &(peer->link ? &upz->near : &upz->net)->domain->cq;
}

static void enqueue(struct ud_pz *upz, struct ud_peer *peer, struct ud_send *s)
	DOFI_NEEDS(upz->lock)
{
	STAILQ_INSERT_TAIL(&peer->waiting, s, link);
	if (!peer->n_waiting++)
		TAILQ_INSERT_TAIL(&upz->waiting, peer, wait);
	dofi_cq_want_sweep(cq_of(upz, peer));
}

/* The peer's last copy has gone, so it may be removed. */
static void see_last(struct ud_pz *upz, const struct ud_peer *peer) DOFI_NEEDS(upz->lock)
{
	if (!peer->n_waiting && !peer->in_flight && !ud_peer_check(upz, peer))
		dofi_progress_post(&upz->uia->ia->progress, &upz->reaping);
}

static struct ud_send *dequeue(struct ud_pz *upz, struct ud_peer *peer) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s = STAILQ_FIRST(&peer->waiting);

	STAILQ_REMOVE_HEAD(&peer->waiting, link);
	if (!--peer->n_waiting)
		TAILQ_REMOVE(&upz->waiting, peer, wait);
	return s;
}

static void drop_waiting(struct ud_pz *upz, struct ud_peer *peer) DOFI_NEEDS(upz->lock)
{
	while (peer->n_waiting) {
		copy_put(upz, dequeue(upz, peer));
		count_dropped(upz);
	}
	see_last(upz, peer);
}

/* Sends what waits for @peer, as far as the fabric takes it. */
static void send_waiting(struct ud_pz *upz, struct ud_peer *peer) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s;
	ssize_t ret = 0;

	while (ret != -FI_EAGAIN && (s = STAILQ_FIRST(&peer->waiting))) {
		ret = hand_over(upz, peer, s, s->buffer.data, s->len);
		judge(upz, peer, ret);
		if (ret == -FI_EAGAIN)
			break;
		dequeue(upz, peer);
		if (ret || is_injected(upz, peer, s->len))
			copy_put(upz, s);
		else
			peer->in_flight++;
	}
	if (is_given_up(peer))
		drop_waiting(upz, peer);
	see_last(upz, peer);
}

/* Stalled EPs: a send of theirs waits in its slot */

static void stall(struct ud_pz *upz, struct ud_ep *uep) DOFI_NEEDS(upz->lock)
{
	if (!uep->stalled)
		TAILQ_INSERT_TAIL(&upz->stalled, uep, stall);
	uep->stalled = true;
	dofi_cq_want_sweep(&ud_first_way(upz)->domain->cq);
}

void ud_unstall(struct ud_ep *uep)
{
	struct ud_pz *upz = uep->upz;

	dofi_mutex_lock(&upz->lock);
	if (uep->stalled)
		TAILQ_REMOVE(&upz->stalled, uep, stall);
	uep->stalled = false;
	dofi_mutex_unlock(&upz->lock);
}

static struct ud_ep *stalled_first(struct ud_pz *upz, const struct ud_ep *last, bool *was_last)
{
	struct ud_ep *uep;

	dofi_mutex_lock(&upz->lock);
	uep = TAILQ_FIRST(&upz->stalled);
	if (uep) {
		TAILQ_REMOVE(&upz->stalled, uep, stall);
		uep->stalled = false;
	}
	*was_last = uep == last;
	dofi_mutex_unlock(&upz->lock);
	return uep;
}

/* EPs that stall again are appended behind the last, and are left for the next sweep. */
static void stalled_go_on(struct ud_pz *upz)
{
	struct ud_ep *uep, *last;
	bool was_last = false;

	dofi_mutex_lock(&upz->lock);
	last = TAILQ_LAST(&upz->stalled, ud_eps);
	dofi_mutex_unlock(&upz->lock);
	while (last && !was_last && (uep = stalled_first(upz, last, &was_last))) {
		dofi_ep_lock(uep->ep);
		dofi_dto_pump(uep->ep);
		dofi_ep_unlock(uep->ep);
	}
}

void ud_swept(struct dofi_sweeper *sweeper)
{
	struct ud_way *way = DOFI_CONTAINER_OF(sweeper, struct ud_way, sweeper);
	struct ud_pz *upz = way->upz;
	struct ud_peer *peer, *next;

	dofi_mutex_lock(&upz->lock);
	for (peer = TAILQ_FIRST(&upz->waiting); peer; peer = next) {
		next = TAILQ_NEXT(peer, wait);
		send_waiting(upz, peer);
	}
	TAILQ_FOREACH(peer, &upz->waiting, wait)
		dofi_cq_want_sweep(cq_of(upz, peer));
	dofi_mutex_unlock(&upz->lock);
	if (way == ud_first_way(upz))
		stalled_go_on(upz);
}

bool ud_sends_wait(struct ud_pz *upz)
{
	bool wait;

	dofi_mutex_lock(&upz->lock);
	wait = !TAILQ_EMPTY(&upz->waiting);
	dofi_mutex_unlock(&upz->lock);
	return wait;
}

void ud_sent(struct dofi_rdm_buffer *buffer, int err)
{
	struct ud_send *s = DOFI_CONTAINER_OF(buffer, struct ud_send, buffer);
	struct ud_pz *upz = ud_pz_of_rdm(buffer->rdm);
	struct ud_peer *peer = s->peer;

	if (err && err != FI_ECANCELED)
		count_dropped(upz);
	dofi_mutex_lock(&upz->lock);
	peer->in_flight--;
	copy_put(upz, s);
	see_last(upz, peer);
	dofi_mutex_unlock(&upz->lock);
}

/* Posts */

/* Sends @dto from a copy, which waits if the fabric does not take it now. */
static int send_copy(struct ud_pz *upz, struct ud_ep *uep, struct ud_peer *peer,
		     const struct dofi_dto *dto) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s = peer->n_waiting < UD_WAITING_MAX ? copy_get(upz) : NULL;
	ssize_t ret = -FI_EAGAIN;

	if (!s) {
		stall(upz, uep);
		return -FI_EAGAIN;
	}
	s->peer = peer;
	s->len = pack(peer, dto, s->buffer.data);
	if (!peer->n_waiting) {
		ret = hand_over(upz, peer, s, s->buffer.data, s->len);
		judge(upz, peer, ret);
	}
	if (!ret && !is_injected(upz, peer, s->len))
		peer->in_flight++;
	else if (ret == -FI_EAGAIN && !is_given_up(peer))
		enqueue(upz, peer, s);
	else
		copy_put(upz, s);
	if (ret == -FI_EAGAIN && is_given_up(peer))
		count_dropped(upz);
	return DOFI_DONE;
}

/* Packs @dto into the ring to @peer. Returns -FI_EAGAIN if it has to be sent from a copy. */
static int write_ring(struct ud_pz *upz, struct ud_peer *peer, const struct dofi_dto *dto)
	DOFI_NEEDS(upz->lock)
{
	unsigned char *frame;
	const int ret = dofi_link_reserve(peer->link, UD_FRAME_HEADER + dto->length, &frame);

	if (!ret)
		dofi_link_send(peer->link, pack(peer, dto, frame));
	judge(upz, peer, ret);
	return ret == -FI_EAGAIN ? -FI_EAGAIN : DOFI_DONE;
}

/* Injects @dto. Returns -FI_EAGAIN if it has to be sent from a copy. */
static int inject(struct ud_pz *upz, struct ud_peer *peer, const struct dofi_dto *dto)
	DOFI_NEEDS(upz->lock)
{
	unsigned char frame[UD_INJECT_MAX];
	const size_t len = pack(peer, dto, frame);
	const ssize_t ret = hand_over(upz, peer, NULL, frame, len);

	judge(upz, peer, ret);
	return ret == -FI_EAGAIN ? -FI_EAGAIN : DOFI_DONE;
}

static int send_now(struct ud_pz *upz, struct ud_ep *uep, struct ud_peer *peer,
		    const struct dofi_dto *dto) DOFI_NEEDS(upz->lock)
{
	const size_t len = UD_FRAME_HEADER + dto->length;
	int ret = -FI_EAGAIN;

	if (len > peer->frame_size)
		return -EMSGSIZE;
	if (is_injected(upz, peer, len) && !peer->n_waiting)
		ret = peer->link ? write_ring(upz, peer, dto) : inject(upz, peer, dto);
	return ret == -FI_EAGAIN ? send_copy(upz, uep, peer, dto) : ret;
}

/* A receive stays in its slot until a datagram arrives. */
int ud_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	struct ud_ep *uep = ud_ep_of(ep);
	struct ud_pz *upz = uep->upz;
	struct ud_peer *peer;
	int ret;

	dofi_ep_assert_locked(ep);
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS))
		return 0;
	dofi_mutex_lock(&upz->lock);
	peer = ud_peer_check(upz, (const void *)(uintptr_t)dto->remote_addr);
	/* the program freed the address handle while the send waited */
	ret = peer ? send_now(upz, uep, peer, dto) : -FI_ECANCELED;
	dofi_mutex_unlock(&upz->lock);
	return ret;
}
