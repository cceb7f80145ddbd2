/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters: counting, reading, resetting and printing. */

#include "obj/counters.h"

#include "obj/fixture.h"

#include <stdlib.h>

static DAT_EP_HANDLE ep;

static void init(void)
{
	objects_init();
	ep = ep_make();
	make_connected(ep);
}

TestSuite(counters, .init = init, .fini = ia_fini);

static uint64_t one(DAT_HANDLE handle, int which)
{
	DAT_UINT64 v = 0;

	succeed(dofi_counters_query(handle, which, &v, false));
	return v;
}

static uint64_t reset(DAT_HANDLE handle, int which)
{
	DAT_UINT64 v = 0;

	succeed(dofi_counters_query(handle, which, &v, true));
	return v;
}

/* Their numbers in the extension, for both versions. */
enum { PZ_CREATE = 0, LMR_CREATE = 2, LMR_FREE = 3, PSP_CREATE = 6, PSP_ANY = 7, EVD_CREATE = 11,
       CR = 17, ACCEPTED = 18, REJECTED = 19, REQ_TX = 27, ACTIVE = 35, DREQ_TX = 40, DREQ_RX = 41,
       ERR_REFUSED = 55 };
enum { CONNECT = 0, DISCONNECT = 1, POST_SEND = 2, POST_SEND_DATA = 3, POST_RECV = 6,
       POST_RECV_DATA = 7, POST_WRITE = 8, POST_READ = 12, RECV = 16, RECV_DATA = 17 };
enum { WAIT = 0, DEQUEUE = 3, FOUND = 4, NOT_FOUND = 5, CONNECTIONS = 8, COMPLETIONS = 9 };

Test(counters, arguments_are_checked)
{
	DAT_UINT64 v;

	expect_type(dofi_counters_query(NULL, 0, &v, false), DAT_INVALID_HANDLE);
	expect_type(dofi_counters_query(pz, 0, &v, false), DAT_INVALID_HANDLE);
	expect_type(dofi_counters_query(NOWHERE, 0, &v, false), DAT_INVALID_HANDLE);
	expect_arg(dofi_counters_query(ia, DOFI_IA_COUNTERS + 1, &v, false), 3);
	expect_arg(dofi_counters_query(ep, -1, &v, false), 3);
	expect_arg(dofi_counters_query(evd, DOFI_EVD_COUNTERS + 1, &v, false), 3);
	expect_arg(dofi_counters_query(ia, 0, NULL, false), 4);
	expect_type(dofi_counters_print(stdout, lmr, 0, false), DAT_INVALID_HANDLE);
	expect_arg(dofi_counters_print(stdout, ep, DOFI_EP_COUNTERS + 1, false), 3);
}

Test(counters, objects_made_and_freed)
{
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE more;

	cr_expect_eq(one(ia, PZ_CREATE), 1);
	cr_expect_eq(one(ia, LMR_CREATE), 1);
	succeed(lmr_make(pz, memory, 8, DAT_MEM_PRIV_ALL_FLAG, &more, &local, &remote));
	succeed(dofi_lmr_free(more));
	cr_expect_eq(one(ia, LMR_CREATE), 2);
	cr_expect_eq(one(ia, LMR_FREE), 1);
}

Test(counters, those_of_connections_can_be_stopped)
{
	DAT_EP_HANDLE other = ep_make();

	cr_expect_eq(one(ia, ACTIVE), 1, "counted from the beginning");
	succeed(dofi_counters_run(ia, 0, false));
	make_connected(other);
	cr_expect_eq(one(ia, ACTIVE), 1);
	evd_make(4, DAT_EVD_DTO_FLAG);
	cr_expect_eq(one(ia, EVD_CREATE), 2, "another kind");
	succeed(dofi_counters_run(ia, 0, false));
	cr_expect_eq(reset(ia, ACTIVE), 1);
	cr_expect_eq(one(ia, ACTIVE), 0);
	succeed(dofi_counters_run(ia, 0, true));
	cr_expect_eq(one(ia, REQ_TX), 0, "they begin again");
	make_connected(ep_make());
	cr_expect_eq(one(ia, ACTIVE), 1);
	succeed(dofi_counters_run(ia, 0, false));
	make_connected(ep_make());
	cr_expect_eq(one(ia, ACTIVE), 1, "what happened in between");
	cr_expect_eq(one(ep, CONNECT), 1, "not a counter of the IA");
}

