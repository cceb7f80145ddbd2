/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a call to the provider: every call reaches its own function with its arguments, and a handle
 * that is not live is refused before.
 *
 * The provider is part of this program. Its handles are numbers without memory behind them, so a
 * registry that dereferenced one would crash.
 */

#include "dat_select.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if DAT_VERSION_MAJOR >= 2
#define KINDS 12
#else
#define KINDS 11
#define DAT_HANDLE_TYPE_CSP DAT_HANDLE_TYPE_IA	/* not used */
#endif
#define DAT_HANDLE_TYPE_ANY	DAT_HANDLE_TYPE_EP

#define BAD(what)	(DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_HANDLE | \
			 (DAT_RETURN)DAT_INVALID_HANDLE_##what)
#define DAT_INVALID_HANDLE_EVD	DAT_INVALID_HANDLE_EVD_REQUEST
#define DAT_INVALID_HANDLE_ANY	DAT_INVALID_HANDLE1

/*
 * A provider that records
 */

#define RECORDED (DAT_CLASS_ERROR | (DAT_RETURN)DAT_ABORT) /* never returned here by a real call */

static struct {
	const char *func;
	uintptr_t arg[6];
} seen;

static DAT_RETURN record(const char *slot, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,
			 uintptr_t e, uintptr_t f)
{
	seen.func = slot;
	memcpy(seen.arg, (uintptr_t[]){ a, b, c, d, e, f }, sizeof(seen.arg));
	return RECORDED;
}

/* Whatever the function's real type is, its first six words arrive in these registers. */
#define CALL(KIND, slot, call, ...)							\
	static DAT_RETURN slot##_recorder(uintptr_t a, uintptr_t b, uintptr_t c,	\
					  uintptr_t d, uintptr_t e, uintptr_t f)	\
	{										\
		return record(#slot, a, b, c, d, e, f);					\
	}
#include "calls.h"
#undef CALL

static DAT_PROVIDER table; /* the registry keeps its address, and tests exchange its functions */

static void record_all(void)
{
#define CALL(KIND, slot, call, ...) \
	memcpy(&table.slot##_func, &(void *){ slot##_recorder }, sizeof(void *));
#include "calls.h"
#undef CALL
}

/*
 * A provider that creates and frees
 */

static uintptr_t next_handle = UINTPTR_MAX << 28;
static DAT_RETURN outcome;	/* returned by the functions below */

static DAT_RETURN make(DAT_HANDLE *out)
{
	if (outcome == DAT_SUCCESS) {
		next_handle += 0x40;
		*out = (DAT_HANDLE)next_handle;
	}
	return outcome;
}

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	if (*evd == DAT_HANDLE_NULL && make(evd) != DAT_SUCCESS)
		return outcome;
	return make(ia);
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	return outcome;
}

#if DAT_VERSION_MAJOR >= 2
static DAT_EXTENSION extension = DAT_EXTENSION_NONE;
#endif
static DAT_EVD_HANDLE queried_evd;

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK mask,
			   DAT_IA_ATTR *attr, DAT_PROVIDER_ATTR_MASK pmask,
			   DAT_PROVIDER_ATTR *pattr)
{
#if DAT_VERSION_MAJOR >= 2
	if (mask & DAT_IA_FIELD_IA_EXTENSIONS_SUPPORTED)
		attr->extension_supported = extension;
#else
#endif
	if (evd)
		*evd = queried_evd;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN evd_create(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno,
			     DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			    DAT_EVD_HANDLE request, DAT_EVD_HANDLE conn, const DAT_EP_ATTR *attr,
			    DAT_EP_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
			     DAT_SRQ_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			     DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep,
			     DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *out)
{
	return make(out);
}

static DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			     DAT_VLEN len, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
#if DAT_VERSION_MAJOR >= 2
			     DAT_VA_TYPE va,
#endif
			     DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *lc, DAT_RMR_CONTEXT *rc,
			     DAT_VLEN *size, DAT_VADDR *addr)
{
#if DAT_VERSION_MAJOR >= 2
#endif
	return make(out);
}

static DAT_RETURN free_any(DAT_HANDLE h)
{
	return outcome;
}

static DAT_CR_HANDLE arriving_cr;
static DAT_EP_HANDLE arriving_ep;

static DAT_RETURN evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	if (!arriving_cr)
		return DAT_QUEUE_EMPTY;
	memset(event, 0, sizeof(*event));
	event->event_number = DAT_CONNECTION_REQUEST_EVENT;
	event->evd_handle = evd;
	event->event_data.cr_arrival_event_data.cr_handle = arriving_cr;
	return DAT_SUCCESS;
}

static DAT_RETURN evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			   DAT_EVENT *event, DAT_COUNT *more)
{
	*more = 0;
	return evd_dequeue(evd, event);
}

