/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An endpoint's attributes: refusals of dat_ep_modify, and which values are in force after it. */

#include "obj/fixture.h"
#include "obj/reason.h"

#include <rdma/fi_errno.h>

static DAT_EP_HANDLE ep;
static DAT_EP_PARAM param;		/* the request */

static void init(void)
{
	objects_init();
	ep = ep_make();
	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
}

TestSuite(ep_attr, .init = init, .fini = ia_fini);

static struct dofi_ep *inside(void)
{
	return ep;
}

static DAT_RETURN modify(DAT_EP_PARAM_MASK mask)
{
	return dofi_ep_modify(ep, mask, &param);
}

static DAT_EP_PARAM in_force(void)
{
	DAT_EP_PARAM now;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &now));
	return now;
}

/* Sets the endpoint's state, because this fabric cannot bring about every state. */
static void be(DAT_EP_STATE state)
{
	inside()->state = state;
}

static DAT_RETURN post_recv_segments(uint64_t n, DAT_COUNT segments)
{
	DAT_LMR_TRIPLET s[8];
	DAT_COUNT i;

	for (i = 0; i < 8; i++)
		s[i] = segment(64 * i, 8);
	return dofi_ep_post_recv(ep, segments, s, cookie_of(n), DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_recv(uint64_t n)
{
	return post_recv_segments(n, 1);
}

static void expect_dto(DAT_EVD_HANDLE from, uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = event_take(from, DAT_DTO_COMPLETION_EVENT);

	cr_expect_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, n);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, status, "%d",
		     event.event_data.dto_completion_event_data.status);
}

static DAT_PZ_HANDLE pz_make(void)
{
	DAT_PZ_HANDLE zone;

	succeed(dofi_pz_create(ia, &zone));
	return zone;
}

/* Fields that can be modified at all */

static const DAT_EP_PARAM_MASK never[] = {
	DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
	DAT_EP_FIELD_LOCAL_PORT_QUAL, DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
	DAT_EP_FIELD_REMOTE_PORT_QUAL, DAT_EP_FIELD_SRQ_HANDLE,
#if DAT_VERSION_MAJOR >= 2
	DAT_EP_FIELD_COMM,
#endif
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

Test(ep_attr, handles_are_checked)
{
	expect_handle(dofi_ep_modify(NULL, 0, &param), EP);
	expect_handle(dofi_ep_modify(pz, DAT_EP_FIELD_PZ_HANDLE, &param), EP);
	expect_handle(dofi_ep_modify(NOWHERE, DAT_EP_FIELD_PZ_HANDLE, &param), EP);
	succeed(dofi_ep_free(ep));
	expect_handle(modify(DAT_EP_FIELD_PZ_HANDLE), EP);
}

Test(ep_attr, what_describes_the_connection_is_never_modified)
{
	size_t i;

	for (i = 0; i < N(never); i++)
		expect_arg(modify(never[i]), 2);
}

Test(ep_attr, bits_that_mean_nothing_are_refused)
{
	int bit;

	for (bit = 0; bit < 64; bit++) {
		DAT_EP_PARAM_MASK mask = (DAT_EP_PARAM_MASK)1 << bit;

		if (!(mask & DAT_EP_FIELD_ALL))
			expect_arg(modify(mask), 2);
	}
	expect_arg(modify(DAT_EP_FIELD_ALL), 2);
}

Test(ep_attr, what_is_never_modified_counts_more_than_the_state)
{
	be(DAT_EP_STATE_CONNECTED);
	expect_arg(modify(DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_PZ_HANDLE), 2);
	be(DAT_EP_STATE_UNCONNECTED);
}

Test(ep_attr, the_state_counts_more_than_the_value)
{
	param.pz_handle = NOWHERE;
	be(DAT_EP_STATE_CONNECTED);
	expect_state(modify(DAT_EP_FIELD_PZ_HANDLE), EP_CONNECTED);
	expect_state(dofi_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, NULL), EP_CONNECTED);
	be(DAT_EP_STATE_UNCONNECTED);
}

Test(ep_attr, values_are_needed_for_what_is_asked)
{
	expect_arg(dofi_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, NULL), 3);
	succeed(dofi_ep_modify(ep, 0, NULL));
}

Test(ep_attr, nothing_may_be_modified_in_any_state)
{
	be(DAT_EP_STATE_CONNECTED);
	succeed(dofi_ep_modify(ep, 0, &param));
	be(DAT_EP_STATE_UNCONNECTED);
}

/* States in which a field can be modified */

#define U (1u << DAT_EP_STATE_UNCONNECTED)
#define TENTATIVE (1u << DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
#define RESERVED (1u << DAT_EP_STATE_RESERVED)
#define PASSIVE (1u << DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)

static const struct {
	DAT_EP_PARAM_MASK field;
	unsigned states;
} rules[] = {
	{ DAT_EP_FIELD_PZ_HANDLE, U | TENTATIVE },
	{ DAT_EP_FIELD_RECV_EVD_HANDLE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_CONNECT_EVD_HANDLE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_QOS, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, U | TENTATIVE | RESERVED | PASSIVE },
	{ DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, U },
	{ DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR, U },
	{ DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, U },
	{ DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, U },
};

