/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walker of invariants: it aborts for each field that a test falsifies. */

#include "obj/ops.h"
#include "obj/service.h"

#ifdef DOFI_CHECKS

#include "check/check.h"

#include <signal.h>
#include <sys/epoll.h>

TestSuite(check, .init = ops_init, .fini = ia_fini);

/* What a program may leave: operations in flight and waiting, events, a grant, a CNO. */
Test(check, a_program_at_rest_passes)
{
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;

	dofi_check_invariants();
	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(post_recv(1));
	succeed(post_send(2));
	succeed(post_read(3, 8, 8, 0));
	transport.taken = 0;
	succeed(post_send(4));
	complete(1);
	dofi_check_invariants();
}

/* Without an IA there is nothing to verify. */
Test(check, a_closed_ia_passes)
{
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	dofi_check_invariants();
}

/* Each test below falsifies one field, of another part. The verification aborts. */
#define FALSE(name, ...)                     \
	Test(check, name, .signal = SIGABRT) \
	{                                    \
		__VA_ARGS__                  \
		dofi_check_invariants();     \
	}

FALSE(a_list_of_objects, ia->n_children[DOFI_KIND(DAT_HANDLE_TYPE_EP)]++;)
FALSE(objects_that_were_freed, ia->freed[DOFI_KIND(DAT_HANDLE_TYPE_PZ)]++;)
FALSE(an_object_of_another_ia, ((struct dofi_obj *)lmr)->ia = NULL;)
FALSE(a_tag, dofi_pool_tag_set(lmr, DOFI_KIND(DAT_HANDLE_TYPE_PZ));)
FALSE(users_of_a_pz, dofi_obj_put(&((struct dofi_pz *)pz)->obj);)
FALSE(users_of_an_evd, dofi_obj_get(&((struct dofi_evd *)evd)->obj);)
FALSE(users_of_an_lmr, dofi_obj_get(&((struct dofi_lmr *)lmr)->obj);)
FALSE(a_call_that_did_not_leave, dofi_calls_begin(&((struct dofi_pz *)pz)->obj.calls);)
FALSE(streams_of_an_evd, ((struct dofi_evd *)evd)->streams--;)
FALSE(unsignalled_streams_of_an_evd, ((struct dofi_evd *)evd)->unsignalled++;)
FALSE(solicited_streams_of_an_evd, ((struct dofi_evd *)evd)->solicited++;)
FALSE(the_end_of_an_lmr, ((struct dofi_lmr *)lmr)->end++;)
FALSE(a_context, ((struct dofi_lmr *)lmr)->context += 1u << DOFI_LMR_GEN_SHIFT;)
FALSE(a_ring_of_operations, inside()->sq.next++;)
FALSE(operations_beyond_the_limit, inside()->rq.limit = 0;)
FALSE(a_soft_limit, inside()->rq.soft_limit = inside()->rq.mask + 2;)
FALSE(the_number_of_a_slot, succeed(post_recv(1)); transport.dto[0]->number++;)
FALSE(the_owner_of_a_slot, succeed(post_recv(1)); transport.dto[0]->ep = NULL;)
FALSE(a_request_that_is_done, succeed(post_send(1)); transport.dto[0]->at_fabric = false;
      transport.dto[0]->done = true;)
FALSE(reads_in_flight, succeed(post_read(1, 8, 8, 0)); inside()->reads = 0;)
FALSE(an_open_queue, inside()->sq.open = false;)
FALSE(the_fast_path, inside()->resume_pending = true;)
FALSE(a_connection_without_an_endpoint, inside()->fid = NULL;)
FALSE(work_that_is_not_queued, inside()->todo = DOFI_EP_CONNECT;)
FALSE(the_state, inside()->state = DAT_EP_STATE_DISCONNECTED;)
FALSE(events_of_an_evd, ((struct dofi_evd *)evd)->count = 65;)
FALSE(feeds_of_an_evd, ((struct dofi_evd *)evd)->feed_users[0]++;)
FALSE(the_only_feed, ((struct dofi_evd *)evd)->sole_cq = NULL;)
FALSE(an_event_that_counts_as_read, succeed(post_send(1)); complete(0); inside()->sq_unread.word--;)
FALSE(completions_of_a_cq, inside()->cq->left = DOFI_CQ_BATCH;)
FALSE(a_cq_that_is_stuck, inside()->cq->policy.stuck = true; inside()->cq->watched = false;)
FALSE(the_thread_of_a_cq, inside()->cq->progress = NULL;)