static DAT_RETURN cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	param->local_ep_handle = arriving_ep;
	return DAT_SUCCESS;
}

static DAT_RETURN cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size,
			    const DAT_PVOID data)
{
	return outcome;
}

#if DAT_VERSION_MAJOR >= 2
static DAT_RETURN cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	return outcome;
}

static DAT_RETURN csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR addr,
			     DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *out)
{
	return make(out);
}
#else
static DAT_RETURN cr_reject(DAT_CR_HANDLE cr)
{
	return outcome;
}
#endif

static void make_all(void)
{
	outcome = DAT_SUCCESS;
	table.ia_open_func = ia_open;
	table.ia_close_func = ia_close;
	table.ia_query_func = ia_query;
	table.pz_create_func = pz_create;
	table.rmr_create_func = rmr_create;
	table.evd_create_func = evd_create;
	table.cno_create_func = cno_create;
	table.ep_create_func = ep_create;
	table.srq_create_func = srq_create;
	table.psp_create_func = psp_create;
	table.rsp_create_func = rsp_create;
	table.lmr_create_func = lmr_create;
	table.pz_free_func = free_any;
	table.rmr_free_func = free_any;
	table.evd_free_func = free_any;
	table.cno_free_func = free_any;
	table.ep_free_func = free_any;
	table.srq_free_func = free_any;
	table.psp_free_func = free_any;
	table.rsp_free_func = free_any;
	table.lmr_free_func = free_any;
	table.evd_dequeue_func = evd_dequeue;
	table.evd_wait_func = evd_wait;
	table.cr_query_func = cr_query;
	table.cr_accept_func = cr_accept;
	table.cr_reject_func = cr_reject;
#if DAT_VERSION_MAJOR >= 2
	table.csp_create_func = csp_create;
	table.csp_free_func = free_any;
#endif
}

/*
 * One live object of each kind
 */

static char fake_name[] = "fake";
static DAT_HANDLE live[KINDS];
#define LIVE(KIND) live[DAT_HANDLE_TYPE_##KIND]

static DAT_CR_HANDLE new_cr(DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	next_handle += 0x40;
	arriving_cr = (DAT_CR_HANDLE)next_handle;
	arriving_ep = ep;
	cr_assert_eq(dat_evd_dequeue(LIVE(EVD), &event), DAT_SUCCESS);
	return arriving_cr;
}

static void open_all(void)
{
	const DAT_OS_WAIT_PROXY_AGENT none = { NULL, NULL };
	const DAT_REGION_DESCRIPTION region = { NULL };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
	};
	DAT_IA_HANDLE ia;
	DAT_EP_ATTR attr;

	setenv("DAT_OVERRIDE", "/dev/null", 1);
	strcpy(info.ia_name, fake_name);
	table.device_name = fake_name;
	record_all();
	make_all();
	cr_assert_eq(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
	cr_assert_eq(dat_ia_open(fake_name, 8, &async, &ia), DAT_SUCCESS);
	LIVE(IA) = ia;
	cr_assert_eq(dat_evd_create(ia, 8, NULL, DAT_EVD_CR_FLAG, &LIVE(EVD)), DAT_SUCCESS);
	cr_assert_eq(dat_pz_create(ia, &LIVE(PZ)), DAT_SUCCESS);
	cr_assert_eq(dat_ep_create(ia, LIVE(PZ), LIVE(EVD), LIVE(EVD), LIVE(EVD), &attr,
				   &LIVE(EP)), DAT_SUCCESS);
	cr_assert_eq(dat_cno_create(ia, none, &LIVE(CNO)), DAT_SUCCESS);
	cr_assert_eq(dat_srq_create(ia, LIVE(PZ), NULL, &LIVE(SRQ)), DAT_SUCCESS);
	cr_assert_eq(dat_rmr_create(LIVE(PZ), &LIVE(RMR)), DAT_SUCCESS);
	cr_assert_eq(dat_psp_create(ia, 5, LIVE(EVD), DAT_PSP_CONSUMER_FLAG, &LIVE(PSP)),
		     DAT_SUCCESS);
	cr_assert_eq(dat_rsp_create(ia, 6, LIVE(EP), LIVE(EVD), &LIVE(RSP)), DAT_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	cr_assert_eq(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 8, LIVE(PZ),
				    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &LIVE(LMR), NULL, NULL,
				    NULL, NULL), DAT_SUCCESS);
	cr_assert_eq(dat_csp_create(ia, NULL, NULL, LIVE(EVD), &LIVE(CSP)), DAT_SUCCESS);
#else
	cr_assert_eq(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 8, LIVE(PZ),
				    DAT_MEM_PRIV_ALL_FLAG, &LIVE(LMR), NULL, NULL, NULL, NULL),
		     DAT_SUCCESS);
