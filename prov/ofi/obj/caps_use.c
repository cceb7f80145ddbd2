/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Applies the capability table to an IA and its endpoints. */

#include "obj/caps.h"

#include "base/env.h"
#include "base/range.h"
#include "fab/quirks.h"
#include "obj/ia.h"

#include <string.h>

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

const struct dofi_cap *dofi_caps_row(enum dofi_cap_of of, uint64_t field)
{
	size_t i;

	for (i = 0; i < dofi_n_caps; i++)
		if (dofi_caps[i].of == of && dofi_caps[i].field == field)
			return &dofi_caps[i];
	return NULL;
}

/* Attributes of the IA and the provider */

static uint64_t row_value(const struct dofi_ia *ia, const struct dofi_cap *row)
{
	if (row->where && !*(const bool *)((const char *)ia + row->where))
		return row->without;
	if (!row->from_size)
		return row->most;
	return dofi_min(load(ia, row->from, row->from_size), row->most);
}

uint64_t dofi_caps_value(const struct dofi_ia *ia, uint64_t field)
{
	return row_value(ia, dofi_caps_row(DOFI_CAP_IA, field));
}

static void rows_fill(const struct dofi_ia *ia, enum dofi_cap_of of, void *base)
{
	const struct dofi_cap *row;

	for (row = dofi_caps; row < dofi_caps + dofi_n_caps; row++) {
		if (row->of != of)
			continue;
		if (row->fill)
			row->fill(ia, (char *)base + row->offset);
		else
			store(base, row->offset, row->size, row_value(ia, row));
	}
}

void dofi_caps_ia_attr(const struct dofi_ia *ia, DAT_IA_ATTR *attr)
{
	memset(attr, 0, sizeof(*attr));
	rows_fill(ia, DOFI_CAP_IA, attr);
}

void dofi_caps_provider_attr(const struct dofi_ia *ia, DAT_PROVIDER_ATTR *attr)
{
	memset(attr, 0, sizeof(*attr));
	rows_fill(ia, DOFI_CAP_PROVIDER, attr);
}

/* The IA attribute that counts objects of a type; 0 where no attribute does. */
static const uint64_t object_limit[DOFI_KINDS] = {
	[DOFI_KIND(DAT_HANDLE_TYPE_EP)] = DAT_IA_FIELD_IA_MAX_EPS,
	[DOFI_KIND(DAT_HANDLE_TYPE_EVD)] = DAT_IA_FIELD_IA_MAX_EVDS,
	[DOFI_KIND(DAT_HANDLE_TYPE_LMR)] = DAT_IA_FIELD_IA_MAX_LMRS,
	[DOFI_KIND(DAT_HANDLE_TYPE_RMR)] = DAT_IA_FIELD_IA_MAX_RMRS,
	[DOFI_KIND(DAT_HANDLE_TYPE_SRQ)] = DAT_IA_FIELD_IA_MAX_SRQS,
	[DOFI_KIND(DAT_HANDLE_TYPE_PZ)] = DAT_IA_FIELD_IA_MAX_PZS,
};

#define MOST_OF_OTHERS 65536

DAT_COUNT dofi_caps_max_objects(const struct dofi_ia *ia, DAT_HANDLE_TYPE type)
{
	const uint64_t field = object_limit[DOFI_KIND(type)];

	return field ? dofi_caps_value(ia, field) : MOST_OF_OTHERS;
}

/* Named attributes */

static void named_add(struct dofi_ia *ia, const char *name, const char *value)
{
	if (value && ia->n_named < DOFI_IA_NAMED_ATTRS)
		ia->named[ia->n_named++] = (DAT_NAMED_ATTR){ name, value };
}

static void named_known(struct dofi_ia *ia, const char *name, const char *value)
{
	if (value[0])
		named_add(ia, name, value);
}

static const char *truth(bool value)
{
	return value ? "TRUE" : "FALSE";
}

/*
 * Programs written for InfiniBand's providers look for these; without an MTU some do not start.
 * The last ones are the parts of the extension that are supported.
 */
