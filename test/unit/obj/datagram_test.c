/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagram endpoints: their creation, their operations, their refusals, and their end. */

#include "obj/ep/datagram.h"

#include "obj/counters.h"
#include "obj/ep/ep_post.h"
#include "obj/service.h"
#include "xport/msg/msg.h"

#include <errno.h>

#if DAT_VERSION_MAJOR >= 2

static DAT_EP_HANDLE ep;

static void init(void)
{
	service_init();
	ep = datagram_ep();
}

TestSuite(datagram, .init = init, .fini = service_fini);
TestSuite(datagram_ia, .init = fabric_init);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_RETURN make(const DAT_EP_ATTR *attr, DAT_PZ_HANDLE in_pz)
{
	return dofi_ep_create(ia, in_pz, evd, evd, evd, attr, &ep);
}

static const char *named(const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < ia->n_named; i++)
		if (!strcmp(ia->named[i].name, name))
			return ia->named[i].value;
	return NULL;
}

/* The service */

Test(datagram_ia, without_a_service_there_are_none)
{
	const DAT_EP_ATTR attr = datagram_attr();
	const struct dofi_post p = { .n = 0 };

	objects_init();
	expect_arg(make(&attr, pz), 7);
	ep = ep_make();
	expect_type(dofi_ep_post_send_ud(ep, &p), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ud_cm_free(ep, NULL), DAT_MODEL_NOT_SUPPORTED);
	expect_type(dofi_ud_ah_free(ep, NULL), DAT_MODEL_NOT_SUPPORTED);
	cr_expect(!strcmp(named(DAT_IB_ATTR_UD), "FALSE"));
	cr_expect(!named("OFI_DATAGRAM_SIZE"));
	ia_fini();
}

