/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of an IA: its capabilities, its limits, and the start of its progress thread. */

#include "fab/info.h"

#include "base/env.h"
#include "base/log.h"
#include "base/range.h"
#include "fab/offers.h"
#include "fab/reach.h"
#include "loop/progress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of segments: each slot holds that many. */
#define MAX_IOV 8

/*
 * Sets how the bytes of an RDMA operation are moved, and which keys there are. DAT programs address
 * remote memory by virtual address and a 32-bit key. A fabric that offers offsets takes virtual
 * addresses if its domain is opened with that mode, and uses keys of our choice.
 */
static void choose_rdma(struct dofi_fabric_choice *choice, struct dofi_query q)
{
	struct fi_info *info = choice->info;
	const struct dofi_quirk *quirk = choice->quirk;

	choice->mr_style = DOFI_MR_VIRTUAL;
	choice->target_rdma = choice->rdm && q.target_rdma;
	if (choice->target_rdma) {	/* keys are in our table: fab/grant.h */
		choice->write_ordered = choice->zero_based = choice->scoped_keys = true;
		return;
	}
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) {
		choice->mr_style = DOFI_MR_NATIVE;
	} else {
		info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
		choice->zero_based = quirk->takes_offset;
		choice->scoped_keys = info->domain_attr->mr_key_size >= sizeof(uint64_t);
	}
	choice->write_ordered = q.order & FI_ORDER_SAW &&
				!(choice->rdm && quirk->delivers_after_refusal);
	/* without it software completes a write in a socket; hardware lacks it, but delivers */
	q.op_flags = FI_DELIVERY_COMPLETE;
	if (quirk->has_delivery_complete || dofi_query_also(info, &q))
		choice->write_flags = FI_DELIVERY_COMPLETE;
}

/* Returns @size, or the value of the foreign @variable if that is less; @variable may be null. */
static size_t limited(size_t size, const char *variable)
{
	const char *limit = variable ? dofi_foreign_value(variable) : NULL;

	return limit ? dofi_min(size, strtoul(limit, NULL, 0)) : size;
}

#define FRAME_BYTES 16384	/* the default */
#define LEAST_FRAME 512		/* the header of a frame has to fit */

/* Sets the members of connectionless fabrics. */
static int choose_rdm(struct dofi_fabric_choice *choice)
{
	struct fi_info *info = choice->info;
	const struct dofi_quirk *quirk = choice->quirk;
	const char *variable = quirk->frame_variable;
	size_t size = quirk->frame_size ? quirk->frame_size : FRAME_BYTES;

	if (quirk->frame_injected)
		size = dofi_min(size, info->tx_attr->inject_size);
	choice->frame_size = dofi_min(limited(size, variable), info->ep_attr->max_msg_size);
	if (choice->frame_size < LEAST_FRAME) {
		dofi_log(DOFI_ERR, DOFI_FAB, "fabric %s takes messages of %zu bytes in order, "
			 "which is less than %d%s%s", info->fabric_attr->prov_name,
			 choice->frame_size, LEAST_FRAME, variable ? ": raise " : "",
			 variable ? variable : "");
		return -FI_EOPNOTSUPP;
	}
	choice->cq_data = true;		/* in the header of a frame */
	choice->shared_memory = quirk->shared_memory;
	/* libfabric ignores a length of 0 */
	size = limited(info->tx_attr->size, quirk->tx_variable);
	if (size)
		info->tx_attr->size = size;
	size = limited(info->rx_attr->size, quirk->rx_variable);
	if (size)
		info->rx_attr->size = size;
	return 0;
}

int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	struct dofi_query q;
	struct fi_info *info;
	int ret = dofi_query_find(params, &q, &info);

	if (ret)
		return ret;
	*choice = (struct dofi_fabric_choice){
		.info = info,
		.rdm = q.type == FI_EP_RDM,
		.quirk = dofi_offer_quirk(info),
		.cq_data = info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
			   !(info->mode & FI_RX_CQ_DATA),
		/* a device's domain is tied to its interface, software's is not */
		.wildcard = !info->nic && !params->address[0] && !params->domain[0],
	};
	/* libfabric reports the open objects of another IA, which may close them: shm of 1.17 */
	info->fabric_attr->fabric = NULL;
	info->domain_attr->domain = NULL;
	choice->located = dofi_topo_locate(info, &choice->locality);
	choose_rdma(choice, q);
	/* hardware; FI_RX_CQ_DATA: a write with data consumes a receive */
	choice->immed = !choice->rdm && info->mode & FI_RX_CQ_DATA &&
			info->domain_attr->cq_data_size >= sizeof(uint32_t);
	if (choice->immed) {
		q.caps |= FI_ATOMIC;
		choice->atomics = dofi_query_also(info, &q);
		if (choice->atomics)
			info->caps |= FI_ATOMIC;	/* for registrations */
		choice->fences = choice->quirk->takes_fence;
		/* libfabric's locks would show in the latency: ours cost a tenth of them */
		info->domain_attr->threading = FI_THREAD_COMPLETION;
	}
	/* by a message of the CM socket, or by CQ data with room for number and secret */
	choice->sends_bye = choice->rdm || (choice->quirk->ends_silently && choice->cq_data &&
					    choice->scoped_keys);
	ret = choice->rdm ? choose_rdm(choice) : 0;
	if (ret)
		dofi_fabric_release(choice);
	return ret;
}

