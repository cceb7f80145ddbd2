/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event dispatchers, with software events; other streams have chapters of their own. */

#include "conform.h"

#include <stdio.h>
#include <string.h>

CHAPTER("evd");

#define QLEN 8
#define BRIEF 2000	/* microseconds */

static DAT_EVD_HANDLE software(struct node *n)
{
	return node_evd(n, QLEN, DAT_EVD_SOFTWARE_FLAG);
}

static DAT_EVD_PARAM query(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	memset(&param, 0xff, sizeof(param));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param;
}

static DAT_COUNT qlen(DAT_EVD_HANDLE evd)
{
	return query(evd).evd_qlen;
}

/* Posts until the EVD is full; returns the number of events posted. */
static DAT_COUNT fill_up(DAT_EVD_HANDLE evd)
{
	DAT_COUNT count = 0;
	DAT_RETURN ret;

	while ((ret = post_se(evd, count + 1)) == DAT_SUCCESS)
		count++;
	FAILS(ret, DAT_QUEUE_FULL);
	return count;
}

/* dat_evd_create */

static const DAT_EVD_FLAGS streams[] = {
	DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG,
	DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG,
};
static const char *const stream_names[] = {
	"software", "connection request", "DTO", "connection", "RMR bind", "asynchronous",
};

static void name_stream(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_evd_create/SUCCESS/%s", stream_names[i]);
}

FAMILY(COUNT(streams), name_stream)
{
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM param;

	OK(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, streams[i], &evd));
	param = query(evd);
	SAME(param.evd_flags, streams[i]);
	SAME(param.evd_state, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	CHECK(param.evd_qlen >= QLEN, "%d", (int)param.evd_qlen);
	CHECK(!param.cno_handle && param.ia_handle == n->ia, "wrong CNO or IA");
	OK(dat_evd_free(evd));
}

static void name_merge(unsigned i, char *name, size_t size)
{
	unsigned a = i / COUNT(streams), b = i % COUNT(streams);

	if (a < b)
		snprintf(name, size, "dat_evd_create/evd_stream_merging_supported/%s, %s",
			 stream_names[a], stream_names[b]);
}

FAMILY(COUNT(streams) * COUNT(streams), name_merge)
{
	unsigned a = i / COUNT(streams), b = i % COUNT(streams);
	DAT_EVD_FLAGS flags = (DAT_EVD_FLAGS)(streams[a] | streams[b]);
	DAT_EVD_HANDLE evd;

	if (!n->prov.evd_stream_merging_supported[a][b]) {
		FAILS(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, flags, &evd),
		      DAT_INVALID_PARAMETER);
		return;
	}
	OK(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, flags, &evd));
	SAME(query(evd).evd_flags, flags);
}

CLAUSE("dat_evd_create/SUCCESS/with a CNO")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(n->ia, QLEN, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	CHECK(query(evd).cno_handle == cno, "wrong CNO");
	OK(dat_evd_free(evd));
}

CLAUSE("dat_evd_create/SUCCESS/holds evd_min_qlen events")
{
	DAT_EVD_HANDLE evd = software(n);

	CHECK(fill_up(evd) >= QLEN, "fewer events");
}

CLAUSE("dat_evd_create/SUCCESS/length 1")
{
	DAT_EVD_HANDLE evd = node_evd(n, 1, DAT_EVD_SOFTWARE_FLAG);

	put_se(evd, 1);
	expect_software(evd, 1);
}

