/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of every attribute that dat_ia_query() and dat_ep_query() return, by name. */
#include "info_attr.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define EVD_STREAMS 6

static const struct attr_name mem_types[] = {
	{ DAT_MEM_TYPE_VIRTUAL, "virtual" },
	{ DAT_MEM_TYPE_LMR, "lmr" },
	{ DAT_MEM_TYPE_SHARED_VIRTUAL, "shared" },
	{ 0, NULL },
};

static const struct attr_name iov_owners[] = {
	{ DAT_IOV_CONSUMER, "consumer" },
	{ DAT_IOV_PROVIDER_NOMOD, "provider, unmodified" },
	{ DAT_IOV_PROVIDER_MOD, "provider" },
	{ 0, NULL },
};

static const struct attr_name qos_names[] = {
	{ DAT_QOS_BEST_EFFORT, "best effort" },
	{ DAT_QOS_HIGH_THROUGHPUT, "high throughput" },
	{ DAT_QOS_LOW_LATENCY, "low latency" },
	{ DAT_QOS_ECONOMY, "economy" },
	{ DAT_QOS_PREMIUM, "premium" },
	{ 0, NULL },
};

static const struct attr_name completion_flags[] = {
	{ DAT_COMPLETION_DEFAULT_FLAG, "default" },
	{ DAT_COMPLETION_SUPPRESS_FLAG, "suppress" },
	{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, "solicited wait" },
	{ DAT_COMPLETION_UNSIGNALLED_FLAG, "unsignalled" },
	{ DAT_COMPLETION_BARRIER_FENCE_FLAG, "barrier fence" },
	{ DAT_COMPLETION_EVD_THRESHOLD_FLAG, "evd threshold" },
#if DAT_VERSION_MAJOR >= 2
	{ DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, "lmr invalidate fence" },
#endif
	{ 0, NULL },
};

static const struct attr_name services[] = {
	{ DAT_SERVICE_TYPE_RC, "reliable connection" },
	{ 0, NULL },
};

static const struct attr_name ep_creators[] = {
	{ DAT_PSP_CREATES_EP_NEVER, "consumer" },
	{ DAT_PSP_CREATES_EP_IFASKED, "provider on request" },
	{ DAT_PSP_CREATES_EP_ALWAYS, "provider" },
	{ 0, NULL },
};

static const struct attr_name pz_supports[] = {
	{ DAT_PZ_UNIQUE, "unique" },
#if DAT_VERSION_MAJOR < 2
	{ DAT_PZ_SAME, "same" },
#endif
	{ DAT_PZ_SHAREABLE, "shareable" },
	{ 0, NULL },
};

#if DAT_VERSION_MAJOR >= 2
static const struct attr_name extensions[] = {
	{ DAT_EXTENSION_NONE, "none" },
	{ DAT_EXTENSION_IB, "InfiniBand" },
	{ DAT_EXTENSION_IW, "iWARP" },
	{ 0, NULL },
};

static const struct attr_name rmr_scopes[] = {
	{ DAT_RMR_SCOPE_EP, "ep" },
	{ DAT_RMR_SCOPE_PZ, "pz" },
	{ DAT_RMR_SCOPE_ANY, "any" },
	{ 0, NULL },
};

static const struct attr_name ha_balances[] = {
	{ DAT_HA_LB_NONE, "none" },
	{ DAT_HA_LB_INTERCOMM, "between connections" },
	{ DAT_HA_LB_INTRACOMM, "within a connection" },
	{ 0, NULL },
};
#endif

#define SIZE_OF(type, member) sizeof(((type *)0)->member)
#define IA(member, kind, names)                                           \
	{ #member, offsetof(DAT_IA_ATTR, member), SIZE_OF(DAT_IA_ATTR, member), \
	  kind, names }
#define PR(member, kind, names)                                           \
	{ #member, offsetof(DAT_PROVIDER_ATTR, member),                   \
	  SIZE_OF(DAT_PROVIDER_ATTR, member), kind, names }
#define EP(member, kind, names)                                           \
	{ #member, offsetof(DAT_EP_PARAM, member),                        \
	  SIZE_OF(DAT_EP_PARAM, member), kind, names }

