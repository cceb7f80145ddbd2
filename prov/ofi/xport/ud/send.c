/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends, and the copies that wait. */

#include "xport/ud/ud.h"

#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "xport/rdm/op.h"
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

void ud_sends_close(struct ud_pz *upz)
{
	free(upz->send);
	free(upz->memory);
	upz->send = NULL;
	upz->memory = NULL;
}

/* Puts the copy where it is taken from: the memory of the last one used is in the cache. */
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

/* Handing datagrams over */

/* Returns whether a send of @len bytes to @peer is copied before the call returns. */
static bool is_injected(const struct ud_pz *upz, const struct ud_peer *peer, size_t len)
{
	return peer->out || len <= upz->inject;
}

static int send_ring(struct dofi_outbox *out, const void *bytes, size_t len)
{
	unsigned char *frame;
	int ret;

	dofi_outbox_lock(out);
	ret = dofi_outbox_reserve(out, len, &frame);
	if (!ret) {
		memcpy(frame, bytes, len);
		dofi_outbox_send(out);
	}
	dofi_outbox_unlock(out);
	return ret;
}

static ssize_t hand_over(struct ud_pz *upz, const struct ud_peer *peer, struct ud_send *s)
{
	const struct iovec iov = { s->buffer.data, s->len };
	void *desc = dofi_local_mr_desc(upz->mr);
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer->to,
		.context = &s->buffer,
	};
	if (peer->out)
		return send_ring(peer->out, s->buffer.data, s->len);
	if (!upz->rdm.fid)
		return -FI_ENOTCONN;
	return s->len <= upz->inject ? fi_inject(upz->rdm.fid, s->buffer.data, s->len, peer->to) :
				       fi_sendmsg(upz->rdm.fid, &msg, FI_COMPLETION);
}

static void count_dropped(struct ud_pz *upz)
{
	dofi_count_exactly(&upz->uia->ia->count.dropped_sends);
}

/* Records the result of a datagram to @peer, and wakes a sleeping peer on this host. */
static void record_result(struct ud_pz *upz, struct ud_peer *peer, ssize_t ret)
	DOFI_NEEDS(upz->lock)
{
	if (peer->out)
		dofi_outbox_notify(peer->out, ud_bell(upz->uia));
	if (!ret) {
		peer->stuck_since = 0;
	} else if (ret != -FI_EAGAIN) {
		count_dropped(upz);
		dofi_obj_log(&upz->uia->ia->obj, DOFI_DEBUG, DOFI_EP, "a datagram was not sent: %s",
			     fi_strerror((int)-ret));
	} else if (!peer->stuck_since) {
		peer->stuck_since = dofi_now();
		peer->gone = peer->out && dofi_outbox_has_ended(peer->out, ud_bell(upz->uia));
	}
}

static bool is_given_up(const struct ud_peer *peer)
{
	return peer->gone ||
	       (peer->stuck_since && dofi_now() - peer->stuck_since > UD_PATIENCE_NS);
}

/* Waiting */

/* The CQ with the sweeps that send the waiting copies of @peer. */
static struct dofi_cq *cq_of(const struct ud_pz *upz, const struct ud_peer *peer)
{
	return &(peer->out ? &upz->local : &upz->net)->domain->cq;
}

/* The peer's last copy has gone, so it may be removed. */
static void reap_if_unused(struct ud_pz *upz, const struct ud_peer *peer) DOFI_NEEDS(upz->lock)
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

/* Sends the copies that wait for @peer, as far as the fabric takes them. */
static void send_waiting(struct ud_pz *upz, struct ud_peer *peer) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s;
	ssize_t ret;

	while ((s = STAILQ_FIRST(&peer->waiting))) {
		ret = hand_over(upz, peer, s);
		record_result(upz, peer, ret);
		if (ret == -FI_EAGAIN)
			break;
		dequeue(upz, peer);
		if (ret || is_injected(upz, peer, s->len))
			copy_put(upz, s);
		else
			peer->in_flight++;
	}
	while (peer->n_waiting && is_given_up(peer)) {
		copy_put(upz, dequeue(upz, peer));
		count_dropped(upz);
	}
	reap_if_unused(upz, peer);
}