static const struct {
	DAT_EP_STATE state;
	DAT_RETURN error;
} states[] = {
	{ DAT_EP_STATE_UNCONNECTED, DOFI_BAD_STATE(EP_UNCONNECTED) },
	{ DAT_EP_STATE_RESERVED, DOFI_BAD_STATE(EP_RESERVED) },
	{ DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DOFI_BAD_STATE(EP_PASSCONNPENDING) },
	{ DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DOFI_BAD_STATE(EP_ACTCONNPENDING) },
	{ DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DOFI_BAD_STATE(EP_TENTCONNPENDING) },
	{ DAT_EP_STATE_COMPLETION_PENDING, DOFI_BAD_STATE(EP_COMPLPENDING) },
	{ DAT_EP_STATE_CONNECTED, DOFI_BAD_STATE(EP_CONNECTED) },
	{ DAT_EP_STATE_DISCONNECT_PENDING, DOFI_BAD_STATE(EP_DISCPENDING) },
	{ DAT_EP_STATE_DISCONNECTED, DOFI_BAD_STATE(EP_DISCONNECTED) },
};

/* A queried value is accepted back in the states in which the field may change, and in no other. */
Test(ep_attr, each_field_changes_in_its_states_and_in_no_other)
{
	size_t i, j;

	for (i = 0; i < N(rules); i++) {
		for (j = 0; j < N(states); j++) {
			DAT_RETURN want = rules[i].states & (1u << states[j].state) ?
						  DAT_SUCCESS : states[j].error;
			DAT_RETURN got;

			be(states[j].state);
			got = modify(rules[i].field);
			cr_expect_eq(got, want, "field %#llx in state %d: %#x",
				     (unsigned long long)rules[i].field, states[j].state,
				     (unsigned)got);
		}
	}
	be(DAT_EP_STATE_UNCONNECTED);
}

Test(ep_attr, every_field_has_a_rule)
{
	DAT_EP_PARAM_MASK all = DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;
	size_t i;

	for (i = 0; i < N(rules); i++)
		all |= rules[i].field;
	for (i = 0; i < N(never); i++)
		all |= never[i];
	cr_expect_eq(all, DAT_EP_FIELD_ALL);
}

Test(ep_attr, a_field_in_a_wrong_state_refuses_all_fields)
{
	DAT_EVD_HANDLE other = evd_make(8, DAT_EVD_DTO_FLAG);

	param.recv_evd_handle = other;
	be(DAT_EP_STATE_RESERVED);
	expect_state(modify(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_PZ_HANDLE), EP_RESERVED);
	cr_expect_eq(in_force().recv_evd_handle, evd);
	be(DAT_EP_STATE_UNCONNECTED);
}

/* Values that are refused: the log names the member. */

#define REFUSES(mask, member, value)                                             \
	do {                                                                     \
		DAT_EP_PARAM before = param;                                     \
		param.member = (value);                                          \
		expect_arg(modify(mask), 3);                                     \
		REASON(modify(mask), #member);                                   \
		param = before;                                                  \
	} while (0)

Test(ep_attr, a_refusal_gives_its_reason)
{
	const DAT_EP_PARAM_MASK evds = DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_PZ_HANDLE;

	REASON(dofi_ep_modify(pz, 0, NULL), "is no live EP");
	REASON(modify(DAT_EP_FIELD_EP_STATE), "ep_state cannot be changed");
	REASON(dofi_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, NULL), "no ep_param");
	param.ep_attr.max_recv_dtos = -5;
	REASON(modify(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS),
	       "ep_attr.max_recv_dtos is -5; permitted: 0 to 65536");
	param.ep_attr.service_type = (DAT_SERVICE_TYPE)77;
	REASON(modify(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE),
	       "ep_attr.service_type is 77; permitted: DAT_SERVICE_TYPE_RC");
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	REASON(modify(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS),
	       "recv_completion_flags is 0x1; permitted: DEFAULT,");
	ia->strict = true;
	REASON(modify(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW), "ep_attr.srq_soft_hw: the EP has no SRQ");
	be(DAT_EP_STATE_RESERVED);
	REASON(modify(evds), "pz_handle in the state RESERVED; permitted: UNCONNECTED TENTATIVE");
	be(DAT_EP_STATE_UNCONNECTED);
}