const char *dofi_fabric_name(const struct dofi_fabric_choice *choice)
{
	return choice->quirk->may_emulate && choice->target_rdma ? "efa;target" :
		choice->info->fabric_attr->prov_name;
}

void dofi_fabric_release(struct dofi_fabric_choice *choice)
{
	fi_freeinfo(choice->info);
	choice->info = NULL;
}

void dofi_fabric_address(const struct dofi_fabric_choice *choice, const struct dofi_params *params,
			 struct sockaddr_storage *address)
{
	const struct sockaddr *sa = dofi_offer_ip(choice->info);
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	if (sa && choice->info->src_addrlen <= sizeof(*address)) {
		memcpy(address, sa, choice->info->src_addrlen);
		in->sin_port = 0;	/* at one offset in both families */
		return;
	}
	if (dofi_address_parse(params->address, address) ||
	    (!choice->quirk->shared_memory && dofi_reach_host(address)))
		return;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* Datagrams */

#define LEAST_DATAGRAM 512		/* a useful one, with the header of the transport */

/* Selects the fabric of datagrams that belongs to @main. Returns 0 or -ENODATA. */
static int datagram_select(const struct dofi_fabric_choice *main,
			   const struct sockaddr_storage *address, struct dofi_params *p)
{
	const struct sockaddr *sa = (const struct sockaddr *)address;
	const char *provider = main->info->fabric_attr->prov_name;
	int n;

	*p = (struct dofi_params){ .provider = "" };
	if (main->rdm)
		return -ENODATA;
	if (!strcmp(provider, "verbs")) {
		/* libfabric's name of the domain of a device's datagrams */
		n = snprintf(p->domain, sizeof(p->domain), "%s-dgram",
			     main->info->domain_attr->name);
		strcpy(p->provider, "verbs");
		return n < (int)sizeof(p->domain) ? 0 : -ENODATA;
	}
	if (strcmp(provider, "tcp") && strcmp(provider, "sockets"))
		return -ENODATA;
	/* an endpoint at a wildcard address would have no name that is of use to peers */
	strcpy(p->provider, "udp");
	return getnameinfo(sa, dofi_address_size(sa), p->address, sizeof(p->address), NULL, 0,
			   NI_NUMERICHOST) ? -ENODATA : 0;
}

/* dofi_rdm_open() has no prefix in messages that are sent. */
static bool datagram_usable(const struct fi_info *info, const struct dofi_params *p)
{
	return info->ep_attr->type == FI_EP_DGRAM &&
	       !strcmp(info->fabric_attr->prov_name, p->provider) &&
	       (!p->domain[0] || !strcmp(info->domain_attr->name, p->domain)) &&
	       dofi_offer_has_address(info, p->address) &&
	       !(info->tx_attr->mode & FI_MSG_PREFIX) &&
	       info->ep_attr->max_msg_size >= LEAST_DATAGRAM;
}

int dofi_datagram_choose(const struct dofi_fabric_choice *main,
			 const struct sockaddr_storage *address,
			 struct dofi_fabric_choice *choice)
{
	static const struct dofi_query query = {
		.type = FI_EP_DGRAM,
		.caps = FI_MSG,
		.mode = FI_MSG_PREFIX,
		.mr_mode = DOFI_QUERY_MR_MODES,
	};
	struct fi_info *list, *info = NULL;
	struct dofi_params params;
	const struct fi_info *i;
	int ret = datagram_select(main, address, &params);

	if (!ret)
		ret = dofi_offers_list(&params, &query, &list);
	if (ret)
		return ret;
	for (i = list; i && !datagram_usable(i, &params); i = i->next)
		;
	if (i)
		info = fi_dupinfo(i);
	fi_freeinfo(list);
	if (!info)
		return i ? -FI_ENOMEM : -FI_ENODATA;
	*choice = (struct dofi_fabric_choice){
		.info = info,
		.mr_style = DOFI_MR_NATIVE,
		.rdm = true,
		.quirk = dofi_quirk_of_datagrams(info->fabric_attr->prov_name),
		.frame_size = info->ep_attr->max_msg_size,
	};
	/* without it udp does not search the AV for the sender of each datagram */
	info->caps &= ~FI_SOURCE;
	info->rx_attr->caps &= ~FI_SOURCE;
	choice->located = dofi_topo_locate(info, &choice->locality);
	return 0;
}

int dofi_datagram_start(const struct dofi_fabric_choice *choice, struct fid_fabric **fabric)
{
	struct fi_fabric_attr *attr = choice->info->fabric_attr;
	int ret = fi_fabric(attr, fabric, NULL);

	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "opening fabric %s for datagrams: %s",
			 attr->prov_name, fi_strerror(-ret));
	return ret;
}

