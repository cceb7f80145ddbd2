/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table: one row for each DAT attribute. caps_use.c uses them. */

#include "obj/caps.h"

#include "base/log.h"
#include "obj/ia.h"

#include <stdio.h>
#include <string.h>

/* Values that are not numbers */

static void fill_adapter_name(const struct dofi_ia *ia, void *member)
{
	snprintf(member, DAT_NAME_MAX_LENGTH, "%s", ia->obj.provider->device_name);
}

static void fill_vendor_name(const struct dofi_ia *ia, void *member)
{
	snprintf(member, DAT_NAME_MAX_LENGTH, "libfabric %s",
		 ia->fabric.info->fabric_attr->prov_name);
}

static void fill_provider_name(const struct dofi_ia *ia, void *member)
{
	(void)ia;
	snprintf(member, DAT_NAME_MAX_LENGTH, "ofi");
}

static void fill_address(const struct dofi_ia *ia, void *member)
{
	const void *address = &ia->address;

	memcpy(member, &address, sizeof(address));
}

static void fill_named(const struct dofi_ia *ia, void *member)
{
	const DAT_NAMED_ATTR *named = ia->named;

	memcpy(member, &named, sizeof(named));
}

/* Each of DAT's six streams may share an EVD with each other: row and column are streams. */
static void fill_merging(const struct dofi_ia *ia, void *member)
{
	DAT_BOOLEAN(*merging)[6] = member;
	int i;

	(void)ia;
	for (i = 0; i < 6 * 6; i++)
		merging[i / 6][i % 6] = DAT_TRUE;
}

/* Values that an endpoint accepts, except limits */

/* DAT_COMPLETION_EVD_THRESHOLD_FLAG is another name for the default. */
static bool take_stream_flag(const struct dofi_ia *ia, uint64_t *value)
{
	(void)ia;
	return *value == DAT_COMPLETION_DEFAULT_FLAG || *value == DAT_COMPLETION_UNSIGNALLED_FLAG ||
	       *value == DAT_COMPLETION_EVD_THRESHOLD_FLAG;
}

/* Where the receiver cannot see its peer's flag, more messages than solicited ones may notify. */
static bool take_recv_flag(const struct dofi_ia *ia, uint64_t *value)
{
	if (take_stream_flag(ia, value))
		return true;
	if (*value != DAT_COMPLETION_SOLICITED_WAIT_FLAG || ia->fabric.cq_data)
		return *value == DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	if (ia->strict)
		return false;
	dofi_log(DOFI_WARN, DOFI_EP, "recv_completion_flags SOLICITED_WAIT taken as 0: the fabric "
		 "carries no data with a message");
	*value = DAT_COMPLETION_DEFAULT_FLAG;
	return true;
}

/*
 * Every request may be suppressed, solicited or fenced by its own flags, so these are no choice of
 * the EP. DAT lists none of them here; programs for OFED's provider, which ignores the attribute,
 * set any, and programs of uDAPL 1.2 set SUPPRESS.
 */
static bool take_request_flags(const struct dofi_ia *ia, uint64_t *value)
{
	const uint64_t ignored = DAT_COMPLETION_SUPPRESS_FLAG |
		(ia->strict ? 0 : DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		 DAT_COMPLETION_BARRIER_FENCE_FLAG | DOFI_INVALIDATE_FENCE);
	uint64_t rest = *value & ~ignored;

	if (!take_stream_flag(ia, &rest))
		return false;
	if (rest != *value)
		dofi_log(DOFI_WARN, DOFI_EP, "request_completion_flags %#x taken as %#x: "
			 "other flags are those of each request", (unsigned)*value, (unsigned)rest);
	*value = rest;
	return true;
}

bool dofi_qos_known(DAT_QOS qos)
{
	switch (qos) {
	case DAT_QOS_BEST_EFFORT:
	case DAT_QOS_HIGH_THROUGHPUT:
	case DAT_QOS_LOW_LATENCY:
	case DAT_QOS_ECONOMY:
	case DAT_QOS_PREMIUM:
		return true;
	default:
		return false;
	}
}

static bool take_qos(const struct dofi_ia *ia, uint64_t *value)
{
	(void)ia;
	return dofi_qos_known((DAT_QOS)*value);
}

/* There are no such attributes, so the array is empty. */
static bool take_no_array(const struct dofi_ia *ia, uint64_t *value)
{
	(void)ia;
	*value = 0;
	return true;
}

