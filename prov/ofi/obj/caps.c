/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table: each DAT attribute, its value on a fabric, and where that comes from. */

#include "obj/caps.h"

#include "obj/ia.h"

#include <stdio.h>
#include <string.h>

#define NO_LIMIT ((size_t)-1)

/* An IA attribute: the smaller of our ceiling and the fabric's limit. */
struct cap {
	const char *name;		/* of the named attribute that tells the source */
	size_t offset, size;		/* in DAT_IA_ATTR */
	uint64_t ceiling;
	size_t limit, limit_size;	/* in struct dofi_limits, or NO_LIMIT */
	const char *source;
};

#define SOURCE_PREFIX "OFI_SOURCE:"
#define MEMBER_SIZE(type, member) sizeof(((type *)0)->member)
#define CAP(member, ceiling, source)                                             \
	{ SOURCE_PREFIX #member, offsetof(DAT_IA_ATTR, member), MEMBER_SIZE(DAT_IA_ATTR, member), \
	  ceiling, NO_LIMIT, 0, source }
#define CAP_FAB(member, ceiling, lim, source)                                    \
	{ SOURCE_PREFIX #member, offsetof(DAT_IA_ATTR, member), MEMBER_SIZE(DAT_IA_ATTR, member), \
	  ceiling, offsetof(struct dofi_limits, lim),                            \
	  MEMBER_SIZE(struct dofi_limits, lim), source }

/* Beyond it a DAT length of this version would overflow. */
#define MAX_LENGTH ((dofi_seg_length)-1)
#define MAX_OBJECTS 65536
#define MAX_READS 64

static const struct cap caps[] = {
	CAP_FAB(max_eps, MAX_OBJECTS, max_eps, "fi_info.domain_attr.ep_cnt, at least 8192"),
	CAP(max_dto_per_ep, 8192, "the provider's operation slots"),
	CAP(max_rdma_read_per_ep_in, MAX_READS, "the provider's own throttle"),
	CAP(max_rdma_read_per_ep_out, MAX_READS, "the provider's own throttle"),
	CAP(max_evds, 8192, "the provider's event queues"),
	CAP(max_evd_qlen, 1 << 20, "the provider's event queues"),
	CAP_FAB(max_iov_segments_per_dto, DOFI_MAX_IOV, max_iov, "fi_info.tx_attr.iov_limit and rx_attr.iov_limit"),
	CAP_FAB(max_lmrs, MAX_OBJECTS, max_lmrs, "fi_info.domain_attr.mr_cnt"),
	CAP(max_lmr_block_size, MAX_LENGTH, "the width of a DAT length"),
	CAP(max_lmr_virtual_address, UINT64_MAX, "no limit known"),
	CAP_FAB(max_pzs, 1024, max_pzs, "a fi_domain each"),
	CAP_FAB(max_message_size, MAX_LENGTH, max_message_size, "fi_info.ep_attr.max_msg_size"),
	CAP_FAB(max_rdma_size, MAX_LENGTH, max_rdma_size, "fi_info.ep_attr.max_msg_size"),
	CAP_FAB(max_rmrs, MAX_OBJECTS, max_lmrs, "fi_info.domain_attr.mr_cnt"),
	CAP(max_rmr_target_address, UINT64_MAX, "no limit known"),
	CAP(max_srqs, 0, "not offered by this release"),
	CAP(max_ep_per_srq, 0, "not offered by this release"),
	CAP(max_recv_per_srq, 0, "not offered by this release"),
	CAP_FAB(max_iov_segments_per_rdma_read, DOFI_MAX_IOV, max_rdma_iov, "fi_info.tx_attr.iov_limit"),
	CAP_FAB(max_iov_segments_per_rdma_write, DOFI_MAX_IOV, max_rdma_iov, "fi_info.tx_attr.iov_limit"),
	CAP(max_rdma_read_in, MAX_READS * 8192, "the provider's own throttle"),
	CAP(max_rdma_read_out, MAX_READS * 8192, "the provider's own throttle"),
	CAP(max_rdma_read_per_ep_in_guaranteed, DAT_TRUE, "the provider's own throttle"),
	CAP(max_rdma_read_per_ep_out_guaranteed, DAT_TRUE, "the provider's own throttle"),
};

