/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table: what it promises, where that comes from, what may be asked for. */

#include "obj/fixture.h"

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

TestSuite(caps, .init = init, .fini = ia_fini);

/* Each attribute that the table has, and whether this release offers it. */
#define SHOWS(member, offered)                                                   \
	do {                                                                     \
		cr_expect_eq(ia_attr.member > 0, offered, #member);              \
		cr_expect(named("OFI_SOURCE:" #member), "no source of " #member); \
	} while (0)

Test(caps, every_row_shows_in_ia_query_with_its_source)
{
	SHOWS(max_eps, true);
	SHOWS(max_dto_per_ep, true);
	SHOWS(max_rdma_read_per_ep_in, true);
	SHOWS(max_rdma_read_per_ep_out, true);
	SHOWS(max_evds, true);
	SHOWS(max_evd_qlen, true);
	SHOWS(max_iov_segments_per_dto, true);
	SHOWS(max_lmrs, true);
	SHOWS(max_lmr_block_size, true);
	SHOWS(max_lmr_virtual_address, true);
	SHOWS(max_pzs, true);
	SHOWS(max_message_size, true);
	SHOWS(max_rdma_size, true);
	SHOWS(max_rmrs, true);
	SHOWS(max_rmr_target_address, true);
	SHOWS(max_srqs, false);
	SHOWS(max_ep_per_srq, false);
	SHOWS(max_recv_per_srq, false);
	SHOWS(max_iov_segments_per_rdma_read, true);
	SHOWS(max_iov_segments_per_rdma_write, true);
	SHOWS(max_rdma_read_in, true);
	SHOWS(max_rdma_read_out, true);
	SHOWS(max_rdma_read_per_ep_in_guaranteed, true);
	SHOWS(max_rdma_read_per_ep_out_guaranteed, true);
}

Test(caps, counts_are_not_negative)
{
	cr_expect(ia_attr.max_eps > 0 && ia_attr.max_evds > 0 && ia_attr.max_lmrs > 0);
	cr_expect(ia_attr.max_rdma_read_in > 0 && ia_attr.max_evd_qlen > 0);
}

Test(caps, the_fabrics_limits_come_through)
{
	cr_expect_eq(ia_attr.max_message_size, 1 << 20);
	cr_expect_eq(ia_attr.max_rdma_size, 1 << 20);
	cr_expect_eq(ia_attr.max_iov_segments_per_dto, 5);
	cr_expect_eq(ia_attr.max_iov_segments_per_rdma_read, 6);
	cr_expect_eq(ia_attr.max_iov_segments_per_rdma_write, 6);
}

Test(caps, a_large_limit_of_the_fabric_is_cut_to_ours)
{
	ia->limits.max_message_size = UINT64_MAX;
	ia->limits.max_iov = 1000;
	succeed(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, 0, NULL));
	cr_expect_eq(ia_attr.max_iov_segments_per_dto, DOFI_MAX_IOV);
	cr_expect_eq(ia_attr.max_message_size, (dofi_seg_length)-1);
}

Test(caps, the_named_attributes_tell_the_fabric)
{
	cr_expect_str_eq(named("OFI_PROVIDER"), "tcp");
	cr_expect_str_eq(named("OFI_DOMAIN"), "fake0");
	cr_expect_str_eq(named("OFI_FABRICS"), "tcp");
	cr_expect(*named("OFI_LIBFABRIC"));
	cr_expect_str_eq(named("DAT_IB_RDMA_READ"), "TRUE");
}

Test(caps, names_are_not_given_twice)
{
	DAT_COUNT i, j;

	for (i = 0; i < provider_attr.num_provider_specific_attr; i++)
		for (j = 0; j < i; j++)
			cr_expect(strcmp(provider_attr.provider_specific_attr[i].name,
					 provider_attr.provider_specific_attr[j].name));
}

Test(caps, all_named_attributes_have_room)
{
	cr_expect(provider_attr.num_provider_specific_attr < DOFI_IA_NAMED_ATTRS);
}

Test(caps, the_provider_tells_its_version_and_private_data)
{
	cr_expect_eq(provider_attr.dapl_version_major, DAT_VERSION_MAJOR);
	cr_expect_eq(provider_attr.max_private_data_size, 256 - 12);
	cr_expect_eq(provider_attr.is_thread_safe, DAT_TRUE);
	cr_expect_str_eq(provider_attr.provider_name, "ofi");
}

Test(caps, the_provider_tells_what_it_counts_of_receives)
{
	cr_expect_eq(provider_attr.srq_watermarks_supported, 0x110);
	cr_expect_eq(provider_attr.ep_recv_info_supported, 0x11);
}

Test(caps, the_ia_tells_its_name_and_address)
{
	cr_expect_str_eq(ia_attr.adapter_name, "test-ia");
	cr_expect_str_eq(ia_attr.vendor_name, "libfabric tcp");
	cr_expect_eq(ia_attr.ia_address_ptr, (DAT_IA_ADDRESS_PTR)&ia->address);
}

/* Endpoint attributes */

static DAT_RETURN ask(void)
{
	return dofi_caps_ep_attr(ia, &attr, &got);
}

Test(caps, defaults_are_within_the_limits)
{
	cr_expect(attr.max_recv_dtos > 0 && attr.max_recv_dtos <= ia_attr.max_dto_per_ep);
	cr_expect(attr.max_request_iov > 0 && attr.max_request_iov <= ia_attr.max_iov_segments_per_dto);
	cr_expect_eq(attr.max_message_size, ia_attr.max_message_size);
	cr_expect_eq(attr.service_type, DAT_SERVICE_TYPE_RC);
}

Test(caps, defaults_shrink_to_a_small_fabric)
{
	ia->limits.max_iov = ia->limits.max_rdma_iov = 1;
	succeed(dofi_caps_ep_attr(ia, NULL, &got));
	cr_expect_eq(got.max_recv_iov, 1);
	cr_expect_eq(got.max_rdma_write_iov, 1);
}

Test(caps, what_was_queried_is_accepted_back)
{
	DAT_EP_ATTR again;

	succeed(ask());
	succeed(dofi_caps_ep_attr(ia, &got, &again));
	cr_expect(!memcmp(&got, &again, sizeof(got)));
}

/* The most is accepted as it is, one more is refused, and so is a negative number. */
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

Test(caps, endpoint_attributes_are_bounded_by_the_ias)
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

Test(caps, zero_asks_for_what_there_is)
{
	ZERO_IS_DEFAULT(max_message_size);
	ZERO_IS_DEFAULT(max_rdma_size);
	ZERO_IS_DEFAULT(max_recv_iov);
	ZERO_IS_DEFAULT(max_request_iov);
	ZERO_IS_DEFAULT(max_rdma_read_in);
	ZERO_IS_DEFAULT(max_rdma_read_out);
	ZERO_IS_DEFAULT(max_rdma_read_iov);
	ZERO_IS_DEFAULT(max_rdma_write_iov);
}

Test(caps, an_endpoint_may_do_without_a_queue)
{
	attr.max_recv_dtos = attr.max_request_dtos = 0;
	succeed(ask());
	cr_expect_eq(got.max_recv_dtos, 0);
	cr_expect_eq(got.max_request_dtos, 0);
}

Test(caps, a_stream_may_be_unsignalled)
{
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	succeed(ask());
}

Test(caps, other_flags_are_not_for_a_stream)
{
	attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	expect_arg(ask(), 7);
	attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	expect_arg(ask(), 7);
}

Test(caps, other_services_are_refused)
{
	attr.service_type = (DAT_SERVICE_TYPE)(DAT_SERVICE_TYPE_RC + 1);
	expect_arg(ask(), 7);
}

Test(caps, other_qualities_of_service_are_refused)
{
	attr.qos = DAT_QOS_LOW_LATENCY;
	expect_type(ask(), DAT_MODEL_NOT_SUPPORTED);
}

Test(caps, unknown_specific_attributes_are_refused)
{
	attr.ep_provider_specific_count = 1;
	expect_arg(ask(), 7);
	attr.ep_provider_specific_count = 0;
	attr.ep_transport_specific_count = 1;
	expect_arg(ask(), 7);
}

Test(caps, kinds_without_an_attribute_are_limited_too)
{
	cr_expect(dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_CNO) > 0);
	cr_expect(dofi_caps_max_objects(ia, DAT_HANDLE_TYPE_CR) > 0);
}
