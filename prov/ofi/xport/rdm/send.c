/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport: frames and messages that are handed to the fabric. */

#include "xport/rdm/rdm.h"

#include "base/iov.h"
#include "base/log.h"
#include "obj/beside.h"
#include "xport/rdm/peer.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <string.h>

/* Frames */

static bool is_credited(uint8_t kind)
{
	return 1u << kind & RDM_FRAME_CREDITED;
}

/* Whether the peer sleeps, and this thread is to wake its progress thread. */
static inline bool is_asleep(struct rdm_conn *conn)
{
	return conn->link ? dofi_link_notify(conn->link) : conn->page && dofi_shm_notify(conn->page);
}

/*
 * A peer that sleeps does not notice what it was handed, nor what it has to do before it can be. A peer that has left
 * may not be there to read the doorbell, and other connections would take it for awake.
 */
static void wake(struct rdm_conn *conn)
{
	if (!conn->left && is_asleep(conn))
		dofi_side_ring(conn->peer->side);
}

/* Counts a frame for which the fabric returned @ret, and returns that. */
static int account(struct rdm_conn *conn, const struct rdm_frame *f, ssize_t ret)
{
	if (ret == -FI_EAGAIN) {
		conn->untaken = f->sequence;
		rdm_stall(conn);
		return -FI_EAGAIN;
	}
	if (ret) {
		dofi_log(DOFI_WARN, DOFI_EP, "ep %p: sending a frame: %s", (void *)conn->ep,
			 fi_strerror((int)-ret));
		return (int)ret;
	}
	conn->sent++;
	conn->owed -= f->credits;
	conn->window -= is_credited(f->kind);
	return 0;
}

/* Like account(), outside the gate: the peer is woken first. */
static int handed_over(struct rdm_conn *conn, const struct rdm_frame *f, ssize_t ret)
{
	wake(conn);
	return account(conn, f, ret);
}

static void address(const struct rdm_conn *conn, struct rdm_frame *f)
{
	f->conn = conn->peer_id;
	f->sequence = conn->sent + 1;
	f->credits = (uint16_t)conn->owed;
}

/* @frame, too long to be injected: the fabric takes it from a copy of ours. */
static ssize_t send_copy(struct rdm_conn *conn, struct rdm_op *op, const struct rdm_frame *f,
			 const struct iovec *from, size_t n, size_t offset, size_t size)
{
	struct iovec iov;
	void *desc;
	struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = conn->to, .context = op,
	};
	ssize_t ret;

	if (!op)
		return -FI_EAGAIN;
	desc = conn->zone->copies_mr ? fi_mr_desc(conn->zone->copies_mr) : NULL;
	iov = (struct iovec){ op->copy, rdm_frame_pack(op->copy, f) };
	iov.iov_len += dofi_iov_gather(op->copy + iov.iov_len, from, n, offset, size);
	ret = fi_sendmsg(conn->ep->fid, &msg, FI_COMPLETION);
	if (ret)
		rdm_op_put(op);
	return ret;
}

/*
 * libfabric shares the memory of an endpoint of this process instead of mapping it once more, and
 * the endpoint's end unmaps it. The peer's connection, which gives up its id first, has ended then;
 * and the endpoint is closed after its owner has passed the gate.
 */
static inline bool is_unmapped(const struct rdm_conn *conn)
{
	return conn->peer_here && atomic_load(conn->peer_here) != conn->peer_id;
}

static inline bool robust_try(struct rdm_conn *conn)
{
	if (!dofi_robust_try(conn->robust))
		return false;
	if (!is_unmapped(conn))
		return true;
	dofi_robust_unlock(conn->robust);
	return false;
}

/* The next frame to be sent, while the gate is held. */
static inline ssize_t inject(struct rdm_conn *conn, const unsigned char *frame, size_t len)
{
	return fi_inject(conn->ep->fid, frame, len, conn->to);
}

/*
 * Where a frame of up to @len bytes is made: in the ring that takes it, or at *@frame, to be
 * injected.
 */
