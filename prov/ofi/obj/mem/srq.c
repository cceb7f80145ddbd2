/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared Receive Queue: buffers for whichever of its endpoints a message arrives at. */

#include "obj/mem/srq.h"

#include "obj/caps.h"
#include "obj/obj.h"
#include "obj/mem/segments.h"

#include <errno.h>

struct dofi_pool dofi_srq_pool = DOFI_POOL_INIT("srq", struct dofi_srq, NULL);

/* Buffers leave */

/* Whether the SRQ fell below the low watermark and must report that: once per arming. */
static bool falls_low(struct dofi_srq *srq) DOFI_NEEDS(srq->lock)
{
	bool low = srq->low_armed && dofi_queue_used(&srq->queue) < (uint32_t)srq->low_watermark;

	srq->low_armed &= !low;
	return low;
}

/* DAT has no event for the watermark: it is the reason of an SRQ's error. */
static void report_low(struct dofi_srq *srq)
{
	dofi_async_event(srq->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void line_leave(struct dofi_srq *srq, struct dofi_srq_user *user) DOFI_NEEDS(srq->lock)
{
	if (user->waiting)
		TAILQ_REMOVE(&srq->line, user, link);
	user->waiting = false;
}

void dofi_srq_leave(struct dofi_srq *srq, struct dofi_srq_user *user)
{
	dofi_mutex_lock(&srq->lock);
	line_leave(srq, user);
	dofi_mutex_unlock(&srq->lock);
}

bool dofi_srq_waits(struct dofi_srq *srq, const struct dofi_srq_user *user)
{
	bool waits;

	dofi_mutex_lock(&srq->lock);
	waits = user->waiting;
	dofi_mutex_unlock(&srq->lock);
	return waits;
}

bool dofi_srq_take(struct dofi_srq *srq, struct dofi_srq_user *user, struct dofi_dto *dto)
{
	struct dofi_srq_user *first;
	bool got, low = false;

	dofi_mutex_lock(&srq->lock);
	first = TAILQ_FIRST(&srq->line);
	got = !dofi_queue_empty(&srq->queue) && (!first || first == user);
	if (got) {
		line_leave(srq, user);
		dofi_dto_copy(dto, dofi_queue_oldest(&srq->queue), srq->queue.max_iov);
		dofi_queue_retire(&srq->queue);
		dofi_unread_add(&srq->given);
		low = falls_low(srq);
	} else {
		if (!user->waiting)
			TAILQ_INSERT_TAIL(&srq->line, user, link);
		user->waiting = user->asked = true;
	}
	dofi_mutex_unlock(&srq->lock);
	if (low)
		report_low(srq);
	return got;
}

DAT_COUNT dofi_srq_depth(struct dofi_srq *srq)
{
	DAT_COUNT depth;

	dofi_mutex_lock(&srq->lock);
	depth = srq->queue.limit;
	dofi_mutex_unlock(&srq->lock);
	return depth;
}

/* Posting buffers */

/* The first EP in line if there is a buffer for it, else NULL. */
static struct dofi_srq_user *next_fed(struct dofi_srq *srq)
{
	struct dofi_srq_user *user;

	dofi_mutex_lock(&srq->lock);
	user = dofi_queue_empty(&srq->queue) ? NULL : TAILQ_FIRST(&srq->line);
	dofi_mutex_unlock(&srq->lock);
	return user;
}

DAT_RETURN dofi_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie)
{
	struct dofi_srq *srq = dofi_srq_check(srq_handle);
	struct dofi_dto *dto = NULL;
	struct dofi_srq_user *user;
	bool serve = false, fed = false;
	DAT_RETURN ret;

	if (!srq)
		return DOFI_BAD_HANDLE(SRQ);
	dofi_mutex_lock(&srq->lock);
	if (!dofi_obj_is_live(&srq->obj, DAT_HANDLE_TYPE_SRQ)) {
		ret = DOFI_BAD_HANDLE(SRQ);
	} else if ((unsigned)n > (unsigned)srq->max_recv_iov) {
		ret = DOFI_BAD_ARG(2);
	} else if (n && !iov) {
		ret = DOFI_BAD_ARG(3);
	} else {
		dofi_queue_extend(&srq->queue, NULL);
		dto = dofi_queue_reserve(&srq->queue);
		ret = dto ? DAT_SUCCESS : DOFI_NO_RESOURCE(SRQ);
	}
	if (!ret) {
		const uint64_t most = dofi_segment_longest(srq->obj.ia->limits.max_message_size);

		dto->kind = DOFI_DTO_RECV;
		dto->flags = 0;
		dto->cookie = cookie.as_64;
		ret = dofi_dto_load(dto, srq->pz, most, n, iov);
	}
	if (!ret) {
		dofi_queue_push(&srq->queue);
		serve = !TAILQ_EMPTY(&srq->line);
	}
	if (serve)
		dofi_calls_begin(&srq->obj.calls);
	dofi_mutex_unlock(&srq->lock);
	/*
	 * Passes buffers to the EPs in line until the line or the SRQ is empty. This ends, because
	 * an EP that gets a buffer leaves the line. An EP that is freed meanwhile stays mapped, and
	 * finds that it does not wait.
	 */
	while (serve && (user = next_fed(srq))) {
		user->feed(user);
		fed = true;
	}
	/* the next messages may be in the CQ already */
	if (fed)
		dofi_cq_kick(&srq->pz->domain.cq, NULL);
	if (serve)
		dofi_calls_end(&srq->obj.calls);
	return ret;
}

/* Making and freeing */

static void srq_destroy(struct dofi_obj *obj)
{
	struct dofi_srq *srq = (struct dofi_srq *)obj;

	/* a post that found the handle valid has entered the SRQ, or has left the lock */
	dofi_mutex_lock(&srq->lock);
	dofi_mutex_unlock(&srq->lock);
	dofi_calls_await(&obj->calls);
	dofi_obj_unlink(obj, DAT_HANDLE_TYPE_SRQ);
	dofi_obj_put(&srq->pz->obj);
	dofi_queue_fini(&srq->queue);
	dofi_obj_free(&dofi_srq_pool, DAT_HANDLE_TYPE_SRQ, obj);
}

DAT_RETURN dofi_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *srq_handle)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);
	struct dofi_pz *pz DOFI_USED = dofi_pz_use(pz_handle, ia);
	struct dofi_queue nothing = { .slots = NULL };
	DAT_IA_ATTR most;
	struct dofi_srq *srq;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!pz)
		return DOFI_BAD_HANDLE(PZ);
	dofi_caps_ia_attr(ia, &most);
	if (!most.max_srqs)
		return DOFI_NOT_SUPPORTED;
	if (!attr || attr->max_recv_dtos <= 0 || attr->max_recv_dtos > most.max_recv_per_srq ||
	    attr->max_recv_iov < 0 || attr->max_recv_iov > most.max_iov_segments_per_dto ||
	    attr->low_watermark != DAT_SRQ_LW_DEFAULT)
		return DOFI_BAD_ARG(3);
	if (!srq_handle)
		return DOFI_BAD_ARG(4);
	srq = dofi_obj_new(&dofi_srq_pool, DAT_HANDLE_TYPE_SRQ, ia, srq_destroy);
	if (!srq)
		return DOFI_NO_RESOURCE(SRQ);
	/* max_recv_iov may be 0, for empty messages; slots need room for one segment */
	srq->max_recv_iov = attr->max_recv_iov ? attr->max_recv_iov : 1;
	dofi_unread_renew(&srq->given);
	nothing.unread = &srq->given;
	if (dofi_queue_renew(&srq->queue, &nothing, NULL, attr->max_recv_dtos, srq->max_recv_iov)) {
		dofi_obj_free(&dofi_srq_pool, DAT_HANDLE_TYPE_SRQ, &srq->obj);
		return DOFI_NO_RESOURCE(MEMORY);
	}
	srq->pz = pz;
	srq->low_watermark = DAT_SRQ_LW_DEFAULT;
	srq->low_armed = false;
	TAILQ_INIT(&srq->line);
	dofi_obj_get(&pz->obj);
	dofi_obj_publish(&srq->obj, DAT_HANDLE_TYPE_SRQ);
	*srq_handle = srq;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	struct dofi_srq *srq = dofi_srq_enter(srq_handle);
	int err = srq ? dofi_obj_free_unused(&srq->obj) : -ENOENT;

	if (err)
		return err == -EBUSY ? DOFI_BAD_STATE(SRQ_IN_USE) : DOFI_BAD_HANDLE(SRQ);
	return DAT_SUCCESS;
}

