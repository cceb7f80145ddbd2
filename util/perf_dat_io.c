/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's DAT side: data transfers. Uses only the public API; one source for both versions. */
#include "perf_dat.h"

#if DAT_VERSION_MAJOR >= 2
#include <dat2/dat_ib_extensions.h>
#define IMMEDIATE(event) \
	(((const DAT_IB_EXTENSION_EVENT_DATA *)(event).event_extension_data)->val.immed.data)
#else
#define IMMEDIATE(event) 0
#endif

int perf_dat_post_recv(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov = perf_dat_local(dat, off, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	if (dat->srq)
		ret = dat_srq_post_recv(dat->srq, 1, &iov, user);
	else
		ret = dat_ep_post_recv(dat->ep, 1, &iov, user, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "cannot post a receive", ret);
}

int perf_dat_post_send(struct perf_xport *x, size_t off, size_t len, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov[PERF_SEGMENTS_MAX];
	DAT_COUNT n = perf_dat_split(dat, off, len, iov);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_send(dat->ep, n, iov, user, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_send", ret);
}

int perf_dat_post_write(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov[PERF_SEGMENTS_MAX];
	DAT_COUNT n = perf_dat_split(dat, off, len, iov);
	DAT_RMR_TRIPLET target = perf_dat_remote(dat, roff, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_write(dat->ep, n, iov, user, &target, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_rdma_write", ret);
}

int perf_dat_post_read(struct perf_xport *x, size_t off, size_t len, size_t roff, uint64_t cookie)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_LMR_TRIPLET iov[PERF_SEGMENTS_MAX];
	DAT_COUNT n = perf_dat_split(dat, off, len, iov);
	DAT_RMR_TRIPLET source = perf_dat_remote(dat, roff, len);
	DAT_DTO_COOKIE user = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_read(dat->ep, n, iov, user, &source, DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : perf_dat_fail(dat, "dat_ep_post_rdma_read", ret);
}

int perf_dat_check(struct perf_xport *x)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_EVENT event;

	if (dat_evd_dequeue(dat->conn_evd, &event) != DAT_SUCCESS)
		return 0;
	dat->connected = false;
	return perf_fail(x, "%s: %s", dat->device, perf_dat_event_text(event.event_number));
}

__attribute__((noinline)) int perf_dat_dto_error(struct perf_dat *dat,
						 DAT_DTO_COMPLETION_STATUS status)
{
	static const char *const name[] = {
		[DAT_DTO_ERR_FLUSHED] = "flushed",
		[DAT_DTO_ERR_LOCAL_LENGTH] = "wrong local length",
		[DAT_DTO_ERR_LOCAL_EP] = "local endpoint error",
		[DAT_DTO_ERR_LOCAL_PROTECTION] = "local protection error",
		[DAT_DTO_ERR_BAD_RESPONSE] = "bad response",
		[DAT_DTO_ERR_REMOTE_ACCESS] = "remote access error",
		[DAT_DTO_ERR_REMOTE_RESPONDER] = "remote responder error",
		[DAT_DTO_ERR_TRANSPORT] = "transport error",
		[DAT_DTO_ERR_RECEIVER_NOT_READY] = "receiver not ready",
		[DAT_DTO_ERR_PARTIAL_PACKET] = "partial packet",
	};
	DAT_EVENT event;

	if (status != DAT_DTO_ERR_FLUSHED)
		return perf_fail(&dat->x, "%s: a transfer failed: %s", dat->device,
				 status < sizeof(name) / sizeof(name[0]) && name[status] ?
					 name[status] :
					 "unknown status");
	/* flushes precede the event that reports the reason */
	if (perf_dat_event(dat, dat->conn_evd, 1000, &event))
		return -1;
	dat->connected = false;
	return perf_fail(&dat->x, "%s: %s", dat->device, perf_dat_event_text(event.event_number));
}

static DAT_RETURN next_event(struct perf_dat *dat, DAT_EVENT *event)
{
	DAT_COUNT more;

	if (!dat->x.blocking)
		return dat_evd_dequeue(dat->dto_evd, event);
	return dat_evd_wait(dat->dto_evd, PERF_WAIT_MS * 1000, 1, event, &more);
}

int perf_dat_poll(struct perf_xport *x, struct perf_comp *comp)
{
	struct perf_dat *dat = perf_to_dat(x);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = next_event(dat, &event);
	if (ret != DAT_SUCCESS) {
		ret = DAT_GET_TYPE(ret);
		if (ret == DAT_QUEUE_EMPTY || ret == DAT_TIMEOUT_EXPIRED ||
		    ret == DAT_INTERRUPTED_CALL)
			return 0;
		return perf_dat_fail(dat, "cannot read completions", ret);
	}
	dto = &event.event_data.dto_completion_event_data;
	if (dto->status != DAT_DTO_SUCCESS)
		return perf_dat_dto_error(dat, dto->status);
	comp->cookie = dto->user_cookie.as_64;
	comp->len = dto->transfered_length;
	if (event.event_number != DAT_DTO_COMPLETION_EVENT)
		comp->imm = IMMEDIATE(event);
	return 1;
}