const struct attr ia_attrs[] = {
	IA(adapter_name, ATTR_TEXT, NULL),
	IA(vendor_name, ATTR_TEXT, NULL),
	IA(hardware_version_major, ATTR_UINT, NULL),
	IA(hardware_version_minor, ATTR_UINT, NULL),
	IA(firmware_version_major, ATTR_UINT, NULL),
	IA(firmware_version_minor, ATTR_UINT, NULL),
	IA(ia_address_ptr, ATTR_ADDRESS, NULL),
	IA(max_eps, ATTR_COUNT, NULL),
	IA(max_dto_per_ep, ATTR_COUNT, NULL),
	IA(max_rdma_read_per_ep_in, ATTR_COUNT, NULL),
	IA(max_rdma_read_per_ep_out, ATTR_COUNT, NULL),
	IA(max_evds, ATTR_COUNT, NULL),
	IA(max_evd_qlen, ATTR_COUNT, NULL),
	IA(max_iov_segments_per_dto, ATTR_COUNT, NULL),
	IA(max_lmrs, ATTR_COUNT, NULL),
	IA(max_lmr_block_size, ATTR_UINT, NULL),
	IA(max_lmr_virtual_address, ATTR_UINT, NULL),
	IA(max_pzs, ATTR_COUNT, NULL),
	IA(max_message_size, ATTR_UINT, NULL),
	IA(max_rdma_size, ATTR_UINT, NULL),
	IA(max_rmrs, ATTR_COUNT, NULL),
	IA(max_rmr_target_address, ATTR_UINT, NULL),
	IA(max_srqs, ATTR_COUNT, NULL),
	IA(max_ep_per_srq, ATTR_COUNT, NULL),
	IA(max_recv_per_srq, ATTR_COUNT, NULL),
	IA(max_iov_segments_per_rdma_read, ATTR_COUNT, NULL),
	IA(max_iov_segments_per_rdma_write, ATTR_COUNT, NULL),
	IA(max_rdma_read_in, ATTR_COUNT, NULL),
	IA(max_rdma_read_out, ATTR_COUNT, NULL),
	IA(max_rdma_read_per_ep_in_guaranteed, ATTR_BOOL, NULL),
	IA(max_rdma_read_per_ep_out_guaranteed, ATTR_BOOL, NULL),
#if DAT_VERSION_MAJOR >= 2
	IA(zb_supported, ATTR_BOOL, NULL),
	IA(extension_supported, ATTR_ENUM, extensions),
	IA(extension_version, ATTR_COUNT, NULL),
#endif
	IA(num_transport_attr, ATTR_COUNT, NULL),
	IA(num_vendor_attr, ATTR_COUNT, NULL),
};
const int ia_nattrs = sizeof(ia_attrs) / sizeof(ia_attrs[0]);

const struct attr provider_attrs[] = {
	PR(provider_name, ATTR_TEXT, NULL),
	PR(provider_version_major, ATTR_UINT, NULL),
	PR(provider_version_minor, ATTR_UINT, NULL),
	PR(dapl_version_major, ATTR_UINT, NULL),
	PR(dapl_version_minor, ATTR_UINT, NULL),
	PR(lmr_mem_types_supported, ATTR_FLAGS, mem_types),
	PR(iov_ownership_on_return, ATTR_ENUM, iov_owners),
	PR(dat_qos_supported, ATTR_FLAGS, qos_names),
	PR(completion_flags_supported, ATTR_FLAGS, completion_flags),
	PR(is_thread_safe, ATTR_BOOL, NULL),
	PR(max_private_data_size, ATTR_COUNT, NULL),
	PR(supports_multipath, ATTR_BOOL, NULL),
	PR(ep_creator, ATTR_ENUM, ep_creators),
	PR(pz_support, ATTR_ENUM, pz_supports),
	PR(optimal_buffer_alignment, ATTR_UINT, NULL),
	PR(evd_stream_merging_supported, ATTR_MATRIX, NULL),
	PR(srq_supported, ATTR_BOOL, NULL),
	PR(srq_watermarks_supported, ATTR_COUNT, NULL),
	PR(srq_ep_pz_difference_supported, ATTR_BOOL, NULL),
	PR(srq_info_supported, ATTR_COUNT, NULL),
	PR(ep_recv_info_supported, ATTR_COUNT, NULL),
	PR(lmr_sync_req, ATTR_BOOL, NULL),
	PR(dto_async_return_guaranteed, ATTR_BOOL, NULL),
	PR(rdma_write_for_rdma_read_req, ATTR_BOOL, NULL),
#if DAT_VERSION_MAJOR >= 2
	PR(rdma_read_lmr_rmr_context_exposure, ATTR_BOOL, NULL),
	PR(rmr_scope_supported, ATTR_ENUM, rmr_scopes),
	PR(is_signal_safe, ATTR_BOOL, NULL),
	PR(ha_supported, ATTR_BOOL, NULL),
	PR(ha_loadbalancing, ATTR_ENUM, ha_balances),
#endif
	PR(num_provider_specific_attr, ATTR_COUNT, NULL),
};
const int provider_nattrs = sizeof(provider_attrs) / sizeof(provider_attrs[0]);