/* Asking and changing */

DAT_RETURN dofi_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	struct dofi_srq *srq DOFI_CALL = dofi_srq_enter(srq_handle);

	if (!srq)
		return DOFI_BAD_HANDLE(SRQ);
	if (mask & ~DAT_SRQ_FIELD_ALL)
		return DOFI_BAD_ARG(2);
	if (!param)
		return DOFI_BAD_ARG(3);
	dofi_mutex_lock(&srq->lock);
	*param = (DAT_SRQ_PARAM){
		.ia_handle = dofi_ia_export(srq->obj.ia),
		.srq_state = DAT_SRQ_STATE_OPERATIONAL,
		.pz_handle = srq->pz,
		.max_recv_dtos = srq->queue.limit,
		.max_recv_iov = srq->max_recv_iov,
		.low_watermark = srq->low_watermark,
		.available_dto_count = dofi_queue_used(&srq->queue),
		.outstanding_dto_count =
			dofi_queue_used(&srq->queue) + dofi_unread_count(&srq->given),
	};
	dofi_mutex_unlock(&srq->lock);
	return DAT_SUCCESS;
}

DAT_RETURN dofi_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT depth)
{
	struct dofi_srq *srq DOFI_CALL = dofi_srq_enter(srq_handle);
	DAT_RETURN ret = DAT_SUCCESS;
	struct dofi_queue next;

	if (!srq)
		return DOFI_BAD_HANDLE(SRQ);
	if (depth <= 0 ||
	    (uint64_t)depth > dofi_caps_value(srq->obj.ia, DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ))
		return DOFI_BAD_ARG(2);
	dofi_mutex_lock(&srq->lock);
	if ((uint32_t)depth < dofi_queue_used(&srq->queue) + dofi_unread_count(&srq->given) ||
	    depth < srq->low_watermark)
		ret = DOFI_BAD_STATE(SRQ_OPERATIONAL);
	else if (dofi_queue_renew(&next, &srq->queue, NULL, depth, srq->max_recv_iov))
		ret = DOFI_NO_RESOURCE(MEMORY);
	else
		dofi_queue_replace(&srq->queue, &next);
	dofi_mutex_unlock(&srq->lock);
	return ret;
}

DAT_RETURN dofi_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	struct dofi_srq *srq DOFI_CALL = dofi_srq_enter(srq_handle);
	bool valid, low = false;

	if (!srq)
		return DOFI_BAD_HANDLE(SRQ);
	dofi_mutex_lock(&srq->lock);
	valid = low_watermark >= 0 && (uint32_t)low_watermark <= srq->queue.limit;
	if (valid) {
		srq->low_watermark = low_watermark;
		srq->low_armed = true;
		low = falls_low(srq);
	}
	dofi_mutex_unlock(&srq->lock);
	if (low)
		report_low(srq);
	return valid ? DAT_SUCCESS : DOFI_BAD_ARG(2);
}
