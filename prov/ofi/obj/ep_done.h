/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How operations end: their status, their event, and the flush. EP lock held. */
#ifndef DOFI_OBJ_EP_DONE_H
#define DOFI_OBJ_EP_DONE_H

#include "obj/ep.h"

/* The status of @dto, which failed with @err. */
DAT_DTO_COMPLETION_STATUS dofi_dto_failure(const struct dofi_dto *dto, int err);
/* @dto failed with @err, and with it the connection. */
void dofi_dto_fail(struct dofi_ep *ep, struct dofi_dto *dto, int err) DOFI_NEEDS(ep->lock);

/* Records how @dto ended: a positive @err also ends the connection. */
static inline void dofi_dto_finish(struct dofi_ep *ep, struct dofi_dto *dto, int err)
	DOFI_NEEDS(ep->lock)
{
	dofi_ep_assert_locked(ep);
	dofi_dto_set_done(dto, DAT_DTO_SUCCESS);
	if (__builtin_expect(ep->reads, 0))
		ep->reads -= dofi_dto_is(dto->kind, DOFI_DTO_READS);
	if (__builtin_expect(err, 0))
		dofi_dto_fail(ep, dto, err);
}

/* Whether receives may complete: the event of the connection comes first. */
static inline bool dofi_ep_may_deliver(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	dofi_ep_assert_locked(ep);
	return ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       ep->state != DAT_EP_STATE_COMPLETION_PENDING;
}

/*
 * Fills in the event of @dto, which is not a bind. @operation is a DAT_DTOS; 1.2 does not show it.
 */
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

#endif