static void named_infiniband(struct dofi_ia *ia)
{
	const struct dofi_device *d = &ia->device;

	named_add(ia, "DAT_IB_RDMA_READ", "TRUE");
	named_known(ia, "DAT_IB_DEVICE_NAME", d->name);
	named_known(ia, "DAT_IB_PORT_NUMBER", d->port);
	named_known(ia, "DAT_IB_PORT_STATUS", d->state);
	named_known(ia, "DAT_IB_GID", d->gid);
	named_known(ia, "DAT_IB_NODE_GUID", d->guid);
	named_add(ia, "DAT_IB_TRANSPORT_MTU", d->mtu[0] ? d->mtu : "4096");
#if DAT_VERSION_MAJOR >= 2
	named_add(ia, "DAT_EXTENSION_INTERFACE", "TRUE");
	named_add(ia, DAT_IB_ATTR_COUNTERS, "TRUE");
	named_add(ia, DAT_IB_ATTR_IMMED_DATA, truth(dofi_fabric_has_immed(&ia->fabric)));
	named_add(ia, DAT_IB_ATTR_FETCH_AND_ADD, truth(dofi_fabric_has_atomics(&ia->fabric)));
	named_add(ia, DAT_IB_ATTR_CMP_AND_SWAP, truth(dofi_fabric_has_atomics(&ia->fabric)));
	named_add(ia, DAT_IB_ATTR_UD, truth(ia->datagrams));
	if (ia->datagrams)
		named_add(ia, "OFI_DATAGRAM_SIZE", ia->datagram_text);
#endif
}

void dofi_caps_named_attrs(struct dofi_ia *ia)
{
	const struct fi_info *info = ia->fabric.info;
	const bool silent = !ia->fabric.rdm && ia->fabric.quirk->ends_silently;
	const struct dofi_setting_line *line;
	const struct dofi_cap *row;
	size_t i;

	dofi_fabric_list(false, ia->fabrics, sizeof(ia->fabrics));
	dofi_fabric_list(true, ia->rdm_fabrics, sizeof(ia->rdm_fabrics));
	ia->n_named = 0;
	named_add(ia, "OFI_PROVIDER", info->fabric_attr->prov_name);
	named_add(ia, "OFI_DOMAIN", info->domain_attr->name);
	named_add(ia, "OFI_ENDPOINT", ia->fabric.rdm ? "rdm" : "msg");
	if (ia->local.info)
		named_add(ia, "OFI_LOCAL", ia->local.info->fabric_attr->prov_name);
	named_add(ia, "OFI_RDMA", ia->fabric.target_rdma ? "target" : "fabric");
	named_add(ia, "OFI_WRITES_ORDERED", truth(ia->fabric.write_ordered));
	/* the error when the peer's memory refuses an operation; over OFI_LOCAL the second one */
	named_add(ia, "OFI_RDMA_REFUSED",
		  silent ? "DAT_DTO_ERR_FLUSHED" : "DAT_DTO_ERR_REMOTE_ACCESS");
	/* whether an orderly end of a connection is distinguished from a lost one */
	named_add(ia, "OFI_GOODBYE", truth(ia->fabric.sends_bye));
	named_add(ia, "OFI_STRICT", truth(ia->strict));
	named_known(ia, "OFI_FRAME_SIZE", ia->frame_size);
	named_add(ia, "OFI_FABRICS", ia->fabrics);
	named_add(ia, "OFI_FABRICS_RDM", ia->rdm_fabrics);
	named_add(ia, "OFI_LIBFABRIC", ia->version);
	named_known(ia, "OFI_NUMA_NODE", ia->node);
	named_known(ia, "OFI_NUMA_DISTANCE", ia->distance);
	named_infiniband(ia);
	for (row = dofi_caps; row < dofi_caps + dofi_n_caps; row++) {
		named_add(ia, row->named[DOFI_NAMED_SOURCE], row->source);
		named_add(ia, row->named[DOFI_NAMED_ADDS], row->adds);
		if (row->limit)
			named_add(ia, row->named[DOFI_NAMED_LIMIT],
				  dofi_caps_row(DOFI_CAP_IA, row->limit)->name);
		if (row->when)
			named_add(ia, row->named[DOFI_NAMED_MODIFY], row->when->words);
	}
	for (i = 0; (line = dofi_settings_line(i)); i++)
		named_add(ia, line->name, line->text);
}

