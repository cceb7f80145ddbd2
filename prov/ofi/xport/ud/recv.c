/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams that arrive. */

#include "xport/ud/ud.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/segments.h"
#include "xport/rdm/send.h"
#include "xport/ud/frame.h"

#include <rdma/fi_errno.h>

/* Copies the datagram into @dto, behind @header. A positive error if @dto is too short. */
static int fill(struct dofi_dto *dto, const void *header, const struct ud_frame *f)
{
	const size_t len = DOFI_DATAGRAM_HEADER + f->size;

	dto->kind = f->flags & UD_FRAME_IMMED ? DOFI_DTO_RECV_UD_IMMED : DOFI_DTO_RECV_UD;
	dto->immed = f->immed;
	if (f->flags & UD_FRAME_SOLICITED)
		dto->flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	if (len > (dto->flags & DOFI_DTO_EXCLUDED ? 0 : dto->length))
		return FI_ETRUNC;
	dofi_dto_trim(dto, len);
	dofi_iov_scatter(dto->iov, dto->n_iov, 0, header, DOFI_DATAGRAM_HEADER);
	dofi_iov_scatter(dto->iov, dto->n_iov, DOFI_DATAGRAM_HEADER, f->data, f->size);
	return 0;
}

/* Only the sender's claim is known. */
static void foreign(struct ud_pz *upz, const char *what)
{
	struct dofi_ia *ia = upz->uia->ia;

	if (!__atomic_fetch_add(&ia->count.dropped_foreign, 1, __ATOMIC_RELAXED))
		dofi_obj_log(&ia->obj, DOFI_WARN, DOFI_EP, "dropped a datagram %s; reported once",
			     what);
}

/* Delivers a datagram, with @header before its data; drops it without a receive. CQ lock held. */
static void take(struct ud_way *way, const void *header, const unsigned char *bytes, size_t len,
		 struct dofi_sink *sink)
{
	struct ud_pz *upz = way->upz;
	struct ud_ep *uep = NULL;
	struct dofi_dto *dto;
	struct ud_frame f;
	int err;

	if (ud_frame_unpack(bytes, len, &f)) {
		foreign(upz, "that is malformed");
		return;
	}
	if (f.key == upz->key && f.number % UD_EP_SLOTS < way->n_eps)
		uep = way->ep[f.number % UD_EP_SLOTS];
	if (!uep || uep->number != f.number) {
		foreign(upz, "with a wrong key, or for an endpoint that does not exist");
		return;
	}
	dofi_mutex_lock(&uep->ep->lock);
	dto = rdm_receive_find(uep->ep, &uep->matched);
	if (dto) {
		err = fill(dto, header, &f);
		if (!err)
			dofi_tally_add(&uep->ep->receipts[dto->kind], dto->length);
		dofi_dto_end(uep->ep, dto, err, sink);
	} else if (uep->ep->srq) {
		dofi_srq_leave(uep->ep->srq, &uep->ep->srq_user);
	}
	dofi_mutex_unlock(&uep->ep->lock);
	if (!dto)
		dofi_count_exactly(&upz->uia->ia->count.dropped_no_receive);
}

static const unsigned char no_header[DOFI_DATAGRAM_HEADER];

/* The program gets the fabric's prefix, if that is a global route header, otherwise zeros. */
void ud_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		struct dofi_sink *sink)
{
	struct ud_pz *upz = ud_pz_of_rdm(buffer->rdm);
	const size_t prefix = upz->rdm.prefix;
	const unsigned char *bytes = buffer->data;

	if (ud_is_copy(upz, buffer)) {
		ud_sent(buffer, err);
		return;
	}
	if (err && err != FI_ECANCELED)
		foreign(upz, fi_strerror(err));
	else if (!err && entry->len < prefix)
		foreign(upz, "that is malformed");
	else if (!err)
		take(&upz->net, prefix == DOFI_DATAGRAM_HEADER ? bytes : no_header, bytes + prefix,
		     entry->len - prefix, sink);
	dofi_rdm_repost(buffer);
}

static void inbox_arrived(void *owner, struct dofi_inbox *inbox, const unsigned char *frame,
			  size_t len, struct dofi_sink *sink)
{
	struct ud_pz *upz = owner;

	(void)inbox;
	take(&upz->local, no_header, frame, len, sink);
}

/*
 * Returns false if a read of the CQ must follow: for a record behind a SKIP, a broken ring, or
 * after a datagram without an event for the caller, for another EVD or dropped.
 */
static bool inbox_poll(void *owner, struct dofi_inbox *inbox, struct dofi_sink *sink)
{
	struct dofi_ring_record record;
	struct ud_pz *upz = owner;

	if (!dofi_ring_peek(&inbox->in, &record))
		return false;
	take(&upz->local, no_header, record.data, record.len, sink);
	dofi_ring_consume(&inbox->in, &record);
	return !sink->evd;
}

const struct dofi_rings_user ud_rings_user = { .arrived = inbox_arrived, .poll = inbox_poll };
