/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric that an IA uses: what it can do, and its limits. */

#include "fab/info.h"

#include "base/log.h"
#include "fab/offers.h"
#include "fab/quirks.h"
#include "fab/reach.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of segments: each slot holds that many. */
#define MAX_IOV 8

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Software fabrics complete a write when it is in a socket, unless it has FI_DELIVERY_COMPLETE.
 * Hardware does not have that flag: its acknowledgement means delivery.
 */
static uint64_t write_flags(const struct dofi_fabric_choice *choice, struct dofi_query q)
{
	q.op_flags = FI_DELIVERY_COMPLETE;
	return choice->quirk->delivers || dofi_query_also(choice->info, &q) ?
		       FI_DELIVERY_COMPLETE : 0;
}

/*
 * DAT programs address remote memory by virtual address and a 32-bit key. A fabric that offers
 * offsets takes virtual addresses if its domain is opened with that mode, and uses the keys that we
 * choose.
 */
static enum dofi_mr_style mr_style_set(struct fi_info *info)
{
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return DOFI_MR_NATIVE;
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return DOFI_MR_VIRTUAL;
}

/* Sets how the bytes of an RDMA operation are moved, and which keys there are. */
static void choose_rdma(struct dofi_fabric_choice *choice, const struct dofi_query *q)
{
	struct fi_info *info = choice->info;

	choice->target_rdma = choice->rdm && dofi_quirk_target_rdma(choice->quirk);
	if (choice->target_rdma) {
		choice->mr_style = DOFI_MR_VIRTUAL;	/* in our table: fab/grant.h */
		choice->write_flags = 0;
		choice->write_ordered = choice->zero_based = choice->scoped_keys = true;
		return;
	}
	choice->mr_style = mr_style_set(info);
	choice->write_flags = write_flags(choice, *q);
	choice->write_ordered = q->order & FI_ORDER_SAW && !(choice->rdm && choice->quirk->goes_on);
	choice->zero_based = choice->mr_style == DOFI_MR_VIRTUAL && choice->quirk->takes_offset;
	choice->scoped_keys = choice->mr_style == DOFI_MR_VIRTUAL &&
			      info->domain_attr->mr_key_size >= sizeof(uint64_t);
}

/*
 * A connectionless fabric's connections end with a message of the CM socket. On others a goodbye
 * message is sent with remote CQ data, if that has room for the number and the secret of the
 * connection.
 */
static void choose_bye(struct dofi_fabric_choice *choice)
{
	choice->sends_bye = choice->rdm ||
			   (choice->quirk->ends_silently && choice->cq_data && choice->scoped_keys);
}

/*
 * Sets what hardware does itself. FI_RX_CQ_DATA: remote CQ data of a write consumes a receive of
 * the target.
 */
static void choose_native(struct dofi_fabric_choice *choice, struct dofi_query q)
{
	struct fi_info *info = choice->info;

	choice->immed = !choice->rdm && info->mode & FI_RX_CQ_DATA &&
			info->domain_attr->cq_data_size >= sizeof(uint32_t);
	if (!choice->immed)
		return;
	q.caps |= FI_ATOMIC;
	choice->atomics = dofi_query_also(info, &q);
	if (choice->atomics)
		info->caps |= FI_ATOMIC;	/* for registrations */
	choice->fences = choice->quirk->takes_fence;
	/* libfabric's locks would show in the latency: ours cost a tenth of them */
	info->domain_attr->threading = FI_THREAD_COMPLETION;
}

#define FRAME_BYTES 16384	/* the default */
#define LEAST_FRAME 512		/* the header of a frame has to fit */

static size_t frame_size(const struct fi_info *info, const struct dofi_quirk *quirk)
{
	size_t size = quirk->frame_size ? quirk->frame_size : FRAME_BYTES;
	/* not secure_getenv(): dofi_settings_give() also sets it in a privileged process */
	const char *limit = quirk->frame_variable ? getenv(quirk->frame_variable) : NULL;

	if (quirk->frame_injected)
		size = least(size, info->tx_attr->inject_size);
	if (limit)
		size = least(size, strtoul(limit, NULL, 0));
	return least(size, info->ep_attr->max_msg_size);
}

/* Sets what only connectionless fabrics have. */
static int choose_rdm(struct dofi_fabric_choice *choice)
{
	struct fi_info *info = choice->info;
	const char *variable = choice->quirk->frame_variable;

	choice->frame_size = frame_size(info, choice->quirk);
	if (choice->frame_size < LEAST_FRAME) {
		dofi_log(DOFI_ERR, DOFI_FAB, "fabric %s takes messages of %zu bytes in order, "
			 "which is less than %d%s%s", info->fabric_attr->prov_name,
			 choice->frame_size, LEAST_FRAME, variable ? ": raise " : "",
			 variable ? variable : "");
		return -FI_EOPNOTSUPP;
	}
	choice->cq_data = true;		/* in the header of a frame */
	choice->shared_memory = choice->quirk->shared_memory;
	return 0;
}