#endif
	LIVE(CR) = new_cr(DAT_HANDLE_NULL);
}

static bool is_live(DAT_HANDLE h)
{
	DAT_HANDLE_TYPE type;
	bool yes = dat_get_handle_type(h, &type) == DAT_SUCCESS;

	if (!yes)
		cr_expect_eq(dat_get_handle_type(h, &type), BAD(ANY));
	return yes;
}

TestSuite(dispatch, .init = open_all);

/*
 * All calls
 */

#define p(i)	((void *)(uintptr_t)(i))
#define n(i)	(i)
#define c(i)	((DAT_CONTEXT){ .as_64 = (i) })
#define AGENT_DATA	0x51
#define AGENT_FUNC	0x52
#define REGION_FIRST	0x61
#define REGION_SECOND	0x62

static DAT_OS_WAIT_PROXY_AGENT agent;
static DAT_REGION_DESCRIPTION region;

static void __attribute__((constructor)) composites(void)
{
	agent.instance_data = p(AGENT_DATA);
	agent.proxy_agent_func = (DAT_AGENT_FUNC)(uintptr_t)AGENT_FUNC;
	region.for_shared_memory.virtual_address = p(REGION_FIRST);
	region.for_shared_memory.shared_memory_id = p(REGION_SECOND);
}

static void check_reached(const char *slot, DAT_RETURN ret, DAT_HANDLE h, const uint32_t *arg,
			  size_t count)
{
	size_t i;

	cr_assert_eq(ret, RECORDED, "%s returned 0x%x", slot, ret);
	cr_assert_str_eq(seen.func, slot);
	cr_expect_eq(seen.arg[0], (uintptr_t)h, "%s", slot);
	for (i = 0; i < count; i++)
		cr_expect_eq((uint32_t)seen.arg[i + 1], arg[i], "%s: argument %zu is 0x%lx", slot,
			     i + 2, (unsigned long)seen.arg[i + 1]);
}