const struct attr ep_attrs[] = {
	EP(ia_handle, ATTR_OPAQUE, NULL),
	EP(ep_state, ATTR_OPAQUE, NULL),
#if DAT_VERSION_MAJOR >= 2
	EP(comm, ATTR_OPAQUE, NULL),
#endif
	EP(local_ia_address_ptr, ATTR_OPAQUE, NULL),
	EP(local_port_qual, ATTR_OPAQUE, NULL),
	EP(remote_ia_address_ptr, ATTR_OPAQUE, NULL),
	EP(remote_port_qual, ATTR_OPAQUE, NULL),
	EP(pz_handle, ATTR_OPAQUE, NULL),
	EP(recv_evd_handle, ATTR_OPAQUE, NULL),
	EP(request_evd_handle, ATTR_OPAQUE, NULL),
	EP(connect_evd_handle, ATTR_OPAQUE, NULL),
	EP(srq_handle, ATTR_OPAQUE, NULL),
	EP(ep_attr.service_type, ATTR_ENUM, services),
	EP(ep_attr.max_message_size, ATTR_UINT, NULL),
	EP(ep_attr.max_rdma_size, ATTR_UINT, NULL),
	EP(ep_attr.qos, ATTR_FLAGS, qos_names),
	EP(ep_attr.recv_completion_flags, ATTR_FLAGS, completion_flags),
	EP(ep_attr.request_completion_flags, ATTR_FLAGS, completion_flags),
	EP(ep_attr.max_recv_dtos, ATTR_COUNT, NULL),
	EP(ep_attr.max_request_dtos, ATTR_COUNT, NULL),
	EP(ep_attr.max_recv_iov, ATTR_COUNT, NULL),
	EP(ep_attr.max_request_iov, ATTR_COUNT, NULL),
	EP(ep_attr.max_rdma_read_in, ATTR_COUNT, NULL),
	EP(ep_attr.max_rdma_read_out, ATTR_COUNT, NULL),
	EP(ep_attr.srq_soft_hw, ATTR_COUNT, NULL),
	EP(ep_attr.max_rdma_read_iov, ATTR_COUNT, NULL),
	EP(ep_attr.max_rdma_write_iov, ATTR_COUNT, NULL),
	EP(ep_attr.ep_transport_specific_count, ATTR_COUNT, NULL),
	EP(ep_attr.ep_transport_specific, ATTR_OPAQUE, NULL),
	EP(ep_attr.ep_provider_specific_count, ATTR_COUNT, NULL),
	EP(ep_attr.ep_provider_specific, ATTR_OPAQUE, NULL),
};
const int ep_nattrs = sizeof(ep_attrs) / sizeof(ep_attrs[0]);

static const void *member(const struct attr *attr, const void *base)
{
	return (const char *)base + attr->offset;
}

