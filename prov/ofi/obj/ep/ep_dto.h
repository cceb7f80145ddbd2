/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The operations of an endpoint: their order, their completions, their end, buffers of an SRQ. */
#ifndef DOFI_OBJ_EP_EP_DTO_H
#define DOFI_OBJ_EP_EP_DTO_H

#include "obj/ep/ep.h"

struct fi_cq_data_entry;

/*
 * How an operation ends. Each of these calls the ones below it:
 *
 *	dofi_dto_complete()	the fabric reports the end
 *	dofi_dto_complete_as()	... with a transport's additions; or dofi_dto_complete() continues
 *	dofi_dto_end()		the transport has found the end itself; then submits pending ones
 *	dofi_dto_finish()	records the result in the slot; a failure ends the connection
 *	dofi_dto_set_done()	marks the slot (wq/dto.h)
 *
 * A finished operation keeps its slot until all before it are finished: dofi_requests_retire(),
 * dofi_receives_retire() and dofi_dto_retire() deliver the events in posting order and free the
 * slots.
 */

/* A completion from the fabric: dofi_progress_ops.completed. */
void dofi_dto_complete(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* A transport's additions to the completion of a receive. */
struct dofi_arrived {
	uint8_t kind;			/* enum dofi_dto_kind */
	bool solicited;			/* the sender set the solicited flag */
	uint32_t immed;
	uint64_t length;
	int err;			/* positive if a peer may not send this */
};

/* Reads @cq_data, not 0, of a message of @length bytes. */
void dofi_arrived_read(struct dofi_arrived *arrived, uint64_t cq_data, uint64_t length);

/* A completion from the transport; @arrived describes a receive, or is NULL. */
void dofi_dto_complete_as(const struct fi_cq_data_entry *entry, int err,
			  const struct dofi_arrived *arrived, struct dofi_sink *sink);

/* Processes the remote CQ data of a receive with valid cq_data. Returns 0 or a positive error. */
int dofi_dto_received(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/* Ends an operation that the transport tracks itself; a positive @err. EP lock held. */
void dofi_dto_end(struct dofi_ep *ep, struct dofi_dto *dto, int err, struct dofi_sink *sink)
	DOFI_NEEDS(ep->lock);

/* ep_done.c: the status of operations, their event, and the flush. EP lock held. */

/* The status of @dto, which failed with @err. */
DAT_DTO_COMPLETION_STATUS dofi_dto_failure(const struct dofi_dto *dto, int err);
/* @dto failed with @err, and with it the connection. */
void dofi_dto_fail(struct dofi_ep *ep, struct dofi_dto *dto, int err) DOFI_NEEDS(ep->lock);

/*
 * The connection of @ep ends. If it is @broken, the log gets the request that the loss ended, or
 * the oldest one of those that end now, unless dofi_dto_fail() has logged a cause. Call before
 * dofi_dto_flush().
 */
void dofi_dto_explain_end(struct dofi_ep *ep, bool broken) DOFI_NEEDS(ep->lock);

/* Records how @dto ended: a positive @err also ends the connection. */
static inline void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
	DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	dofi_dto_set_done(dto, DAT_DTO_SUCCESS);
	if (__builtin_expect(ep->reads, 0))
		ep->reads -= dofi_dto_is(dto->kind, DOFI_DTO_READS);
	if (__builtin_expect(err, 0))
		dofi_dto_fail(ep, dto, err);
}

/* Whether the peer's answer to a read may be lost. */
bool dofi_ep_loses_answers(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Whether receives may complete: the event of the connection comes first. */
static inline bool dofi_ep_may_deliver(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_mutex_assert_held(&ep->lock);
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING;
}

/* Fills in the event of @dto, no bind. @operation is a DAT_DTOS, which 1.2 does not show. */
static DOFI_INTO_CALLER void dofi_dto_event(DAT_DTO_COMPLETION_EVENT_DATA *d, struct dofi_ep *ep,
					    const struct dofi_dto *dto, unsigned operation,
					    DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	d->ep_handle = ep;
	d->user_cookie.as_64 = dto->cookie;
	d->status = status;
	d->transfered_length = length;
#if DAT_VERSION_MAJOR >= 2
	d->operation = (DAT_DTOS)operation;
	d->rmr_context = 0;
#else
	(void)operation;
#endif
}

/* Delivers the requests, or receives, that are complete, oldest first; @sink may be NULL. */
void dofi_requests_retire(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock);
void dofi_receives_retire(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock);
/* Delivers both, as far as the state of @ep allows. */
void dofi_dto_retire(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock);

/* Completes all outstanding operations as flushed. The fabric endpoint is closed. */
void dofi_dto_flush(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* ep_queue.c: the order in which operations go to the fabric. EP lock held. */

/*
 * An attempt to connect failed: the receives of its endpoint, not ep->fid now, are pending again.
 */
void dofi_dto_recall(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/*
 * Sets the fields that the slot of a plain receive lacks, and that all other code requires. The
 * receive is not at the fabric, or the transport matches it itself.
 */
void dofi_receive_unplain(struct dofi_dto *dto);

/* Queues @dto, of @kind: the slot of @q that was reserved and is filled in. */
void dofi_dto_commit(struct dofi_ep *ep, struct dofi_queue *q, struct dofi_dto *dto, uint8_t kind)
	DOFI_NEEDS(ep->lock);

/* Submits pending operations of @q, a queue of @ep, in order. */
void dofi_dto_submit_queue(struct dofi_ep *ep, struct dofi_queue *q) DOFI_NEEDS(ep->lock);

/* Submits pending operations of @ep, as far as the fabric and the rules of order allow. */
void dofi_dto_submit_pending(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* How an endpoint of an SRQ gets buffers from it. */

/* Sets feed() of @user, of an EP that is not published. */
void dofi_ep_srq_init(struct dofi_srq_user *user);

/*
 * For a message that has come to @ep: takes the oldest buffer of the SRQ as the newest of the EP's
 * receives. Returns NULL if the SRQ has none (the EP joins the line for buffers), or if the EP has
 * its maximum of receives (dofi_xport.resume tries again when one retires). Passing the hard
 * watermark ends the connection. EP lock held, as for the functions below.
 */
struct dofi_dto *dofi_srq_buffer(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/* Checks the LMRs of @dto, a buffer, again. Returns 0 or a positive error. */
int dofi_srq_buffer_check(const struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);

/*
 * For a transport that matches: a buffer from dofi_srq_buffer() with DOFI_DTO_SHARED and no data,
 * which counts as submitted. Also returns NULL if the connection ends, by a watermark or because
 * the buffer may no longer be used.
 */
struct dofi_dto *dofi_srq_receive(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

#endif