CLAUSE("dat_evd_create/INVALID_PARAMETER/evd_min_qlen")
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_evd_create(n->ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_evd_create(n->ia, -5, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_create/INSUFFICIENT_RESOURCES/max_evd_qlen")
{
	DAT_EVD_HANDLE evd;

	if (n->attr.max_evd_qlen == INT32_MAX)
		skip("max_evd_qlen is %d", INT32_MAX);
	FAILS(dat_evd_create(n->ia, n->attr.max_evd_qlen + 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			     &evd),
	      DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_evd_create/INSUFFICIENT_RESOURCES/max_evds")
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EVD_HANDLE evd;
	DAT_COUNT k;

	SKIP_IF_TOO_MANY(max_evds);
	for (k = 0; !ret && k <= n->attr.max_evds; k++)
		ret = dat_evd_create(n->ia, 1, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd);
	FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
	SAME(k, n->attr.max_evds - 5 + 1);	/* the IA has five EVDs already */
}

CLAUSE("dat_evd_create/INVALID_PARAMETER/no flags")
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0, &evd),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_create/INVALID_PARAMETER/unknown flag")
{
	DAT_EVD_HANDLE evd;

	FAILS(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0x10000, &evd),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL,
			     (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | 0x10000), &evd),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_create/INVALID_PARAMETER/evd_handle NULL")
{
	FAILS(dat_evd_create(n->ia, QLEN, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL),
	      DAT_INVALID_PARAMETER);
}

/* dat_evd_query */

CLAUSE("dat_evd_query/SUCCESS/single fields")
{
	DAT_EVD_PARAM param;

	OK(dat_evd_query(n->recv, DAT_EVD_FIELD_EVD_QLEN, &param));
	CHECK(param.evd_qlen >= NODE_QLEN, "%d", (int)param.evd_qlen);
	OK(dat_evd_query(n->recv, DAT_EVD_FIELD_EVD_FLAGS, &param));
	SAME(param.evd_flags, DAT_EVD_DTO_FLAG);
	OK(dat_evd_query(n->recv, DAT_EVD_FIELD_CNO, &param));
	CHECK(!param.cno_handle, "a CNO");
	OK(dat_evd_query(n->recv, (DAT_EVD_PARAM_MASK)0, &param));
}

/* dat_evd_post_se and dat_evd_dequeue */

CLAUSE("dat_evd_post_se/SUCCESS/delivered unchanged and in order")
{
	DAT_EVD_HANDLE evd = software(n);
	uintptr_t k;

	for (k = 1; k <= QLEN; k++)
		put_se(evd, k << 16 | k);
	for (k = 1; k <= QLEN; k++)
		expect_software(evd, k << 16 | k);
}

CLAUSE("dat_evd_post_se/INVALID_PARAMETER/event NULL")
{
	FAILS(dat_evd_post_se(software(n), NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_post_se/INVALID_PARAMETER/event_number")
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	FAILS(dat_evd_post_se(software(n), &event), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_post_se/INVALID_PARAMETER/an EVD without software events")
{
	FAILS(post_se(n->recv, 1), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_post_se/QUEUE_FULL")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT count = fill_up(evd), k;

	/* no event is lost or added, and each dequeue makes room */
	expect_software(evd, 1);
	put_se(evd, count + 1);
	for (k = 2; k <= count + 1; k++)
		expect_software(evd, k);
	SAME(drain(evd), 0);
}

CLAUSE("dat_evd_dequeue/QUEUE_EMPTY")
{
	DAT_EVENT event;

	/* programs compare the whole code */
	SAME(dat_evd_dequeue(n->recv, &event), DAT_QUEUE_EMPTY);
	SAME(dat_evd_dequeue(software(n), &event), DAT_QUEUE_EMPTY);
}

CLAUSE("dat_evd_dequeue/INVALID_PARAMETER/event NULL")
{
	FAILS(dat_evd_dequeue(n->recv, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_dequeue/SUCCESS/the event names its EVD")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_EVENT event;

	put_se(evd, 1);
	OK(dat_evd_dequeue(evd, &event));
	CHECK(event.evd_handle == evd, "wrong EVD");
	SAME(event.event_number, DAT_SOFTWARE_EVENT);
}

CLAUSE("dat_evd_dequeue/INVALID_STATE/a thread is waiting")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;
	DAT_EVENT event;

	evd_waiter_start(&w, evd, 1);
	FAILS(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
}

CLAUSE("dat_evd_dequeue/SUCCESS/unwaitable and disabled")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_EVENT event;

	OK(dat_evd_set_unwaitable(evd));
	OK(dat_evd_disable(evd));
	put_se(evd, 1);
	OK(dat_evd_dequeue(evd, &event));
	FAILS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

/* dat_evd_wait */

CLAUSE("dat_evd_wait/SUCCESS/an event is queued")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_EVENT event;
	DAT_COUNT more = -1;

	put_se(evd, 1);
	put_se(evd, 2);
	OK(dat_evd_wait(evd, 0, 1, &event, &more));
	SAME(more, 1);
	OK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	SAME(more, 0);
}

CLAUSE("dat_evd_wait/SUCCESS/an event arrives")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 1);
	put_se(evd, 4711);
	waiter_expect(&w, DAT_SUCCESS);
	SAME((uintptr_t)w.event.event_data.software_event_data.pointer, 4711);
	SAME(w.more, 0);
}

CLAUSE("dat_evd_wait/SUCCESS/threshold")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 3);
	put_se(evd, 1);
	put_se(evd, 2);
	/* a second consumer gets an error and no event, and the waiter sleeps on */
	FAILS(dat_evd_dequeue(evd, &w.event), DAT_INVALID_STATE);
	put_se(evd, 3);
	waiter_expect(&w, DAT_SUCCESS);
	SAME((uintptr_t)w.event.event_data.software_event_data.pointer, 1);
	CHECK(w.more >= 2, "%d more events", (int)w.more);
	expect_software(evd, 2);
	expect_software(evd, 3);
}

CLAUSE("dat_evd_wait/SUCCESS/threshold equal to the queue length")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT count = fill_up(evd), more;
	DAT_EVENT event;

	OK(dat_evd_wait(evd, 0, qlen(evd) < count ? qlen(evd) : count, &event, &more));
	SAME(more, count - 1);
}

CLAUSE("dat_evd_wait/SUCCESS/disabled")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	OK(dat_evd_disable(evd));
	evd_waiter_start(&w, evd, 1);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
}

CLAUSE("dat_evd_wait/TIMEOUT_EXPIRED/timeout 0")
{
	DAT_COUNT more = -1;
	DAT_EVENT event;

	FAILS(dat_evd_wait(n->recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	SAME(more, 0);
}

CLAUSE("dat_evd_wait/TIMEOUT_EXPIRED/microseconds")
{
	int64_t start = pair_now();
	DAT_COUNT more;
	DAT_EVENT event;

	FAILS(dat_evd_wait(n->recv, BRIEF, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CHECK(pair_now() - start >= BRIEF, "the wait ended too early");
}

CLAUSE("dat_evd_wait/TIMEOUT_EXPIRED/below the threshold")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT more = -1;
	DAT_EVENT event;

	put_se(evd, 1);
	put_se(evd, 2);
	FAILS(dat_evd_wait(evd, BRIEF, 3, &event, &more), DAT_TIMEOUT_EXPIRED);
	SAME(more, 2);
	expect_software(evd, 1);	/* all events are still there */
	expect_software(evd, 2);
}

CLAUSE("dat_evd_wait/INVALID_PARAMETER/threshold")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT more;
	DAT_EVENT event;

	FAILS(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER);
	FAILS(dat_evd_wait(evd, 0, -1, &event, &more), DAT_INVALID_PARAMETER);
	FAILS(dat_evd_wait(evd, 0, qlen(evd) + 1, &event, &more), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_wait/INVALID_PARAMETER/event NULL")
{
	DAT_COUNT more;

	FAILS(dat_evd_wait(n->recv, 0, 1, NULL, &more), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_wait/INVALID_PARAMETER/nmore NULL")
{
	DAT_EVENT event;

	FAILS(dat_evd_wait(n->recv, 0, 1, &event, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_wait/INVALID_STATE/another thread is waiting")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;
	DAT_COUNT more;
	DAT_EVENT event;

	evd_waiter_start(&w, evd, 1);
	FAILS(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE);
	put_se(evd, 1);
	waiter_expect(&w, DAT_SUCCESS);
}

CLAUSE("dat_evd_wait/INVALID_STATE/unwaitable")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT more;
	DAT_EVENT event;

	OK(dat_evd_set_unwaitable(evd));
	put_se(evd, 1);
	FAILS(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE);
	OK(dat_evd_clear_unwaitable(evd));
	OK(dat_evd_wait(evd, 0, 1, &event, &more));
}

CLAUSE("dat_evd_wait/INVALID_STATE/made unwaitable during the wait")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 1);
	OK(dat_evd_set_unwaitable(evd));
	waiter_expect(&w, DAT_INVALID_STATE);
	OK(dat_evd_clear_unwaitable(evd));
	/* a moment suffices */
	evd_waiter_start(&w, evd, 1);
	OK(dat_evd_set_unwaitable(evd));
	OK(dat_evd_clear_unwaitable(evd));
	waiter_expect(&w, DAT_INVALID_STATE);
}

static void only_threshold_1(struct node *n, DAT_EVD_HANDLE evd, const DAT_EP_ATTR *attr)
{
	DAT_COUNT more;
	DAT_EVENT event;
	DAT_EP_HANDLE ep;

	needs_strict(n, true);
	OK(dat_ep_create(n->ia, n->pz, n->recv, n->req, n->conn, attr, &ep));
	FAILS(dat_evd_wait(evd, 0, 2, &event, &more), DAT_INVALID_STATE);
	FAILS(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	OK(dat_ep_free(ep));
	FAILS(dat_evd_wait(evd, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
}

CLAUSE("dat_evd_wait/INVALID_STATE/threshold 2 with solicited receives")
{
	DAT_EP_ATTR attr;

	if (!(n->prov.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
		skip("completion_flags_supported is %#x", n->prov.completion_flags_supported);
	node_ep_attr(n, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	only_threshold_1(n, n->recv, &attr);
}

CLAUSE("dat_evd_wait/INVALID_STATE/threshold 2 with unsignalled receives")
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	only_threshold_1(n, n->recv, &attr);
}

CLAUSE("dat_evd_wait/INVALID_STATE/threshold 2 with unsignalled requests")
{
	DAT_EP_ATTR attr;

	node_ep_attr(n, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	only_threshold_1(n, n->req, &attr);
}

CLAUSE("dat_evd_wait/INTERRUPTED_CALL/a signal")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 2);
	put_se(evd, 1);
	waiter_expect_interrupt(&w);
	expect_software(evd, 1);
}

CLAUSE("dat_evd_wait/SUCCESS/signals with SA_RESTART")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 1);
	waiter_expect_restart(&w, evd);
}

CLAUSE("dat_evd_wait/ABORT/freed during the wait")
{
	DAT_EVD_HANDLE evd = software(n);
	struct waiter w;

	evd_waiter_start(&w, evd, 1);
	OK(dat_evd_free(evd));
	waiter_expect(&w, DAT_ABORT);
}

/* The states */

static const struct {
	const char *name;
	DAT_RETURN (*call)(DAT_EVD_HANDLE evd);
	int state;		/* state of the EVD after the call, whatever it was before */
} changes[] = {
	{ "disable", dat_evd_disable, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE },
	{ "enable", dat_evd_enable, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE },
	{ "set_unwaitable", dat_evd_set_unwaitable,
	  DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_UNWAITABLE },
	{ "clear_unwaitable", dat_evd_clear_unwaitable,
	  DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE },
};

static void name_change(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_evd_%s/SUCCESS/repeated calls", changes[i].name);
}

FAMILY(COUNT(changes), name_change)
{
	DAT_EVD_HANDLE evd = software(n);
	unsigned before = i & ~1u;	/* the first call of a pair undoes the second */
	int k;

	for (k = 0; k < 4; k++) {
		if (k == 2)
			OK(changes[before].call(evd));
		OK(changes[i].call(evd));
		SAME(query(evd).evd_state, changes[i].state);
	}
}

/* dat_evd_modify_cno */

CLAUSE("dat_evd_modify_cno/SUCCESS/another CNO, then none")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO), other;
	DAT_EVD_HANDLE evd;

	other = object_make(n, DAT_HANDLE_TYPE_CNO);
	OK(dat_evd_create(n->ia, QLEN, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_modify_cno(evd, other));
	CHECK(query(evd).cno_handle == other, "not changed");
	OK(dat_cno_free(cno));
	FAILS(dat_cno_free(other), DAT_INVALID_STATE);
	OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	CHECK(!query(evd).cno_handle, "the CNO is still set");
	OK(dat_cno_free(other));
}

/* dat_evd_resize */

CLAUSE("dat_evd_resize/SUCCESS/longer, no event is lost")
{
	DAT_EVD_HANDLE evd = software(n);
	DAT_COUNT count = fill_up(evd), k;

	/* the events begin in the middle of the ring */
	expect_software(evd, 1);
	put_se(evd, count + 1);
	OK(dat_evd_resize(evd, 4 * count));
	CHECK(qlen(evd) >= 4 * count, "%d", (int)qlen(evd));
	for (k = count + 2; k <= 4 * count; k++)
		put_se(evd, k);
	for (k = 2; k <= 4 * count; k++)
		expect_software(evd, k);
}

CLAUSE("dat_evd_resize/SUCCESS/shorter, no event is lost")
{
	DAT_EVD_HANDLE evd = node_evd(n, 16 * QLEN, DAT_EVD_SOFTWARE_FLAG);
	DAT_COUNT k;

	for (k = 1; k <= QLEN; k++)
		put_se(evd, k);
	OK(dat_evd_resize(evd, QLEN));
	CHECK(qlen(evd) >= QLEN, "%d", (int)qlen(evd));
	for (k = 1; k <= QLEN; k++)
		expect_software(evd, k);
}

CLAUSE("dat_evd_resize/INVALID_PARAMETER/below 1")
{
	FAILS(dat_evd_resize(n->recv, 0), DAT_INVALID_PARAMETER);
	FAILS(dat_evd_resize(n->recv, -1), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_resize/INVALID_PARAMETER/above max_evd_qlen")
{
	if (n->attr.max_evd_qlen == INT32_MAX)
		skip("max_evd_qlen is %d", INT32_MAX);
	FAILS(dat_evd_resize(n->recv, n->attr.max_evd_qlen + 1), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_evd_resize/INVALID_STATE/below the number of events")
{
	DAT_EVD_HANDLE evd = node_evd(n, 64, DAT_EVD_SOFTWARE_FLAG);
	DAT_COUNT count = fill_up(evd), k;

	FAILS(dat_evd_resize(evd, count / 2), DAT_INVALID_STATE);
	for (k = 1; k <= count; k++)
		expect_software(evd, k);
}

/* dat_evd_free */

CLAUSE("dat_evd_free/SUCCESS/with events")
{
	DAT_EVD_HANDLE evd = software(n);

	put_se(evd, 1);
	OK(dat_evd_free(evd));
}

CLAUSE("dat_evd_free/SUCCESS/the CNO remains")
{
	DAT_CNO_HANDLE cno = object(n, DAT_HANDLE_TYPE_CNO);
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(n->ia, QLEN, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
}

CLAUSE("dat_evd_free/INVALID_STATE/the IA's asynchronous EVD")
{
	FAILS(dat_evd_free(n->async), DAT_INVALID_STATE);
}

CLAUSE("dat_evd_free/INVALID_STATE/an EP uses it")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);

	FAILS(dat_evd_free(n->recv), DAT_INVALID_STATE);
	FAILS(dat_evd_free(n->req), DAT_INVALID_STATE);
	FAILS(dat_evd_free(n->conn), DAT_INVALID_STATE);
	OK(dat_ep_free(ep));
	OK(dat_evd_free(n->recv));
	OK(dat_evd_free(n->req));
	OK(dat_evd_free(n->conn));
}

CLAUSE("dat_evd_free/INVALID_STATE/a PSP uses it")
{
	DAT_PSP_HANDLE psp = object(n, DAT_HANDLE_TYPE_PSP);

	FAILS(dat_evd_free(n->cr), DAT_INVALID_STATE);
	OK(dat_psp_free(psp));
	OK(dat_evd_free(n->cr));
}

CLAUSE("dat_evd_free/INVALID_STATE/an RSP uses it")
{
	DAT_RSP_HANDLE rsp = object(n, DAT_HANDLE_TYPE_RSP);

	FAILS(dat_evd_free(n->cr), DAT_INVALID_STATE);
	OK(dat_rsp_free(rsp));
	OK(dat_evd_free(n->cr));
}

/* Overflow, which is reported asynchronously only */

CLAUSE("asynchronous event/EVD_OVERFLOW/more completions than the queue holds")
{
	struct couple c;
	DAT_EVD_HANDLE small = node_evd(n, 1, DAT_EVD_DTO_FLAG);
	DAT_COUNT count = qlen(small) + 3, k;
	DAT_EVENT event;

	couple_make(n, &c, NULL, NULL);
	OK(dat_ep_free(c.b.ep));
	OK(dat_ep_create(n->ia, n->pz, small, c.b.req, c.b.conn, NULL, &c.b.ep));
	for (k = 0; k < count; k++)
		post_recv(c.b.ep, &c.m, 64 * k, 64, k);
	couple_connect(n, &c);
	for (k = 0; k < count; k++) {
		post_send(c.a.ep, &c.m, 0, 64, k);
		expect_dto(c.a.req, k, DAT_DTO_SUCCESS, 64);
	}
	expect_event(n->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, &event);
	CHECK(event.event_data.asynch_error_event_data.dat_handle == small, "wrong EVD");
	SAME(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	/* only once: the runner checks that the asynchronous EVD is empty now */
}
