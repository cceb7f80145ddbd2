/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: requests of the EP. */

#include "xport/rdm/send.h"

#include "obj/cq_data.h"
#include "xport/rdm/rma.h"
#include "xport/rdm/rndv.h"
#include "xport/rdm/transmit.h"

#include <rdma/fi_errno.h>

/*
 * Whether a message that fits no frame is sent in several frames. A fabric that can carry it as a
 * whole does so for a program with many messages in flight: their round trips overlap, and more
 * bytes are in flight than credits permit.
 */
static bool goes_in_frames(const struct rdm_conn *conn, const struct dofi_dto *dto)
	DOFI_NEEDS(conn->ep->lock)
{
	if (dto->step == DOFI_STEP_BEGUN)
		return true;
	return dto->length <= conn->eager &&
	       (rdm_fabric(conn)->target_rdma || conn->credits > conn->max_credits / 2);
}

/* Sends a message of @length bytes: none, or all of @dto. */
static int send_message(struct rdm_conn *conn, struct dofi_dto *dto, size_t length,
			uint64_t cq_data) DOFI_NEEDS(conn->ep->lock)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);
	struct rdm_frame f;
	size_t size;
	int ret;

	if (!conn->credits || conn->blocking)
		return -FI_EAGAIN;
	rdm_frame_begin(&f, RDM_FRAME_SEND);
	f.cq_data = cq_data;
	size = rdm_frame_head(&f) + length;
	if (size > conn->frame_size)
		return goes_in_frames(conn, dto) ? rdm_eager_send(conn, dto, cq_data) :
						   rdm_rndv_rts(conn, dto, &f);
	/* software fabrics keep untaken messages beyond the connection: no program memory */
	if (size > conn->inject)
		return !fabric->target_rdma && dto->n_iov < fabric->info->tx_attr->iov_limit ?
			rdm_transmit_zero_copy(conn, dto, &f) :
			rdm_transmit_copy(conn, dto, &f, 0, length);
	ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, 0, length);
	return ret ? ret : DOFI_DONE;
}

int rdm_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	const bool solicited = dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	struct rdm_conn *conn = rdm_conn_of(ep);
	const bool by_target = rdm_fabric(conn)->target_rdma;
	enum dofi_cq_data_kind kind;
	int ret;

	dofi_mutex_assert_held(&conn->ep->lock);
	switch (dto->kind) {
	case DOFI_DTO_RECV:
		return 0;	/* messages are matched with it as they arrive */
	case DOFI_DTO_SEND:
		return send_message(conn, dto, dto->length, solicited ?
				    dofi_cq_data(DOFI_CQ_DATA_PLAIN, true, 0, 0) : 0);
	case DOFI_DTO_SEND_INVALIDATE:
		conn->by_target_next = true;
		kind = DOFI_CQ_DATA_INVALIDATE;
		break;
	case DOFI_DTO_SEND_IMMED:
		kind = DOFI_CQ_DATA_IMMED;
		break;
	case DOFI_DTO_WRITE_IMMED:
		/* the message waits for the write: a peer that refuses must not get it */
		ret = by_target ? rdm_write_alone(conn, dto) :
				    rdm_write_before_message(conn, dto);
		if (by_target && ret == -FI_EAGAIN)
			return rdm_rma(conn, dto);
		return ret ? ret : send_message(conn, dto, 0, rdm_write_cq_data(dto));
	default:
		return rdm_rma(conn, dto);
	}
	return send_message(conn, dto, dto->length, dofi_cq_data(kind, solicited, 0, dto->immed));
}

#define WRITES (1u << DOFI_DTO_WRITE | 1u << DOFI_DTO_WRITE_IMMED)

bool rdm_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	/* the peer knows of the message, which is still to be sent, or to be read by the peer */
	const bool announced = dto->step == DOFI_STEP_RTS || dto->step == DOFI_STEP_CTS;

	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS))
		return dto->flags & DOFI_DTO_MATCHED;
	if (!rdm_fabric(rdm_conn_of(ep))->target_rdma)
		return dto->at_fabric || announced || dto->step == DOFI_STEP_BEGUN;
	if (dofi_dto_is(dto->kind, WRITES))
		return dto->step == DOFI_STEP_ASKED && dto->rma.asked < dto->length;
	if (dofi_dto_is(dto->kind, DOFI_DTO_RDMA))
		return dto->at_fabric || dto->step == DOFI_STEP_ASKED;
	return announced || (dto->step == DOFI_STEP_BEGUN && dto->eager.sent < dto->length) ||
	       (dto->step == DOFI_STEP_DATA && dto->rndv.sent < dto->length);
}