static inline int frame_begin(struct rdm_conn *conn, size_t len, unsigned char **frame)
{
	return conn->link ? dofi_link_reserve(conn->link, len, frame) : 0;
}

static inline ssize_t frame_end(struct rdm_conn *conn, const unsigned char *frame, size_t len)
{
	if (!conn->link)
		return inject(conn, frame, len);
	dofi_link_send(conn->link, len);
	return 0;
}

static ssize_t gather_and_inject(struct rdm_conn *conn, const struct rdm_frame *f,
				 const struct iovec *from, size_t n, size_t offset, size_t size)
{
	unsigned char own[RDM_INJECT_MAX], *frame = own;
	int ret = frame_begin(conn, rdm_frame_head(f) + size, &frame);
	size_t len;

	if (ret)
		return ret;
	len = rdm_frame_pack(frame, f);
	len += dofi_iov_gather(frame + len, from, n, offset, size);
	return frame_end(conn, frame, len);
}

/* What fits a bare frame; credits are at most RDM_WINDOW. */
static bool is_bare(const struct rdm_conn *conn, const struct rdm_frame *f)
{
	_Static_assert(RDM_WINDOW <= RDM_BARE_CREDITS, "all credits fit a bare frame");
	return conn->bare && rdm_bare_fits(f);
}

size_t rdm_head(const struct rdm_conn *conn, const struct rdm_frame *f)
{
	struct rdm_frame with = { .conn = conn->peer_id, .kind = f->kind, .beside = f->beside, .length = f->length };

	return is_bare(conn, &with) ? 0 : rdm_frame_head(f);
}

static bool is_in_one_place(const struct iovec *from, size_t n, size_t offset, size_t size)
{
	return n && offset + size <= from[0].iov_len;
}

static ssize_t inject_bare(struct rdm_conn *conn, const struct rdm_frame *f, const struct iovec *from, size_t n,
			   size_t offset, size_t size)
{
	const uint64_t bits = rdm_bare_pack(f);
	unsigned char own[RDM_INJECT_MAX];

	if (is_in_one_place(from, n, offset, size))
		return fi_injectdata(conn->ep->fid, (const char *)from[0].iov_base + offset, size, bits, conn->to);
	dofi_iov_gather(own, from, n, offset, size);
	return fi_injectdata(conn->ep->fid, own, size, bits, conn->to);
}

/* Fewer bytes are copied once more faster than the fabric takes them from two places. */
#define APART 512

/*
 * Like gather_and_inject(), with the data from one place of the program's memory: it is copied once, by the fabric,
 * which is done with it when the call returns.
 */
static ssize_t inject_apart(struct rdm_conn *conn, const struct rdm_frame *f, const void *data, size_t size)
{
	unsigned char head[RDM_FRAME_FULL];
	const struct iovec iov[2] = {
		{ head, rdm_frame_pack(head, f) }, { (void *)(uintptr_t)data, size },
	};
	const struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = conn->to };

	return fi_sendmsg(conn->ep->fid, &msg, FI_INJECT);
}

static bool goes_apart(const struct rdm_conn *conn, const struct iovec *from, size_t n, size_t offset, size_t size)
{
	return size >= APART && conn->robust && is_in_one_place(from, n, offset, size);
}

/* With the gate held. */
static ssize_t inject_frame(struct rdm_conn *conn, const struct rdm_frame *f, const struct iovec *from, size_t n,
			    size_t offset, size_t size)
{
	if (is_bare(conn, f))
		return inject_bare(conn, f, from, n, offset, size);
	if (goes_apart(conn, from, n, offset, size))
		return inject_apart(conn, f, (const char *)from[0].iov_base + offset, size);
	return gather_and_inject(conn, f, from, n, offset, size);
}

bool rdm_frames_begin(struct rdm_conn *conn)
{
	if (robust_try(conn))
		return true;
	conn->untaken = conn->sent + 1;
	wake(conn);
	rdm_stall(conn);
	return false;
}

int rdm_frames_add(struct rdm_conn *conn, struct rdm_frame *f, const struct dofi_dto *dto, size_t size)
{
	address(conn, f);
	return account(conn, f, inject_frame(conn, f, dto->iov, dto->n_iov, dto->asked, size));
}

