/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table on an IA: its attributes, and the permitted requests of an endpoint. */

#include "obj/fixture.h"

#include "base/log.h"
#include "capture.h"
#include "obj/caps.h"

#include <stdio.h>

static DAT_IA_ATTR ia_attr;
static DAT_EP_ATTR attr, got;
static DAT_PROVIDER_ATTR provider_attr;

static void init(void)
{
	objects_init();
	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL,
			      &provider_attr));
	succeed(dofi_caps_ep_attr(ia, NULL, &attr));
}

static const char *named(const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < provider_attr.num_provider_specific_attr; i++)
		if (!strcmp(provider_attr.provider_specific_attr[i].name, name))
			return provider_attr.provider_specific_attr[i].value;
	return NULL;
}

TestSuite(caps_use, .init = init, .fini = ia_fini);

Test(caps_use, counts_are_not_negative)
{
	cr_expect(ia_attr.max_eps > 0 && ia_attr.max_evds > 0 && ia_attr.max_lmrs > 0);
	cr_expect(ia_attr.max_rdma_read_in > 0 && ia_attr.max_evd_qlen > 0);
}

Test(caps_use, the_fabrics_limits_come_through)
{
	cr_expect_eq(ia_attr.max_message_size, 1 << 20);
	cr_expect_eq(ia_attr.max_rdma_size, 1 << 20);
	cr_expect_eq(ia_attr.max_iov_segments_per_dto, 5);
	cr_expect_eq(ia_attr.max_iov_segments_per_rdma_read, 6);
	cr_expect_eq(ia_attr.max_iov_segments_per_rdma_write, 6);
}

Test(caps_use, a_large_limit_of_the_fabric_is_cut_to_ours)
{
	ia->limits.max_message_size = UINT64_MAX;
	ia->limits.max_iov = 1000;
	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, 0, NULL));
	cr_expect_eq(ia_attr.max_iov_segments_per_dto, DOFI_MAX_IOV);
	cr_expect_eq(ia_attr.max_message_size, (dofi_seg_length)-1);
}

Test(caps_use, the_named_attributes_have_the_fabric)
{
	cr_expect_str_eq(named("OFI_PROVIDER"), "tcp");
	cr_expect_str_eq(named("OFI_DOMAIN"), "fake0");
	cr_expect_str_eq(named("OFI_FABRICS"), "tcp");
	cr_expect(named("OFI_FABRICS_RDM"));
	cr_expect(*named("OFI_LIBFABRIC"));
	cr_expect_str_eq(named("DAT_IB_RDMA_READ"), "TRUE");
	cr_expect_str_eq(named("DAT_IB_TRANSPORT_MTU"), "4096");
	cr_expect(!named("DAT_IB_DEVICE_NAME"));
	cr_expect(!named("DAT_IB_GID"));
}

Test(caps_use, the_named_attributes_have_the_device)
{
	ia->device = (struct dofi_device){
		.name = "mlx5_0",
		.port = "1",
		.state = "PORT_ACTIVE",
		.mtu = "1024",
		.gid = "fe80::1",
		.guid = "b83f:d203:0001:0002",
	};
	dofi_caps_named_attrs(ia);
	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider_attr));
	cr_expect_str_eq(named("DAT_IB_DEVICE_NAME"), "mlx5_0");
	cr_expect_str_eq(named("DAT_IB_PORT_NUMBER"), "1");
	cr_expect_str_eq(named("DAT_IB_PORT_STATUS"), "PORT_ACTIVE");
	cr_expect_str_eq(named("DAT_IB_TRANSPORT_MTU"), "1024");
	cr_expect_str_eq(named("DAT_IB_GID"), "fe80::1");
	cr_expect_str_eq(named("DAT_IB_NODE_GUID"), "b83f:d203:0001:0002");
	cr_expect(provider_attr.num_provider_specific_attr < DOFI_IA_NAMED_ATTRS);
}

/*
 * The attributes describe the transport that the IA was opened with. The test of fab/info.c covers
 * the choice.
 */