/* Takes over @info, which answered @q. */
static int choice_make(const struct dofi_params *params, const struct dofi_query *q,
		       struct fi_info *info, struct dofi_fabric_choice *choice)
{
	int ret;

	*choice = (struct dofi_fabric_choice){
		.info = info,
		.rdm = q->type == FI_EP_RDM,
		.quirk = dofi_quirk_of(info->fabric_attr->prov_name),
		.cq_data = info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
			   !(info->mode & FI_RX_CQ_DATA),
		/* a device's domain is tied to its interface, that of software is not */
		.wildcard = !info->nic && !params->address[0] && !params->domain[0],
	};
	choice->located = dofi_topo_locate(info, &choice->locality);
	choose_rdma(choice, q);
	choose_native(choice, *q);
	choose_bye(choice);
	ret = choice->rdm ? choose_rdm(choice) : 0;
	if (ret)
		dofi_fabric_release(choice);
	return ret;
}

int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	struct dofi_query q;
	struct fi_info *info;
	int ret = dofi_query_find(params, &q, &info);

	return ret ? ret : choice_make(params, &q, info, choice);
}

void dofi_fabric_release(struct dofi_fabric_choice *choice)
{
	fi_freeinfo(choice->info);
	choice->info = NULL;
}

/* Copies the IP address of the interface. Returns false if the fabric has addresses of its own. */
static bool interface_address(const struct fi_info *info, struct sockaddr_storage *address)
{
	const struct sockaddr *sa = dofi_offer_ip(info);

	if (!sa || info->src_addrlen > sizeof(*address))
		return false;
	memcpy(address, sa, info->src_addrlen);
	((struct sockaddr_in *)address)->sin_port = 0;	/* at one offset in both families */
	return true;
}

static bool numeric_address(const char *text, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *a;

	if (!text[0] || getaddrinfo(text, NULL, &hints, &a))
		return false;
	memcpy(address, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(a);
	return true;
}

void dofi_fabric_address(const struct dofi_fabric_choice *choice, const struct dofi_params *params,
			 struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	if (interface_address(choice->info, address) || numeric_address(params->address, address) ||
	    (!choice->quirk->shared_memory && dofi_reach_host(address)))
		return;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

const char *dofi_address_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN])
{
	const void *host = &((const struct sockaddr_in *)address)->sin_addr;

	if (address->ss_family == AF_INET6)
		host = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return inet_ntop(address->ss_family, host, text, INET6_ADDRSTRLEN) ? text : "?";
}

/* The header of SRQ framing is shorter than this. */
#define MIN_INJECT 20
#define MOST_EPS 65536			/* the capacity of pools and tables */
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
	/* the limits of the fabric do not matter for what we move ourselves */
	const bool by_frames = choice->target_rdma && !choice->quirk->closes_wholly;
	size_t tx_iov = by_frames ? MAX_IOV : info->tx_attr->iov_limit;
	size_t rx_iov = by_frames ? MAX_IOV : info->rx_attr->iov_limit;
	size_t rdma_iov = choice->target_rdma ? MAX_IOV : info->tx_attr->iov_limit;
	bool can_frame = choice->rdm || info->tx_attr->inject_size >= MIN_INJECT;

	*limits = (struct dofi_limits){
		/* room to add an offset to any size without overflow */
		.max_message_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_rdma_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_iov = least(MAX_IOV, least(tx_iov, rx_iov)),
		.max_rdma_iov = least(MAX_IOV, rdma_iov),
		.max_eps = least(info->domain_attr->ep_cnt ? info->domain_attr->ep_cnt : MOST_EPS,
				 MOST_EPS),
		.max_dtos = info->nic ? DEVICE_DTOS : MOST_DTOS,
		.max_pzs = 1024,
		.max_lmrs =
			least(info->domain_attr->mr_cnt ? info->domain_attr->mr_cnt : 65536, 65536),
		.max_srqs = can_frame ? 65536 : 0,
		.inject_size = least(info->tx_attr->inject_size, UINT32_MAX),
		.cm_data_size = cm_data_size,
	};
	/* ep_cnt is a limit of a device, but not of a software fabric */
	if (!info->nic)
		limits->max_eps = MOST_EPS;
	limits->max_srq_eps = limits->max_srqs ? limits->max_eps : 0;
}

static void lower(uint32_t *limit, uint32_t other)
{
	*limit = least(*limit, other);
}

void dofi_limits_lower(struct dofi_limits *limits, const struct dofi_limits *other)
{
	limits->max_message_size = least(limits->max_message_size, other->max_message_size);
	limits->max_rdma_size = least(limits->max_rdma_size, other->max_rdma_size);
	lower(&limits->max_iov, other->max_iov);
	lower(&limits->max_rdma_iov, other->max_rdma_iov);
	lower(&limits->max_eps, other->max_eps);
	lower(&limits->max_dtos, other->max_dtos);
	lower(&limits->max_pzs, other->max_pzs);
	lower(&limits->max_lmrs, other->max_lmrs);
	lower(&limits->max_srqs, other->max_srqs);
	lower(&limits->max_srq_eps, other->max_srq_eps);
}