Test(ep_attr, pzs_and_queues_must_be_live_and_of_the_ia)
{
	struct dofi_ia *other;
	DAT_PZ_HANDLE zone;

	cr_assert_eq(ia_try_open(&other), 0);
	succeed(dofi_pz_create(other, &zone));
	REFUSES(DAT_EP_FIELD_PZ_HANDLE, pz_handle, zone);
	REFUSES(DAT_EP_FIELD_PZ_HANDLE, pz_handle, NULL);
	REFUSES(DAT_EP_FIELD_PZ_HANDLE, pz_handle, NOWHERE);
	REFUSES(DAT_EP_FIELD_PZ_HANDLE, pz_handle, evd);
	REFUSES(DAT_EP_FIELD_RECV_EVD_HANDLE, recv_evd_handle, NOWHERE);
	REFUSES(DAT_EP_FIELD_REQUEST_EVD_HANDLE, request_evd_handle, pz);
	REFUSES(DAT_EP_FIELD_CONNECT_EVD_HANDLE, connect_evd_handle, ep);
	succeed(dofi_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	zone = pz_make();
	succeed(dofi_pz_free(zone));
	REFUSES(DAT_EP_FIELD_PZ_HANDLE, pz_handle, zone);
}

Test(ep_attr, queues_must_take_the_stream)
{
	DAT_EVD_HANDLE cr = evd_make(4, DAT_EVD_CR_FLAG), dto = evd_make(4, DAT_EVD_DTO_FLAG);

	REFUSES(DAT_EP_FIELD_RECV_EVD_HANDLE, recv_evd_handle, cr);
	REFUSES(DAT_EP_FIELD_REQUEST_EVD_HANDLE, request_evd_handle, cr);
	REFUSES(DAT_EP_FIELD_CONNECT_EVD_HANDLE, connect_evd_handle, dto);
}

#define ATTR(name) DAT_EP_FIELD_EP_ATTR_##name

Test(ep_attr, attributes_are_bounded)
{
	DAT_NAMED_ATTR named = { "name", "value" };
	DAT_IA_ATTR most;

	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &most, 0, NULL));
	REFUSES(ATTR(SERVICE_TYPE), ep_attr.service_type, (DAT_SERVICE_TYPE)77);
	REFUSES(ATTR(MAX_MESSAGE_SIZE), ep_attr.max_message_size, most.max_message_size + 1);
	REFUSES(ATTR(MAX_RDMA_SIZE), ep_attr.max_rdma_size, most.max_rdma_size + 1);
	REFUSES(ATTR(QOS), ep_attr.qos, (DAT_QOS)16);
	REFUSES(ATTR(RECV_COMPLETION_FLAGS), ep_attr.recv_completion_flags,
		DAT_COMPLETION_SUPPRESS_FLAG);
	REFUSES(ATTR(REQUEST_COMPLETION_FLAGS), ep_attr.request_completion_flags,
		(DAT_COMPLETION_FLAGS)0x1000);
	REFUSES(ATTR(MAX_RECV_DTOS), ep_attr.max_recv_dtos, most.max_dto_per_ep + 1);
	REFUSES(ATTR(MAX_RECV_DTOS), ep_attr.max_recv_dtos, -1);
	REFUSES(ATTR(MAX_REQUEST_DTOS), ep_attr.max_request_dtos, most.max_dto_per_ep + 1);
	REFUSES(ATTR(MAX_RECV_IOV), ep_attr.max_recv_iov, most.max_iov_segments_per_dto + 1);
	REFUSES(ATTR(MAX_REQUEST_IOV), ep_attr.max_request_iov, -1);
	REFUSES(ATTR(MAX_RDMA_READ_IN), ep_attr.max_rdma_read_in, most.max_rdma_read_per_ep_in + 1);
	REFUSES(ATTR(MAX_RDMA_READ_OUT), ep_attr.max_rdma_read_out, INT32_MIN);
	REFUSES(ATTR(MAX_RDMA_READ_IOV), ep_attr.max_rdma_read_iov,
		most.max_iov_segments_per_rdma_read + 1);
	REFUSES(ATTR(MAX_RDMA_WRITE_IOV), ep_attr.max_rdma_write_iov,
		most.max_iov_segments_per_rdma_write + 1);
	REFUSES(ATTR(NUM_TRANSPORT_ATTR), ep_attr.ep_transport_specific_count, 1);
	REFUSES(ATTR(NUM_PROVIDER_ATTR), ep_attr.ep_provider_specific_count, -1);
	param.ep_attr.ep_provider_specific = &named;
	REFUSES(ATTR(NUM_PROVIDER_ATTR) | ATTR(PROVIDER_SPECIFIC_ATTR),
		ep_attr.ep_provider_specific_count, 1);
	param.ep_attr = in_force().ep_attr;
	cr_expect(!param.ep_attr.ep_provider_specific);
}

Test(ep_attr, a_watermark_of_a_shared_queue_needs_one)
{
	ia->strict = true;
	REFUSES(ATTR(SRQ_SOFT_HW), ep_attr.srq_soft_hw, 1);
	REFUSES(ATTR(SRQ_SOFT_HW), ep_attr.srq_soft_hw, DAT_WATERMARK_INFINITE);
}

/* The mask of all attributes has it, so programs pass the member for every EP. */
Test(ep_attr, a_watermark_without_a_shared_queue_has_no_effect_unless_strict)
{
	ia->strict = false;
	succeed(modify(ATTR(SRQ_SOFT_HW)));
	cr_expect_eq(((struct dofi_ep *)ep)->soft_watermark, DAT_WATERMARK_INFINITE);
}