static void ignore(struct dofi_source *source)
{
}

Test(check, a_wake_fd, .signal = SIGABRT)
{
	static struct dofi_source other = { .ready = ignore };

	cr_assert_eq(dofi_source_change(&ia->progress, &other, ia->progress.wake_fd, EPOLLIN), 0);
	dofi_check_invariants();
}

Test(check, a_timer, .signal = SIGABRT)
{
	static struct dofi_timer timer = { .at = 5 };

	dofi_heap_insert(&ia->progress.timers, &timer.node, 7);
	dofi_check_invariants();
}

Test(check, sources_of_a_cno, .signal = SIGABRT)
{
	DAT_CNO_HANDLE cno;

	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	succeed(dofi_evd_modify_cno(evd, cno));
	((struct dofi_evd *)evd)->at_cno.evd = NULL;
	dofi_check_invariants();
}

Test(check, a_trigger_for_no_agent, .signal = SIGABRT)
{
	DAT_CNO_HANDLE cno;

	succeed(dofi_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	((struct dofi_cno *)cno)->triggered = DOFI_CNO_AGENT;
	dofi_check_invariants();
}

Test(check, a_grant, .signal = SIGABRT)
{
	DAT_RMR_HANDLE rmr;

	succeed(dofi_rmr_create(pz, &rmr));
	((struct dofi_rmr *)rmr)->ep = inside();
	dofi_check_invariants();
}

#if DAT_VERSION_MAJOR >= 2
static DAT_EP_HANDLE ud;
static struct dofi_exchange *failed;

static void datagrams_init(void)
{
	static const struct dofi_exchanged how = {
		.event = DAT_IB_UD_CONNECTION_ERROR_EVENT,
	};

	service_init();
	service.answer = &how;
	ud = datagram_ep();
	succeed(dofi_ep_connect(ud, some_address(), 7, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	failed = service.connect[0];
}

TestSuite(check_datagrams, .init = datagrams_init, .fini = service_fini);

static struct dofi_ep *datagrams_of(void)
{
	return ud;
}

Test(check_datagrams, at_rest_pass)
{
	DAT_LMR_TRIPLET s = segment(0, 64);

	succeed(dofi_ep_post_recv(ud, 1, &s, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
	service.answer = NULL;
	succeed(dofi_ep_connect(ud, some_address(), 7, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	dofi_check_invariants();
}

#define FALSE_DATAGRAMS(name, ...)                     \
	Test(check_datagrams, name, .signal = SIGABRT) \
	{                                              \
		__VA_ARGS__                            \
		dofi_check_invariants();               \
	}

FALSE_DATAGRAMS(failed_exchanges, datagrams_of()->n_failed++;)
FALSE_DATAGRAMS(the_endpoint_of_an_exchange, failed->ep = NULL;)
FALSE_DATAGRAMS(the_list_of_an_exchange, failed->list = &datagrams_of()->exchanges;)
FALSE_DATAGRAMS(a_report, failed->reported = false;)
FALSE_DATAGRAMS(an_exchange_that_was_freed, dofi_pool_tag_set(failed, 0);)
FALSE_DATAGRAMS(a_connection, datagrams_of()->datagrams = false;)
FALSE_DATAGRAMS(no_cq, datagrams_of()->cq = NULL;)
#endif

#endif