DAT_RETURN dofi_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd,
			 DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			 DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (ia_mask & ~(DAT_IA_ATTR_MASK)DAT_IA_FIELD_ALL)
		return DOFI_BAD_ARG(3);
	if (ia_mask && !ia_attr)
		return DOFI_BAD_ARG(4);
	if (provider_mask & ~(DAT_PROVIDER_ATTR_MASK)DAT_PROVIDER_FIELD_ALL)
		return DOFI_BAD_ARG(5);
	if (provider_mask && !provider_attr)
		return DOFI_BAD_ARG(6);
	if (async_evd)
		*async_evd = ia->async_evd_shared ? DAT_EVD_OUT_OF_SCOPE :
						    (DAT_EVD_HANDLE)ia->async_evd;
	if (ia_mask)
		dofi_caps_ia_attr(ia, ia_attr);
	if (provider_mask) {
		/* at the first query for them: libfabric's lists of fabrics take time */
		dofi_mutex_lock(&ia->lock);
		if (!ia->n_named)
			dofi_caps_named_attrs(ia);
		dofi_mutex_unlock(&ia->lock);
		dofi_caps_provider_attr(ia, provider_attr);
	}
	return DAT_SUCCESS;
}

/* Attributes of endpoints */

bool dofi_caps_ep_take(const struct dofi_ia *ia, const struct dofi_cap *row,
		       const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	const uint64_t most = row->limit ? dofi_caps_value(ia, row->limit) : row->most;
	const uint64_t def = dofi_min(row->def, most);
	uint64_t value = wanted ? load(wanted, row->offset, row->size) : def;

	if (!value && row->zero_is_default)
		value = def;
	/* a negative count is a large number here */
	if (row->take ? row->take(ia, &value) : value <= most) {
		store(attr, row->offset, row->size, value);
		return true;
	}
	if (row->take)
		dofi_log(DOFI_WARN, DOFI_EP, "%s is %#llx; permitted: %s", row->name,
			 (unsigned long long)value, row->takes);
	else if (row->word)
		dofi_log(DOFI_WARN, DOFI_EP, "%s is %llu; permitted: %s", row->name,
			 (unsigned long long)value, row->word);
	else
		dofi_log(DOFI_WARN, DOFI_EP, "%s is %lld; permitted: 0 to %llu", row->name,
			 most <= INT32_MAX ? (int32_t)value : (long long)value,
			 (unsigned long long)most);
	return false;
}

bool dofi_caps_is_datagram(const struct dofi_ia *ia, const DAT_EP_ATTR *attr)
{
#if DAT_VERSION_MAJOR >= 2
	return ia->datagrams && attr &&
	       attr->service_type == (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
#else
	(void)ia;
	(void)attr;
	return false;
#endif
}

static DAT_RETURN rows_take(const struct dofi_ia *ia, const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	const struct dofi_cap *row;
	DAT_COUNT most, iov;

	memset(attr, 0, sizeof(*attr));
	for (row = dofi_caps; row < dofi_caps + dofi_n_caps; row++) {
		if (row->of == DOFI_CAP_EP && row->size &&
		    !dofi_caps_ep_take(ia, row, wanted, attr))
			return row->field == DAT_EP_FIELD_EP_ATTR_QOS ? DOFI_NOT_SUPPORTED :
									DOFI_BAD_ARG(7);
	}
	/* programs that leave 0 use as many segments for RDMA as for sends */
	most = dofi_caps_value(ia, DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ);
	iov = attr->max_request_iov < most ? attr->max_request_iov : most;
	if (wanted && !wanted->max_rdma_read_iov && attr->max_rdma_read_iov < iov)
		attr->max_rdma_read_iov = iov;
	most = dofi_caps_value(ia, DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE);
	iov = attr->max_request_iov < most ? attr->max_request_iov : most;
	if (wanted && !wanted->max_rdma_write_iov && attr->max_rdma_write_iov < iov)
		attr->max_rdma_write_iov = iov;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_caps_ep_attr(const struct dofi_ia *ia, const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr)
{
	DAT_EP_ATTR w;
	DAT_RETURN ret;

	if (!dofi_caps_is_datagram(ia, wanted))
		return rows_take(ia, wanted, attr);
	/*
	 * The rows describe endpoints with connections. Only dat_ep_create() makes a datagram EP:
	 * dat_ep_modify() takes rows one by one.
	 */
	w = *wanted;
	w.service_type = DAT_SERVICE_TYPE_RC;
	if (!w.max_message_size || w.max_message_size > ia->datagram_size)
		w.max_message_size = ia->datagram_size;
	ret = rows_take(ia, &w, attr);
	attr->service_type = wanted->service_type;
	return ret;
}