Test(datagram_ia, a_service_without_a_fabric_leaves_an_ia_without)
{
	const DAT_EP_ATTR attr = datagram_attr();
	DAT_PSP_HANDLE psp;

	service.ia_init_result = -ENODATA;
	service_init();
	cr_expect_eq(service.ia_inits, 1);
	cr_expect(!ia->datagrams);
	cr_expect_eq(ia->datagram_size, 0);
	cr_expect(!strcmp(named(DAT_IB_ATTR_UD), "FALSE"));
	expect_arg(make(&attr, pz), 7);
	succeed(dofi_psp_create(ia, 5, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	service_fini();
	cr_expect_eq(service.ia_finis + service.listens + service.unlistens, 0);
}

Test(datagram_ia, a_service_opens_and_closes_with_the_ia)
{
	service_init();
	cr_expect_eq(service.ia_inits, 1);
	cr_expect(!strcmp(named(DAT_IB_ATTR_UD), "TRUE"));
	cr_expect(!strcmp(named("OFI_DATAGRAM_SIZE"), "1000"));
	service_fini();
	cr_expect_eq(service.ia_finis, 1);
	cr_expect_eq(service.pz_closes, 0, "no EP used the PZ");
}

Test(datagram, a_pz_ends_with_the_state_that_the_service_has_of_it)
{
	succeed(dofi_ep_free(ep));
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	cr_expect_eq(service.pz_closes, 1);
}

Test(datagram, service_points_listen_for_exchanges)
{
	DAT_PSP_HANDLE psp;

	succeed(dofi_psp_create(ia, 5, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_expect_eq(service.listens, 1);
	succeed(dofi_psp_free(psp));
	cr_expect_eq(service.unlistens, 1);
	transport.listen_result = -EADDRINUSE;
	expect_type(dofi_psp_create(ia, 5, evd, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_CONN_QUAL_IN_USE);
	cr_expect_eq(service.listens, 1);
}

/* Making */

Test(datagram, is_connected_from_the_start)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_PARAM param;
	DAT_EP_STATE state;

	cr_expect_eq(service.opens, 1);
	succeed(dofi_ep_get_status(ep, &state, &recv_idle, &request_idle));
	cr_expect_eq(state, DAT_EP_STATE_CONNECTED);
	cr_expect(recv_idle && request_idle);
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	cr_expect_eq(param.ep_state, DAT_EP_STATE_CONNECTED);
	cr_expect_eq((int)param.ep_attr.service_type, DAT_IB_SERVICE_TYPE_UD);
	cr_expect(!param.remote_ia_address_ptr);
	cr_expect_eq(param.remote_port_qual, 0);
	cr_expect_eq(param.local_ia_address_ptr, (DAT_IA_ADDRESS_PTR)&inside()->local);
	cr_expect(!inside()->fast.send);
}

Test(datagram, needs_a_pz)
{
	const DAT_EP_ATTR attr = datagram_attr();

	expect_handle(make(&attr, DAT_HANDLE_NULL), PZ);
	expect_handle(make(&attr, NOWHERE), PZ);
	cr_expect_eq(service.opens, 1);
}

Test(datagram, a_datagram_ep_that_cannot_be_opened_is_not_made)
{
	const DAT_EP_ATTR attr = datagram_attr();

	service.open_result = -ENOMEM;
	expect_type(make(&attr, pz), DAT_INSUFFICIENT_RESOURCES);
	service.open_result = -EINVAL;
	expect_type(make(&attr, pz), DAT_INSUFFICIENT_RESOURCES);
	cr_expect_eq(service.closes, 0);
	cr_expect_eq(dofi_ep_pool.used, 1);
}

Test(datagram, messages_are_as_long_as_the_service_carries)
{
	static const DAT_VLEN wanted[][2] = {
		{ 0, SERVICE_SIZE }, { SERVICE_SIZE, SERVICE_SIZE },
		{ SERVICE_SIZE + 1, SERVICE_SIZE }, { (DAT_VLEN)-1, SERVICE_SIZE }, { 100, 100 },
	};
	DAT_EP_ATTR attr = datagram_attr();
	DAT_EP_PARAM param;
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		attr.max_message_size = wanted[i][0];
		succeed(make(&attr, pz));
		succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		cr_expect_eq(param.ep_attr.max_message_size, wanted[i][1]);
	}
}

Test(datagram, other_attributes_have_their_limits)
{
	DAT_EP_ATTR attr = datagram_attr();

	attr.max_recv_iov = 100;
	expect_arg(make(&attr, pz), 7);
	attr = datagram_attr();
	attr.qos = (DAT_QOS)0x4000;
	expect_type(make(&attr, pz), DAT_MODEL_NOT_SUPPORTED);
	attr = datagram_attr();
	attr.service_type = (DAT_SERVICE_TYPE)2;
	expect_arg(make(&attr, pz), 7);
}

Test(datagram, is_not_made_of_another_endpoint)
{
	DAT_EP_PARAM wanted = { .ep_attr = datagram_attr() };

	expect_state(dofi_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &wanted), EP_CONNECTED);
	expect_arg(dofi_ep_modify(ep_make(), DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &wanted), 3);
}

Test(datagram, may_have_an_srq)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1,
				  .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_EP_ATTR attr = datagram_attr();
	DAT_SRQ_HANDLE srq;
	struct dofi_dto *dto;

	succeed(dofi_srq_create(ia, pz, &srq_attr, &srq));
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &ep));
	cr_expect_eq(inside()->state, DAT_EP_STATE_CONNECTED);
	cr_expect(!msg_part(inside())->preamble_rx);
	succeed(srq_post_at(srq, 0, 64, 7));
	dofi_mutex_lock(&inside()->lock);
	dto = dofi_srq_receive(inside());
	dofi_mutex_unlock(&inside()->lock);
	cr_assert(dto);
	deliver(ep, 48);
	cr_expect_eq(event_take(evd, DAT_IB_DTO_EVENT)
			     .event_data.dto_completion_event_data.user_cookie.as_64, 7);
	succeed(dofi_ep_free(ep));
	succeed(dofi_srq_free(srq));
}

/* Sending */