void rdm_frames_end(struct rdm_conn *conn)
{
	dofi_robust_unlock(conn->robust);
	wake(conn);
}

int rdm_transmit(struct rdm_conn *conn, struct rdm_frame *f, const struct iovec *iov, size_t n,
		 size_t offset, size_t size)
{
	ssize_t ret = -FI_EAGAIN;

	address(conn, f);
	if (size + (is_bare(conn, f) ? 0 : rdm_frame_head(f)) > conn->inject) {
		ret = send_copy(conn, rdm_op_get_copy(conn), f, iov, n, offset, size);
	} else if (robust_try(conn)) {
		ret = inject_frame(conn, f, iov, n, offset, size);
		dofi_robust_unlock(conn->robust);
	}
	return handed_over(conn, f, ret);
}

/* Messages */

/* One frame, but too long to be injected: the fabric takes it from the program's memory. */
static int send_in_place(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f)
{
	struct iovec iov[1 + RDM_FRAME_SEGMENTS];
	void *desc[1 + RDM_FRAME_SEGMENTS];
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = 1 + dto->n_iov, .addr = conn->to,
	};
	struct rdm_op *op = rdm_op_get(conn, dto, false);
	uint8_t i;
	int ret;

	if (!op) {
		rdm_stall(conn);
		return -FI_EAGAIN;
	}
	address(conn, f);
	iov[0] = (struct iovec){ op->header, rdm_frame_pack(op->header, f) };
	desc[0] = conn->zone->ops_mr ? fi_mr_desc(conn->zone->ops_mr) : NULL;
	for (i = 0; i < dto->n_iov; i++) {
		iov[1 + i] = dto->iov[i];
		desc[1 + i] = dto->desc[i];
	}
	msg.context = op;
	ret = handed_over(conn, f, fi_sendmsg(conn->ep->fid, &msg, FI_COMPLETION));
	if (ret)
		rdm_op_put(op);
	return ret;
}

void rdm_tell_segments(struct rdm_frame *f, const struct dofi_dto *dto)
{
	uint8_t i;

	f->n_segments = dto->n_iov;
	for (i = 0; i < dto->n_iov; i++)
		f->segment[i] = dto->iov[i];
}

static int announce(struct rdm_conn *conn, struct dofi_dto *dto, struct rdm_frame *f)
{
	int ret;

	f->kind = RDM_FRAME_ANNOUNCE;
	f->number = dto->number;
	f->length = dto->length;
	if (conn->peer_reads)
		rdm_tell_segments(f, dto);
	else
		rdm_direct_want(conn);
	f->value[0] = conn->direct != NULL;
	ret = rdm_transmit(conn, f, NULL, 0, 0, 0);
	dto->announced = !ret;
	dto->submitted = false;
	return ret;
}

/* From a copy of @size bytes; @dto is done when the fabric has passed them on, not before. */
static int send_last_copy(struct rdm_conn *conn, const struct dofi_dto *dto, struct rdm_frame *f,
			  size_t offset, size_t size)
{
	struct rdm_op *op = rdm_op_get_copy(conn);

	if (op) {
		op->ends = true;
		op->number = dto->number;
	}
	address(conn, f);
	return handed_over(conn, f, send_copy(conn, op, f, dto->iov, dto->n_iov, offset, size));
}

/*
 * Software fabrics keep what a peer does not take, for as long as it likes: memory of the program
 * is not to be there when the connection has ended.
 */
static bool goes_in_place(const struct rdm_conn *conn, const struct dofi_dto *dto)
{
	const struct dofi_fabric_choice *fabric = rdm_fabric(conn);

	return !fabric->target_rdma && dto->n_iov < fabric->info->tx_attr->iov_limit;
}