Test(caps_use, the_named_attributes_have_the_transport)
{
	cr_expect_str_eq(named("OFI_ENDPOINT"), "msg");
	cr_expect_str_eq(named("OFI_RDMA"), "fabric");
	cr_expect_str_eq(named("OFI_WRITES_ORDERED"), "TRUE");
	cr_expect_str_eq(named("OFI_RDMA_REFUSED"), "DAT_DTO_ERR_FLUSHED");
	cr_expect_str_eq(named("OFI_GOODBYE"), "TRUE");
	cr_expect(!named("OFI_FRAME_SIZE"));
	cr_expect(!named("OFI_LOCAL"));
	ia->local.info = ia->fabric.info;
	ia->fabric.rdm = ia->fabric.target_rdma = true;
	ia->fabric.write_ordered = ia->fabric.sends_bye = false;
	strcpy(ia->frame_size, "4096");
	dofi_caps_named_attrs(ia);
	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider_attr));
	ia->local.info = NULL;
	ia->fabric.rdm = ia->fabric.target_rdma = false;
	cr_expect_str_eq(named("OFI_ENDPOINT"), "rdm");
	cr_expect_str_eq(named("OFI_RDMA"), "target");
	cr_expect_str_eq(named("OFI_WRITES_ORDERED"), "FALSE");
	cr_expect_str_eq(named("OFI_RDMA_REFUSED"), "DAT_DTO_ERR_REMOTE_ACCESS");
	cr_expect_str_eq(named("OFI_GOODBYE"), "FALSE");
	cr_expect_str_eq(named("OFI_FRAME_SIZE"), "4096");
	cr_expect_str_eq(named("OFI_LOCAL"), "tcp");
}

Test(caps_use, names_are_not_given_twice)
{
	DAT_COUNT i, j;

	for (i = 0; i < provider_attr.num_provider_specific_attr; i++)
		for (j = 0; j < i; j++)
			cr_expect(strcmp(provider_attr.provider_specific_attr[i].name,
					 provider_attr.provider_specific_attr[j].name));
}

Test(caps_use, all_named_attributes_have_room)
{
	cr_expect(provider_attr.num_provider_specific_attr < DOFI_IA_NAMED_ATTRS);
}

Test(caps_use, the_provider_reports_its_version_and_private_data)
{
	cr_expect_eq(provider_attr.dapl_version_major, DAT_VERSION_MAJOR);
	cr_expect_eq(provider_attr.max_private_data_size, 256 - 12);
	cr_expect_eq(provider_attr.is_thread_safe, DAT_TRUE);
	cr_expect_str_eq(provider_attr.provider_name, "ofi");
}

static DAT_RETURN ask(void)
{
	return dofi_caps_ep_attr(ia, &attr, &got);
}

/* Only some fabrics can report it. On all other fabrics the endpoint is refused later. */
Test(caps_use, receives_may_notify_as_the_peer_says)
{
	ia->strict = true;
	ia->fabric.cq_data = true;
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	succeed(ask());
	attr.request_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	expect_arg(ask(), 7);
}