Test(dispatch, each_call_reaches_its_function)
{
	DAT_HANDLE h;
	int calls = 0;

#if DAT_VERSION_MAJOR >= 2
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	extension = DAT_EXTENSION_IB;
	cr_assert_eq(dat_ia_open(fake_name, 8, &async, &h), DAT_SUCCESS);
	cr_assert_eq(dat_ep_create(h, NULL, NULL, NULL, NULL, NULL, &LIVE(EP)), DAT_SUCCESS);
#endif
	record_all();
#define CALL(KIND, slot, call, ...)						\
	{									\
		const uint32_t want[] = { __VA_ARGS__ };			\
										\
		h = LIVE(KIND);							\
		seen.func = NULL;						\
		check_reached(#slot, call, h, want, sizeof(want) / sizeof(want[0])); \
		calls++;							\
	}
#include "calls.h"
#undef CALL
	/* all but ia_openv, get_handle_type, strerror, the registry's own, and its translation */
	cr_expect_eq(calls, DAT_VERSION_MAJOR >= 2 ? 84 - 8 : 72 - 6);
}

/* The calls above change no live handle, because all of them failed. */
Test(dispatch, failing_calls_keep_handles)
{
	DAT_HANDLE h;
	int i;

	record_all();
#define CALL(KIND, slot, call, ...) { h = LIVE(KIND); call; }
#include "calls.h"
#undef CALL
	for (i = 0; i < KINDS; i++)
		cr_expect(is_live(live[i]), "kind %d", i);
}

static void check_refused(const char *slot, DAT_RETURN ret, DAT_RETURN want, DAT_HANDLE h)
{
	cr_expect_eq(ret, want, "%s(%p) returned 0x%x", slot, h, ret);
	cr_expect_null(seen.func, "%s(%p) reached %s", slot, h, seen.func);
}

static void refuse_everywhere(DAT_HANDLE h)
{
	seen.func = NULL;
#define CALL(KIND, slot, call, ...) check_refused(#slot, call, BAD(KIND), h);
#include "calls.h"
#undef CALL
}

Test(dispatch, null_small_and_wild_handles)
{
	static const uintptr_t wild[] = {
		0, 1, 2, 3, 7, 64, 255, 4096, 0xdeadb000, 0xdeadb001, UINTPTR_MAX,
		UINTPTR_MAX - 63, UINTPTR_MAX / 2 + 1,
	};
	size_t i;

	record_all();
	for (i = 0; i < sizeof(wild) / sizeof(wild[0]); i++)
		refuse_everywhere((DAT_HANDLE)wild[i]);
}

Test(dispatch, mapped_memory_that_is_no_object)
{
	uintptr_t words[8] = { (uintptr_t)&table, (uintptr_t)&table };

	record_all();
	refuse_everywhere(words);	/* the first word looks like a provider pointer */
	refuse_everywhere(&table);
	refuse_everywhere((DAT_HANDLE)&refuse_everywhere);
}

Test(dispatch, handles_near_a_live_one)
{
	record_all();
	refuse_everywhere((char *)LIVE(EP) + 8);
	refuse_everywhere((char *)LIVE(EP) - 1);
}

Test(dispatch, handles_of_another_kind)
{
	DAT_HANDLE h;
	int i;

	record_all();
	seen.func = NULL;
	for (i = 0; i < KINDS; i++) {
		h = live[i];
#define CALL(KIND, slot, call, ...)						\
		if (strcmp(#KIND, "ANY") && i != DAT_HANDLE_TYPE_##KIND)	\
			check_refused(#slot, call, BAD(KIND), h);
#include "calls.h"
#undef CALL
	}
}

Test(dispatch, freed_handles)
{
	int i;

	cr_assert_eq(dat_rsp_free(LIVE(RSP)), DAT_SUCCESS);
	cr_assert_eq(dat_psp_free(LIVE(PSP)), DAT_SUCCESS);
	cr_assert_eq(dat_ep_free(LIVE(EP)), DAT_SUCCESS);
	cr_assert_eq(dat_srq_free(LIVE(SRQ)), DAT_SUCCESS);
	cr_assert_eq(dat_rmr_free(LIVE(RMR)), DAT_SUCCESS);
	cr_assert_eq(dat_lmr_free(LIVE(LMR)), DAT_SUCCESS);
	cr_assert_eq(dat_pz_free(LIVE(PZ)), DAT_SUCCESS);
	cr_assert_eq(dat_cr_accept(LIVE(CR), NULL, 0, NULL), DAT_SUCCESS);
#if DAT_VERSION_MAJOR >= 2
	cr_assert_eq(dat_csp_free(LIVE(CSP)), DAT_SUCCESS);
#endif
	cr_assert_eq(dat_evd_free(LIVE(EVD)), DAT_SUCCESS);
	cr_assert_eq(dat_cno_free(LIVE(CNO)), DAT_SUCCESS);
	cr_assert_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	record_all();
	for (i = 0; i < KINDS; i++)
		refuse_everywhere(live[i]);
}

Test(dispatch, function_that_the_provider_lacks)
{
	const DAT_RETURN lacking = DAT_CLASS_ERROR | (DAT_RETURN)DAT_NOT_IMPLEMENTED;
	DAT_HANDLE h;

	memset(&table, 0, sizeof(table));
#define CALL(KIND, slot, call, ...) { h = LIVE(KIND); cr_expect_eq(call, lacking, #slot); }
#include "calls.h"
#undef CALL
}

/*
 * Further handles
 */

#define REFUSES(what, call)						\
	do {								\
		seen.func = NULL;					\
		check_refused(#call, call, BAD(what), arg);		\
	} while (0)

#define BAD_PARAM \
	(DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER | (DAT_RETURN)DAT_INVALID_ARG3)

/* A handle in a structure is refused as an invalid value of that argument. */
#define REFUSES_MEMBER(call)						\
	do {								\
		seen.func = NULL;					\
		check_refused(#call, call, BAD_PARAM, arg);		\
	} while (0)

static void refuse_as_argument(DAT_HANDLE arg, int kind)
{
	DAT_IA_HANDLE ia = LIVE(IA);
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	record_all();
	if (kind != DAT_HANDLE_TYPE_PZ) {
		REFUSES(PZ, dat_ep_create(ia, arg, NULL, NULL, NULL, p(6), p(7)));
		REFUSES(PZ, dat_ep_create_with_srq(ia, arg, NULL, NULL, NULL, NULL, p(7), p(8)));
		REFUSES(PZ, dat_srq_create(ia, arg, p(3), p(4)));
#if DAT_VERSION_MAJOR >= 2
		REFUSES(PZ, dat_lmr_create(ia, n(0), region, 4, arg, n(6), n(7), p(8), p(9), p(10),
					   p(11), p(12)));
#else
		REFUSES(PZ, dat_lmr_create(ia, n(0), region, 4, arg, n(6), p(7), p(8), p(9), p(10),
					   p(11)));
#endif
		param.pz_handle = arg;
		REFUSES_MEMBER(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_PZ_HANDLE, &param));
	}
	if (kind != DAT_HANDLE_TYPE_EVD) {
		REFUSES(EVD_RECV, dat_ep_create(ia, NULL, arg, NULL, NULL, p(6), p(7)));
		REFUSES(EVD_REQUEST, dat_ep_create(ia, NULL, NULL, arg, NULL, p(6), p(7)));
		REFUSES(EVD_CONN, dat_ep_create(ia, NULL, NULL, NULL, arg, p(6), p(7)));
		REFUSES(EVD_RECV,
			dat_ep_create_with_srq(ia, NULL, arg, NULL, NULL, NULL, p(7), p(8)));
		REFUSES(EVD_REQUEST,
			dat_ep_create_with_srq(ia, NULL, NULL, arg, NULL, NULL, p(7), p(8)));
		REFUSES(EVD_CONN,
			dat_ep_create_with_srq(ia, NULL, NULL, NULL, arg, NULL, p(7), p(8)));
		REFUSES(EVD_CR, dat_psp_create(ia, 2, arg, n(0), p(5)));
		REFUSES(EVD_CR, dat_psp_create_any(ia, p(2), arg, n(0), p(5)));
		REFUSES(EVD_CR, dat_rsp_create(ia, 2, NULL, arg, p(5)));
		param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = arg;
		REFUSES_MEMBER(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
		REFUSES_MEMBER(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
		REFUSES_MEMBER(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
#if DAT_VERSION_MAJOR >= 2
		REFUSES(EVD_CR, dat_csp_create(ia, p(2), p(3), arg, p(5)));
#endif
	}
	if (kind != DAT_HANDLE_TYPE_SRQ) {
		REFUSES(SRQ, dat_ep_create_with_srq(ia, NULL, NULL, NULL, NULL, arg, p(7), p(8)));
	}
	if (kind != DAT_HANDLE_TYPE_CNO) {
		REFUSES(CNO, dat_evd_create(ia, 2, arg, n(4), p(5)));
		REFUSES(CNO, dat_evd_modify_cno(LIVE(EVD), arg));
	}
	if (kind != DAT_HANDLE_TYPE_EP) {
		REFUSES(EP, dat_rsp_create(ia, 2, arg, NULL, p(5)));
		REFUSES(EP, dat_cr_accept(LIVE(CR), arg, 0, NULL));
		REFUSES(EP, dat_ep_dup_connect(LIVE(EP), arg, 3, 4, p(5), n(6)));
#if DAT_VERSION_MAJOR >= 2
		REFUSES(EP, dat_rmr_bind(LIVE(RMR), NULL, p(3), n(4), n(5), arg, c(7), n(8), p(9)));
#else
		REFUSES(EP, dat_rmr_bind(LIVE(RMR), p(2), n(3), arg, c(5), n(6), p(7)));
#endif
	}
	if (kind != DAT_HANDLE_TYPE_LMR) {
		DAT_REGION_DESCRIPTION other = { .for_lmr_handle = arg };

#if DAT_VERSION_MAJOR >= 2
		REFUSES(LMR,
			dat_rmr_bind(LIVE(RMR), arg, p(3), n(4), n(5), NULL, c(7), n(8), p(9)));
		REFUSES(LMR, dat_lmr_create(ia, DAT_MEM_TYPE_LMR, other, 4, NULL, n(6), n(7), p(8),
					    p(9), p(10), p(11), p(12)));
#else
		REFUSES(LMR, dat_lmr_create(ia, DAT_MEM_TYPE_LMR, other, 4, NULL, n(6), p(7), p(8),
					    p(9), p(10), p(11)));
#endif
	}
}

Test(dispatch, arguments_that_are_no_live_handles)
{
	refuse_as_argument((DAT_HANDLE)1, -1);
	refuse_as_argument((DAT_HANDLE)0xdeadbeef000, -1);
}

Test(dispatch, arguments_of_another_kind)
{
	int i;

	for (i = 0; i < KINDS; i++)
		refuse_as_argument(live[i], i);
}

Test(dispatch, modify_checks_only_what_is_asked_for)
{
	DAT_EP_PARAM param;

	memset(&param, 0xff, sizeof(param));
	record_all();
	cr_expect_eq(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &param), RECORDED);
	cr_expect_eq(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_ALL, NULL), RECORDED);
	/* this field cannot be modified, and the provider returns that error */
	cr_expect_eq(dat_ep_modify(LIVE(EP), DAT_EP_FIELD_SRQ_HANDLE, &param), RECORDED);
}

/* Objects of a second provider: the first would take them for its own. */
Test(dispatch, arguments_of_another_provider)
{
	static DAT_PROVIDER foreign;
	char name[] = "foreign";
	DAT_PROVIDER_INFO info = {
		.ia_name = "foreign",
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
	};
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_IA_HANDLE ia;

	foreign = table;
	foreign.ia_close_func = (DAT_IA_CLOSE_FUNC)(uintptr_t)0x1000;
	cr_assert_eq(dat_registry_add_provider(&foreign, &info), DAT_SUCCESS);
	cr_assert_eq(dat_ia_open(name, 8, &async, &ia), DAT_SUCCESS);
	cr_assert_eq(dat_evd_create(ia, 8, NULL, DAT_EVD_CR_FLAG, &evd), DAT_SUCCESS);
	cr_expect_eq(dat_psp_create(LIVE(IA), 5, evd, n(0), p(5)), BAD(EVD_CR));
	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), BAD(EVD_ASYNC));
}

/*
 * Lifetime of handles
 */

Test(dispatch, handle_types)
{
	DAT_HANDLE_TYPE type;
	int i;

	for (i = 0; i < KINDS; i++) {
		cr_assert_eq(dat_get_handle_type(live[i], &type), DAT_SUCCESS, "kind %d", i);
		cr_expect_eq((int)type, i);
	}
	cr_expect_eq(dat_get_handle_type(LIVE(EP), NULL),
		     DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER |
		     (DAT_RETURN)DAT_INVALID_ARG2);
}

Test(dispatch, failed_free_keeps_the_handle)
{
	outcome = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_STATE;
	cr_expect_eq(dat_pz_free(LIVE(PZ)), outcome);
	cr_expect(is_live(LIVE(PZ)));
	cr_expect_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_GRACEFUL_FLAG), outcome);
	cr_expect(is_live(LIVE(IA)));
	cr_expect(is_live(LIVE(EP)));
	outcome = DAT_SUCCESS;
	cr_expect_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

Test(dispatch, failed_create_enters_nothing)
{
	DAT_PZ_HANDLE pz = (DAT_PZ_HANDLE)0x4440;

	outcome = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INSUFFICIENT_RESOURCES;
	cr_expect_eq(dat_pz_create(LIVE(IA), &pz), outcome);
	cr_expect(!is_live(pz));
}

Test(dispatch, closing_an_ia_ends_its_objects_only)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	int i;

	cr_assert_eq(dat_ia_open(fake_name, 8, &async, &ia), DAT_SUCCESS);
	cr_assert_eq(dat_pz_create(ia, &pz), DAT_SUCCESS);
	cr_assert_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	for (i = 0; i < KINDS; i++)
		cr_expect(!is_live(live[i]), "kind %d", i);
	cr_expect(is_live(ia));
	cr_expect(is_live(async));
	cr_expect(is_live(pz));
	cr_expect_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_ABRUPT_FLAG), BAD(IA));
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	cr_expect(!is_live(async));
}