/* A message of @length bytes, none or all of @dto. */
static int send_message(struct rdm_conn *conn, struct dofi_dto *dto, size_t length, uint64_t beside)
{
	struct rdm_frame f;
	size_t size;
	int ret;

	if (!conn->window || conn->blocking)
		return -FI_EAGAIN;
	rdm_frame_clear(&f);
	f.kind = RDM_FRAME_SEND;
	f.beside = beside;
	size = rdm_head(conn, &f) + length;
	if (size > conn->frame_size)
		return length <= conn->eager ? rdm_eager_send(conn, dto, beside) :
					       announce(conn, dto, &f);
	if (size > conn->inject)
		return goes_in_place(conn, dto) ? send_in_place(conn, dto, &f) :
						  send_last_copy(conn, dto, &f, 0, length);
	ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, 0, length);
	return ret ? ret : DOFI_DONE;
}

/* What can be injected. */
ssize_t rdm_send(struct fid_ep *to, const void *buf, size_t len, void *desc, uint64_t unused, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct rdm_conn *conn = rdm_conn_of(dofi_plain_ep(to));
	struct rdm_frame f;
	int ret;

	(void)desc;
	(void)unused;
	(void)context;
	rdm_frame_clear(&f);
	f.kind = RDM_FRAME_SEND;
	if (!conn->window || conn->blocking || rdm_head(conn, &f) + len > conn->inject)
		return -FI_EAGAIN;
	ret = rdm_transmit(conn, &f, &iov, 1, 0, len);
	return ret ? ret : DOFI_DONE;
}

static uint64_t beside_of(const struct dofi_dto *dto, enum dofi_beside_kind kind)
{
	const bool solicited = dto->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	const uint32_t value = kind == DOFI_BESIDE_PLAIN ? 0 : dto->immed;

	return kind == DOFI_BESIDE_PLAIN && !solicited ? 0 : dofi_beside(kind, solicited, 0, value);
}

static int submit_send(struct rdm_conn *conn, struct dofi_dto *dto, enum dofi_beside_kind kind)
{
	return send_message(conn, dto, dto->length, beside_of(dto, kind));
}

int rdm_send_empty(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t beside)
{
	return send_message(conn, dto, 0, beside);
}

/* What was announced goes to the receive that was found for it. */
static int send_tagged(struct rdm_conn *conn, struct dofi_dto *dto)
{
	const struct rdm_direct *direct = dto->direct ? conn->direct : NULL;
	struct rdm_op *op = rdm_op_get(conn, dto, false);
	const struct fi_msg_tagged msg = {
		.msg_iov = dto->iov,
		.desc = dto->desc,
		.iov_count = dto->n_iov,
		.addr = direct ? direct->to : conn->to,
		.tag = dto->remote_addr,
		.context = op,
	};
	struct fid_ep *fid = direct ? direct->rdm.fid : conn->ep->fid;
	/* a direct endpoint may be closed once the send has completed: the peer has to have the message by then */
	const uint64_t flags = FI_COMPLETION | (direct ? FI_DELIVERY_COMPLETE : 0);
	ssize_t ret;

	if (op)
		op->direct = direct;
	ret = op ? fi_tsendmsg(fid, &msg, flags) : -FI_EAGAIN;
	if (ret && op)
		rdm_op_put(op);
	if (ret == -FI_EAGAIN)
		rdm_stall(conn);
	return (int)ret;
}

/*
 * The same by frames, as goes_in_place() says why. Besides, shared memory goes to sleep here and
 * there without the fabric's knowledge: nobody would wake the peer for messages that the fabric
 * sends by itself.
 */
static int send_part(struct rdm_conn *conn, struct dofi_dto *dto)
{
	const size_t room = conn->room - RDM_FRAME_FULL, left = dto->length - dto->asked;
	const size_t size = left < room ? left : room;
	struct rdm_frame f = {
		.kind = RDM_FRAME_PART, .number = (uint32_t)dto->remote_addr, .addr = dto->asked,
	};
	int ret;

	if (!conn->window)
		return -FI_EAGAIN;
	if (size == left && conn->zone->copy)
		ret = send_last_copy(conn, dto, &f, dto->asked, size);
	else
		ret = rdm_transmit(conn, &f, dto->iov, dto->n_iov, dto->asked, size);
	if (!ret)
		dto->asked += size;
	return ret;
}