#define N_CAPS (sizeof(caps) / sizeof(caps[0]))

/* Where the attributes come from that are no single number of the table above. */
static const DAT_NAMED_ATTR other_sources[] = {
	{ "OFI_SOURCE:adapter_name", "the name that was opened" },
	{ "OFI_SOURCE:ia_address_ptr", "fi_info.src_addr" },
	{ "OFI_SOURCE:max_private_data_size", "fi_getopt(FI_OPT_CM_DATA_SIZE) less the provider's header" },
	{ "OFI_SOURCE:is_thread_safe", "the dat.conf entry" },
	{ "OFI_SOURCE:provider_version_major", "the dat.conf entry" },
	{ "OFI_SOURCE:pz_support", "one fi_domain for each PZ" },
};

static uint64_t load(const void *base, size_t offset, size_t size)
{
	const char *p = (const char *)base + offset;
	uint32_t v32;
	uint64_t v64;

	if (size == sizeof(v32)) {
		memcpy(&v32, p, sizeof(v32));
		return v32;
	}
	memcpy(&v64, p, sizeof(v64));
	return v64;
}

static void store(void *base, size_t offset, size_t size, uint64_t value)
{
	char *p = (char *)base + offset;
	uint32_t v32 = value;

	if (size == sizeof(v32))
		memcpy(p, &v32, sizeof(v32));
	else
		memcpy(p, &value, sizeof(value));
}

static uint64_t cap_value(const struct cap *cap, const struct dofi_limits *limits)
{
	uint64_t limit;

	if (cap->limit == NO_LIMIT)
		return cap->ceiling;
	limit = load(limits, cap->limit, cap->limit_size);
	return limit < cap->ceiling ? limit : cap->ceiling;
}

/* The IA attribute that counts objects of a type; 0 where no attribute does. */
static const size_t object_limit[DOFI_KINDS] = {
	[DOFI_KIND(DAT_HANDLE_TYPE_EP)] = offsetof(DAT_IA_ATTR, max_eps),
	[DOFI_KIND(DAT_HANDLE_TYPE_EVD)] = offsetof(DAT_IA_ATTR, max_evds),
	[DOFI_KIND(DAT_HANDLE_TYPE_LMR)] = offsetof(DAT_IA_ATTR, max_lmrs),
	[DOFI_KIND(DAT_HANDLE_TYPE_RMR)] = offsetof(DAT_IA_ATTR, max_rmrs),
	[DOFI_KIND(DAT_HANDLE_TYPE_PZ)] = offsetof(DAT_IA_ATTR, max_pzs),
};

DAT_COUNT dofi_caps_max_objects(const struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	size_t offset = object_limit[DOFI_KIND(type)];
	size_t i;

	for (i = 0; offset && i < N_CAPS; i++)
		if (caps[i].offset == offset)
			return cap_value(&caps[i], &ia->limits);
	return MAX_OBJECTS;
}

void dofi_caps_ia_attr(const struct dofi_ia *ia, DAT_IA_ATTR *attr)
{
	size_t i;

	memset(attr, 0, sizeof(*attr));
	for (i = 0; i < N_CAPS; i++)
		store(attr, caps[i].offset, caps[i].size, cap_value(&caps[i], &ia->limits));
	snprintf(attr->adapter_name, sizeof(attr->adapter_name), "%s", ia->obj.provider->device_name);
	snprintf(attr->vendor_name, sizeof(attr->vendor_name), "libfabric %s",
		 ia->fabric.info->fabric_attr->prov_name);
	attr->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->address;
}

/* Bits that providers agree on; the header files name none. */
#define WATERMARK_SOFT_HIGH 0x010
#define WATERMARK_HARD_HIGH 0x100
#define RECV_INFO_BUFFERS 0x01
#define RECV_INFO_SPAN 0x10