static DAT_IB_EXTENSION_EVENT_DATA completion(uint64_t cookie, int operation,
					      DAT_DTO_COMPLETION_EVENT_DATA *d)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event = event_take(evd, DAT_IB_DTO_EVENT);

	memcpy(&x, event.event_extension_data, sizeof(x));
	*d = event.event_data.dto_completion_event_data;
	cr_expect_eq(d->ep_handle, ep);
	cr_expect_eq(d->user_cookie.as_64, cookie);
	cr_expect_eq((int)d->operation, operation, "%d", (int)d->operation);
	return x;
}

Test(datagram, a_send_reaches_the_service)
{
	const struct dofi_post p = datagram(2, 5);
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_DTO_COMPLETION_EVENT_DATA d;
	void *ah = ah_make(2);

	succeed(dofi_ep_post_send_ud(ep, &p));
	cr_assert_eq(service.n, 1);
	cr_expect_eq(service.dto[0]->kind, DOFI_DTO_SEND_UD);
	cr_expect_eq(service.dto[0]->remote_addr, (uintptr_t)ah);
	cr_expect_eq(service.dto[0]->remote_key, 77);
	cr_expect_eq(service.dto[0]->length, 8);
	cr_expect_eq(service.dto[0]->iov[0].iov_base, memory);
	x = completion(5, DAT_IB_DTO_SEND_UD, &d);
	cr_expect_eq(x.type, DAT_IB_UD_SEND);
	cr_expect_eq(x.status, DAT_OP_SUCCESS);
	cr_expect_eq(d.transfered_length, 8);
	cr_expect_eq(d.status, DAT_DTO_SUCCESS);
}

Test(datagram, a_send_with_immediate_data_does)
{
	struct dofi_post p = datagram(0, 5);
	DAT_DTO_COMPLETION_EVENT_DATA d;

	ah_make(0);
	p.immed = 0xfedcba98;
	succeed(dofi_ep_post_send_ud_immed(ep, &p));
	cr_assert_eq(service.n, 1);
	cr_expect_eq(service.dto[0]->kind, DOFI_DTO_SEND_UD_IMMED);
	cr_expect_eq(service.dto[0]->immed, 0xfedcba98);
	cr_expect_eq(service.dto[0]->remote_key, 77);
	cr_expect_eq(completion(5, DAT_IB_DTO_SEND_UD, &d).type, DAT_IB_UD_SEND);
}

Test(datagram, a_send_without_an_event_has_none)
{
	struct dofi_post p = datagram(0, 5);

	ah_make(0);
	p.flags = DAT_COMPLETION_SUPPRESS_FLAG;
	succeed(dofi_ep_post_send_ud(ep, &p));
	cr_expect_eq(service.n, 1);
	cr_expect(event_none(evd));
}

Test(datagram, an_empty_send_needs_no_segment)
{
	struct dofi_post p = datagram(0, 5);

	ah_make(0);
	p.n = 0;
	p.iov = NULL;
	succeed(dofi_ep_post_send_ud(ep, &p));
	cr_expect_eq(service.dto[0]->length, 0);
}

Test(datagram, the_arguments_of_a_send_are_checked)
{
	DAT_LMR_TRIPLET three[3] = { segment(0, 8), segment(8, 8), segment(16, 8) };
	struct dofi_post p = datagram(0, 1);

	ah_make(0);
	p.n = -1;
	expect_arg(dofi_ep_post_send_ud(ep, &p), 3);
	p = datagram(0, 1);
	p.n = 3;
	p.iov = three;
	expect_arg(dofi_ep_post_send_ud_immed(ep, &p), 3);
	p = datagram(0, 1);
	p.iov = NULL;
	expect_arg(dofi_ep_post_send_ud(ep, &p), 4);
	p = datagram(0, 1);
	p.flags = (DAT_COMPLETION_FLAGS)0x8000;
	expect_arg(dofi_ep_post_send_ud(ep, &p), 7);
	expect_arg(dofi_ep_post_send_ud_immed(ep, &p), 8);
	p = datagram(0, 1);
	three[0].lmr_context += 1000;
	p.iov = three;
	expect_type(dofi_ep_post_send_ud(ep, &p), DAT_PROTECTION_VIOLATION);
	cr_expect_eq(service.n, 0);
	cr_expect(event_none(evd));
}