static DAT_HANDLE reused;

/* The provider has freed the object, and another thread gets the address at once. */
static DAT_RETURN free_and_reuse(DAT_PZ_HANDLE pz)
{
	next_handle = (uintptr_t)pz - 0x40;
	cr_assert_eq(dat_evd_create(LIVE(IA), 8, NULL, DAT_EVD_CR_FLAG, &reused), DAT_SUCCESS);
	cr_assert_eq(reused, pz);
	return DAT_SUCCESS;
}

Test(dispatch, address_reused_during_its_free)
{
	DAT_HANDLE_TYPE type;

	table.pz_free_func = free_and_reuse;
	cr_assert_eq(dat_pz_free(LIVE(PZ)), DAT_SUCCESS);
	cr_assert_eq(dat_get_handle_type(reused, &type), DAT_SUCCESS);
	cr_expect_eq(type, DAT_HANDLE_TYPE_EVD);
}

/*
 * Connection requests
 */

Test(dispatch, cr_ends_when_it_is_answered)
{
	DAT_CR_HANDLE cr = new_cr(DAT_HANDLE_NULL);

	outcome = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_STATE;
	cr_expect_eq(dat_cr_accept(cr, LIVE(EP), 0, NULL), outcome);
	cr_expect(is_live(cr));
	outcome = DAT_SUCCESS;
	cr_expect_eq(dat_cr_accept(cr, LIVE(EP), 0, NULL), DAT_SUCCESS);
	cr_expect(!is_live(cr));
	cr_expect(is_live(LIVE(EP)));
}