/* Then each message notifies. */
Test(caps_use, without_the_peers_flag_receives_notify_unless_strict)
{
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	ia->fabric.cq_data = false;
	ia->strict = true;
	expect_arg(ask(), 7);
	ia->strict = false;
	succeed(ask());
	cr_expect_eq(got.recv_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
}

Test(caps_use, rdma_has_the_segments_of_requests_by_default)
{
	ia->limits.max_iov = ia->limits.max_rdma_iov = 8;
	attr.max_request_iov = 6;
	attr.max_rdma_read_iov = 0;
	attr.max_rdma_write_iov = 2;
	succeed(ask());
	cr_expect_eq(got.max_rdma_read_iov, 6);
	cr_expect_eq(got.max_rdma_write_iov, 2);
	attr.max_request_iov = 1;
	succeed(ask());
	cr_expect_eq(got.max_rdma_read_iov, 4);
}

Test(caps_use, the_flags_that_work_are_reported)
{
	const int always = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
			   DAT_COMPLETION_BARRIER_FENCE_FLAG;
	DAT_PROVIDER_ATTR value;

	ia->fabric.cq_data = false;
	dofi_caps_provider_attr(ia, &value);
	cr_expect_eq((int)value.completion_flags_supported, always);
	ia->fabric.cq_data = true;
	dofi_caps_provider_attr(ia, &value);
	cr_expect_eq((int)value.completion_flags_supported,
		     always | DAT_COMPLETION_SOLICITED_WAIT_FLAG);
}

Test(caps_use, memory_of_all_kinds_may_be_registered)
{
	cr_expect_eq((int)provider_attr.lmr_mem_types_supported,
		     DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
}

#if DAT_VERSION_MAJOR >= 2
Test(caps_use, a_scope_is_offered_where_it_is_kept)
{
	cr_expect_eq(provider_attr.rmr_scope_supported, DAT_RMR_SCOPE_ANY);
	ia->fabric.scoped_keys = false;
	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider_attr));
	cr_expect_eq(provider_attr.rmr_scope_supported, DAT_RMR_SCOPE_PZ);
}
#endif

Test(caps_use, without_what_it_needs_an_attribute_says_so)
{
	ia->thread_safe = false;
	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider_attr));
	cr_expect_eq(provider_attr.is_thread_safe, DAT_FALSE);
}

Test(caps_use, the_provider_reports_what_it_counts_of_receives)
{
	cr_expect_eq(provider_attr.srq_supported, DAT_TRUE);
	cr_expect_eq(provider_attr.srq_watermarks_supported, 0x111);
	cr_expect_eq(provider_attr.srq_info_supported, 0x11);
	cr_expect_eq(provider_attr.ep_recv_info_supported, 0x11);
}

/* The value of a row, as the program finds it. */
static uint64_t number_at(const void *base, const struct dofi_cap *row)
{
	uint32_t v32;
	uint64_t v64;

	if (row->size == sizeof(v32)) {
		memcpy(&v32, (const char *)base + row->offset, sizeof(v32));
		return v32;
	}
	memcpy(&v64, (const char *)base + row->offset, sizeof(v64));
	return v64;
}

Test(caps_use, every_row_that_is_a_number_shows_in_a_query)
{
	size_t i;

	for (i = 0; i < dofi_n_caps; i++) {
		const struct dofi_cap *row = &dofi_caps[i];
		const void *base = row->of == DOFI_CAP_IA ? (void *)&ia_attr : &provider_attr;

		if (row->of == DOFI_CAP_EP || row->fill)
			continue;
		if (row->from_size)
			cr_expect(number_at(base, row) <= row->most, "%s", row->name);
		else if (row->where && number_at(base, row) != row->most)
			cr_expect_eq(number_at(base, row), row->without, "%s", row->name);
		else
			cr_expect_eq(number_at(base, row), row->most, "%s", row->name);
	}
}

/* The named attribute @name is @text, or is not there if @text is NULL. */
static void expect_named(const char *name, const char *text)
{
	const char *value = named(name);

	if (text)
		cr_expect(value && !strcmp(value, text), "%s: %s", name, value ? value : "nothing");
	else
		cr_expect(!value, "%s: %s", name, value);
}

Test(caps_use, named_attributes_have_every_row)
{
	size_t i;

	for (i = 0; i < dofi_n_caps; i++) {
		const struct dofi_cap *row = &dofi_caps[i];

		expect_named(row->named[DOFI_NAMED_SOURCE], row->source);
		expect_named(row->named[DOFI_NAMED_ADDS], row->adds);
		expect_named(row->named[DOFI_NAMED_LIMIT],
			    row->limit ? dofi_caps_row(DOFI_CAP_IA, row->limit)->name : NULL);
		expect_named(row->named[DOFI_NAMED_MODIFY], row->when ? row->when->words : NULL);
	}
}

Test(caps_use, streams_share_an_evd_as_they_like)
{
	int i, j;

	for (i = 0; i < 6; i++)
		for (j = 0; j < 6; j++)
			cr_expect_eq(provider_attr.evd_stream_merging_supported[i][j], DAT_TRUE);
}