Test(ep_attr, a_bad_value_changes_no_field)
{
	DAT_EVD_HANDLE other = evd_make(8, EVD_ALL_FLAGS);
	DAT_EP_PARAM before = in_force(), now;

	param.pz_handle = pz_make();
	param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = other;
	param.ep_attr.max_recv_dtos = 3;
	param.ep_attr.max_rdma_write_iov = -1;
	expect_arg(modify(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			  DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			  ATTR(MAX_RECV_DTOS) | ATTR(MAX_RDMA_WRITE_IOV)), 3);
	now = in_force();
	cr_expect(!memcmp(&before, &now, sizeof(now)));
	succeed(dofi_evd_free(other));
	succeed(dofi_pz_free(param.pz_handle));
}

Test(ep_attr, what_is_not_asked_for_is_not_looked_at)
{
	param.pz_handle = param.recv_evd_handle = NOWHERE;
	param.ep_attr.max_recv_iov = -5;
	param.ep_attr.max_request_dtos = 7;
	succeed(modify(ATTR(MAX_REQUEST_DTOS)));
	cr_expect_eq(in_force().ep_attr.max_request_dtos, 7);
	cr_expect_eq(in_force().pz_handle, pz);
}

/* Values in force after a change */

#define CHANGES(name, member, value)                                             \
	do {                                                                     \
		param.ep_attr.member = (value);                                  \
		succeed(modify(ATTR(name)));                                     \
		cr_expect_eq(in_force().ep_attr.member, (value), #member);       \
	} while (0)

Test(ep_attr, a_query_returns_the_new_values)
{
	param.recv_evd_handle = param.request_evd_handle = evd_make(8, DAT_EVD_DTO_FLAG);
	succeed(modify(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE));
	param.ep_attr.recv_completion_flags = param.ep_attr.request_completion_flags =
		DAT_COMPLETION_UNSIGNALLED_FLAG;
	succeed(modify(ATTR(RECV_COMPLETION_FLAGS) | ATTR(REQUEST_COMPLETION_FLAGS)));
	CHANGES(MAX_MESSAGE_SIZE, max_message_size, 4000);
	CHANGES(MAX_RDMA_SIZE, max_rdma_size, 5000);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 3);
	CHANGES(MAX_REQUEST_DTOS, max_request_dtos, 1000);
	CHANGES(MAX_RECV_IOV, max_recv_iov, 5);
	CHANGES(MAX_REQUEST_IOV, max_request_iov, 1);
	CHANGES(MAX_RDMA_READ_IN, max_rdma_read_in, 2);
	CHANGES(MAX_RDMA_READ_OUT, max_rdma_read_out, 3);
	CHANGES(MAX_RDMA_READ_IOV, max_rdma_read_iov, 6);
	CHANGES(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, 1);
	cr_expect_eq(in_force().ep_attr.max_recv_dtos, 3);
}

Test(ep_attr, all_that_may_change_is_accepted_back_at_once)
{
	DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_ALL & ~ATTR(SRQ_SOFT_HW);
	DAT_EP_PARAM before = in_force(), now;
	size_t i;

	for (i = 0; i < N(never); i++)
		mask &= ~never[i];
	succeed(modify(mask));
	now = in_force();
	cr_expect(!memcmp(&before, &now, sizeof(now)));
}

Test(ep_attr, pzs_and_queues_are_held_and_let_go)
{
	DAT_EVD_HANDLE mine = evd_make(8, EVD_ALL_FLAGS);
	DAT_PZ_HANDLE zone = pz_make();
	DAT_EP_PARAM back = param;

	param.pz_handle = zone;
	param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = mine;
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
		       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE));
	expect_state(dofi_evd_free(mine), EVD_IN_USE);
	expect_state(dofi_pz_free(zone), PZ_IN_USE);
	succeed(dofi_evd_free(evd));
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	evd = mine;
	pz = back.pz_handle = zone;
	back.recv_evd_handle = back.request_evd_handle = back.connect_evd_handle = NULL;
	succeed(dofi_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
			       DAT_EP_FIELD_CONNECT_EVD_HANDLE, &back));
	succeed(dofi_evd_free(mine));
	succeed(dofi_ep_free(ep));
	succeed(dofi_pz_free(zone));
}

/* How many times the PZ @zone feeds the EVD @handle. */
static int feeds(DAT_EVD_HANDLE handle, DAT_PZ_HANDLE zone)
{
	struct dofi_evd *e = handle;
	struct dofi_pz *z = zone;
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++)
		if (atomic_load(&e->feed[i]) == &z->domain.cq)
			return e->feed_users[i];
	return 0;
}

/* The EP has a peer, @conn, or none, and its operations complete at @cq. */
static void cq_set(struct dofi_ep *inner, void *conn, struct dofi_cq *cq)
{
	dofi_mutex_lock(&inner->lock);
	inner->conn = conn;
	dofi_ep_set_cq(inner, cq);
	dofi_mutex_unlock(&inner->lock);
}