static int send_parts(struct rdm_conn *conn, struct dofi_dto *dto)
{
	int ret = 0;

	while (!ret && dto->asked < dto->length)
		ret = send_part(conn, dto);
	return ret || conn->zone->copy ? ret : DOFI_DONE;
}

static void send_cleared(struct rdm_conn *conn, struct dofi_dto *dto)
{
	const bool by_frames = rdm_fabric(conn)->target_rdma && !dto->direct;
	int ret = by_frames ? send_parts(conn, dto) : send_tagged(conn, dto);

	if (ret == -FI_EAGAIN)
		return;
	dto->announced = false;
	conn->cleared--;
	if (ret)
		dofi_dto_finish(conn->ep, dto, ret == DOFI_DONE ? 0 : -ret);
}

static bool is_cleared(const struct dofi_dto *dto)
{
	return !dto->done && !dofi_dto_is(dto->kind, DOFI_DTO_RDMA) && dto->announced &&
	       dto->submitted;
}

static void send_all_cleared(struct rdm_conn *conn)
{
	struct dofi_queue *q = &conn->ep->sq;
	uint32_t i;

	if (!conn->cleared)
		return;
	for (i = q->head; i != q->next; i++)
		if (is_cleared(dofi_queue_at(q, i)))
			send_cleared(conn, dofi_queue_at(q, i));
	dofi_dto_retire(conn->ep, NULL);
}

void rdm_clear(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t tag, bool direct)
{
	dto->direct = direct;
	dto->remote_addr = tag;
	dto->submitted = true;
	dto->asked = 0;
	conn->cleared++;
	send_all_cleared(conn);
}

/* Any operation */

int rdm_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	struct rdm_conn *conn = rdm_conn_of(ep);

	switch (dto->kind) {
	case DOFI_DTO_RECV:
		return 0;	/* a message will meet it */
	case DOFI_DTO_SEND:
		return submit_send(conn, dto, DOFI_BESIDE_PLAIN);
	case DOFI_DTO_SEND_INVALIDATE:
		return submit_send(conn, dto, DOFI_BESIDE_INVALIDATE);
	case DOFI_DTO_SEND_IMMED:
		return submit_send(conn, dto, DOFI_BESIDE_IMMED);
	default:
		return rdm_rma(conn, dto);
	}
}

#define WRITES (1u << DOFI_DTO_WRITE | 1u << DOFI_DTO_WRITE_IMMED)

bool rdm_holds(const struct dofi_ep *ep, const struct dofi_dto *dto)
{
	const bool begun = dto->at_fabric || dto->announced;

	if (dofi_dto_is(dto->kind, DOFI_DTO_RECVS))
		return dto->flags & DOFI_DTO_MATCHED;
	if (!rdm_fabric(rdm_conn_of(ep))->target_rdma)
		return begun;
	if (dofi_dto_is(dto->kind, WRITES))
		return begun && dto->asked < dto->length;
	if (dofi_dto_is(dto->kind, DOFI_DTO_RDMA))
		return begun;
	return dto->announced || (dto->submitted && dto->asked < dto->length);
}

/* What could not be done before */

static void greet(struct rdm_conn *conn)
{
	const bool bare = rdm_takes_bare(conn);
	struct rdm_frame hello = { .kind = RDM_FRAME_HELLO, .value = { conn->pid != 0, bare } };
	struct rdm_frame back = { .kind = RDM_FRAME_HELLO_BACK, .value = { conn->pid != 0, bare } };

	if (conn->hello_due)
		conn->hello_due = rdm_transmit(conn, &hello, NULL, 0, 0, 0);
	if (conn->hello_back_due)
		conn->hello_back_due = rdm_transmit(conn, &back, NULL, 0, 0, 0);
}

void rdm_go_on(struct rdm_conn *conn)
{
	if (!conn->ep->fid)
		return;
	greet(conn);
	send_all_cleared(conn);
	rdm_catch_up(conn, NULL);
	dofi_dto_pump(conn->ep);
}