Test(counters, what_cannot_be_stopped)
{
	expect_handle(dofi_counters_run(NULL, 0, false), IA);
	expect_handle(dofi_counters_run(ep, 0, false), IA);
	expect_type(dofi_counters_run(ia, 1, true), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_counters_run(ia, 2, false), DAT_MODEL_NOT_SUPPORTED);
	expect_arg(dofi_counters_run(ia, 3, false), 3);
	expect_arg(dofi_counters_run(ia, -1, true), 3);
}

Test(counters, service_points_and_requests)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE a, b;

	transport.any_qual = 88;
	succeed(dofi_psp_create(ia, 77, evd, DAT_PSP_CONSUMER_FLAG, &a));
	succeed(dofi_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &b));
	cr_expect_eq(one(ia, PSP_CREATE), 1);
	cr_expect_eq(one(ia, PSP_ANY), 1);
	succeed(turn_down(request_at(a)));
	succeed(dofi_cr_accept(request_at(a), ep_make(), 0, NULL));
	cr_expect_eq(one(ia, CR), 2);
	cr_expect_eq(one(ia, ACCEPTED), 1);
	cr_expect_eq(one(ia, REJECTED), 1);
}

Test(counters, connections)
{
	DAT_EP_HANDLE other = ep_make();

	start_connecting(other);
	dofi_ep_end_with(other, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
	settle();
	cr_expect_eq(one(ia, REQ_TX), 2);
	cr_expect_eq(one(ia, ACTIVE), 1);
	cr_expect_eq(one(ia, ERR_REFUSED), 1);
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	cr_expect_eq(one(ia, DREQ_TX), 1);
	cr_expect_eq(one(ia, DREQ_RX), 1);
	cr_expect_eq(one(ep, CONNECT), 1);
	cr_expect_eq(one(ep, DISCONNECT), 1);
	cr_expect_eq(one(evd, CONNECTIONS), 3);
}

static void operate(void)
{
	DAT_LMR_TRIPLET s = segment(0, 24);
	DAT_RMR_TRIPLET r = remote_segment(24);
	DAT_DTO_COOKIE c = { .as_64 = 0 };

	succeed(dofi_ep_post_recv(ep, 1, &s, c, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(ep, 1, &s, c, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_rdma_write(ep, 1, &s, c, &r, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_rdma_read(ep, 1, &s, c, &r, DAT_COMPLETION_DEFAULT_FLAG));
	complete_with(0, 0, 7);
}

Test(counters, operations)
{
	DAT_UINT64 all[DOFI_EP_COUNTERS];

	operate();
	succeed(dofi_counters_query(ep, DOFI_EP_COUNTERS, all, false));
	cr_expect_eq(all[POST_SEND], 1);
	cr_expect_eq(all[POST_SEND_DATA], 24);
	cr_expect_eq(all[POST_RECV], 1);
	cr_expect_eq(all[POST_RECV_DATA], 24);
	cr_expect_eq(all[POST_WRITE], 1);
	cr_expect_eq(all[POST_WRITE + 1], 24);
	cr_expect_eq(all[POST_READ], 1);
	cr_expect_eq(all[POST_READ + 1], 24);
	cr_expect_eq(all[RECV], 1);
	cr_expect_eq(all[RECV_DATA], 7);
}

Test(counters, what_is_refused_is_not_counted)
{
	DAT_LMR_TRIPLET s = segment(0, 24);
	DAT_DTO_COOKIE c = { .as_64 = 0 };

	s.lmr_context++;
	expect_type(dofi_ep_post_send(ep, 1, &s, c, DAT_COMPLETION_DEFAULT_FLAG),
		    DAT_PROTECTION_VIOLATION);
	cr_expect_eq(one(ep, POST_SEND), 0);
}

Test(counters, events)
{
	uint64_t dequeues = one(evd, DEQUEUE), found = one(evd, FOUND);
	DAT_EVENT event;
	DAT_COUNT more;

	operate();
	cr_expect_eq(one(evd, COMPLETIONS), 1);
	event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect(event_none(evd));
	cr_expect_eq(one(evd, DEQUEUE), dequeues + 2);
	cr_expect_eq(one(evd, FOUND), found + 1);
	cr_expect_eq(one(evd, NOT_FOUND), dequeues - found + 1);
	expect_type(dofi_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	cr_expect_eq(one(evd, WAIT), 1);
}

Test(counters, begin_again_at_zero)
{
	DAT_UINT64 all[DOFI_EP_COUNTERS];
	int i;

	operate();
	cr_expect_eq(reset(ep, POST_SEND), 1);
	cr_expect_eq(one(ep, POST_SEND), 0);
	cr_expect_eq(one(ep, POST_WRITE), 1, "that alone");
	succeed(dofi_counters_query(ep, DOFI_EP_COUNTERS, all, true));
	succeed(dofi_counters_query(ep, DOFI_EP_COUNTERS, all, false));
	for (i = 0; i < DOFI_EP_COUNTERS; i++)
		cr_expect_eq(all[i], 0, "%d", i);
	operate();
	cr_expect_eq(one(ep, POST_SEND), 1);
}

Test(counters, a_new_object_has_none)
{
	operate();
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	succeed(dofi_ep_free(ep));
	ep = ep_make();
	cr_expect_eq(one(ep, POST_SEND), 0);
	cr_expect_eq(one(ep, CONNECT), 0);
}

/* Text */

static char *text;
static size_t text_size;

static bool says(const char *words)
{
	return strstr(text, words) != NULL;
}

Test(counters, are_printed_by_name)
{
	FILE *f = open_memstream(&text, &text_size);

	operate();
	succeed(dofi_counters_print(f, ep, DOFI_EP_COUNTERS, true));
	succeed(dofi_counters_print(f, evd, WAIT, false));
	fclose(f);
	cr_expect(says(" post_send 1\n"), "%s", text);
	cr_expect(says(" post_send_data 24\n"), "%s", text);
	cr_expect(says(" post_fetch_add 0\n"), "%s", text);
	cr_expect(says(" wait 0\n"), "%s", text);
	cr_expect(!says("dequeue"), "%s", text);
	cr_expect_eq(one(ep, POST_SEND), 0);
	free(text);
}

Test(counters, are_rendered_with_all_objects)
{
	FILE *f = open_memstream(&text, &text_size);

	operate();
	dofi_counters_render(f, ia);
	fclose(f);
	cr_expect(says("ia "), "%s", text);
	cr_expect(says(" pz_create 1\n"), "%s", text);
	cr_expect(says(" state CONNECTED\n"), "%s", text);
	cr_expect(says(" peer 127.0.0.1\n"), "%s", text);
	cr_expect(says(" peer_port "), "%s", text);
	cr_expect(says(" post_send_data 24\n"), "%s", text);
	cr_expect(says(" conn_callback "), "%s", text);
	cr_expect(!says(" 0\n"), "%s", text);
	free(text);
}

Test(counters, an_ep_without_a_peer_has_a_state_alone)
{
	FILE *f = open_memstream(&text, &text_size);

	succeed(dofi_ep_free(ep));
	ep_make();
	dofi_counters_render(f, ia);
	fclose(f);
	cr_expect(says(" state UNCONNECTED\n"), "%s", text);
	cr_expect(!says(" peer"), "%s", text);
	free(text);
}