Test(dispatch, cr_from_a_wait)
{
	DAT_COUNT more;
	DAT_EVENT event;

	next_handle += 0x40;
	arriving_cr = (DAT_CR_HANDLE)next_handle;
	cr_assert_eq(dat_evd_wait(LIVE(EVD), 0, 1, &event, &more), DAT_SUCCESS);
	cr_expect(is_live(arriving_cr));
}

Test(dispatch, no_event_is_no_cr)
{
	DAT_EVENT event = { .event_number = DAT_CONNECTION_REQUEST_EVENT };

	event.event_data.cr_arrival_event_data.cr_handle = (DAT_CR_HANDLE)0x5540;
	arriving_cr = DAT_HANDLE_NULL;
	cr_assert_eq(dat_evd_dequeue(LIVE(EVD), &event), (DAT_RETURN)DAT_QUEUE_EMPTY);
	cr_expect(!is_live((DAT_CR_HANDLE)0x5540));
}

#if DAT_VERSION_MAJOR >= 2
#define REJECT(cr) dat_cr_reject(cr, 0, NULL)
#else
#define REJECT(cr) dat_cr_reject(cr)
#endif

Test(dispatch, ep_that_came_with_a_cr)
{
	DAT_EP_HANDLE ep = (DAT_EP_HANDLE)0x6640;
	DAT_CR_HANDLE cr = new_cr(ep);

	cr_expect(is_live(ep));
	cr_expect_eq(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_SUCCESS);
	cr_expect(is_live(ep));
	cr_expect_eq(dat_ep_free(ep), DAT_SUCCESS);
	cr_expect(!is_live(ep));
}

