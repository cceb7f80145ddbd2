/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connection requests that arrive, are accepted and are rejected: which handles are live
 * afterwards. dispatch_test.c tests the common part of all calls.
 */

#include "handles.h"

#include <string.h>

#define IA	NTH(1)
#define EVD	NTH(2)
#define CR	NTH(3)
#define EP	NTH(4)
#define FAILED	DREG_ERR(DAT_INVALID_STATE, 0)

static DAT_PROVIDER table;
static DAT_RETURN outcome;	/* returned by the provider's functions */
static DAT_EVENT arriving;
static DAT_EP_HANDLE ep_of_cr;
static DAT_CR_PARAM_MASK asked_for;
static DAT_CONN_QUAL handed_to;
static DAT_COUNT data_size;
static const void *data;
static int calls;

static DAT_RETURN evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	calls++;
	*event = arriving;
	return outcome;
}

static DAT_TIMEOUT wait_timeout;
static DAT_COUNT wait_threshold;

static DAT_RETURN evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			   DAT_EVENT *event, DAT_COUNT *more)
{
	wait_timeout = timeout;
	wait_threshold = threshold;
	*more = 5;
	return evd_dequeue(evd, event);
}

/* Another thread frees the EVD while this thread takes its last event. */
static DAT_RETURN evd_wait_freed(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
				 DAT_EVENT *event, DAT_COUNT *more)
{
	dreg_handle_drop(evd, UINT64_MAX);
	return evd_wait(evd, timeout, threshold, event, more);
}

static DAT_RETURN cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	asked_for = mask;
	param->local_ep_handle = ep_of_cr;
	return DAT_SUCCESS;
}

static DAT_RETURN cr_query_fails(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	cr_query(cr, mask, param);
	return FAILED;
}

static DAT_RETURN cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size,
			    const DAT_PVOID private_data)
{
	calls++;
	data_size = size;
	data = private_data;
	return outcome;
}

/* The provider reuses the address before the accept returns. */
static DAT_RETURN cr_accept_reused(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size,
				   const DAT_PVOID private_data)
{
	enter(cr, DAT_HANDLE_TYPE_CR, &table, IA, 0);
	return cr_accept(cr, ep, size, private_data);
}

#if DAT_VERSION_MAJOR >= 2
static DAT_RETURN cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID private_data)
{
	calls++;
	data_size = size;
	data = private_data;
	return outcome;
}
#define REJECT(cr) dat_cr_reject(cr, 0, NULL)
#else
static DAT_RETURN cr_reject(DAT_CR_HANDLE cr)
{
	calls++;
	return outcome;
}
#define REJECT(cr) dat_cr_reject(cr)
#endif

static DAT_RETURN cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL qual)
{
	calls++;
	handed_to = qual;
	return outcome;
}

static void set_up(void)
{
	table.evd_dequeue_func = evd_dequeue;
	table.evd_wait_func = evd_wait;
	table.cr_query_func = cr_query;
	table.cr_accept_func = cr_accept;
	table.cr_reject_func = cr_reject;
	table.cr_handoff_func = cr_handoff;
	arriving.event_number = DAT_CONNECTION_REQUEST_EVENT;
	arriving.event_data.cr_arrival_event_data.cr_handle = CR;
	enter(IA, DAT_HANDLE_TYPE_IA, &table, IA, DREG_EXTENSIONS);
	enter(EVD, DAT_HANDLE_TYPE_EVD, &table, IA, DREG_EXTENSIONS | DREG_TAKES_REQUESTS);
}

TestSuite(event, .init = set_up);

static DAT_RETURN take(void)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(EVD, &event);

	if (ret == DAT_SUCCESS)
		cr_assert(!memcmp(&event, &arriving, sizeof(event)));
	return ret;
}

/*
 * Arrival
 */

Test(event, cr_without_room_is_delivered_but_lost)
{
	ep_of_cr = EP;
	adds_left = 0;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(!is_live(CR));
	cr_expect(!is_live(EP));
	cr_expect_eq(errors_logged, 1);
}