Test(ep_attr, queues_poll_where_their_endpoint_is)
{
	struct dofi_ep *inner = ep;
	struct dofi_pz *zone = pz;
	struct dofi_evd *e = evd;

	cr_expect(inner->cq == &zone->domain.cq);
	cr_expect_eq(feeds(evd, pz), 0);
	cr_expect_eq(e->sole_cq, NULL);
	cq_set(inner, &transport, &zone->domain.cq);
	cr_expect_eq(feeds(evd, pz), 2);
	cq_set(inner, &transport, &zone->local.cq);
	cr_expect(inner->cq == &zone->local.cq);
	cr_expect_eq(feeds(evd, pz), 0);
	cr_expect(e->sole_cq == &zone->local.cq);
	cq_set(inner, &transport, &zone->local.cq);
	cq_set(inner, &transport, &zone->domain.cq);
	cr_expect_eq(feeds(evd, pz), 2);
	cr_expect(e->sole_cq == &zone->domain.cq);
	cq_set(inner, NULL, &zone->domain.cq);
	cr_expect_eq(feeds(evd, pz), 0);
	cr_expect_eq(e->sole_cq, NULL);
}

/* A pool of EPs without a peer takes neither the fast poll nor the leader from a connected one. */
Test(ep_attr, endpoints_without_a_peer_feed_no_queue)
{
	struct dofi_pz *zone = pz;
	struct dofi_evd *e = evd;
	DAT_EP_HANDLE idle;

	succeed(dofi_ep_create(ia, pz_make(), evd, evd, NULL, NULL, &idle));
	make_connected(ep);
	cr_expect(e->sole_cq == &zone->domain.cq);
	succeed(dofi_ep_free(idle));
	cr_expect(e->sole_cq == &zone->domain.cq);
}

Test(ep_attr, queues_poll_the_pz_that_feeds_them)
{
	DAT_EVD_HANDLE other = evd_make(8, DAT_EVD_DTO_FLAG);
	DAT_PZ_HANDLE zone = pz_make();

	param.recv_evd_handle = other;
	succeed(modify(DAT_EP_FIELD_RECV_EVD_HANDLE));
	param.pz_handle = zone;
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE));
	make_connected(ep);
	cr_expect_eq(feeds(evd, pz), 0);
	cr_expect_eq(feeds(other, pz), 0);
	cr_expect_eq(feeds(evd, zone), 1);
	cr_expect_eq(feeds(other, zone), 1);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(feeds(evd, zone), 0);
}

/* An EVD polls a limited number of PZs. A connection that ends makes way for the next one. */
Test(ep_attr, a_full_queue_of_pzs_polls_the_next_one)
{
	DAT_EP_HANDLE others[DOFI_EVD_FEEDS];
	DAT_PZ_HANDLE zone = pz_make();
	int i;

	for (i = 0; i < DOFI_EVD_FEEDS; i++) {
		succeed(dofi_ep_create(ia, pz_make(), evd, NULL, evd, NULL, &others[i]));
		make_connected(others[i]);
	}
	param.pz_handle = zone;
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE));
	succeed(dofi_ep_free(others[0]));
	make_connected(ep);
	cr_expect_eq(feeds(evd, zone), 2);
}

Test(ep_attr, an_empty_receive_needs_no_pz)
{
	succeed(dofi_ep_create(ia, NULL, evd, evd, evd, NULL, &ep));
	succeed(post_recv_segments(1, 0));
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE));
	make_connected(ep);
	complete_with(0, 0, 0);
	expect_dto(evd, 1, DAT_DTO_SUCCESS);
}

Test(ep_attr, an_ep_without_a_pz_is_given_one)
{
	succeed(dofi_ep_create(ia, NULL, NULL, NULL, NULL, NULL, &ep));
	be(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
		       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE));
	be(DAT_EP_STATE_UNCONNECTED);
	make_connected(ep);
	cr_expect_eq(in_force().ep_state, DAT_EP_STATE_CONNECTED);
}

Test(ep_attr, events_go_to_the_new_queues)
{
	DAT_EVD_HANDLE dto = evd_make(8, DAT_EVD_DTO_FLAG),
		       conn = evd_make(8, DAT_EVD_CONNECTION_FLAG);

	succeed(post_recv(1));
	param.recv_evd_handle = dto;
	param.connect_evd_handle = conn;
	succeed(modify(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE));
	make_connected(ep);
	complete_with(0, 0, 8);
	expect_dto(dto, 1, DAT_DTO_SUCCESS);
	cr_expect(event_none(evd));
}