Test(datagram, a_send_needs_a_valid_address_handle)
{
	struct dofi_post p = datagram(0, 1);
	DAT_IB_ADDR_HANDLE ah = { .ah = NULL, .qpn = 77 };

	expect_arg(dofi_ep_post_send_ud(ep, &p), 5);
	p.ah = NULL;
	expect_arg(dofi_ep_post_send_ud(ep, &p), 5);
	p.ah = &ah;
	expect_arg(dofi_ep_post_send_ud(ep, &p), 5);
	ah.ah = NOWHERE;
	expect_arg(dofi_ep_post_send_ud_immed(ep, &p), 5);
	ah_make(0);
	service.ah[0].pz = NULL;
	p = datagram(0, 1);
	expect_arg(dofi_ep_post_send_ud(ep, &p), 5);
	cr_expect_eq(service.n, 0);
}

Test(datagram, a_send_is_not_longer_than_the_service_carries)
{
	DAT_LMR_TRIPLET s = segment(0, SERVICE_SIZE + 1);
	struct dofi_post p = datagram(0, 1);

	ah_make(0);
	p.iov = &s;
	expect_type(dofi_ep_post_send_ud(ep, &p), DAT_LENGTH_ERROR);
	expect_type(dofi_ep_post_send_ud_immed(ep, &p), DAT_LENGTH_ERROR);
	s.segment_length = SERVICE_SIZE;
	succeed(dofi_ep_post_send_ud(ep, &p));
}

Test(datagram, sends_wait_while_the_fabric_is_full)
{
	const struct dofi_post p = datagram(0, 1);
	int i;

	ah_make(0);
	service.full = true;
	for (i = 0; i < 8; i++)
		succeed(dofi_ep_post_send_ud(ep, &p));
	expect_type(dofi_ep_post_send_ud(ep, &p), DAT_INSUFFICIENT_RESOURCES);
	service.full = false;
	dofi_mutex_lock(&inside()->lock);
	dofi_dto_submit_pending(inside());
	dofi_mutex_unlock(&inside()->lock);
	cr_expect_eq(service.n, 8);
}

/* Other operations */

static const DAT_DTO_COOKIE cookie = { .as_64 = 3 };

Test(datagram, operations_of_connections_are_refused)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);
	const struct dofi_post p = { .n = 1, .iov = &s, .remote = &r };

	ia->fabric.cq_data = true;
	inside()->mailbox.key = 1;
	expect_handle(dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_DEFAULT_FLAG), EP);
	expect_handle(dofi_ep_post_send(ep, 1, &s, cookie, DAT_COMPLETION_SUPPRESS_FLAG), EP);
	expect_handle(dofi_ep_post_rdma_write(ep, 1, &s, cookie, &r, DAT_COMPLETION_DEFAULT_FLAG),
		      EP);
	expect_handle(dofi_ep_post_rdma_read(ep, 1, &s, cookie, &r, DAT_COMPLETION_DEFAULT_FLAG),
		      EP);
	expect_handle(dofi_ep_post_send_with_invalidate(ep, 1, &s, cookie,
							DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 5),
		      EP);
	expect_handle(dofi_ep_post_rdma_read_to_rmr(ep, &r, cookie, &r,
						    DAT_COMPLETION_DEFAULT_FLAG), EP);
	expect_handle(dofi_ep_post_send_immed(ep, &p), EP);
	expect_handle(dofi_ep_post_write_immed(ep, &p), EP);
	expect_handle(dofi_ep_post_fetch_add(ep, &p), EP);
	expect_handle(dofi_ep_post_cmp_swap(ep, &p), EP);
	cr_expect_eq(service.n, 0);
	cr_expect(event_none(evd));
}