Test(dispatch, ep_that_came_with_a_cr_goes_with_it)
{
	DAT_EP_HANDLE ep = (DAT_EP_HANDLE)0x6640;
	DAT_CR_HANDLE cr = new_cr(ep);

	cr_expect_eq(REJECT(cr), DAT_SUCCESS);
	cr_expect(!is_live(cr));
	cr_expect(!is_live(ep));
}

/* The endpoint of a reserved service point is the program's, and only loses its reservation. */
Test(dispatch, ep_of_the_program_survives_a_reject)
{
	DAT_CR_HANDLE cr = new_cr(LIVE(EP));

	cr_expect_eq(REJECT(cr), DAT_SUCCESS);
	cr_expect(!is_live(cr));
	cr_expect(is_live(LIVE(EP)));
}

/*
 * IAs
 */

Test(dispatch, open_refuses_bad_arguments)
{
	const DAT_RETURN arg1 = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER |
				(DAT_RETURN)DAT_INVALID_ARG1;
	const DAT_RETURN arg3 = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER |
				(DAT_RETURN)DAT_INVALID_ARG3;
	char long_name[300];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	memset(long_name, 'x', sizeof(long_name));
	cr_expect_eq(dat_ia_open(NULL, 8, &async, &ia), arg1);
	cr_expect_eq(dat_ia_open(long_name, 8, &async, &ia), arg1); /* without a terminating NUL */
	cr_expect_eq(dat_ia_open(fake_name, 8, NULL, &ia), arg3);
	cr_expect_eq(dat_ia_open(fake_name, 8, &async, NULL), BAD(IA));
}

Test(dispatch, open_checks_the_given_evd)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)0xdeadbeef000;
	DAT_IA_HANDLE ia;

	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), BAD(EVD_ASYNC));
	evd = LIVE(PZ);
	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), BAD(EVD_ASYNC));
	evd = LIVE(EVD);
	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), DAT_SUCCESS);
	cr_expect_eq(evd, LIVE(EVD));
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	cr_expect(is_live(evd)); /* it belongs to the other IA */
	evd = DAT_EVD_ASYNC_EXISTS;
	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), DAT_SUCCESS);
}

Test(dispatch, failed_open_leaves_nothing)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)0x7740;

	outcome = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INSUFFICIENT_RESOURCES;
	cr_expect_eq(dat_ia_open(fake_name, 8, &async, &ia), outcome);
	cr_expect_eq(ia, (DAT_IA_HANDLE)0x7740);
	cr_expect(!is_live(ia));
}

