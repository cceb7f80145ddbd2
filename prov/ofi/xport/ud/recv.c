/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams that arrive. */

#include "xport/ud/ud.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep_dto.h"
#include "obj/segments.h"
#include "obj/tally.h"
#include "xport/ud/frame.h"

#include <rdma/fi_errno.h>

/* The EP with @number, or NULL. CQ lock held. */
static struct ud_ep *ep_find(const struct ud_way *way, uint32_t number)
{
	const uint32_t slot = number & (UD_EP_SLOTS - 1);
	struct ud_ep *uep = slot < way->n_eps ? way->ep[slot] : NULL;

	return uep && uep->number == number ? uep : NULL;
}

/* An SRQ without a buffer keeps no place for this EP: the datagram is dropped. */
static struct dofi_dto *buffer_take(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto = dofi_srq_receive(ep);

	if (!dto)
		dofi_srq_leave(ep->srq, &ep->srq_user);
	return dto;
}

/* The receive that the next datagram is matched with, or NULL. */
static struct dofi_dto *receive_find(struct ud_ep *uep) DOFI_NEEDS(uep->ep->lock)
{
	struct dofi_ep *ep = uep->ep;
	struct dofi_dto *dto;

	if (!ep->rq.open)
		return NULL;
	if (ep->srq)
		return buffer_take(uep->ep);
	if (uep->matched == ep->rq.next)
		return NULL;
	dto = dofi_queue_at(&ep->rq, uep->matched++);
	dofi_receive_unplain(dto);
	return dto;
}

/* Copies the datagram into @dto, behind @header. A positive error if @dto is too short. */
static int fill(struct dofi_dto *dto, const void *header, const struct ud_frame *f)
{
	const size_t len = DOFI_DATAGRAM_HEADER + f->size;

	dto->kind = f->flags & UD_FRAME_IMMED ? DOFI_DTO_RECV_UD_IMMED : DOFI_DTO_RECV_UD;
	dto->immed = f->immed;
	if (f->flags & UD_FRAME_SOLICITED)
		dto->flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	if (len > (dto->flags & DOFI_DTO_BARRED ? 0 : dto->length))
		return FI_ETRUNC;
	dofi_dto_trim(dto, len);
	dofi_iov_scatter(dto->iov, dto->n_iov, 0, header, DOFI_DATAGRAM_HEADER);
	dofi_iov_scatter(dto->iov, dto->n_iov, DOFI_DATAGRAM_HEADER, f->data, f->size);
	return 0;
}

static bool deliver(struct ud_ep *uep, const void *header, const struct ud_frame *f,
		    struct dofi_sink *sink) DOFI_NEEDS(uep->ep->lock)
{
	struct dofi_dto *dto = receive_find(uep);
	int err;

	if (!dto)
		return false;
	err = fill(dto, header, f);
	if (!err)
		dofi_tally_add(&uep->ep->receipts[dto->kind], dto->length);
	dofi_dto_end(uep->ep, dto, err, sink);
	return true;
}

/* Of the sender nothing is known but what it claims. */
static void foreign(struct ud_pz *upz, const char *what)
{
	struct dofi_ia *ia = upz->uia->ia;

	if (!__atomic_fetch_add(&ia->count.dropped_foreign, 1, __ATOMIC_RELAXED))
		dofi_log(DOFI_WARN, DOFI_EP, "dropped a datagram %s; reported once", what);
}

/*
 * Delivers the datagram of @len bytes at @bytes. @header comes before its data in the receive.
 */
static void take(struct ud_way *way, const void *header, const unsigned char *bytes, size_t len,
		 struct dofi_sink *sink)
{
	struct ud_pz *upz = way->upz;
	struct ud_frame f;
	struct ud_ep *uep;
	bool taken;

	if (ud_frame_unpack(bytes, len, &f)) {
		foreign(upz, "that is malformed");
		return;
	}
	uep = f.key == upz->key ? ep_find(way, f.number) : NULL;
	if (!uep) {
		foreign(upz, "with a wrong key, or for an endpoint that does not exist");
		return;
	}
	dofi_ep_lock(uep->ep);
	taken = deliver(uep, header, &f, sink);
	dofi_ep_unlock(uep->ep);
	if (!taken)
		dofi_count_exactly(&upz->uia->ia->count.dropped_no_receive);
}

ssize_t ud_fast_recv(struct fid_ep *to, void *buf, size_t len, void *desc, uint64_t unused,
		     void *context)
{
	(void)to, (void)buf, (void)len, (void)desc, (void)unused, (void)context;
	return 0;
}

static const unsigned char no_header[DOFI_DATAGRAM_HEADER];

/*
 * The header that the program gets is the fabric's prefix, if that is InfiniBand's global route
 * header, and otherwise zeros.
 */
static void take_from_net(struct ud_pz *upz, const unsigned char *bytes, size_t len,
			  struct dofi_sink *sink)
{
	const size_t prefix = upz->rdm.prefix;

	if (len < prefix)
		foreign(upz, "that is malformed");
	else
		take(&upz->net, prefix == DOFI_DATAGRAM_HEADER ? bytes : no_header,
		     bytes + prefix, len - prefix, sink);
}

void ud_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		struct dofi_sink *sink)
{
	struct ud_pz *upz = ud_pz_of_rdm(buffer->rdm);

	if (ud_is_copy(upz, buffer)) {
		ud_sent(buffer, err);
		return;
	}
	if (!err)
		take_from_net(upz, buffer->data, entry->len, sink);
	else if (err != FI_ECANCELED)
		foreign(upz, fi_strerror(err));
	dofi_rdm_repost(buffer);
}

/* Shuts a link with a ring that the peer broke, which an entry without a buffer reports. */
void ud_ring_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	struct dofi_link *link = entry->op_context;
	struct ud_pz *upz = ((struct ud_inbox *)link->owner)->upz;

	(void)err;
	if (!entry->buf) {
		dofi_link_shut(link);
		foreign(upz, "in a ring that the peer broke");
		return;
	}
	take(&upz->near, no_header, entry->buf, entry->len, sink);
	dofi_rings_release(entry);
}

/* Past a SKIP, a broken ring, or an event of another EVD a read goes on. */
bool ud_ring_poll(struct dofi_cq *cq, struct dofi_sink *sink)
{
	struct dofi_link *link = dofi_rings_find(cq);
	struct dofi_ring_record record;

	dofi_mutex_assert_held(&cq->lock);
	if (!link)
		return true;
	if (!dofi_ring_peek(&link->in, &record))
		return false;
	take(&((struct ud_inbox *)link->owner)->upz->near, no_header, record.data, record.len,
	     sink);
	dofi_ring_consume(&link->in, &record);
	return !sink->evd;
}