Test(caps_use, the_guaranteed_reads_of_all_endpoints_are_within_the_total)
{
	cr_expect((int64_t)ia_attr.max_rdma_read_out >=
		  (int64_t)ia_attr.max_eps * ia_attr.max_rdma_read_per_ep_out);
	cr_expect((int64_t)ia_attr.max_rdma_read_in >=
		  (int64_t)ia_attr.max_eps * ia_attr.max_rdma_read_per_ep_in);
}

Test(caps_use, the_ia_reports_its_name_and_address)
{
	cr_expect_str_eq(ia_attr.adapter_name, "test-ia");
	cr_expect_str_eq(ia_attr.vendor_name, "libfabric tcp");
	cr_expect_eq(ia_attr.ia_address_ptr, (DAT_IA_ADDRESS_PTR)&ia->address);
}

/* Endpoint attributes */

Test(caps_use, defaults_are_within_the_limits)
{
	cr_expect(attr.max_recv_dtos > 0 && attr.max_recv_dtos <= ia_attr.max_dto_per_ep);
	cr_expect(attr.max_request_iov > 0 &&
		  attr.max_request_iov <= ia_attr.max_iov_segments_per_dto);
	cr_expect_eq(attr.max_message_size, ia_attr.max_message_size);
	cr_expect_eq(attr.service_type, DAT_SERVICE_TYPE_RC);
}

Test(caps_use, defaults_shrink_to_a_small_fabric)
{
	ia->limits.max_iov = ia->limits.max_rdma_iov = 1;
	succeed(dofi_caps_ep_attr(ia, NULL, &got));
	cr_expect_eq(got.max_recv_iov, 1);
	cr_expect_eq(got.max_rdma_write_iov, 1);
}

/*
 * A default is lowered to the limits of a small fabric, but a number that the program chose is not.
 */
Test(caps_use, what_was_asked_for_is_not_cut)
{
	ia->limits.max_iov = 1;
	cr_expect_eq(attr.max_recv_iov, 4);
	expect_arg(ask(), 7);
}

Test(caps_use, what_was_queried_is_accepted_back)
{
	DAT_EP_ATTR again;

	succeed(ask());
	succeed(dofi_caps_ep_attr(ia, &got, &again));
	cr_expect(!memcmp(&got, &again, sizeof(got)));
}