Test(datagram, connections_send_no_datagrams)
{
	const struct dofi_post p = datagram(0, 1);

	ah_make(0);
	ep = ep_make();
	make_connected(ep);
	expect_handle(dofi_ep_post_send_ud(ep, &p), EP);
	expect_handle(dofi_ep_post_send_ud_immed(ep, &p), EP);
	expect_handle(dofi_ep_post_send_ud(evd, &p), EP);
	expect_handle(dofi_ep_post_send_ud(NULL, &p), EP);
	expect_handle(dofi_ep_post_send_ud(NOWHERE, &p), EP);
	cr_expect_eq(transport.n, 0);
}

Test(datagram, binds_are_refused)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_COOKIE rmr_cookie = { .as_64 = 1 };
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	succeed(dofi_rmr_create(pz, &rmr));
	expect_handle(dofi_rmr_bind(rmr, lmr, &s, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, ep,
				    rmr_cookie, DAT_COMPLETION_DEFAULT_FLAG, &context), EP);
}

/* Receiving */

static void post_recv(uint64_t n)
{
	const DAT_DTO_COOKIE c = { .as_64 = n };
	DAT_LMR_TRIPLET s = segment(0, 64);

	succeed(dofi_ep_post_recv(ep, 1, &s, c, DAT_COMPLETION_DEFAULT_FLAG));
}

Test(datagram, a_receive_completes_with_the_length_of_all)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_DTO_COMPLETION_EVENT_DATA d;

	post_recv(4);
	cr_expect_eq(service.n, 1);
	deliver(ep, 48);
	x = completion(4, DAT_IB_DTO_RECV_UD, &d);
	cr_expect_eq(x.type, DAT_IB_UD_RECV);
	cr_expect_eq(x.status, DAT_OP_SUCCESS);
	cr_expect_eq(d.transfered_length, 48);
}

Test(datagram, immediate_data_is_received)
{
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_DTO_COMPLETION_EVENT_DATA d;

	post_recv(4);
	deliver_immed(ep, 40, 0x12345678);
	x = completion(4, DAT_IB_DTO_RECV_UD_IMMED, &d);
	cr_expect_eq(x.type, DAT_IB_UD_RECV);
	cr_expect_eq(x.val.immed.data, 0x12345678);
	cr_expect_eq(d.transfered_length, 40);
}

Test(datagram, a_failed_receive_ends_nothing)
{
	static const int errors[] = { FI_ETRUNC, EMSGSIZE, FI_ETOOSMALL };
	DAT_DTO_COMPLETION_EVENT_DATA d;
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		post_recv(4);
		post_recv(5);
		deliver_error(ep, errors[i]);
		cr_expect_eq(completion(4, DAT_IB_DTO_RECV_UD, &d).status, DAT_IB_OP_ERR);
		cr_expect_eq(d.status, DAT_DTO_ERR_LOCAL_LENGTH);
		settle();
		cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
		deliver(ep, 48);
		completion(5, DAT_IB_DTO_RECV_UD, &d);
		cr_expect_eq(d.status, DAT_DTO_SUCCESS);
	}
	cr_expect_eq(service.closes, 0);
	cr_expect(event_none(evd));
}

Test(datagram, has_no_connection_to_lose)
{
	dofi_mutex_lock(&inside()->lock);
	dofi_ep_end(inside(), DAT_CONNECTION_EVENT_BROKEN);
	dofi_ep_lost(inside(), true);
	dofi_mutex_unlock(&inside()->lock);
	dofi_ep_end_with(inside(), DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(!inside()->closing && !inside()->lost);
	cr_expect(event_none(evd));
}

Test(datagram, watermarks_end_nothing)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	succeed(dofi_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, 1));
	post_recv(1);
	post_recv(2);
	post_recv(3);
	settle();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	deliver(ep, 40);
	completion(1, DAT_IB_DTO_RECV_UD, &d);
}