Test(dispatch, query_makes_an_evd_known)
{
	DAT_EVD_HANDLE evd;

	queried_evd = (DAT_EVD_HANDLE)0x8840;
	cr_expect_eq(dat_ia_query(LIVE(IA), &evd, 0, NULL, 0, NULL), DAT_SUCCESS);
	cr_expect(is_live(evd));
	queried_evd = DAT_EVD_OUT_OF_SCOPE;
	cr_expect_eq(dat_ia_query(LIVE(IA), &evd, 0, NULL, 0, NULL), DAT_SUCCESS);
	cr_expect(!is_live(evd));
	cr_expect_eq(dat_ia_query(LIVE(IA), NULL, 0, NULL, 0, NULL), DAT_SUCCESS);
	cr_expect_eq(dat_ia_close(LIVE(IA), DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	cr_expect(!is_live((DAT_EVD_HANDLE)0x8840));
}

#if DAT_VERSION_MAJOR >= 2
Test(dispatch, ia_handle_is_its_own_translation)
{
	DAT_IA_HANDLE out = NULL;

	cr_expect_eq(dats_get_ia_handle(LIVE(IA), &out), DAT_SUCCESS);
	cr_expect_eq(out, LIVE(IA));
	cr_expect_eq(dats_get_ia_handle(LIVE(EP), &out), BAD(IA));
	cr_expect_eq(dats_get_ia_handle((DAT_IA_HANDLE)0xdeadbeef000, &out), BAD(IA));
	cr_expect_eq(dats_get_ia_handle(NULL, &out), BAD(IA));
	cr_expect_eq(dats_get_ia_handle(LIVE(IA), NULL), BAD(IA));
}

/* The provider translates its handle while it opens, when no other code knows the handle. */
static DAT_RETURN ia_open_translating(const DAT_NAME_PTR name, DAT_COUNT qlen,
				      DAT_EVD_HANDLE *evd, DAT_IA_HANDLE *ia)
{
	DAT_IA_HANDLE mine = (DAT_IA_HANDLE)0x9940, out = NULL;

	cr_expect_eq(dats_get_ia_handle(mine, &out), DAT_SUCCESS);
	cr_expect_eq(out, mine);
	*ia = mine;
	return DAT_SUCCESS;
}

Test(dispatch, translation_during_an_open)
{
	DAT_EVD_HANDLE evd = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE ia;

	table.ia_open_func = ia_open_translating;
	cr_expect_eq(dat_ia_open(fake_name, 8, &evd, &ia), DAT_SUCCESS);
}

/*
 * Extensions
 */

static const DAT_IA_HANDLE query_ia = (DAT_IA_HANDLE)0xaa40;
static int extension_ops;

static DAT_RETURN extendedop(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args)
{
	extension_ops++;
	if (op == DAT_IB_OPEN_QUERY_OP) {
		/* as in OFED's registry, the name replaces the handle */
		cr_assert_str_eq((const char *)h, fake_name);
		*va_arg(args, DAT_HANDLE *) = query_ia;
		cr_expect_eq(va_arg(args, DAT_IA_ATTR_MASK), DAT_IA_FIELD_ALL);
	} else if (op == 77) {
		cr_expect_eq(va_arg(args, int), 1);
		cr_expect_eq(va_arg(args, DAT_UINT64), UINT64_C(0x123456789abcdef0));
	}
	return outcome;
}

static void open_with_extensions(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	open_all();
	extension = DAT_EXTENSION_IB;
	table.handle_extendedop_func = extendedop;
	cr_assert_eq(dat_ia_open(fake_name, 8, &async, &LIVE(IA)), DAT_SUCCESS);
	cr_assert_eq(dat_ep_create(LIVE(IA), NULL, NULL, NULL, NULL, NULL, &LIVE(EP)), DAT_SUCCESS);
}

TestSuite(extension, .init = open_with_extensions);

Test(dispatch, extension_op_needs_an_ia_that_has_them)
{
	table.handle_extendedop_func = extendedop;
	cr_expect_eq(dat_extension_op(LIVE(EP), 77, 1, UINT64_C(0x123456789abcdef0)),
		     DAT_CLASS_ERROR | (DAT_RETURN)DAT_NOT_IMPLEMENTED);
	cr_expect_eq(extension_ops, 0);
}

Test(extension, arguments_arrive)
{
	cr_expect_eq(dat_extension_op(LIVE(IA), 77, 1, UINT64_C(0x123456789abcdef0)), DAT_SUCCESS);
	cr_expect_eq(dat_extension_op(LIVE(EP), 77, 1, UINT64_C(0x123456789abcdef0)), DAT_SUCCESS);
	cr_expect_eq(extension_ops, 2);
}

Test(extension, query_without_an_ia)
{
	DAT_IA_HANDLE ia = NULL;

	cr_expect_eq(dat_ib_open_query(fake_name, &ia, DAT_IA_FIELD_ALL, NULL, 0, NULL),
		     DAT_SUCCESS);
	cr_expect_eq(ia, query_ia);
	cr_expect(is_live(ia));
	cr_expect_eq(dat_ib_close_query(ia), DAT_SUCCESS);
	cr_expect(!is_live(ia));
	cr_expect_eq(dat_ib_close_query(ia), BAD(ANY));
}

Test(extension, query_of_an_unknown_name)
{
	DAT_IA_HANDLE ia = NULL;

	cr_expect_eq(dat_ib_open_query("nobody", &ia, DAT_IA_FIELD_ALL, NULL, 0, NULL),
		     DAT_CLASS_ERROR | (DAT_RETURN)DAT_PROVIDER_NOT_FOUND |
		     (DAT_RETURN)DAT_NAME_NOT_REGISTERED);
	cr_expect_eq(dat_ib_open_query(NULL, &ia, DAT_IA_FIELD_ALL, NULL, 0, NULL),
		     DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER |
		     (DAT_RETURN)DAT_INVALID_ARG3);
}
#endif