void dofi_caps_provider_attr(const struct dofi_ia *ia, DAT_PROVIDER_ATTR *attr)
{
	const DAT_PROVIDER_ATTR fixed = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.lmr_mem_types_supported = DAT_MEM_TYPE_VIRTUAL,
		.iov_ownership_on_return = DAT_IOV_CONSUMER,
		.dat_qos_supported = DAT_QOS_BEST_EFFORT,
		.completion_flags_supported = (DAT_COMPLETION_FLAGS)
			(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
			 DAT_COMPLETION_BARRIER_FENCE_FLAG),
		.is_thread_safe = ia->thread_safe ? DAT_TRUE : DAT_FALSE,
		.max_private_data_size = ia->max_private_data,
		.supports_multipath = DAT_FALSE,
		.ep_creator = DAT_PSP_CREATES_EP_IFASKED,
		.pz_support = DAT_PZ_UNIQUE,
		.optimal_buffer_alignment = 64,
		.evd_stream_merging_supported = {
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
			{ DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE },
		},
		.srq_supported = DAT_FALSE,
		/* of an endpoint's own receives, too */
		.srq_watermarks_supported = WATERMARK_SOFT_HIGH | WATERMARK_HARD_HIGH,
		.ep_recv_info_supported = RECV_INFO_BUFFERS | RECV_INFO_SPAN,
		.lmr_sync_req = DAT_FALSE,
		.dto_async_return_guaranteed = DAT_TRUE,
		.rdma_write_for_rdma_read_req = DAT_FALSE,
#if DAT_VERSION_MAJOR >= 2
		.rdma_read_lmr_rmr_context_exposure = DAT_FALSE,
		.rmr_scope_supported = DAT_RMR_SCOPE_ANY,
		.is_signal_safe = DAT_FALSE,
		.ha_supported = DAT_FALSE,
		.ha_loadbalancing = DAT_HA_LB_NONE,
#endif
		.num_provider_specific_attr = ia->n_named,
		.provider_specific_attr = (DAT_NAMED_ATTR *)ia->named,
	};

	/* a member is const, so the structure cannot be assigned */
	memcpy(attr, &fixed, sizeof(*attr));
	snprintf(attr->provider_name, sizeof(attr->provider_name), "ofi");
	attr->provider_version_major = DAT_VERSION_MAJOR;
	attr->provider_version_minor = DAT_VERSION_MINOR;
}

static void named_add(struct dofi_ia *ia, const char *name, const char *value)
{
	if (ia->n_named < DOFI_IA_NAMED_ATTRS)
		ia->named[ia->n_named++] = (DAT_NAMED_ATTR){ name, value };
}

void dofi_caps_named_attrs(struct dofi_ia *ia)
{
	const struct fi_info *info = ia->fabric.info;
	size_t i;

	ia->n_named = 0;
	named_add(ia, "OFI_PROVIDER", info->fabric_attr->prov_name);
	named_add(ia, "OFI_DOMAIN", info->domain_attr->name);
	named_add(ia, "OFI_FABRICS", ia->fabrics);
	named_add(ia, "OFI_LIBFABRIC", ia->version);
	/* what programs written for InfiniBand's providers look for */
	named_add(ia, "DAT_IB_RDMA_READ", "TRUE");
	named_add(ia, "DAT_IB_TRANSPORT_MTU", "4096");
	for (i = 0; i < N_CAPS; i++)
		named_add(ia, caps[i].name, caps[i].source);
	for (i = 0; i < sizeof(other_sources) / sizeof(other_sources[0]); i++)
		named_add(ia, other_sources[i].name, other_sources[i].value);
}

/* An EP attribute: its default, and the IA attribute that bounds it. */
struct ep_cap {
	DAT_EP_PARAM_MASK field;
	size_t offset, size;		/* in DAT_EP_ATTR */
	size_t ia_offset, ia_size;	/* in DAT_IA_ATTR */
	uint64_t def;			/* UINT64_MAX: as much as the IA offers */
	bool zero_is_default;		/* programs pass 0 for "whatever you have" */
};

#define EP_CAP(member, FIELD, ia_member, def, zero)                                  \
	{ DAT_EP_FIELD_EP_ATTR_##FIELD,                                              \
	  offsetof(DAT_EP_ATTR, member), MEMBER_SIZE(DAT_EP_ATTR, member),           \
	  offsetof(DAT_IA_ATTR, ia_member), MEMBER_SIZE(DAT_IA_ATTR, ia_member),     \
	  def, zero }