Test(event, ep_without_room_leaves_its_cr)
{
	ep_of_cr = EP;
	adds_left = 1;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(is_live(CR));
	cr_expect(!is_live(EP));
	cr_expect_eq(errors_logged, 1);
}

Test(event, cr_of_an_evd_freed_meanwhile_is_not_entered)
{
	DAT_COUNT more;
	DAT_EVENT event;

	table.evd_wait_func = evd_wait_freed;
	cr_expect_eq(dat_evd_wait(EVD, 0, 1, &event, &more), DAT_SUCCESS);
	cr_expect(!is_live(CR));
}

Test(event, cr_in_a_failed_dequeue_is_not_entered)
{
	outcome = FAILED;
	cr_expect_eq(take(), FAILED);
	cr_expect(!is_live(CR));
}

Test(event, cr_in_a_failed_wait_is_not_entered)
{
	DAT_COUNT more;
	DAT_EVENT event;

	outcome = DREG_ERR(DAT_TIMEOUT_EXPIRED, 0);
	cr_expect_eq(dat_evd_wait(EVD, 0, 1, &event, &more), outcome);
	cr_expect(!is_live(CR));
}

Test(event, other_events_enter_nothing)
{
	arriving.event_number = DAT_CONNECTION_EVENT_ESTABLISHED;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(!is_live(CR));
	cr_expect_eq(asked_for, 0);
}

/* The event is not even examined, see dat_evd_dequeue(). */
Test(event, without_a_service_point_an_evd_brings_no_cr)
{
	enter(EVD, DAT_HANDLE_TYPE_EVD, &table, IA, DREG_EXTENSIONS);
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(!is_live(CR));
}

Test(event, cr_belongs_to_the_evds_ia)
{
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect_eq(found(CR).kind, DAT_HANDLE_TYPE_CR);
	cr_expect_eq(found(CR).owner, IA);
	cr_expect_eq(found(CR).provider, &table);
	cr_expect_eq(found(CR).flags, DREG_EXTENSIONS);
}

Test(event, ep_of_a_cr_is_the_providers)
{
	ep_of_cr = EP;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect_eq(found(EP).kind, DAT_HANDLE_TYPE_EP);
	cr_expect_eq(found(EP).owner, IA);
	cr_expect_eq(found(EP).flags, DREG_EXTENSIONS);
	cr_expect_eq(found(CR).flags, DREG_EXTENSIONS | DREG_HAS_EP);
}

Test(event, only_the_ep_is_asked_for)
{
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect_eq(asked_for, DAT_CR_FIELD_LOCAL_EP_HANDLE);
}

Test(event, ep_of_the_program_stays_as_it_is)
{
	uint64_t serial;

	enter(EP, DAT_HANDLE_TYPE_EP, &table, IA, 0);
	serial = found(EP).serial;
	ep_of_cr = EP;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect_eq(found(EP).serial, serial);
	cr_expect_eq(found(EP).flags, 0);
}

Test(event, cr_that_cannot_be_queried_has_no_ep)
{
	ep_of_cr = EP;
	table.cr_query_func = cr_query_fails;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(is_live(CR));
	cr_expect(!is_live(EP));
}

Test(event, provider_without_cr_query)
{
	table.cr_query_func = NULL;
	cr_expect_eq(take(), DAT_SUCCESS);
	cr_expect(is_live(CR));
	cr_expect_eq(REJECT(CR), DAT_SUCCESS);
	cr_expect(!is_live(CR));
}

Test(event, wait_passes_its_arguments)
{
	DAT_COUNT more = 0;
	DAT_EVENT event;

	cr_expect_eq(dat_evd_wait(EVD, DAT_TIMEOUT_INFINITE, 77, &event, &more), DAT_SUCCESS);
	cr_expect_eq(wait_timeout, DAT_TIMEOUT_INFINITE);
	cr_expect_eq(wait_threshold, 77);
	cr_expect_eq(more, 5);
}

/*
 * Accepting
 */

static void arrive(DAT_EP_HANDLE ep)
{
	ep_of_cr = ep;
	cr_assert_eq(take(), DAT_SUCCESS);
	calls = 0;
}

