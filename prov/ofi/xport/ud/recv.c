/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams that arrive. */

#include "xport/ud/recv.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/ep_dto.h"
#include "obj/ep_srq.h"
#include "obj/segments.h"
#include "obj/tally.h"
#include "xport/ud/frame.h"
#include "xport/ud/send.h"

#include <rdma/fi_errno.h>

/* The EP with @number, or NULL. CQ lock held. */
static struct ud_ep *ep_find(const struct ud_pz *upz, uint32_t number)
{
	const uint32_t slot = number & (UD_EP_SLOTS - 1);
	struct ud_ep *uep = slot < upz->n_eps ? upz->ep[slot] : NULL;

	return uep && uep->number == number ? uep : NULL;
}

/* An SRQ without a buffer keeps no place for this EP: the datagram is dropped. */
static struct dofi_dto *buffer_take(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	struct dofi_dto *dto = dofi_srq_receive(ep);

	if (!dto) {
		ep->srq_user.asked = false;
		dofi_srq_leave(ep->srq, &ep->srq_user);
	}
	return dto;
}

/* The receive that the next datagram is matched with, or NULL. */
static struct dofi_dto *receive_find(struct ud_ep *uep) DOFI_NEEDS(uep->ep->lock)
{
	struct dofi_ep *ep = uep->ep;

	if (!ep->rq.open)
		return NULL;
	if (ep->srq)
		return buffer_take(uep->ep);
	return uep->matched != ep->rq.next ? dofi_queue_at(&ep->rq, uep->matched++) : NULL;
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

/*
 * What stands in front of the data: InfiniBand's global route header where the fabric has it as its
 * prefix, else zeros.
 */
static const void *header_of(const struct ud_pz *upz, const void *prefix)
{
	static const unsigned char none[DOFI_DATAGRAM_HEADER];

	return upz->rdm.prefix == DOFI_DATAGRAM_HEADER ? prefix : none;
}

/* Of the sender nothing is known but what it claims. */
static void foreign(struct ud_pz *upz, const char *what)
{
	struct dofi_ia *ia = upz->uia->ia;

	if (!__atomic_fetch_add(&ia->count.dropped_foreign, 1, __ATOMIC_RELAXED))
		dofi_log(DOFI_WARN, DOFI_EP, "dropped a datagram %s; reported once", what);
}

static void take(struct ud_pz *upz, const unsigned char *bytes, size_t len, struct dofi_sink *sink)
{
	const size_t prefix = upz->rdm.prefix;
	struct ud_frame f;
	struct ud_ep *uep;
	bool taken;

	if (len < prefix || ud_frame_unpack(bytes + prefix, len - prefix, &f)) {
		foreign(upz, "that is malformed");
		return;
	}
	uep = f.key == upz->key ? ep_find(upz, f.number) : NULL;
	if (!uep) {
		foreign(upz, "with a wrong key, or for an endpoint that does not exist");
		return;
	}
	dofi_ep_lock(uep->ep);
	taken = deliver(uep, header_of(upz, bytes), &f, sink);
	dofi_ep_unlock(uep->ep);
	if (!taken)
		dofi_count_exactly(&upz->uia->ia->count.dropped_no_receive);
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
		take(upz, buffer->data, entry->len, sink);
	else if (err != FI_ECANCELED)
		foreign(upz, fi_strerror(err));
	dofi_rdm_repost(buffer);
}