static const struct ep_cap ep_caps[] = {
	EP_CAP(max_message_size, MAX_MESSAGE_SIZE, max_message_size, UINT64_MAX, true),
	EP_CAP(max_rdma_size, MAX_RDMA_SIZE, max_rdma_size, UINT64_MAX, true),
	EP_CAP(max_recv_dtos, MAX_RECV_DTOS, max_dto_per_ep, 64, false),
	EP_CAP(max_request_dtos, MAX_REQUEST_DTOS, max_dto_per_ep, 64, false),
	EP_CAP(max_recv_iov, MAX_RECV_IOV, max_iov_segments_per_dto, 4, true),
	EP_CAP(max_request_iov, MAX_REQUEST_IOV, max_iov_segments_per_dto, 4, true),
	EP_CAP(max_rdma_read_in, MAX_RDMA_READ_IN, max_rdma_read_per_ep_in, 16, true),
	EP_CAP(max_rdma_read_out, MAX_RDMA_READ_OUT, max_rdma_read_per_ep_out, 16, true),
	EP_CAP(max_rdma_read_iov, MAX_RDMA_READ_IOV, max_iov_segments_per_rdma_read, 4, true),
	EP_CAP(max_rdma_write_iov, MAX_RDMA_WRITE_IOV, max_iov_segments_per_rdma_write, 4, true),
};

#define N_EP_CAPS (sizeof(ep_caps) / sizeof(ep_caps[0]))

/* The value of one attribute in force, or false when too much was asked for. */
static bool ep_cap_apply(const struct ep_cap *c, const DAT_IA_ATTR *ia_attr,
			 const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	uint64_t most = load(ia_attr, c->ia_offset, c->ia_size);
	uint64_t value = wanted ? load(wanted, c->offset, c->size) : c->def;

	if (wanted && !value && c->zero_is_default)
		value = c->def;
	if (value == UINT64_MAX || (value == c->def && value > most))
		value = most;
	if (value > most)
		return false;
	store(attr, c->offset, c->size, value);
	return true;
}

bool dofi_caps_stream_flag(DAT_COMPLETION_FLAGS flag)
{
	return flag == DAT_COMPLETION_DEFAULT_FLAG || flag == DAT_COMPLETION_UNSIGNALLED_FLAG ||
	       flag == DAT_COMPLETION_EVD_THRESHOLD_FLAG;	/* the default's own name */
}

bool dofi_caps_ep_take(const struct dofi_ia *ia, DAT_EP_PARAM_MASK field,
		       const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	DAT_IA_ATTR ia_attr;
	size_t i;

	for (i = 0; i < N_EP_CAPS; i++) {
		if (ep_caps[i].field != field)
			continue;
		dofi_caps_ia_attr(ia, &ia_attr);
		return ep_cap_apply(&ep_caps[i], &ia_attr, wanted, attr);
	}
	return false;
}

static bool ep_flags_valid(const DAT_EP_ATTR *a)
{
	return dofi_caps_stream_flag(a->recv_completion_flags) &&
	       dofi_caps_stream_flag(a->request_completion_flags);
}

DAT_RETURN dofi_caps_ep_attr(const struct dofi_ia *ia, const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	DAT_IA_ATTR ia_attr;
	size_t i;

	if (wanted) {
		if (wanted->service_type != DAT_SERVICE_TYPE_RC || !ep_flags_valid(wanted) ||
		    wanted->ep_transport_specific_count || wanted->ep_provider_specific_count)
			return DOFI_BAD_ARG(7);
		if (wanted->qos != DAT_QOS_BEST_EFFORT)
			return DOFI_NOT_SUPPORTED;
		*attr = *wanted;
	} else {
		memset(attr, 0, sizeof(*attr));
		attr->service_type = DAT_SERVICE_TYPE_RC;
		attr->qos = DAT_QOS_BEST_EFFORT;
	}
	dofi_caps_ia_attr(ia, &ia_attr);
	for (i = 0; i < N_EP_CAPS; i++)
		if (!ep_cap_apply(&ep_caps[i], &ia_attr, wanted, attr))
			return DOFI_BAD_ARG(7);
	return DAT_SUCCESS;
}