/* Means nothing without a shared receive queue. */
static bool take_any(const struct dofi_ia *ia, uint64_t *value)
{
	(void)ia;
	(void)value;
	return true;
}

/* When an endpoint may be modified */

#define STATE(state) (1u << DAT_EP_STATE_##state)

static const struct dofi_cap_states unconnected = {
	STATE(UNCONNECTED), "UNCONNECTED" };
/* The endpoint has no peer yet, or the provider made it without a PZ. */
static const struct dofi_cap_states making = {
	STATE(UNCONNECTED) | STATE(TENTATIVE_CONNECTION_PENDING),
	"UNCONNECTED TENTATIVE_CONNECTION_PENDING" };
/* The endpoint does not connect actively and is not connected. */
static const struct dofi_cap_states waiting = {
	STATE(UNCONNECTED) | STATE(RESERVED) | STATE(PASSIVE_CONNECTION_PENDING) |
		STATE(TENTATIVE_CONNECTION_PENDING),
	"UNCONNECTED RESERVED PASSIVE_CONNECTION_PENDING TENTATIVE_CONNECTION_PENDING" };

/* How rows are written */

#define NAMES(text)                                                              \
	.name = text,                                                            \
	.named = { "OFI_SOURCE:" text, "OFI_ADDS:" text, "OFI_LIMIT:" text, "OFI_MODIFY:" text }
#define MEMBER(type, m) .offset = offsetof(type, m), .size = sizeof(((type *)0)->m)
#define FROM(m) .from = offsetof(struct dofi_ia, m), .from_size = sizeof(((struct dofi_ia *)0)->m)
#define WHERE(m) .where = offsetof(struct dofi_ia, m)
#define IS(value) .most = (value), .word = #value