/* Addresses and limits */

const char *dofi_address_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN])
{
	const void *host = &((const struct sockaddr_in *)address)->sin_addr;

	if (address->ss_family == AF_INET6)
		host = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return inet_ntop(address->ss_family, host, text, INET6_ADDRSTRLEN) ? text : "?";
}

/* The bytes of the preamble in front of a message to an SRQ: xport/msg/msg.h. */
#define PREAMBLE 20
#define MOST_EPS 65536			/* the capacity of pools and tables */
#define MOST_LMRS 65536
#define MOST_PZS 1024
/*
 * Operations of an endpoint wait in its own queues, which grow when they are used. libfabric
 * reports the default size of a device's queue, not the largest, so a device has a lower limit
 * that its queues can take up in a few refills.
 */
#define MOST_DTOS 65536
#define DEVICE_DTOS 8192

void dofi_info_limits(const struct dofi_fabric_choice *choice, size_t cm_data_size,
		      struct dofi_limits *limits)
{
	const struct fi_info *info = choice->info;
	/* the limits of the fabric do not apply to data that the transport moves */
	size_t tx_iov = choice->target_rdma ? MAX_IOV : info->tx_attr->iov_limit;
	size_t rx_iov = choice->target_rdma ? MAX_IOV : info->rx_attr->iov_limit;
	bool has_srqs = choice->rdm || info->tx_attr->inject_size >= PREAMBLE;
	/* ep_cnt is a limit of a device, but not of a software fabric */
	size_t endpoints = info->nic ? info->domain_attr->ep_cnt : 0;
	/* a target that carries out RDMA registers memory for FI_MR_LOCAL alone */
	bool registers = !choice->target_rdma || info->domain_attr->mr_mode & FI_MR_LOCAL;
	size_t registrations = registers ? info->domain_attr->mr_cnt : 0;

	*limits = (struct dofi_limits){
		/* room to add an offset to any size without overflow */
		.max_message_size = dofi_min(info->ep_attr->max_msg_size, INT64_MAX),
		.max_rdma_size = dofi_min(info->ep_attr->max_msg_size, INT64_MAX),
		.max_iov = dofi_min(MAX_IOV, dofi_min(tx_iov, rx_iov)),
		.max_rdma_iov = dofi_min(MAX_IOV, tx_iov),
		/* connectionless EPs of a PZ share an endpoint of the fabric */
		.max_eps = endpoints && !choice->rdm ? dofi_min(endpoints, MOST_EPS) : MOST_EPS,
		.max_dtos = info->nic ? DEVICE_DTOS : MOST_DTOS,
		.max_pzs = endpoints && choice->rdm ? dofi_min(endpoints, MOST_PZS) : MOST_PZS,
		.max_lmrs = registrations ? dofi_min(registrations, MOST_LMRS) : MOST_LMRS,
		.max_srqs = has_srqs ? 65536 : 0,
		.inject_size = dofi_min(info->tx_attr->inject_size, UINT32_MAX),
		.cm_data_size = cm_data_size,
	};
	limits->max_srq_eps = limits->max_srqs ? limits->max_eps : 0;
}

#define LOWER(member) limits->member = dofi_min(limits->member, other->member)

void dofi_limits_lower(struct dofi_limits *limits, const struct dofi_limits *other)
{
	LOWER(max_message_size);
	LOWER(max_rdma_size);
	LOWER(max_iov);
	LOWER(max_rdma_iov);
	LOWER(max_eps);
	LOWER(max_dtos);
	LOWER(max_pzs);
	LOWER(max_lmrs);
	LOWER(max_srqs);
	LOWER(max_srq_eps);
}

int dofi_fabric_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
		      struct fi_info *info)
{
	const struct dofi_quirk *quirk = dofi_offer_quirk(info);
	const struct dofi_eq_traits traits = {
		.data_in_eq = quirk->data_in_eq, .fails_for_one = quirk->eq_fails_for_one,
	};
	int ret = dofi_progress_start(p, ops, info, &traits);

	if (!ret)
		dofi_topo_bind(p->thread, info);
	return ret;
}

/* The newest libfabric with which the tests of this provider have passed. */
#define TESTED FI_VERSION(2, 6)

void dofi_version_text(uint32_t version, char *text, size_t size)
{
	int len = snprintf(text, size, "%u.%u", FI_MAJOR(version), FI_MINOR(version));

	if (!FI_VERSION_GE(TESTED, version) && len > 0 && (size_t)len < size)
		snprintf(text + len, size - len, ", untested (tested up to %u.%u)",
			 FI_MAJOR(TESTED), FI_MINOR(TESTED));
}

void dofi_version_check(uint32_t version)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (!FI_VERSION_GE(TESTED, version) && !atomic_flag_test_and_set(&logged))
		dofi_log(DOFI_WARN, DOFI_FAB, "libfabric %u.%u is newer than %u.%u, the newest "
			 "that this provider was tested with", FI_MAJOR(version), FI_MINOR(version),
			 FI_MAJOR(TESTED), FI_MINOR(TESTED));
}