static uint64_t load(const struct attr *attr, const void *base)
{
	uint32_t v32;
	uint64_t v64;

	if (attr->size == sizeof(v32)) {
		memcpy(&v32, member(attr, base), sizeof(v32));
		return v32;
	}
	memcpy(&v64, member(attr, base), sizeof(v64));
	return v64;
}

static const char *enum_text(const struct attr *attr, uint64_t value, char *buf, size_t len)
{
	const struct attr_name *n;

	for (n = attr->names; n->name; n++)
		if (n->value == value)
			break;
	if (n->name)
		snprintf(buf, len, "%s", n->name);
	else
		snprintf(buf, len, "%" PRIu64, value);
	return buf;
}

static const char *flags_text(const struct attr *attr, uint64_t value, char *buf, size_t len)
{
	const struct attr_name *n;
	size_t used = 0;

	if (!value)
		return enum_text(attr, value, buf, len);
	*buf = '\0';
	for (n = attr->names; n->name; n++) {
		if (!n->value || (value & n->value) != n->value)
			continue;
		used += snprintf(buf + used, len - used, "%s%s", used ? ", " : "", n->name);
		value &= ~(uint64_t)n->value;
	}
	if (value)
		snprintf(buf + used, len - used, "%s0x%" PRIx64, used ? ", " : "", value);
	return buf;
}

/* "all", or the rows of the matrix as bits, '1' where the pair may share. */
static const char *matrix_text(const void *at, char *buf, size_t len)
{
	DAT_BOOLEAN m[EVD_STREAMS][EVD_STREAMS];
	int row, col, set = 0;
	size_t used = 0;

	memcpy(m, at, sizeof(m));
	for (row = 0; row < EVD_STREAMS; row++) {
		if (row && used < len - 1)
			buf[used++] = ' ';
		for (col = 0; col < EVD_STREAMS; col++) {
			set += m[row][col] != DAT_FALSE;
			if (used < len - 1)
				buf[used++] = m[row][col] ? '1' : '0';
		}
	}
	buf[used] = '\0';
	if (set == EVD_STREAMS * EVD_STREAMS)
		snprintf(buf, len, "all");
	return buf;
}

const char *attr_text(const struct attr *attr, const void *base, char *buf, size_t len)
{
	const void *at = member(attr, base);

	switch (attr->kind) {
	case ATTR_TEXT:
		snprintf(buf, len, "%.*s", (int)attr->size, (const char *)at);
		break;
	case ATTR_UINT:
		snprintf(buf, len, "%" PRIu64, load(attr, base));
		break;
	case ATTR_COUNT:
		snprintf(buf, len, "%d", *(const DAT_COUNT *)at);
		break;
	case ATTR_BOOL:
		snprintf(buf, len, "%s", load(attr, base) ? "yes" : "no");
		break;
	case ATTR_ADDRESS:
		return dat_text_address(*(const DAT_IA_ADDRESS_PTR *)at, buf, len);
	case ATTR_ENUM:
		return enum_text(attr, load(attr, base), buf, len);
	case ATTR_FLAGS:
		return flags_text(attr, load(attr, base), buf, len);
	case ATTR_MATRIX:
		return matrix_text(at, buf, len);
	case ATTR_OPAQUE:
		return "-";
	}
	return buf;
}

void attr_json(const struct attr *attr, const char *name, const void *base, struct json *j)
{
	char buf[ATTR_TEXT_MAX];

	switch (attr->kind) {
	case ATTR_UINT:
		json_uint(j, name, load(attr, base));
		break;
	case ATTR_COUNT:
		json_int(j, name, *(const DAT_COUNT *)member(attr, base));
		break;
	case ATTR_BOOL:
		json_bool(j, name, load(attr, base) != DAT_FALSE);
		break;
	case ATTR_OPAQUE:
		json_string(j, name, NULL);
		break;
	default:
		json_string(j, name, attr_text(attr, base, buf, sizeof(buf)));
	}
}

const char *attr_note(const struct attr *attr, const char *prefix, const DAT_PROVIDER_ATTR *pa)
{
	char name[96];

	snprintf(name, sizeof(name), "%s:%s", prefix, attr->name);
	return dat_named_attr(pa, name);
}
