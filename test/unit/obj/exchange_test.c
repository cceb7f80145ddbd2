/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exchanges of addresses: begun by both sides, their events, and their end. */

#include "obj/exchange.h"

#include "base/clock.h"
#include "obj/counters.h"
#include "obj/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>

#if DAT_VERSION_MAJOR >= 2

#define ESTABLISHED DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED
#define REJECTED DAT_IB_UD_CONNECTION_REJECT_EVENT
#define FAILED DAT_IB_UD_CONNECTION_ERROR_EVENT
#define REQUEST DAT_IB_UD_CONNECTION_REQUEST_EVENT

static DAT_EP_HANDLE ep;

static void init(void)
{
	service_init();
	ep = datagram_ep();
}

TestSuite(exchange, .init = init, .fini = service_fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_RETURN ask(DAT_EP_HANDLE from, DAT_COUNT size, const void *data)
{
	return dofi_ep_connect(from, some_address(), 4711, DAT_TIMEOUT_INFINITE, size,
			       (DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* Begins an exchange of @from; the service has it on return. */
static struct dofi_exchange *begin_of(DAT_EP_HANDLE from)
{
	const unsigned n = service.n_connect;

	succeed(ask(from, 0, NULL));
	settle();
	cr_assert_eq(service.n_connect, n + 1);
	return service.connect[n];
}

static struct dofi_exchange *begin(void)
{
	return begin_of(ep);
}

static struct sockaddr_storage address(const char *ip)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };

	inet_pton(AF_INET, ip, &((struct sockaddr_in *)&a)->sin_addr);
	return a;
}

static struct dofi_exchanged success(unsigned i)
{
	return (struct dofi_exchanged){
		.event = ESTABLISHED, .ah = ah_make(i), .number = 55, .data = "welcome",
		.data_size = 7,
	};
}

static DAT_IB_EXTENSION_EVENT_DATA take(DAT_EVENT_NUMBER number, DAT_CONNECTION_EVENT_DATA *d)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event = event_take(evd, number);

	memcpy(&x, event.event_extension_data, sizeof(x));
	*d = event.event_data.connect_event_data;
	cr_expect_eq(d->ep_handle, ep);
	return x;
}

static DAT_UINT64 counter(DAT_HANDLE handle, int which)
{
	DAT_UINT64 v;

	succeed(dofi_counters_query(handle, which, &v, false));
	return v;
}

/* Beginning */

Test(exchange, a_connect_asks_for_the_address)
{
	struct dofi_exchange *x;

	succeed(dofi_ep_connect(ep, some_address(), 4711, 1000000, 5, (DAT_PVOID)"hello",
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	cr_assert_eq(service.n_connect, 1);
	x = service.connect[0];
	cr_expect_eq(x->ep, inside());
	cr_expect(x->active);
	cr_expect_eq(x->request.conn_qual, 4711);
	cr_expect_eq(((struct sockaddr_in *)&x->request.peer)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	cr_expect_eq(x->request.data_size, 5);
	cr_expect(!memcmp(x->request.data, "hello", 5));
	cr_expect(x->request.deadline != DOFI_NEVER);
	cr_expect_eq(transport.connects, 0);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect_eq(counter(ep, DCNT_EP_CONNECT), 1);
	cr_expect_eq(counter(ia, DCNT_IA_CM_AH_REQ_TX), 1);
	cr_expect_eq(counter(ia, DCNT_IA_CM_REQ_TX), 0);
}

Test(exchange, a_common_connect_does)
{
	succeed(dofi_ep_common_connect(ep, some_address(), DAT_TIMEOUT_INFINITE, 0, NULL));
	settle();
	cr_assert_eq(service.n_connect, 1);
	cr_expect_eq(service.connect[0]->request.conn_qual, 99);
	cr_expect_eq(service.connect[0]->request.deadline, DOFI_NEVER);
}

Test(exchange, an_endpoint_has_many)
{
	unsigned i;

	for (i = 0; i < 20; i++)
		cr_expect_eq(begin()->list, &inside()->exchanges);
	cr_expect_eq(dofi_exchange_pool.used, 20);
	/* in any order */
	for (i = 20; i; i--) {
		const struct dofi_exchanged how = success(i % SERVICE_AHS);
		DAT_CONNECTION_EVENT_DATA d;

		exchange_end(service.connect[i - 1], &how);
		cr_expect_eq(take(ESTABLISHED, &d).context.as_ptr, service.connect[i - 1]);
	}
}

Test(exchange, the_arguments_of_a_connect_are_checked)
{
	const DAT_CONNECT_FLAGS flags = DAT_CONNECT_DEFAULT_FLAG;
	const DAT_QOS qos = DAT_QOS_BEST_EFFORT;
	static char data[DOFI_PRIVATE_DATA + 1];
	const DAT_COUNT most = ia->max_private_data;

	expect_type(dofi_ep_connect(ep, NULL, 1, 1, 0, NULL, qos, flags), DAT_INVALID_ADDRESS);
	expect_arg(dofi_ep_connect(ep, some_address(), 0, 1, 0, NULL, qos, flags), 3);
	expect_arg(dofi_ep_connect(ep, some_address(), 1, 0, 0, NULL, qos, flags), 4);
	expect_arg(dofi_ep_connect(ep, some_address(), 1, 1, -1, data, qos, flags), 5);
	expect_arg(dofi_ep_connect(ep, some_address(), 1, 1, most + 1, data, qos, flags), 5);
	expect_arg(dofi_ep_connect(ep, some_address(), 1, 1, 1, NULL, qos, flags), 6);
	expect_type(dofi_ep_connect(ep, some_address(), 1, 1, 0, NULL, (DAT_QOS)0x4000, flags),
		    DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ep_connect(ep, some_address(), 1, 1, 0, NULL, qos,
				    DAT_CONNECT_MULTIPATH_FLAG), DAT_MODEL_NOT_SUPPORTED);
	expect_arg(dofi_ep_common_connect(ep, some_address(), 1, most + 1, data), 4);
	settle();
	cr_expect_eq(service.n_connect, 0);
	cr_expect_eq(dofi_exchange_pool.used, 0);
	succeed(dofi_ep_connect(ep, some_address(), 1, 1, most, data, qos, flags));
}

Test(exchange, needs_an_evd_for_its_event)
{
	ep = datagram_ep_with(DAT_HANDLE_NULL);
	expect_state(ask(ep, 0, NULL), EP_NOTREADY);
	cr_expect_eq(dofi_exchange_pool.used, 0);
}

/* Events */

Test(exchange, the_active_side_gets_the_address_handle)
{
	struct dofi_exchange *x = begin();
	const struct dofi_exchanged how = success(3);
	const DAT_UINT64 before = counter(evd, DCNT_EVD_CONN_CALLBACK);
	DAT_CONNECTION_EVENT_DATA d;
	DAT_IB_EXTENSION_EVENT_DATA e;

	exchange_end(x, &how);
	cr_expect_eq(counter(evd, DCNT_EVD_CONN_CALLBACK), before + 1);
	e = take(ESTABLISHED, &d);
	cr_expect_eq(e.type, DAT_IB_UD_REMOTE_AH);
	cr_expect_eq(e.status, DAT_OP_SUCCESS);
	cr_expect_eq((void *)e.remote_ah.ah, (void *)&service.ah[3]);
	cr_expect_eq(e.remote_ah.qpn, 55);
	cr_expect_eq(((struct sockaddr_in *)&e.remote_ah.ia_addr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	cr_expect_eq(e.context.as_ptr, x);
	cr_expect_eq(d.private_data_size, 7);
	cr_expect(!memcmp(d.private_data, "welcome", 7));
	cr_expect_eq(service.ah[3].references, 1);
	cr_expect_eq(counter(ia, DCNT_IA_CM_AH_RESOLVED), 1);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(exchange, a_reject_has_the_peers_data)
{
	const struct dofi_exchanged how = { .event = REJECTED, .data = "no", .data_size = 2 };
	struct dofi_exchange *x = begin();
	DAT_CONNECTION_EVENT_DATA d;
	DAT_IB_EXTENSION_EVENT_DATA e;

	exchange_end(x, &how);
	e = take(REJECTED, &d);
	cr_expect_eq(e.type, DAT_IB_UD_CONNECT_REJECT);
	cr_expect_eq(e.status, DAT_IB_OP_ERR);
	cr_expect(!e.remote_ah.ah);
	cr_expect_eq(e.context.as_ptr, x);
	cr_expect_eq(d.private_data_size, 2);
	cr_expect(!memcmp(d.private_data, "no", 2));
	cr_expect_eq(counter(ia, DCNT_IA_CM_AH_RESOLVED), 0);
}

Test(exchange, a_failure_has_the_address_that_was_asked)
{
	const struct dofi_exchanged how = { .event = FAILED };
	struct dofi_exchange *x = begin();
	DAT_CONNECTION_EVENT_DATA d;
	DAT_IB_EXTENSION_EVENT_DATA e;

	exchange_end(x, &how);
	e = take(FAILED, &d);
	cr_expect_eq(e.type, DAT_IB_UD_CONNECT_ERROR);
	cr_expect_eq(e.status, DAT_IB_OP_ERR);
	cr_expect_eq(((struct sockaddr_in *)&e.remote_ah.ia_addr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	cr_expect_eq(d.private_data_size, 0);
	cr_expect(!d.private_data);
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
}

Test(exchange, private_data_is_not_longer_than_its_place)
{
	static char data[DOFI_PRIVATE_DATA + 100];
	const struct dofi_exchanged how = {
		.event = REJECTED, .data = data, .data_size = sizeof(data),
	};
	DAT_CONNECTION_EVENT_DATA d;

	exchange_end(begin(), &how);
	take(REJECTED, &d);
	cr_expect_eq(d.private_data_size, DOFI_PRIVATE_DATA);
}

Test(exchange, may_end_while_it_begins)
{
	const struct dofi_exchanged how = success(0);
	DAT_CONNECTION_EVENT_DATA d;

	service.answer = &how;
	begin();
	take(ESTABLISHED, &d);
}

Test(exchange, an_event_without_room_is_lost_with_its_address_handle)
{
	DAT_EVD_HANDLE small = evd_make(1, DAT_EVD_CONNECTION_FLAG);
	const struct dofi_exchanged how = success(0), lost = success(1),
				    failed = { .event = FAILED };
	DAT_EVENT event;

	async_set(evd_make(4, DAT_EVD_ASYNC_FLAG));
	ep = datagram_ep_with(small);
	exchange_end(begin(), &how);
	exchange_end(begin(), &lost);
	exchange_end(begin(), &failed);
	settle();
	cr_expect_eq(service.ah[0].references, 1);
	cr_expect_eq(service.ah[1].references, 0);
	cr_expect_eq(dofi_exchange_pool.used, 1);
	event_take(ia->async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	event = event_take(small, ESTABLISHED);
	cr_expect_eq(event.event_data.connect_event_data.ep_handle, ep);
	cr_expect(event_none(small));
	async_set(NULL);
}

/* Freeing */

Test(exchange, is_freed_once)
{
	const struct dofi_exchanged how = success(0);
	struct dofi_exchange *x = begin();
	DAT_CONNECTION_EVENT_DATA d;

	expect_arg(dofi_ud_cm_free(ep, x), 3);
	exchange_end(x, &how);
	expect_arg(dofi_ud_cm_free(ep, x), 3);
	take(ESTABLISHED, &d);
	succeed(dofi_ud_cm_free(ep, x));
	cr_expect_eq(dofi_exchange_pool.used, 0);
	cr_expect_eq(service.ah[0].references, 1, "the handle remains");
	expect_arg(dofi_ud_cm_free(ep, x), 3);
}

Test(exchange, what_is_none_is_not_freed)
{
	const struct dofi_exchanged how = success(0);
	struct dofi_exchange *x = begin();
	DAT_EP_HANDLE other = datagram_ep();
	DAT_CONNECTION_EVENT_DATA d;

	exchange_end(x, &how);
	take(ESTABLISHED, &d);
	expect_arg(dofi_ud_cm_free(ep, NULL), 3);
	expect_arg(dofi_ud_cm_free(ep, NOWHERE), 3);
	expect_arg(dofi_ud_cm_free(ep, ep), 3);
	expect_arg(dofi_ud_cm_free(ep, (char *)x + 8), 3);
	expect_arg(dofi_ud_cm_free(other, x), 3);
	expect_handle(dofi_ud_cm_free(NULL, x), EP);
	expect_handle(dofi_ud_cm_free(evd, x), EP);
	expect_handle(dofi_ud_cm_free(ep_make(), x), EP);
	cr_expect_eq(dofi_exchange_pool.used, 1);
}

Test(exchange, address_handles_are_freed)
{
	DAT_IB_ADDR_HANDLE ah = { .ah = ah_make(1), .qpn = 1 };
	DAT_IB_ADDR_HANDLE bad = { .ah = NULL };

	ah_make(1);
	succeed(dofi_ud_ah_free(ep, &ah));
	succeed(dofi_ud_ah_free(ep, &ah));
	cr_expect_eq(service.ah[1].references, 0);
	expect_arg(dofi_ud_ah_free(ep, &ah), 3);
	expect_arg(dofi_ud_ah_free(ep, NULL), 3);
	expect_arg(dofi_ud_ah_free(ep, &bad), 3);
	bad.ah = NOWHERE;
	expect_arg(dofi_ud_ah_free(ep, &bad), 3);
	expect_handle(dofi_ud_ah_free(NULL, &ah), EP);
	expect_handle(dofi_ud_ah_free(pz, &ah), EP);
	expect_handle(dofi_ud_ah_free(ep_make(), &ah), EP);
}

Test(exchange, of_those_that_failed_the_newest_are_kept)
{
	const struct dofi_exchanged failed = { .event = FAILED, .data = "x", .data_size = 1 };
	DAT_CONNECTION_EVENT_DATA d;
	DAT_IB_EXTENSION_EVENT_DATA e;
	unsigned i;

	service.answer = &failed;
	for (i = 0; i < DOFI_EXCHANGES_FAILED + 20; i++) {
		begin();
		e = take(FAILED, &d);
		cr_assert_eq(e.context.as_ptr, service.connect[i]);
		cr_expect_eq(*(char *)d.private_data, 'x');
	}
	cr_expect_eq(dofi_exchange_pool.used, DOFI_EXCHANGES_FAILED);
	cr_expect_eq(inside()->n_failed, DOFI_EXCHANGES_FAILED);
	/* the last one is there */
	succeed(dofi_ud_cm_free(ep, e.context.as_ptr));
	cr_expect_eq(inside()->n_failed, DOFI_EXCHANGES_FAILED - 1);
}

Test(exchange, those_with_queued_events_are_kept)
{
	const struct dofi_exchanged failed = { .event = FAILED, .data = "x", .data_size = 1 };
	const DAT_COUNT n = DOFI_EXCHANGES_FAILED + 20;
	DAT_EVD_HANDLE roomy = evd_make(n, DAT_EVD_CONNECTION_FLAG);
	DAT_COUNT i;

	ep = datagram_ep_with(roomy);
	service.answer = &failed;
	for (i = 0; i < n; i++)
		begin();
	cr_expect_eq(dofi_exchange_pool.used, (size_t)n);
	for (i = 0; i < n; i++) {
		DAT_EVENT event = event_take(roomy, FAILED);

		cr_expect_eq(*(char *)event.event_data.connect_event_data.private_data, 'x');
	}
	begin();
	event_take(roomy, FAILED);
	cr_expect_eq(dofi_exchange_pool.used, DOFI_EXCHANGES_FAILED);
}

/* The end of the EP */

Test(exchange, events_end_with_their_endpoint)
{
	const struct dofi_exchanged how[3] = {
		success(0), { .event = REJECTED }, { .event = FAILED },
	};
	DAT_EP_HANDLE other = datagram_ep();
	DAT_EVENT event;
	int i;

	for (i = 0; i < 3; i++)
		exchange_end(begin(), &how[i]);
	exchange_end(begin_of(other), &how[1]);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(dofi_exchange_pool.used, 1);
	cr_expect_eq(service.ah[0].references, 0, "no program knows it");
	event = event_take(evd, REJECTED);
	cr_expect_eq(event.event_data.connect_event_data.ep_handle, other);
	cr_expect(event_none(evd));
}

/* An address handle that the program has remains, for other EPs of the PZ. */
Test(exchange, an_address_handle_outlives_its_endpoint)
{
	const struct dofi_exchanged how = success(0);
	DAT_CONNECTION_EVENT_DATA d;

	exchange_end(begin(), &how);
	take(ESTABLISHED, &d);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(dofi_exchange_pool.used, 0);
	cr_expect_eq(service.ah[0].references, 1);
}

Test(exchange, ends_with_its_endpoint)
{
	begin();
	begin();
	succeed(dofi_ep_free(ep));
	cr_expect_eq(service.closes, 1);
	cr_expect_eq(dofi_exchange_pool.used, 0);
	cr_expect(event_none(evd));
}

/* Work that keeps the progress thread busy until the test posts hold. */
static sem_t hold;

static void hold_run(struct dofi_work *work)
{
	while (sem_wait(&hold))
		;
}

static void *free_ep(void *arg)
{
	succeed(dofi_ep_free(arg));
	return NULL;
}

/* Frees ep while the progress thread has not seen its new exchanges. */
static void free_before_start(struct dofi_work *held)
{
	pthread_t thread;

	pthread_create(&thread, NULL, free_ep, ep);
	/* the EP is no valid handle from the beginning of the call on */
	while (dofi_ep_check(ep))
		sched_yield();
	sem_post(&hold);
	pthread_join(thread, NULL);
	cr_expect(!held->queued);
}

Test(exchange, an_exchange_that_did_not_begin_ends_with_its_endpoint)
{
	static struct dofi_work held = { .run = hold_run };

	dofi_progress_post(&ia->progress, &held);
	succeed(ask(ep, 0, NULL));
	free_before_start(&held);
	cr_expect_eq(dofi_exchange_pool.used, 0);
	cr_expect_eq(service.closes, 1);
	cr_expect(event_none(evd));
}

/* Requests */

static DAT_PSP_HANDLE psp;
static DAT_CR_HANDLE cr;
static char request[4];			/* the transport's part */

struct arrival_call {
	struct dofi_sp *sp;
	struct dofi_arrival arrival;
	int ret;
};

static void arrive_on_thread(void *arg)
{
	struct arrival_call *c = arg;

	c->ret = dofi_cr_arrived(c->sp, &c->arrival);
}

static int arrive_for(DAT_HANDLE sp)
{
	struct arrival_call call = {
		.sp = sp, .ret = 1,
		.arrival = {
			.xport = ia->datagrams->xport, .request = request,
			.peer = address("192.0.2.7"), .datagram = true,
			.data = "hello", .data_size = 5,
		},
	};

	dofi_progress_call(&ia->progress, arrive_on_thread, &call);
	return call.ret;
}

static DAT_CR_ARRIVAL_EVENT_DATA arrival_take(void)
{
	DAT_EVENT event = event_take(evd, REQUEST);
	DAT_IB_EXTENSION_EVENT_DATA x;

	memcpy(&x, event.event_extension_data, sizeof(x));
	cr_expect_eq(x.type, DAT_IB_UD_CONNECT_REQUEST);
	cr_expect_eq(x.status, DAT_OP_SUCCESS);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	return event.event_data.cr_arrival_event_data;
}

static void arrive(void)
{
	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_assert_eq(arrive_for(psp), 0);
	arrival_take();
}

Test(exchange, a_request_arrives)
{
	DAT_CR_ARRIVAL_EVENT_DATA data;
	DAT_CR_PARAM param;

	succeed(dofi_psp_create(ia, 4711, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_assert_eq(arrive_for(psp), 0);
	cr_expect_eq(counter(evd, DCNT_EVD_CONN_CALLBACK), 1);
	data = arrival_take();
	cr_expect_eq(data.sp_handle.psp_handle, psp);
	cr_expect_eq(data.conn_qual, 4711);
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_expect_eq(param.private_data_size, 5);
	cr_expect(!memcmp(param.private_data, "hello", 5));
	cr_expect_eq(counter(ia, DCNT_IA_CM_AH_REQ_RX), 1);
	cr_expect_eq(counter(ia, DCNT_IA_CM_REQ_RX), 0);
	cr_expect_eq(counter(ia, DCNT_IA_SP_CR), 1);
}

Test(exchange, an_accept_begins_one)
{
	struct dofi_exchange *x;

	arrive();
	succeed(dofi_cr_accept(cr, ep, 3, (DAT_PVOID)"yes"));
	settle();
	cr_assert_eq(service.n_accept, 1);
	x = service.accept[0];
	cr_expect_eq(service.request[0], request);
	cr_expect_eq(x->ep, inside());
	cr_expect(!x->active);
	cr_expect_eq(x->request.data_size, 3);
	cr_expect(!memcmp(x->request.data, "yes", 3));
	expect_handle(dofi_cr_accept(cr, ep, 0, NULL), CR);
	cr_expect_eq(dofi_cr_pool.used, 0);
	cr_expect_eq(service.rejects + transport.rejects, 0);
	cr_expect_eq(counter(ia, DCNT_IA_SP_CR_ACCEPTED), 1);
}

Test(exchange, the_passive_side_gets_the_requests_data)
{
	struct dofi_exchanged how = success(2);
	DAT_CONNECTION_EVENT_DATA d;
	DAT_IB_EXTENSION_EVENT_DATA e;

	arrive();
	succeed(dofi_cr_accept(cr, ep, 3, (DAT_PVOID)"yes"));
	settle();
	how.data_size = 0;
	exchange_end(service.accept[0], &how);
	e = take(ESTABLISHED, &d);
	cr_expect_eq(e.type, DAT_IB_UD_PASSIVE_REMOTE_AH);
	cr_expect_eq((void *)e.remote_ah.ah, (void *)&service.ah[2]);
	cr_expect_eq(e.context.as_ptr, service.accept[0]);
	cr_expect_eq(((struct sockaddr_in *)&e.remote_ah.ia_addr)->sin_addr.s_addr,
		     inet_addr("192.0.2.7"));
	cr_expect_eq(d.private_data_size, 5);
	cr_expect(!memcmp(d.private_data, "hello", 5));
	succeed(dofi_ud_cm_free(ep, service.accept[0]));
}

Test(exchange, both_sides_have_their_kind_of_endpoint)
{
	DAT_EP_HANDLE connected = ep_make();

	arrive();
	expect_handle(dofi_cr_accept(cr, connected, 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, NULL, 0, NULL), EP);
	expect_handle(dofi_cr_accept(cr, evd, 0, NULL), EP);
	cr_expect(dofi_cr_check(cr));
	cr_assert_eq(arrive_at(psp, NULL, 0), 0);
	cr = event_take(evd, DAT_CONNECTION_REQUEST_EVENT)
		     .event_data.cr_arrival_event_data.cr_handle;
	expect_handle(dofi_cr_accept(cr, ep, 0, NULL), EP);
	succeed(dofi_cr_accept(cr, connected, 0, NULL));
	cr_expect_eq(service.n_accept, 0);
	cr_expect_eq(dofi_exchange_pool.used, 0);
}

Test(exchange, the_arguments_of_an_accept_are_checked)
{
	arrive();
	expect_arg(dofi_cr_accept(cr, ep, -1, memory), 3);
	expect_arg(dofi_cr_accept(cr, ep, ia->max_private_data + 1, memory), 3);
	expect_arg(dofi_cr_accept(cr, ep, 1, NULL), 4);
	expect_state(dofi_cr_accept(cr, datagram_ep_with(DAT_HANDLE_NULL), 0, NULL), EP_NOTREADY);
	cr_expect(dofi_cr_check(cr));
	cr_expect_eq(dofi_exchange_pool.used, 0);
}

Test(exchange, a_request_is_turned_down)
{
	arrive();
	succeed(turn_down(cr));
	cr_expect_eq(service.rejects, 1);
	cr_expect_eq(service.why, DOFI_REJECT_CONSUMER);
	cr_expect_eq(transport.rejects, 0);
}

Test(exchange, a_request_that_nobody_answers_is_rejected)
{
	arrive();
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(service.rejects, 1);
	cr_expect_eq(service.why, DOFI_REJECT_PROVIDER);
}

Test(exchange, a_queued_request_ends_with_its_evd)
{
	DAT_EVD_HANDLE requests = evd_make(4, DAT_EVD_CR_FLAG);

	succeed(dofi_psp_create(ia, 4711, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_assert_eq(arrive_for(psp), 0);
	succeed(dofi_psp_free(psp));
	succeed(dofi_evd_free(requests));
	cr_expect_eq(service.rejects, 1);
	cr_expect_eq(dofi_cr_pool.used, 0);
}

Test(exchange, a_handed_off_request_remains_one)
{
	DAT_PSP_HANDLE to;

	succeed(dofi_psp_create(ia, 4712, evd, DAT_PSP_CONSUMER_FLAG, &to));
	arrive();
	succeed(dofi_cr_handoff(cr, 4712));
	cr_expect_eq(arrival_take().sp_handle.psp_handle, to);
	expect_handle(dofi_cr_accept(cr, ep_make(), 0, NULL), EP);
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	settle();
	cr_expect_eq(service.request[0], request);
	cr_expect_eq(service.rejects, 0);
}

Test(exchange, service_points_with_endpoints_take_no_requests)
{
	DAT_PSP_HANDLE making;
	DAT_RSP_HANDLE rsp;

	succeed(dofi_psp_create(ia, 4712, evd, DAT_PSP_PROVIDER_FLAG, &making));
	succeed(dofi_rsp_create(ia, 4713, ep_make(), evd, &rsp));
	cr_expect_eq(arrive_for(making), -ENOTSUP);
	cr_expect_eq(arrive_for(rsp), -ENOTSUP);
	cr_expect(event_none(evd));
	arrive();
	succeed(dofi_cr_handoff(cr, 4712));
	cr_expect_eq(service.rejects, 1);
	cr_expect_eq(service.why, DOFI_REJECT_PROVIDER);
	/* the reserved service point has not got its request */
	cr_expect_eq(arrive_at(rsp, NULL, 0), 0);
}

/* The transport gets the request, so that it can answer the peer. */
Test(exchange, an_accept_that_did_not_begin_does_when_its_endpoint_ends)
{
	static struct dofi_work held = { .run = hold_run };

	arrive();
	dofi_progress_post(&ia->progress, &held);
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	free_before_start(&held);
	cr_expect_eq(service.n_accept, 1);
	cr_expect_eq(service.request[0], request);
	cr_expect_eq(dofi_exchange_pool.used, 0);
}

Test(exchange, an_address_handle_for_an_endpoint_that_ends_is_returned)
{
	static struct dofi_work held = { .run = hold_run };
	const struct dofi_exchanged how = success(4);

	arrive();
	dofi_progress_post(&ia->progress, &held);
	succeed(dofi_cr_accept(cr, ep, 0, NULL));
	service.answer = &how;
	free_before_start(&held);
	cr_expect_eq(service.ah[4].references, 0);
	cr_expect_eq(dofi_exchange_pool.used, 0);
	cr_expect(event_none(evd));
}
#endif