Test(ep_attr, a_freed_ep_leaves_no_event_in_an_earlier_queue)
{
	DAT_EP_HANDLE freed = ep_make();

	start_connecting(freed);
	succeed(dofi_ep_disconnect(freed, DAT_CLOSE_ABRUPT_FLAG));
	settle();
	succeed(dofi_ep_reset(freed));
	param.connect_evd_handle = evd_make(8, DAT_EVD_CONNECTION_FLAG);
	succeed(dofi_ep_modify(freed, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	succeed(dofi_ep_free(freed));
	cr_expect(event_none(evd));
}

Test(ep_attr, without_a_queue_completions_go_nowhere)
{
	param.recv_evd_handle = NULL;
	succeed(post_recv(1));
	succeed(modify(DAT_EP_FIELD_RECV_EVD_HANDLE));
	make_connected(ep);
	complete_with(0, 0, 8);
	cr_expect(event_none(evd));
}

Test(ep_attr, reads_are_throttled_as_now_agreed)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);
	int i;

	CHANGES(MAX_RDMA_READ_OUT, max_rdma_read_out, 2);
	make_connected(ep);
	for (i = 0; i < 3; i++)
		succeed(dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(i), &r,
					       DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(transport.n, 2);
}

/* Queues of other sizes */

static void fill_receives(uint64_t first, DAT_COUNT n)
{
	DAT_COUNT i;

	for (i = 0; i < n; i++)
		succeed(post_recv(first + i));
	expect_type(post_recv(first + n), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_attr, a_deeper_queue_keeps_its_receives_and_their_order)
{
	unsigned i;

	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 3);
	fill_receives(0, 3);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 100);
	fill_receives(3, 97);
	make_connected(ep);
	cr_assert_eq(transport.n, 100);
	for (i = 0; i < 100; i++) {
		cr_expect_eq(transport.dto[i]->cookie, i);
		cr_expect_eq(transport.dto[i]->n_iov, 1);
		cr_expect_eq(transport.dto[i]->iov[0].iov_base, (void *)memory);
	}
}

Test(ep_attr, a_shallower_queue_has_room_for_what_is_posted)
{
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 100);
	succeed(post_recv(1));
	succeed(post_recv(2));
	REFUSES(ATTR(MAX_RECV_DTOS), ep_attr.max_recv_dtos, 1);
	REFUSES(ATTR(MAX_RECV_DTOS), ep_attr.max_recv_dtos, 0);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 2);
	expect_type(post_recv(3), DAT_INSUFFICIENT_RESOURCES);
	make_connected(ep);
	cr_expect_eq(transport.n, 2);
	cr_expect_eq(transport.dto[1]->cookie, 2);
}

Test(ep_attr, a_queue_that_has_wrapped_keeps_its_receives)
{
	unsigned i;

	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 4);
	fill_receives(0, 4);
	make_connected(ep);
	for (i = 0; i < 3; i++) {
		complete_with(i, 0, 8);
		expect_dto(evd, i, DAT_DTO_SUCCESS);
	}
	dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	expect_dto(evd, 3, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	succeed(post_recv(10));
	succeed(post_recv(11));
	inside()->rq.head += 6;		/* the slots that follow wrap around the end */
	inside()->rq.next = inside()->rq.tail = inside()->rq.head;
	fill_receives(20, 4);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 9);
	make_connected(ep);
	cr_assert_eq(transport.n, 8);
	for (i = 0; i < 4; i++)
		cr_expect_eq(transport.dto[4 + i]->cookie, 20 + i);
}

Test(ep_attr, wider_slots_keep_every_segment)
{
	DAT_COUNT i;

	CHANGES(MAX_RECV_IOV, max_recv_iov, 2);
	expect_arg(post_recv_segments(1, 3), 2);
	succeed(post_recv_segments(1, 2));
	CHANGES(MAX_RECV_IOV, max_recv_iov, 5);
	succeed(post_recv_segments(2, 5));
	make_connected(ep);
	cr_assert_eq(transport.n, 2);
	cr_expect_eq(transport.dto[0]->n_iov, 2);
	cr_expect_eq(transport.dto[1]->n_iov, 5);
	for (i = 0; i < 5; i++)
		cr_expect_eq(transport.dto[1]->iov[i].iov_base, (void *)(memory + 64 * i));
	cr_expect_eq(transport.dto[0]->iov[1].iov_base, (void *)(memory + 64));
}

Test(ep_attr, fewer_segments_leave_posted_receives_whole)
{
	DAT_COUNT i;

	((struct dofi_lmr *)lmr)->desc = memory;
	CHANGES(MAX_RECV_IOV, max_recv_iov, 5);
	succeed(post_recv_segments(1, 5));
	succeed(post_recv_segments(2, 5));
	CHANGES(MAX_RECV_IOV, max_recv_iov, 1);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 200);
	expect_arg(post_recv_segments(3, 2), 2);
	make_connected(ep);
	for (i = 0; i < 10; i++) {
		struct dofi_dto *dto = transport.dto[i / 5];

		cr_expect_eq(dto->n_iov, 5);
		cr_expect_eq(dto->iov[i % 5].iov_base, (void *)(memory + 64 * (i % 5)));
		cr_expect_eq(dto->desc[i % 5], (void *)memory);
	}
}