/* The maximum is accepted unchanged. The maximum + 1 and a negative number are refused. */
#define BOUNDED(member, most)                                                    \
	do {                                                                     \
		DAT_EP_ATTR before = attr;                                       \
		attr.member = (most);                                            \
		succeed(ask());                                                  \
		cr_expect_eq(got.member, (most), #member);                       \
		attr.member = (most) + 1;                                        \
		expect_arg(ask(), 7);                                            \
		attr = before;                                                   \
	} while (0)

#define COUNTED(member, most)                                                    \
	do {                                                                     \
		DAT_EP_ATTR before = attr;                                       \
		BOUNDED(member, most);                                           \
		attr.member = 1;                                                 \
		succeed(ask());                                                  \
		cr_expect_eq(got.member, 1, #member);                            \
		attr.member = -1;                                                \
		expect_arg(ask(), 7);                                            \
		attr.member = INT32_MIN;                                         \
		expect_arg(ask(), 7);                                            \
		attr.member = INT32_MAX;                                         \
		expect_arg(ask(), 7);                                            \
		attr = before;                                                   \
	} while (0)

Test(caps_use, endpoint_attributes_are_bounded_by_the_ias)
{
	BOUNDED(max_message_size, ia_attr.max_message_size);
	BOUNDED(max_rdma_size, ia_attr.max_rdma_size);
	COUNTED(max_recv_dtos, ia_attr.max_dto_per_ep);
	COUNTED(max_request_dtos, ia_attr.max_dto_per_ep);
	COUNTED(max_recv_iov, ia_attr.max_iov_segments_per_dto);
	COUNTED(max_request_iov, ia_attr.max_iov_segments_per_dto);
	COUNTED(max_rdma_read_in, ia_attr.max_rdma_read_per_ep_in);
	COUNTED(max_rdma_read_out, ia_attr.max_rdma_read_per_ep_out);
	COUNTED(max_rdma_read_iov, ia_attr.max_iov_segments_per_rdma_read);
	COUNTED(max_rdma_write_iov, ia_attr.max_iov_segments_per_rdma_write);
}

#define ZERO_IS_DEFAULT(member)                                                  \
	do {                                                                     \
		attr.member = 0;                                                 \
		succeed(ask());                                                  \
		cr_expect(got.member > 0, #member);                              \
	} while (0)

Test(caps_use, zero_asks_for_what_there_is)
{
	ZERO_IS_DEFAULT(max_message_size);
	ZERO_IS_DEFAULT(max_rdma_size);
	ZERO_IS_DEFAULT(max_recv_iov);
	ZERO_IS_DEFAULT(max_request_iov);
	ZERO_IS_DEFAULT(max_rdma_read_iov);
	ZERO_IS_DEFAULT(max_rdma_write_iov);
}

/* Attributes of which a program may request none. */
Test(caps_use, zero_reads_are_none)
{
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	succeed(ask());
	cr_expect_eq(got.max_rdma_read_in, 0);
	cr_expect_eq(got.max_rdma_read_out, 0);
}

Test(caps_use, an_endpoint_may_do_without_a_queue)
{
	attr.max_recv_dtos = attr.max_request_dtos = 0;
	succeed(ask());
	cr_expect_eq(got.max_recv_dtos, 0);
	cr_expect_eq(got.max_request_dtos, 0);
}

Test(caps_use, a_stream_may_be_unsignalled)
{
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	succeed(ask());
}

Test(caps_use, other_flags_are_not_for_a_stream)
{
	attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	expect_arg(ask(), 7);
	attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)0x1000;
	expect_arg(ask(), 7);
	ia->strict = true;
	attr.request_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	expect_arg(ask(), 7);
}

/* Each request has these flags of its own, so the attribute does not have them. */
Test(caps_use, flags_that_every_request_has_are_taken_out)
{
	static struct capture said;
	const char *text;

	ia->strict = false;
	dofi_log_max = DOFI_WARN;
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)(
		DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG);
	succeed(ask());
	cr_expect_eq(got.request_completion_flags, DAT_COMPLETION_UNSIGNALLED_FLAG);
	ia->strict = true;
	attr.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	capture_begin(&said);
	succeed(ask());
	text = capture_end(&said);
	cr_expect(strstr(text, "request_completion_flags 0x1 taken as 0"), "%s", text);
	cr_expect_eq(got.request_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
}

Test(caps_use, other_services_are_refused)
{
	attr.service_type = (DAT_SERVICE_TYPE)(DAT_SERVICE_TYPE_RC + 1);
	expect_arg(ask(), 7);
}

Test(caps_use, other_qualities_of_service_are_refused)
{
	attr.qos = (DAT_QOS)(DAT_QOS_LOW_LATENCY | DAT_QOS_PREMIUM);
	expect_type(ask(), DAT_MODEL_NOT_SUPPORTED);
}

Test(caps_use, an_array_of_no_attributes_is_not_kept)
{
	DAT_NAMED_ATTR mine = { "name", "value" };

	attr.ep_transport_specific = attr.ep_provider_specific = &mine;
	succeed(ask());
	cr_expect(!got.ep_transport_specific && !got.ep_provider_specific);
}

Test(caps_use, unknown_specific_attributes_are_refused)
{
	attr.ep_provider_specific_count = 1;
	expect_arg(ask(), 7);
	attr.ep_provider_specific_count = 0;
	attr.ep_transport_specific_count = 1;
	expect_arg(ask(), 7);
}

Test(caps_use, kinds_without_an_attribute_are_limited_too)
{
	cr_expect(dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_CNO) > 0);
	cr_expect(dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_CR) > 0);
}
