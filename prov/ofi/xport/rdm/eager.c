/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connectionless transport: messages sent eagerly in several frames, before the peer has a
 * receive for them.
 *
 * Each frame is short enough to be injected. So the fabric keeps no memory of the program, and a
 * message is done when its last frame has been handed over. The frames of a message follow each
 * other without other frames in between, so they need not identify it.
 */

#include "xport/rdm/eager.h"

#include "base/iov.h"
#include "obj/ep_dto.h"
#include "xport/rdm/link.h"

#include <rdma/fi_errno.h>

static int send_next(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
	DOFI_NEEDS(conn->ep->lock)
{
	const size_t left = dto->length - dto->eager.sent;
	struct rdm_frame f;
	size_t most, size;
	int ret;

	if (!conn->credits)
		return -FI_EAGAIN;
	rdm_frame_clear(&f);
	f.kind = dto->step == DOFI_STEP_BEGUN ? RDM_FRAME_MORE : RDM_FRAME_FIRST;
	f.length = dto->length;
	f.cq_data = dto->step == DOFI_STEP_BEGUN ? 0 : cq_data;	/* goes with the first frame */
	most = conn->inject - rdm_frame_head(&f);
	size = left < most ? left : most;
	ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, dto->eager.sent, size);
	if (ret)
		return ret;
	dto->step = DOFI_STEP_BEGUN;
	dto->eager.sent += size;
	return 0;
}

int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data)
{
	int ret;

	dofi_ep_assert_locked(conn->ep);
	if (dto->step != DOFI_STEP_BEGUN)
		dto->eager.sent = 0;
	do
		ret = send_next(conn, dto, cq_data);
	while (!ret && dto->eager.sent < dto->length);
	return ret ? ret : DOFI_DONE;
}

void rdm_eager_begin(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f)
{
	dofi_ep_assert_locked(conn->ep);
	dofi_iov_scatter(dto->iov, dto->n_iov, 0, f->data, f->data_size);
	dto->got = f->data_size;
	conn->filling = true;
	conn->filled = dto->number;
}

void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink)
{
	struct dofi_dto *dto = dofi_queue_at(&conn->ep->rq, conn->filled);

	dofi_ep_assert_locked(conn->ep);
	if (f->data_size > dto->length - dto->got) {
		rdm_peer_error(conn, "sent more bytes of a message than it announced");
		return;
	}
	dofi_iov_scatter(dto->iov, dto->n_iov, dto->got, f->data, f->data_size);
	dto->got += f->data_size;
	if (dto->got < dto->length)
		return;
	conn->filling = false;
	dofi_dto_end(conn->ep, dto, dofi_dto_received(conn->ep, dto), sink);
}