#define IA(m, FIELD, ...)                                                        \
	{ NAMES(#m), .of = DOFI_CAP_IA, .field = DAT_IA_FIELD_IA_##FIELD,        \
	  MEMBER(DAT_IA_ATTR, m), __VA_ARGS__ }
#define PROVIDER(m, FIELD, ...)                                                  \
	{ NAMES(#m), .of = DOFI_CAP_PROVIDER, .field = DAT_PROVIDER_FIELD_##FIELD, \
	  MEMBER(DAT_PROVIDER_ATTR, m), __VA_ARGS__ }
#define EP(m, FIELD, ...)                                                        \
	{ NAMES(#m), .of = DOFI_CAP_EP, .field = DAT_EP_FIELD_##FIELD, __VA_ARGS__ }
#define EP_ATTR(m, FIELD, ...)                                                   \
	{ NAMES("ep_attr." #m), .of = DOFI_CAP_EP, .field = DAT_EP_FIELD_EP_ATTR_##FIELD, \
	  MEMBER(DAT_EP_ATTR, m), __VA_ARGS__ }

/* For an endpoint as much as the IA offers; for the IA its own value. */
#define ALL UINT64_MAX
/* A higher value would overflow a DAT length of this version. */
#define MAX_LENGTH ((dofi_seg_length)-1)
#define MAX_OBJECTS 65536
#define MAX_READS 64

#define OWN_QUEUES "event queues of its own"
#define SERVES_ALL "serves further reads as well: the requester limits them"
#define READS_WAIT "a limit of its own: further reads wait in their slots"
#define OWN_FLAGS "implements the flags: every operation completes at the fabric"
#define QUALITY "a hint: fi_info.tx_attr.tclass, on fabrics that use it"
#define NO_VERSION "0: libfabric reports it as text only"
#define NO_LIMIT "has no limit"
#define OWN_IOV "8 where it copies the data itself"
#define REQUEST_ADDRESS \
	"fi_info.dest_addr of the request, or the source address of its TCP connection"
#define PREAMBLES "fi_info.tx_attr.inject_size, if that takes a preamble"
#define OWN_SRQ "a queue of its own: peers send a preamble ahead of each message"

const struct dofi_cap dofi_caps[] = {
	/* the IA */

	IA(adapter_name, ADAPTER_NAME, .fill = fill_adapter_name,
	   .source = "the entry in dat.conf"),
	IA(vendor_name, VENDOR_NAME, .fill = fill_vendor_name,
	   .source = "fi_info.fabric_attr.prov_name"),
	IA(hardware_version_major, HARDWARE_MAJOR_VERSION, .adds = NO_VERSION),
	IA(hardware_version_minor, HARDWARE_MINOR_VERSION, .adds = NO_VERSION),
	IA(firmware_version_major, FIRMWARE_MAJOR_VERSION, .adds = NO_VERSION),
	IA(firmware_version_minor, FIRMWARE_MINOR_VERSION, .adds = NO_VERSION),
	IA(ia_address_ptr, ADDRESS_PTR, .fill = fill_address,
	   .source = "fi_info.src_addr", .adds = "127.0.0.1 where there is none"),
	IA(max_eps, MAX_EPS, .most = MAX_OBJECTS, FROM(limits.max_eps),
	   .source = "fi_info.domain_attr.ep_cnt",
	   .adds = "65536 without a device: "
		   "software fabrics report a number that is not their limit; "
		   "and on connectionless fabrics: the EPs of a PZ share an endpoint"),
	IA(max_dto_per_ep, MAX_DTO_PER_EP, .most = MAX_OBJECTS, FROM(limits.max_dtos),
	   .source = "fi_info.nic: 8192 with a device",
	   .adds = "slots of its own, where operations wait while the fabric's queue is full"),
	IA(max_rdma_read_per_ep_in, MAX_RDMA_READ_PER_EP_IN, .most = MAX_READS,
	   .adds = SERVES_ALL),
	IA(max_rdma_read_per_ep_out, MAX_RDMA_READ_PER_EP_OUT, .most = MAX_READS,
	   .adds = READS_WAIT),
	IA(max_evds, MAX_EVDS, .most = MAX_OBJECTS, .adds = OWN_QUEUES),
	IA(max_evd_qlen, MAX_EVD_QLEN, .most = 1 << 20, .adds = OWN_QUEUES),
	IA(max_iov_segments_per_dto, MAX_IOV_SEGMENTS_PER_DTO,
	   .most = DOFI_MAX_IOV, FROM(limits.max_iov),
	   .source = "fi_info.tx_attr.iov_limit and rx_attr.iov_limit",
	   .adds = OWN_IOV),
	IA(max_lmrs, MAX_LMRS, .most = MAX_OBJECTS, FROM(limits.max_lmrs),
	   .source = "fi_info.domain_attr.mr_cnt",
	   .adds = "65536 where the target carries out RDMA without registrations"),
	IA(max_lmr_block_size, MAX_LMR_BLOCK_SIZE, .most = MAX_LENGTH, .adds = NO_LIMIT),
	IA(max_lmr_virtual_address, MAX_LMR_VIRTUAL_ADDRESS, .most = UINT64_MAX,
	   .adds = NO_LIMIT),
	IA(max_pzs, MAX_PZS, .most = 1024, FROM(limits.max_pzs),
	   .source = "fi_info.domain_attr.ep_cnt of a connectionless device",
	   .adds = "a fi_domain for each"),
	IA(max_message_size, MAX_MESSAGE_SIZE, .most = MAX_LENGTH, FROM(limits.max_message_size),
	   .source = "fi_info.ep_attr.max_msg_size"),
	IA(max_rdma_size, MAX_RDMA_SIZE, .most = MAX_LENGTH, FROM(limits.max_rdma_size),
	   .source = "fi_info.ep_attr.max_msg_size"),
	IA(max_rmrs, MAX_RMRS, .most = MAX_OBJECTS, FROM(limits.max_lmrs),
	   .source = "fi_info.domain_attr.mr_cnt", .adds = "a registration for each bind"),
	IA(max_rmr_target_address, MAX_RMR_TARGET_ADDRESS, .most = UINT64_MAX, .adds = NO_LIMIT),
	IA(max_srqs, MAX_SRQS, .most = MAX_OBJECTS, FROM(limits.max_srqs),
	   .source = PREAMBLES, .adds = OWN_SRQ),
	IA(max_ep_per_srq, MAX_EP_PER_SRQ, .most = MAX_OBJECTS, FROM(limits.max_srq_eps),
	   .source = PREAMBLES, .adds = "as many as there are endpoints"),
	IA(max_recv_per_srq, MAX_RECV_PER_SRQ, .most = MAX_OBJECTS, FROM(limits.max_srqs),
	   .source = PREAMBLES, .adds = OWN_SRQ),
	IA(max_iov_segments_per_rdma_read, MAX_IOV_SEGMENTS_PER_RDMA_READ,
	   .most = DOFI_MAX_IOV, FROM(limits.max_rdma_iov), .source = "fi_info.tx_attr.iov_limit",
	   .adds = OWN_IOV),
	IA(max_iov_segments_per_rdma_write, MAX_IOV_SEGMENTS_PER_RDMA_WRITE,
	   .most = DOFI_MAX_IOV, FROM(limits.max_rdma_iov), .source = "fi_info.tx_attr.iov_limit",
	   .adds = OWN_IOV),
	/* all endpoints may have their guaranteed number */
	IA(max_rdma_read_in, MAX_RDMA_READ_IN, .most = MAX_READS * MAX_OBJECTS,
	   .adds = SERVES_ALL),
	IA(max_rdma_read_out, MAX_RDMA_READ_OUT, .most = MAX_READS * MAX_OBJECTS,
	   .adds = "a limit for each endpoint, independent of other endpoints"),
	IA(max_rdma_read_per_ep_in_guaranteed, MAX_RDMA_READ_PER_EP_IN_GUARANTEED, IS(DAT_TRUE),
	   .adds = SERVES_ALL),
	IA(max_rdma_read_per_ep_out_guaranteed, MAX_RDMA_READ_PER_EP_OUT_GUARANTEED, IS(DAT_TRUE),
	   .adds = READS_WAIT),
#if DAT_VERSION_MAJOR >= 2
	IA(zb_supported, ZB_SUPPORTED, IS(DAT_TRUE), WHERE(fabric.zero_based), .without = DAT_FALSE,
	   .source = "fi_info.domain_attr.mr_mode, and whether fi_mr_reg takes an offset"),
	IA(extension_supported, EXTENSION, IS(DAT_EXTENSION_IB),
	   .adds = "immediate data and atomics on fabrics without them"),
	IA(extension_version, EXTENSION_VERSION, IS(DAT_IB_EXTENSION_VERSION)),
#endif
	IA(num_transport_attr, NUM_TRANSPORT_ATTR, .most = 0),
	IA(transport_attr, TRANSPORT_ATTR, .most = 0),
	IA(num_vendor_attr, NUM_VENDOR_ATTR, .most = 0),
	IA(vendor_attr, VENDOR_ATTR, .most = 0),

	/* the provider */

	PROVIDER(provider_name, PROVIDER_NAME, .fill = fill_provider_name, .adds = "ofi"),
	PROVIDER(provider_version_major, PROVIDER_VERSION_MAJOR, IS(DAT_VERSION_MAJOR)),
	PROVIDER(provider_version_minor, PROVIDER_VERSION_MINOR, IS(DAT_VERSION_MINOR)),
	PROVIDER(dapl_version_major, DAPL_VERSION_MAJOR, IS(DAT_VERSION_MAJOR),
		 .source = "the entry in dat.conf"),
	PROVIDER(dapl_version_minor, DAPL_VERSION_MINOR, IS(DAT_VERSION_MINOR),
		 .source = "the entry in dat.conf"),
	PROVIDER(lmr_mem_types_supported, LMR_MEM_TYPE_SUPPORTED,
		 IS(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL)),
	PROVIDER(iov_ownership_on_return, IOV_OWNERSHIP, IS(DAT_IOV_CONSUMER),
		 .adds = "a copy of the segments in the slot of the operation"),
	PROVIDER(dat_qos_supported, DAT_QOS_SUPPORTED,
		 IS(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY |
		    DAT_QOS_PREMIUM),
		 .adds = QUALITY),
	PROVIDER(completion_flags_supported, COMPLETION_FLAGS_SUPPORTED,
		 IS(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG),
		 WHERE(fabric.cq_data),
		 .without = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
			    DAT_COMPLETION_BARRIER_FENCE_FLAG,
		 .source =
			 "fi_info.domain_attr.cq_data_size, for DAT_COMPLETION_SOLICITED_WAIT_FLAG",
		 .adds = OWN_FLAGS),
	PROVIDER(is_thread_safe, IS_THREAD_SAFE, IS(DAT_TRUE), WHERE(thread_safe),
		 .without = DAT_FALSE, .source = "the entry in dat.conf",
		 .adds = "locks its objects, with any entry"),
	PROVIDER(max_private_data_size, MAX_PRIVATE_DATA_SIZE, .most = ALL, FROM(max_private_data),
		 .source = "fi_getopt(FI_OPT_CM_DATA_SIZE)",
		 .adds = "subtracts its header; 240 bytes where it makes connections itself"),
	PROVIDER(supports_multipath, SUPPORTS_MULTIPATH, IS(DAT_FALSE)),
	PROVIDER(ep_creator, EP_CREATOR, IS(DAT_PSP_CREATES_EP_IFASKED)),
	PROVIDER(pz_support, PZ_SUPPORT, IS(DAT_PZ_UNIQUE), .adds = "a fi_domain for each PZ"),
	PROVIDER(optimal_buffer_alignment, OPTIMAL_BUFFER_ALIGNMENT, .most = 64,
		 .adds = "a cache line; nothing depends on it"),
	PROVIDER(evd_stream_merging_supported, EVD_STREAM_MERGING_SUPPORTED, .fill = fill_merging,
		 .adds = OWN_QUEUES),
	PROVIDER(srq_supported, SRQ_SUPPORTED, IS(DAT_TRUE), FROM(limits.max_srqs),
		 .adds = OWN_SRQ),
	/* the header files have no names for these bits, nor for those of two of the next rows */
	PROVIDER(srq_watermarks_supported, SRQ_WATERMARKS_SUPPORTED, .most = 0x001 | 0x010 | 0x100,
		 .adds = "low watermark (0x001); "
			 "soft (0x010) and hard (0x100), with and without an SRQ"),
	PROVIDER(srq_ep_pz_difference_supported, SRQ_EP_PZ_DIFFERENCE_SUPPORTED, IS(DAT_FALSE)),
	PROVIDER(srq_info_supported, SRQ_INFO_SUPPORTED, .most = 0x01 | 0x10,
		 .adds = "buffers available (0x01) and outstanding (0x10)"),
	PROVIDER(ep_recv_info_supported, EP_RECV_INFO_SUPPORTED, .most = 0x01 | 0x10,
		 .adds = "number (0x01) and span (0x10) of the receives that an endpoint holds"),
	PROVIDER(lmr_sync_req, LMR_SYNC_REQ, IS(DAT_FALSE)),
	/* in the state DISCONNECTED the post itself flushes the operation */
	PROVIDER(dto_async_return_guaranteed, DTO_ASYNC_RETURN_GUARANTEED, IS(DAT_FALSE)),
	PROVIDER(rdma_write_for_rdma_read_req, RDMA_WRITE_FOR_RDMA_READ_REQ, IS(DAT_FALSE)),
#if DAT_VERSION_MAJOR >= 2
	PROVIDER(rdma_read_lmr_rmr_context_exposure, RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE,
		 IS(DAT_FALSE)),
	PROVIDER(rmr_scope_supported, RMR_SCOPE_SUPPORTED, IS(DAT_RMR_SCOPE_ANY),
		 WHERE(fabric.scoped_keys), .without = DAT_RMR_SCOPE_PZ,
		 .source = "fi_info.domain_attr.mr_key_size",
		 .adds = "a secret of the connection in the key, for the scope of an EP"),
	PROVIDER(is_signal_safe, IS_SIGNAL_SAFE, IS(DAT_FALSE)),
	PROVIDER(ha_supported, HA_SUPPORTED, IS(DAT_FALSE)),
	PROVIDER(ha_loadbalancing, HA_LB, IS(DAT_HA_LB_NONE)),
#endif
	PROVIDER(num_provider_specific_attr, NUM_PROVIDER_SPECIFIC_ATTR, .most = ALL, FROM(n_named),
		 .adds = "as many as there are"),
	PROVIDER(provider_specific_attr, PROVIDER_SPECIFIC_ATTR, .fill = fill_named,
		 .source = "fi_info, fi_version and this table"),

	/* an endpoint */

	EP(ia_handle, IA_HANDLE),
	EP(ep_state, EP_STATE),
#if DAT_VERSION_MAJOR >= 2
	EP(comm, COMM),
#endif
	EP(local_ia_address_ptr, LOCAL_IA_ADDRESS_PTR, .source = "fi_info.src_addr"),
	EP(local_port_qual, LOCAL_PORT_QUAL, .source = "fi_getname",
	   .adds = "after an accept, the qualifier of the request"),
	EP(remote_ia_address_ptr, REMOTE_IA_ADDRESS_PTR,
	   .source = REQUEST_ADDRESS),
	EP(remote_port_qual, REMOTE_PORT_QUAL, .source = REQUEST_ADDRESS,
	   .adds = "the requested qualifier"),
	EP(pz_handle, PZ_HANDLE, .when = &making, .source = "the fi_domain of the fi_endpoint"),
	EP(recv_evd_handle, RECV_EVD_HANDLE, .when = &waiting, .adds = OWN_QUEUES),
	EP(request_evd_handle, REQUEST_EVD_HANDLE, .when = &waiting, .adds = OWN_QUEUES),
	EP(connect_evd_handle, CONNECT_EVD_HANDLE, .when = &waiting, .adds = OWN_QUEUES),
	EP(srq_handle, SRQ_HANDLE, .adds = OWN_SRQ),
	EP_ATTR(service_type, SERVICE_TYPE, IS(DAT_SERVICE_TYPE_RC), .when = &waiting,
		.source = "fi_info.ep_attr.type",
		.adds = "connections of its own, where endpoints are FI_EP_RDM"),
	EP_ATTR(max_message_size, MAX_MESSAGE_SIZE, .limit = DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE,
		.def = ALL, .zero_is_default = true, .when = &waiting,
		.adds = "a check of each send"),
	EP_ATTR(max_rdma_size, MAX_RDMA_SIZE, .limit = DAT_IA_FIELD_IA_MAX_RDMA_SIZE,
		.def = ALL, .zero_is_default = true, .when = &waiting,
		.adds = "lets programs exceed what they requested, up to the limit"),
	EP_ATTR(qos, QOS, .take = take_qos,
		.takes = "DAT_QOS_BEST_EFFORT or one of dat_qos_supported",
		.when = &waiting, .adds = QUALITY),
	EP_ATTR(recv_completion_flags, RECV_COMPLETION_FLAGS, .take = take_recv_flag,
		.takes = "DEFAULT, EVD_THRESHOLD or UNSIGNALLED; SOLICITED_WAIT where the fabric "
			 "carries data with a message, else DAT_OFI_STRICT=0 ignores it",
		.when = &waiting, .no_receives = true,
		.adds = OWN_FLAGS),
	EP_ATTR(request_completion_flags, REQUEST_COMPLETION_FLAGS, .take = take_request_flags,
		.takes = "DEFAULT, EVD_THRESHOLD or UNSIGNALLED; DAT_OFI_STRICT=0 ignores the "
			 "flags of single requests",
		.when = &waiting, .adds = OWN_FLAGS),
	EP_ATTR(max_recv_dtos, MAX_RECV_DTOS, .limit = DAT_IA_FIELD_IA_MAX_DTO_PER_EP,
		.def = 64, .when = &waiting, .adds = "slots of its own"),
	EP_ATTR(max_request_dtos, MAX_REQUEST_DTOS, .limit = DAT_IA_FIELD_IA_MAX_DTO_PER_EP,
		.def = 64, .when = &waiting, .adds = "slots of its own"),
	EP_ATTR(max_recv_iov, MAX_RECV_IOV, .limit = DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO,
		.def = 4, .zero_is_default = true, .when = &waiting),
	EP_ATTR(max_request_iov, MAX_REQUEST_IOV, .limit = DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO,
		.def = 4, .zero_is_default = true, .when = &waiting),
	EP_ATTR(max_rdma_read_in, MAX_RDMA_READ_IN,
		.limit = DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN, .def = 16, .when = &waiting,
		.adds = SERVES_ALL),
	EP_ATTR(max_rdma_read_out, MAX_RDMA_READ_OUT,
		.limit = DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT, .def = 16, .when = &waiting,
		.adds = READS_WAIT),
	/* of the next three, the DAT text does not say when they may be modified */
	EP_ATTR(srq_soft_hw, SRQ_SOFT_HW, .take = take_any, .when = &waiting, .adds = OWN_SRQ),
	EP_ATTR(max_rdma_read_iov, MAX_RDMA_READ_IOV,
		.limit = DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ,
		.def = 4, .zero_is_default = true, .when = &waiting),
	EP_ATTR(max_rdma_write_iov, MAX_RDMA_WRITE_IOV,
		.limit = DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE,
		.def = 4, .zero_is_default = true, .when = &waiting),
	EP_ATTR(ep_transport_specific_count, NUM_TRANSPORT_ATTR, .most = 0, .when = &unconnected),
	EP_ATTR(ep_transport_specific, TRANSPORT_SPECIFIC_ATTR, .take = take_no_array,
		.when = &unconnected),
	EP_ATTR(ep_provider_specific_count, NUM_PROVIDER_ATTR, .most = 0, .when = &unconnected),
	EP_ATTR(ep_provider_specific, PROVIDER_SPECIFIC_ATTR, .take = take_no_array,
		.when = &unconnected),
};

const size_t dofi_n_caps = sizeof(dofi_caps) / sizeof(dofi_caps[0]);