Test(event, accept_refuses_an_ep_that_is_none)
{
	arrive(DAT_HANDLE_NULL);
	cr_expect_eq(dat_cr_accept(CR, NTH(9), 0, NULL), DREG_BAD_HANDLE(EP));
	cr_expect_eq(dat_cr_accept(CR, EVD, 0, NULL), DREG_BAD_HANDLE(EP));
	cr_expect_eq(calls, 0);
	cr_expect(is_live(CR));
}

/* An EP that came with a request is the program's from then on, which may reserve it in an RSP. */
Test(event, an_accepted_ep_stays_when_a_later_request_to_it_is_rejected)
{
	arrive(EP);
	cr_assert_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 0, NULL), DAT_SUCCESS);
	arrive(EP);
	cr_expect_eq(REJECT(CR), DAT_SUCCESS);
	cr_expect(is_live(EP));
}

Test(event, accepted_cr_is_refused)
{
	arrive(DAT_HANDLE_NULL);
	cr_assert_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 0, NULL), DAT_SUCCESS);
	calls = 0;
	cr_expect_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 0, NULL), DREG_BAD_HANDLE(CR));
	cr_expect_eq(REJECT(CR), DREG_BAD_HANDLE(CR));
	cr_expect_eq(dat_cr_handoff(CR, 1), DREG_BAD_HANDLE(CR));
	cr_expect_eq(calls, 0);
}

Test(event, failed_accept_keeps_cr_and_ep)
{
	arrive(EP);
	outcome = FAILED;
	cr_expect_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 0, NULL), FAILED);
	cr_expect(is_live(CR));
	cr_expect(is_live(EP));
}

Test(event, cr_reused_during_its_accept_lives)
{
	arrive(DAT_HANDLE_NULL);
	table.cr_accept_func = cr_accept_reused;
	cr_expect_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 0, NULL), DAT_SUCCESS);
	cr_expect(is_live(CR));
}

Test(event, accept_passes_private_data)
{
	char bytes[3];

	arrive(EP);
	cr_expect_eq(dat_cr_accept(CR, DAT_HANDLE_NULL, 3, bytes), DAT_SUCCESS);
	cr_expect_eq(data_size, 3);
	cr_expect_eq(data, (const void *)bytes);
	cr_expect(is_live(EP));
}

/*
 * Rejecting
 */

Test(event, failed_reject_keeps_cr_and_ep)
{
	arrive(EP);
	outcome = FAILED;
	cr_expect_eq(REJECT(CR), FAILED);
	cr_expect(is_live(CR));
	cr_expect(is_live(EP));
}

Test(event, failed_handoff_keeps_cr_and_ep)
{
	arrive(EP);
	outcome = FAILED;
	cr_expect_eq(dat_cr_handoff(CR, 1), FAILED);
	cr_expect(is_live(CR));
	cr_expect(is_live(EP));
}

Test(event, handoff_ends_cr_and_the_providers_ep)
{
	arrive(EP);
	cr_expect_eq(dat_cr_handoff(CR, 1), DAT_SUCCESS);
	cr_expect(!is_live(CR));
	cr_expect(!is_live(EP));
}

Test(event, handoff_keeps_the_programs_ep)
{
	enter(EP, DAT_HANDLE_TYPE_EP, &table, IA, 0);
	arrive(EP);
	cr_expect_eq(dat_cr_handoff(CR, 1), DAT_SUCCESS);
	cr_expect(!is_live(CR));
	cr_expect(is_live(EP));
}

Test(event, handoff_passes_all_64_bits)
{
	arrive(DAT_HANDLE_NULL);
	cr_expect_eq(dat_cr_handoff(CR, UINT64_C(0xfedcba9876543210)), DAT_SUCCESS);
	cr_expect_eq(handed_to, UINT64_C(0xfedcba9876543210));
}

#if DAT_VERSION_MAJOR >= 2
Test(event, reject_passes_private_data)
{
	char bytes[4];

	arrive(DAT_HANDLE_NULL);
	cr_expect_eq(dat_cr_reject(CR, 4, bytes), DAT_SUCCESS);
	cr_expect_eq(data_size, 4);
	cr_expect_eq(data, (const void *)bytes);
}
#endif