Test(ep_attr, a_deeper_request_queue_takes_more)
{
	DAT_LMR_TRIPLET s = segment(0, 8);
	int i;

	CHANGES(MAX_REQUEST_DTOS, max_request_dtos, 200);
	make_connected(ep);
	for (i = 0; i < 200; i++)
		succeed(dofi_ep_post_send(ep, 1, &s, cookie_of(i), 0));
	expect_type(dofi_ep_post_send(ep, 1, &s, cookie_of(i), 0), DAT_INSUFFICIENT_RESOURCES);
}

Test(ep_attr, completion_flags_of_posted_receives_stay)
{
	succeed(post_recv(1));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	expect_state(modify(ATTR(RECV_COMPLETION_FLAGS)), EP_UNCONNECTED);
	cr_expect_eq(in_force().ep_attr.recv_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
	succeed(modify(ATTR(MAX_RECV_DTOS)));
}

/* Receives of another PZ */

static void move_to(DAT_PZ_HANDLE zone)
{
	param.pz_handle = zone;
	succeed(modify(DAT_EP_FIELD_PZ_HANDLE));
}

Test(ep_attr, a_receive_of_another_pz_fails_when_it_is_used)
{
	succeed(post_recv(1));
	move_to(pz_make());
	make_connected(ep);
	cr_assert_eq(transport.n, 1);
	cr_expect_eq(transport.dto[0]->n_iov, 0);
	cr_expect(event_none(evd));
	complete_with(0, FI_ETRUNC, 0);
	settle();
	expect_dto(evd, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_attr, a_receive_of_another_pz_may_be_flushed_unused)
{
	succeed(post_recv(1));
	move_to(pz_make());
	make_connected(ep);
	dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	expect_dto(evd, 1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

Test(ep_attr, an_empty_receive_is_of_every_pz)
{
	succeed(post_recv_segments(1, 0));
	move_to(pz_make());
	make_connected(ep);
	complete_with(0, FI_ETRUNC, 0);
	expect_dto(evd, 1, DAT_DTO_ERR_LOCAL_LENGTH);
}

Test(ep_attr, back_in_its_pz_a_receive_is_good_again)
{
	DAT_PZ_HANDLE a = pz_make(), b = pz_make();

	succeed(post_recv_segments(1, 3));
	move_to(a);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 300);
	move_to(b);
	move_to(pz);
	make_connected(ep);
	cr_expect_eq(transport.dto[0]->n_iov, 3);
	cr_expect_eq(transport.dto[0]->iov[2].iov_base, (void *)(memory + 128));
	complete_with(0, FI_ETRUNC, 0);
	expect_dto(evd, 1, DAT_DTO_ERR_LOCAL_LENGTH);
}

Test(ep_attr, a_new_pz_is_not_the_old_one_by_its_address)
{
	DAT_PZ_HANDLE first = pz_make(), again;
	DAT_LMR_CONTEXT context, unused;
	DAT_LMR_HANDLE own;
	DAT_LMR_TRIPLET s;

	succeed(lmr_make(first, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG, &own, &context,
			 &unused));
	move_to(first);
	s = segment(0, 8);
	s.lmr_context = context;
	succeed(dofi_ep_post_recv(ep, 1, &s, cookie_of(1), 0));
	move_to(pz);
	succeed(dofi_lmr_free(own));
	succeed(dofi_pz_free(first));
	for (again = pz_make(); again != first; again = pz_make())
		succeed(dofi_pz_free(again));
	move_to(again);
	make_connected(ep);
	cr_expect_eq(transport.dto[0]->n_iov, 0);
}

Test(ep_attr, a_slot_that_was_barred_is_used_again)
{
	DAT_PZ_HANDLE zone = pz_make();
	DAT_EVENT event;

	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 1);
	succeed(post_recv(1));
	move_to(zone);
	make_connected(ep);
	complete_with(0, 0, 0);
	expect_dto(evd, 1, DAT_DTO_SUCCESS);
	dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	succeed(dofi_ep_reset(ep));
	move_to(pz);
	succeed(post_recv(2));
	make_connected(ep);
	complete_with(1, FI_ETRUNC, 0);
	event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	cr_expect_eq(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_LOCAL_LENGTH);
}

/* The number of posted receives */

Test(ep_attr, the_arguments_of_the_counts_are_checked)
{
	DAT_COUNT n;

	expect_handle(dofi_ep_recv_query(NULL, &n, &n), EP);
	expect_handle(dofi_ep_recv_query(evd, &n, &n), EP);
	expect_handle(dofi_ep_set_watermark(NOWHERE, 1, 1), EP);
	expect_arg(dofi_ep_set_watermark(ep, -2, 1), 2);
	expect_arg(dofi_ep_set_watermark(ep, 1, INT32_MIN), 3);
	succeed(dofi_ep_recv_query(ep, NULL, NULL));
}

static void holds(DAT_COUNT n)
{
	DAT_COUNT buffers = -7, span = -7;

	succeed(dofi_ep_recv_query(ep, &buffers, &span));
	cr_expect_eq(buffers, n);
	cr_expect_eq(span, n);
}

Test(ep_attr, posted_receives_are_held_until_they_complete)
{
	holds(0);
	succeed(post_recv(1));
	succeed(post_recv(2));
	holds(2);
	make_connected(ep);
	complete_with(0, 0, 8);
	holds(1);
	dofi_ep_end_with(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	settle();
	holds(0);
}

/* Watermarks */

#define INFINITE DAT_WATERMARK_INFINITE

static DAT_EVD_HANDLE async;

/*
 * Replaces the IA's asynchronous EVD. dat_ia_open makes it, but the fixture opens the IA without
 * that call.
 */
static void watch_async(void)
{
	async = evd_make(8, DAT_EVD_ASYNC_FLAG);
	async_set(async);
}

static void expect_soft_event(void)
{
	DAT_ASYNCH_ERROR_EVENT_DATA data = event_take(async, DAT_ASYNC_ERROR_EP_BROKEN)
						   .event_data.asynch_error_event_data;

	cr_expect_eq(data.dat_handle, ep);
	cr_expect_eq(data.reason, (DAT_COUNT)DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	cr_expect(event_none(async));
}

Test(ep_attr, more_receives_than_the_soft_watermark_are_reported_once)
{
	watch_async();
	succeed(dofi_ep_set_watermark(ep, 2, INFINITE));
	succeed(post_recv(1));
	succeed(post_recv(2));
	cr_expect(event_none(async));
	succeed(post_recv(3));
	expect_soft_event();
	succeed(post_recv(4));
	cr_expect(event_none(async));
	cr_expect_eq(in_force().ep_state, DAT_EP_STATE_UNCONNECTED);
}

Test(ep_attr, a_soft_watermark_that_is_passed_already_is_reported_at_once)
{
	watch_async();
	succeed(post_recv(1));
	succeed(dofi_ep_set_watermark(ep, 0, INFINITE));
	expect_soft_event();
	succeed(dofi_ep_set_watermark(ep, 0, INFINITE));
	expect_soft_event();
	succeed(dofi_ep_set_watermark(ep, 1, INFINITE));
	cr_expect(event_none(async));
}

Test(ep_attr, a_refused_receive_passes_no_watermark)
{
	DAT_LMR_TRIPLET bad = segment(0, 2 * sizeof(memory));

	watch_async();
	succeed(dofi_ep_set_watermark(ep, 0, INFINITE));
	expect_arg(dofi_ep_post_recv(ep, 1, &bad, cookie_of(1), 0), 3);
	cr_expect(event_none(async));
	succeed(post_recv(1));
	expect_soft_event();
}

Test(ep_attr, receives_that_complete_make_room_below_a_watermark)
{
	unsigned i;

	watch_async();
	succeed(dofi_ep_set_watermark(ep, 2, 2));
	make_connected(ep);
	for (i = 0; i < 100; i++) {
		succeed(post_recv(i));
		complete_with(i, 0, 8);
		expect_dto(evd, i, DAT_DTO_SUCCESS);
	}
	cr_expect(event_none(async));
	cr_expect_eq(in_force().ep_state, DAT_EP_STATE_CONNECTED);
}

Test(ep_attr, more_receives_than_the_hard_watermark_break_the_connection)
{
	make_connected(ep);
	succeed(dofi_ep_set_watermark(ep, INFINITE, 1));
	succeed(post_recv(1));
	settle();
	cr_expect(event_none(evd));
	succeed(post_recv(2));
	settle();
	expect_dto(evd, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(evd, 2, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
}

Test(ep_attr, a_hard_watermark_that_is_passed_already_breaks_at_once)
{
	make_connected(ep);
	succeed(post_recv(1));
	succeed(dofi_ep_set_watermark(ep, INFINITE, 0));
	settle();
	expect_dto(evd, 1, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_attr, the_hard_watermark_counts_once_connected)
{
	succeed(dofi_ep_set_watermark(ep, INFINITE, 1));
	succeed(post_recv(1));
	succeed(post_recv(2));
	succeed(post_recv(3));
	start_connecting(ep);
	cr_expect(event_none(evd));
	establish(ep, NULL, 0);
	settle();
	event_take(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_dto(evd, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(evd, 2, DAT_DTO_ERR_FLUSHED);
	expect_dto(evd, 3, DAT_DTO_ERR_FLUSHED);
	event_take(evd, DAT_CONNECTION_EVENT_BROKEN);
}

Test(ep_attr, watermarks_do_not_make_a_queue_deeper_or_shallower)
{
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 3);
	succeed(dofi_ep_set_watermark(ep, 1, 1));
	fill_receives(0, 3);
	succeed(dofi_ep_set_watermark(ep, 1000, 1000));
	expect_type(post_recv(4), DAT_INSUFFICIENT_RESOURCES);
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 5);
	fill_receives(3, 2);
}

Test(ep_attr, a_modified_queue_keeps_its_watermark)
{
	watch_async();
	succeed(dofi_ep_set_watermark(ep, 1, INFINITE));
	succeed(post_recv(1));
	CHANGES(MAX_RECV_DTOS, max_recv_dtos, 300);
	succeed(post_recv(2));
	expect_soft_event();
}