void ud_swept(struct dofi_sweeper *sweeper)
{
	struct ud_way *way = DOFI_CONTAINER_OF(sweeper, struct ud_way, sweeper);
	struct ud_pz *upz = way->upz;
	struct ud_peer *peer, *next;

	if (way == &upz->net)
		dofi_rdm_sweep(&upz->rdm);
	dofi_mutex_lock(&upz->lock);
	for (peer = TAILQ_FIRST(&upz->waiting); peer; peer = next) {
		next = TAILQ_NEXT(peer, wait);
		send_waiting(upz, peer);
	}
	TAILQ_FOREACH(peer, &upz->waiting, wait)
		dofi_cq_want_sweep(cq_of(upz, peer));
	dofi_mutex_unlock(&upz->lock);
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
	reap_if_unused(upz, peer);
	dofi_mutex_unlock(&upz->lock);
}

/* Posts */

/* Sends @dto from a copy, which waits if the fabric does not take it now. */
static int send_copy(struct ud_pz *upz, struct ud_ep *uep, struct ud_peer *peer,
		     const struct dofi_dto *dto) DOFI_NEEDS(upz->lock)
{
	struct ud_send *s = peer->n_waiting < UD_WAITING_MAX ? STAILQ_FIRST(&upz->free) : NULL;
	ssize_t ret = -FI_EAGAIN;

	if (!s) {
		dofi_cq_stall(uep->ep->cq, &uep->ep->stall);
		return -FI_EAGAIN;
	}
	STAILQ_REMOVE_HEAD(&upz->free, link);
	s->peer = peer;
	s->len = pack(peer, dto, s->buffer.data);
	if (!peer->n_waiting) {
		ret = hand_over(upz, peer, s);
		record_result(upz, peer, ret);
	}
	if (!ret && !is_injected(upz, peer, s->len)) {
		peer->in_flight++;
	} else if (ret == -FI_EAGAIN && !is_given_up(peer)) {
		STAILQ_INSERT_TAIL(&peer->waiting, s, link);
		if (!peer->n_waiting++)
			TAILQ_INSERT_TAIL(&upz->waiting, peer, wait);
		dofi_cq_want_sweep(cq_of(upz, peer));
	} else {
		copy_put(upz, s);
		if (ret == -FI_EAGAIN)
			count_dropped(upz);
	}
	return DOFI_DONE;
}

static int write_ring(const struct ud_peer *peer, const struct dofi_dto *dto)
{
	struct dofi_outbox *out = peer->out;
	unsigned char *frame;
	int ret;

	dofi_outbox_lock(out);
	ret = dofi_outbox_reserve(out, UD_FRAME_HEADER + dto->length, &frame);
	if (!ret) {
		pack(peer, dto, frame);
		dofi_outbox_send(out);
	}
	dofi_outbox_unlock(out);
	return ret;
}

static int inject(const struct ud_pz *upz, const struct ud_peer *peer, const struct dofi_dto *dto)
{
	unsigned char frame[UD_INJECT_MAX];
	const size_t len = pack(peer, dto, frame);

	return upz->rdm.fid ? (int)fi_inject(upz->rdm.fid, frame, len, peer->to) : -FI_ENOTCONN;
}

/* A receive stays in its slot until a datagram arrives. */
int ud_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const size_t len = UD_FRAME_HEADER + dto->length;
	struct ud_ep *uep = ud_ep_of(ep);
	struct ud_pz *upz = uep->upz;
	struct ud_peer *peer;
	int ret = -FI_EAGAIN;

	dofi_mutex_assert_held(&ep->lock);
	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS))
		return 0;
	dofi_mutex_lock(&upz->lock);
	peer = ud_peer_check(upz, (const void *)(uintptr_t)dto->remote_addr);
	if (!peer) {
		ret = -FI_ECANCELED;	/* the handle was freed while the send waited */
	} else if (len > peer->frame_size) {
		ret = -EMSGSIZE;
	} else if (!peer->n_waiting && is_injected(upz, peer, len)) {
		ret = peer->out ? write_ring(peer, dto) : inject(upz, peer, dto);
		record_result(upz, peer, ret);
		ret = ret == -FI_EAGAIN ? -FI_EAGAIN : DOFI_DONE;
	}
	if (ret == -FI_EAGAIN)
		ret = send_copy(upz, uep, peer, dto);
	dofi_mutex_unlock(&upz->lock);
	return ret;
}