Test(datagram, outlives_the_memory_of_its_receives)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;

	post_recv(1);
	succeed(dofi_lmr_free(lmr));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect_eq(service.dto[0]->n_iov, 0);
	/* the service finds no room for the datagram */
	deliver_error(ep, FI_ETRUNC);
	completion(1, DAT_IB_DTO_RECV_UD, &d);
	cr_expect_eq(d.status, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* Calls on connections */

Test(datagram, a_disconnect_has_no_effect)
{
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_arg(dofi_ep_disconnect(ep, (DAT_CLOSE_FLAGS)7), 2);
	settle();
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_CONNECTED);
	cr_expect(event_none(evd));
	cr_expect_eq(inside()->n_disconnect, 0);
}

Test(datagram, a_reset_is_refused)
{
	expect_state(dofi_ep_reset(ep), EP_CONNECTED);
}

Test(datagram, is_no_pattern_for_a_connection)
{
	DAT_EP_HANDLE other = ep_make();

	expect_handle(dofi_ep_dup_connect(other, ep, DAT_TIMEOUT_INFINITE, 0, NULL,
					  DAT_QOS_BEST_EFFORT), EP);
	make_connected(other);
	expect_handle(dofi_ep_dup_connect(ep, other, DAT_TIMEOUT_INFINITE, 0, NULL,
					  DAT_QOS_BEST_EFFORT), EP);
}

Test(datagram, is_not_reserved)
{
	DAT_RSP_HANDLE rsp;

	expect_state(dofi_rsp_create(ia, 5, ep, evd, &rsp), EP_CONNECTED);
}

/* The end */

Test(datagram, freed_flushes_its_receives)
{
	DAT_DTO_COMPLETION_EVENT_DATA d;
	uint64_t i;

	for (i = 1; i <= 3; i++)
		post_recv(i);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(service.closes, 1);
	for (i = 1; i <= 3; i++) {
		completion(i, DAT_IB_DTO_RECV_UD, &d);
		cr_expect_eq(d.status, DAT_DTO_ERR_FLUSHED);
	}
	cr_expect(event_none(evd));
	expect_handle(dofi_ep_free(ep), EP);
	cr_expect_eq(ia->count.disconnected + ia->count.broken, 0);
}

Test(datagram, ends_with_its_ia)
{
	post_recv(1);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(service.closes, 1);
	cr_expect_eq(service.pz_closes, 1);
	cr_expect_eq(service.ia_finis, 1);
}

/* Counters */

static DAT_UINT64 counter(DAT_HANDLE handle, int which)
{
	DAT_UINT64 v;

	succeed(dofi_counters_query(handle, which, &v, false));
	return v;
}

Test(datagram, operations_are_counted)
{
	const struct dofi_post p = datagram(0, 1);

	ah_make(0);
	succeed(dofi_ep_post_send_ud(ep, &p));
	succeed(dofi_ep_post_send_ud_immed(ep, &p));
	post_recv(1);
	post_recv(2);
	deliver(ep, 48);
	deliver_immed(ep, 50, 1);
	cr_expect_eq(counter(ep, DCNT_EP_POST_SEND_UD), 2);
	cr_expect_eq(counter(ep, DCNT_EP_POST_SEND_UD_DATA), 16);
	cr_expect_eq(counter(ep, DCNT_EP_RECV_UD), 2);
	cr_expect_eq(counter(ep, DCNT_EP_RECV_UD_DATA), 98);
	cr_expect_eq(counter(ep, DCNT_EP_POST_SEND), 0);
	cr_expect_eq(counter(ep, DCNT_EP_RECV), 0);
	cr_expect_eq(counter(ep, DCNT_EP_POST_RECV), 2);
}

Test(datagram, drops_are_counted)
{
	ia->count.dropped_no_receive = 3;
	ia->count.dropped_foreign = 4;
	ia->count.dropped_sends = 5;
	cr_expect_eq(counter(ia, DCNT_IA_DIAG_ERR_RQ_UDSDPRD), 3);
	cr_expect_eq(counter(ia, DCNT_IA_LNK_ERR_RCV_CONSTRAINT), 4);
	cr_expect_eq(counter(ia, DCNT_IA_LNK_ERR_XMT_DISCARDS), 5);
}
#endif
