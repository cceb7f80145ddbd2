/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which fabric an IA uses: dat.conf parameters, FI_PROVIDER and policy in, one fi_info out. */

#include "fab/info.h"

#include "base/env.h"
#include "base/log.h"
#include "fab/quirks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most segments we offer: each operation's slot keeps room for that many. */
#define MAX_IOV 8

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool loopback(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	return sa->sa_family == AF_INET && (ntohl(in->sin_addr.s_addr) >> 24) == 127;
}

/* An IPv4 address is what most uDAPL programs understand (they exchange it as text). */
static bool has_ipv4(const struct fi_info *info)
{
	return info->src_addr && info->src_addrlen >= sizeof(struct sockaddr_in) &&
	       ((const struct sockaddr *)info->src_addr)->sa_family == AF_INET;
}

/* libfabric 2.7's rxm has several connections to a peer, and keeps less order than it is asked for. */
static bool keeps_order(const struct fi_info *info)
{
	return info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS;
}

static const struct dofi_quirk *quirk_of(const struct fi_info *info)
{
	return dofi_quirk_of(info->fabric_attr->prov_name);
}

static bool is_layered(const struct fi_info *info)
{
	return strchr(info->fabric_attr->prov_name, ';');
}

/* Connected endpoints have rules of their own; what the others do is known of those measured. */
static bool is_usable(const struct fi_info *info)
{
	if (info->ep_attr->type == FI_EP_MSG)
		return !is_layered(info);
	return info->ep_attr->type == FI_EP_RDM && quirk_of(info)->rdm && keeps_order(info);
}

/* A layer over another fabric is a detour to where most fabrics go by themselves. */
static bool names_a_layer(const struct dofi_params *params)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	return strchr(params->provider, ';') || (filter && filter[0] != '^' && strchr(filter, ';'));
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->sa_family != b->sa_family)
		return false;
	return a->sa_family == AF_INET6 ? IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) :
					  a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* A device that does not have the address that was asked for is offered with another. */
static bool has_address(const struct fi_info *info, const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	const struct sockaddr *own = info->src_addr;
	struct addrinfo *a;
	bool same;

	if (!text[0] || !own || (own->sa_family != AF_INET && own->sa_family != AF_INET6) ||
	    info->addr_format == FI_ADDR_STR || getaddrinfo(text, NULL, &hints, &a))
		return true;
	same = same_address(own, a->ai_addr);
	freeaddrinfo(a);
	return same;
}

/* Lower is better; 0 means unusable. */
static int info_rank(const struct fi_info *info, const struct dofi_params *params)
{
	int rank = quirk_of(info)->rank * 4;

	if (!is_usable(info) || (is_layered(info) && !names_a_layer(params)))
		return 0;
	if (!has_address(info, params->address))
		return 0;
	if (params->domain[0] && strcmp(info->domain_attr->name, params->domain))
		return 0;
	if (!has_ipv4(info))
		rank += 2;
	else if (loopback(info->src_addr))
		rank += 1;
	return rank;
}

/* Bits in a second, 0 if unknown. */
static uint64_t link_speed(const struct fi_info *info)
{
	const struct fi_link_attr *link = info->nic ? info->nic->link_attr : NULL;
	char path[PATH_MAX];
	long mbit = 0;
	FILE *f;

	if (link)
		return link->speed;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", info->domain_attr->name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	fclose(f);
	return mbit * UINT64_C(1000000);
}

/* Near is better than far, but not than fast; libfabric lists the fast ones first. */
static bool nearer(const struct fi_info *a, const struct fi_info *b)
{
	struct dofi_locality at, bt;

	return strcmp(a->domain_attr->name, b->domain_attr->name) &&
	       dofi_topo_locate(a, &at) && dofi_topo_locate(b, &bt) &&
	       at.distance < bt.distance && link_speed(a) == link_speed(b);
}

static const struct fi_info *info_best(const struct fi_info *list, const struct dofi_params *params)
{
	const struct fi_info *best = NULL;
	int best_rank = INT_MAX;

	for (; list; list = list->next) {
		int rank = info_rank(list, params);

		if (rank && (rank < best_rank || (rank == best_rank && nearer(list, best)))) {
			best = list;
			best_rank = rank;
		}
	}
	return best;
}

/* What a transport asks of a fabric. */
struct query {
	enum fi_ep_type type;
	uint64_t caps;
	uint64_t order;
	uint64_t op_flags;
	uint64_t mode;
	int mr_mode;
};

#define MR_MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* A send announces what was written before it. */
#define WRITES_ORDERED (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW)

static const struct query connected = {
	.type = FI_EP_MSG, .caps = FI_MSG | FI_RMA, .order = WRITES_ORDERED, .mode = FI_RX_CQ_DATA,
	.mr_mode = MR_MODES,
};

/* What every one of them has; rdm_query() is what is asked of one. */
static const struct query connectionless = {
	.type = FI_EP_RDM, .caps = FI_MSG | FI_TAGGED, .order = FI_ORDER_SAS, .mr_mode = MR_MODES,
};

/*
 * Whether the target's program does what its fabric is no good for: to keep a peer off memory that
 * it has no right to, or to go on when it has.
 */
static bool is_target_rdma(const struct dofi_quirk *quirk)
{
	return quirk->no_keys || quirk->refusal_ends_all;
}

static struct query rdm_query(const struct dofi_quirk *quirk)
{
	struct query q = connectionless;

	if (is_target_rdma(quirk)) {
		q.mr_mode = 0;	/* nothing is registered */
		return q;
	}
	q.caps |= FI_RMA;
	q.order = WRITES_ORDERED;
	return q;
}

static struct fi_info *hints_make(const struct query *q, const char *provider)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->caps = q->caps;
	h->mode = q->mode;
	h->ep_attr->type = q->type;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->mr_mode = q->mr_mode;
	h->domain_attr->av_type = q->type == FI_EP_RDM ? FI_AV_TABLE : FI_AV_UNSPEC;
	h->tx_attr->op_flags = q->op_flags;
	h->tx_attr->msg_order = q->order;
	h->rx_attr->msg_order = q->order;
	if (provider && *provider) {
		h->fabric_attr->prov_name = strdup(provider);
		if (!h->fabric_attr->prov_name) {
			fi_freeinfo(h);
			return NULL;
		}
	}
	return h;
}

static int info_list(const struct dofi_params *params, const struct query *q, struct fi_info **list)
{
	struct fi_info *hints = hints_make(q, params->provider);
	const char *node = params->address[0] ? params->address : NULL;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	dofi_settings_give(fi_version());
	ret = fi_getinfo(DOFI_FI_VERSION, node, NULL, node ? FI_SOURCE : 0, hints, list);
	/* verbs (1.17) lists its IPv6 addresses, but does not find one that is asked for */
	if (ret == -FI_ENODATA && node)
		ret = fi_getinfo(DOFI_FI_VERSION, NULL, NULL, 0, hints, list);
	fi_freeinfo(hints);
	return ret;
}

/* NULL for a fabric that is refused for no special reason. */
static const char *why_refused(const struct fi_info *info, const struct dofi_params *params)
{
	if (is_layered(info) && !names_a_layer(params))
		return NULL;
	if (quirk_of(info)->refused)
		return quirk_of(info)->reason;
	if (info->ep_attr->type == FI_EP_RDM && quirk_of(info)->rdm && !keeps_order(info))
		return "it does not keep messages in order (FI_ORDER_SAS)";
	return NULL;
}

/* Where there is a fabric, but none that is used, the reason is all that is logged. */
static bool log_refused(const struct fi_info *list, const struct dofi_params *params)
{
	for (; list; list = list->next) {
		const char *why = why_refused(list, params);

		if (why) {
			dofi_log(DOFI_WARN, DOFI_FAB, "fabric %s is not used: %s",
				 list->fabric_attr->prov_name, why);
			return true;
		}
	}
	return false;
}

static int info_find(const struct dofi_params *params, const struct query *q, struct fi_info **info)
{
	const struct fi_info *best;
	struct fi_info *list;
	int ret;

	ret = info_list(params, q, &list);
	if (ret)
		return ret;
	best = info_best(list, params);
	if (best) {
		*info = fi_dupinfo(best);
		ret = *info ? 0 : -FI_ENOMEM;
	} else {
		ret = log_refused(list, params) ? -FI_EOPNOTSUPP : -FI_ENODATA;
	}
	fi_freeinfo(list);
	return ret;
}

/* Which fabric it is decides what is asked of it. */
static int rdm_find(const struct dofi_params *params, struct query *q, struct fi_info **info)
{
	struct dofi_params same = *params;
	struct fi_info *any;
	int ret;

	ret = info_find(params, &connectionless, &any);
	if (ret)
		return ret;
	snprintf(same.provider, sizeof(same.provider), "%s", any->fabric_attr->prov_name);
	*q = rdm_query(quirk_of(any));
	fi_freeinfo(any);
	ret = info_find(&same, q, info);
	if (ret == -FI_ENODATA && q->order != FI_ORDER_SAS) {
		q->order = FI_ORDER_SAS;	/* efa */
		ret = info_find(&same, q, info);
	}
	return ret;
}

/* Whether the fabric of @info answers @q, too. */
static bool also_offers(const struct fi_info *info, const struct query *q)
{
	struct dofi_params same = { .provider = "" };
	struct fi_info *list;

	snprintf(same.provider, sizeof(same.provider), "%s", info->fabric_attr->prov_name);
	if (info_list(&same, q, &list))
		return false;
	fi_freeinfo(list);
	return true;
}

/*
 * Software fabrics complete a write when it is in a socket unless asked for
 * delivery; hardware has no such flag, because its acknowledgement says as much.
 */
static uint64_t write_flags(const struct fi_info *info, struct query q)
{
	q.op_flags = FI_DELIVERY_COMPLETE;
	return also_offers(info, &q) ? FI_DELIVERY_COMPLETE : 0;
}

/*
 * DAT programs address remote memory by virtual address and a 32-bit key. A
 * fabric that offers offsets instead takes virtual addresses when its domain is
 * opened with that mode, and keeps the keys we choose.
 */
static enum dofi_mr_style mr_style_set(struct fi_info *info)
{
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return DOFI_MR_NATIVE;
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return DOFI_MR_VIRTUAL;
}

/* How the bytes of an RDMA operation are moved, and what keys there are. */
static void choose_rdma(struct dofi_fabric_choice *choice, const struct query *q)
{
	struct fi_info *info = choice->info;

	choice->target_rdma = choice->rdm && is_target_rdma(choice->quirk);
	if (choice->target_rdma) {
		choice->mr_style = DOFI_MR_VIRTUAL;	/* of a table that is ours */
		choice->write_flags = 0;
		choice->write_ordered = choice->zero_based = choice->scoped_keys = true;
		return;
	}
	choice->mr_style = mr_style_set(info);
	choice->write_flags = write_flags(info, *q);
	choice->write_ordered = q->order & FI_ORDER_SAW && !(choice->rdm && choice->quirk->goes_on);
	choice->zero_based = choice->mr_style == DOFI_MR_VIRTUAL && choice->quirk->takes_offset;
	choice->scoped_keys = choice->mr_style == DOFI_MR_VIRTUAL &&
			      info->domain_attr->mr_key_size >= sizeof(uint64_t);
}

/*
 * Connections of our own end with a message of the side connection. On others a goodbye goes along with
 * the data, if the end is behind it and there is room for the number and the secret of the connection.
 */
static void choose_bye(struct dofi_fabric_choice *choice)
{
	choice->says_bye = choice->rdm ||
			   (choice->quirk->ends_silently && choice->cq_data && choice->scoped_keys);
}

/* What hardware does by itself. FI_RX_CQ_DATA: a write's data ends a receive of the target. */
static void choose_native(struct dofi_fabric_choice *choice, struct query q)
{
	struct fi_info *info = choice->info;

	choice->immed = !choice->rdm && info->mode & FI_RX_CQ_DATA &&
			info->domain_attr->cq_data_size >= sizeof(uint32_t);
	if (!choice->immed)
		return;
	q.caps |= FI_ATOMIC;
	choice->atomics = also_offers(info, &q);
	if (choice->atomics)
		info->caps |= FI_ATOMIC;	/* registrations are for them, too */
	choice->fences = choice->quirk->takes_fence;
	/* beside what is left to do here libfabric's locks show: ours cost a tenth of them */
	info->domain_attr->threading = FI_THREAD_COMPLETION;
}

/*
 * Whether an interface here has the address @text. Software fabrics take any source
 * address, and then every listen and connect fails.
 */
static bool address_is_local(const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *a;
	bool local;
	int fd;

	if (getaddrinfo(text, NULL, &hints, &a))
		return false;
	fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	local = fd < 0 || !bind(fd, a->ai_addr, a->ai_addrlen);
	if (fd >= 0)
		close(fd);
	freeaddrinfo(a);
	return local;
}

/* What names a fabric has no port or interface: the endpoints' names are given to them later. */
static int address_replace(struct fi_info *info, const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *a;

	free(info->src_addr);
	free(info->dest_addr);
	info->src_addr = info->dest_addr = NULL;
	info->src_addrlen = info->dest_addrlen = 0;
	if (!text[0])
		return 0;
	if (getaddrinfo(text, NULL, &hints, &a))
		return -FI_ENODATA;
	info->src_addr = malloc(a->ai_addrlen);
	if (info->src_addr) {
		memcpy(info->src_addr, a->ai_addr, a->ai_addrlen);
		info->src_addrlen = a->ai_addrlen;
	}
	freeaddrinfo(a);
	return info->src_addr ? 0 : -FI_ENOMEM;
}

#define FRAME_BYTES 16384	/* where nothing says less */
#define LEAST_FRAME 512		/* or a message's head would not fit */

static size_t frame_size(const struct fi_info *info, const struct dofi_quirk *quirk)
{
	size_t size = quirk->frame_size ? quirk->frame_size : FRAME_BYTES;
	/* dofi_settings_give() sets it, in a privileged process too, so not secure_getenv() */
	const char *limit = quirk->frame_variable ? getenv(quirk->frame_variable) : NULL;

	if (quirk->frame_injected)
		size = least(size, info->tx_attr->inject_size);
	if (limit)
		size = least(size, strtoul(limit, NULL, 0));
	return least(size, info->ep_attr->max_msg_size);
}

/* What only a connectionless endpoint has. */
static int choose_rdm(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	struct fi_info *info = choice->info;

	choice->frame_size = frame_size(info, choice->quirk);
	if (choice->frame_size < LEAST_FRAME) {
		dofi_log(DOFI_WARN, DOFI_FAB, "fabric %s takes messages of %zu bytes in order, "
			 "which is less than %d", info->fabric_attr->prov_name, choice->frame_size,
			 LEAST_FRAME);
		return -FI_EOPNOTSUPP;
	}
	choice->cq_data = true;		/* frames have room for it */
	choice->shared_memory = choice->quirk->shared_memory;
	return info->addr_format == FI_ADDR_STR ? address_replace(info, params->address) : 0;
}

static void log_nothing(const struct dofi_params *p)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	dofi_log(DOFI_WARN, DOFI_FAB,
		 "no %s fabric for provider=%s domain=%s address=%s%s%s",
		 !p->endpoint[0] ? "usable" :
		 p->endpoint[0] == 'm' ? "connected" : "connectionless",
		 p->provider[0] ? p->provider : "any", p->domain[0] ? p->domain : "any",
		 p->address[0] ? p->address : "any", filter ? " with FI_PROVIDER=" : "",
		 filter ? filter : "");
}

/* Connected endpoints are preferred: libfabric manages them, and tells of their end. */
static int fabric_find(const struct dofi_params *params, struct query *q, struct fi_info **info)
{
	int ret = -FI_ENODATA;

	if (params->address[0] && !address_is_local(params->address))
		return ret;
	*q = connected;
	if (strcmp(params->endpoint, "rdm"))
		ret = info_find(params, q, info);
	if (ret == -FI_ENODATA && strcmp(params->endpoint, "msg"))
		ret = rdm_find(params, q, info);
	return ret;
}

/* Takes over @info, which answered @q. */
static int choice_make(const struct dofi_params *params, const struct query *q,
		       struct fi_info *info, struct dofi_fabric_choice *choice)
{
	int ret;

	*choice = (struct dofi_fabric_choice){
		.info = info,
		.rdm = q->type == FI_EP_RDM,
		.quirk = quirk_of(info),
		.cq_data = info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
			   !(info->mode & FI_RX_CQ_DATA),
		/* a device has one domain for its own interface; software has no such tie */
		.wildcard = !info->nic && !params->address[0] && !params->domain[0],
	};
	choice->located = dofi_topo_locate(info, &choice->locality);
	choose_rdma(choice, q);
	choose_native(choice, *q);
	choose_bye(choice);
	ret = choice->rdm ? choose_rdm(params, choice) : 0;
	if (ret)
		dofi_fabric_release(choice);
	return ret;
}

static bool provider_exists(const char *name)
{
	struct fi_info *list, *i;
	bool found = false;

	if (fi_getinfo(DOFI_FI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		return false;
	for (i = list; i; i = i->next)
		found |= !strcmp(i->fabric_attr->prov_name, name);
	fi_freeinfo(list);
	return found;
}

/*
 * Libfabric leaves shm out, and gives no reason, where /dev/shm has less room than one region for
 * each processor would take. So that is the reason if it has shm, no filter, and offers none.
 */
static int why_nothing(const struct dofi_params *params)
{
	if (strcmp(params->provider, "shm") || params->domain[0] || params->address[0] ||
	    secure_getenv("FI_PROVIDER") || !provider_exists("shm"))
		return -FI_ENODATA;
	dofi_log(DOFI_ERR, DOFI_FAB, "there is too little room in /dev/shm");
	return -ENOSPC;
}

int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	struct fi_info *info;
	struct query q;
	int ret;

	ret = fabric_find(params, &q, &info);
	if (ret) {
		if (ret != -FI_EOPNOTSUPP)
			log_nothing(params);
		return ret == -FI_ENODATA ? why_nothing(params) : ret;
	}
	return choice_make(params, &q, info, choice);
}

void dofi_fabric_release(struct dofi_fabric_choice *choice)
{
	fi_freeinfo(choice->info);
	choice->info = NULL;
}

static bool listed(const char *names, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = strstr(names, name); p; p = strstr(p + 1, name))
		if ((p == names || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
	return false;
}

void dofi_fabric_list(bool rdm, char *names, size_t size)
{
	const struct dofi_params any = { .provider = "" };
	struct fi_info *list, *i;

	names[0] = 0;
	if (info_list(&any, rdm ? &connectionless : &connected, &list))
		return;
	for (i = list; i; i = i->next) {
		size_t used = strlen(names);

		if (is_usable(i) && !listed(names, i->fabric_attr->prov_name))
			snprintf(names + used, size - used, "%s%s", used ? " " : "",
				 i->fabric_attr->prov_name);
	}
	fi_freeinfo(list);
}

void dofi_info_address(const struct fi_info *info, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	if (info->src_addr && info->src_addrlen <= sizeof(*address)) {
		memset(address, 0, sizeof(*address));
		memcpy(address, info->src_addr, info->src_addrlen);
		if (address->ss_family == AF_INET || address->ss_family == AF_INET6) {
			in->sin_port = 0; /* the same place in both */
			return;
		}
	}
	memset(address, 0, sizeof(*address));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* What announces a message to an endpoint of an SRQ has less than that. */
#define MIN_INJECT 20
#define MOST_EPS 65536			/* what pools and tables are sized for */

void dofi_info_limits(const struct dofi_fabric_choice *choice, size_t cm_data_size,
		      struct dofi_limits *limits)
{
	const struct fi_info *info = choice->info;
	/* what we move by ourselves has as many segments as we like */
	size_t tx_iov = choice->shared_memory ? MAX_IOV : info->tx_attr->iov_limit;
	size_t rx_iov = choice->shared_memory ? MAX_IOV : info->rx_attr->iov_limit;
	size_t rdma_iov = choice->target_rdma ? MAX_IOV : info->tx_attr->iov_limit;
	bool announces = choice->rdm || info->tx_attr->inject_size >= MIN_INJECT;

	*limits = (struct dofi_limits){
		/* room to add an offset to any size without overflow */
		.max_message_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_rdma_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_iov = least(MAX_IOV, least(tx_iov, rx_iov)),
		.max_rdma_iov = least(MAX_IOV, rdma_iov),
		.max_eps = least(info->domain_attr->ep_cnt ? info->domain_attr->ep_cnt : MOST_EPS, MOST_EPS),
		.max_pzs = 1024,
		.max_lmrs = least(info->domain_attr->mr_cnt ? info->domain_attr->mr_cnt : 65536, 65536),
		.max_srqs = announces ? 65536 : 0,
		.inject_size = least(info->tx_attr->inject_size, UINT32_MAX),
		.cm_data_size = cm_data_size,
	};
	/* the count a software fabric names is no limit of it, but a device's is */
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
	lower(&limits->max_pzs, other->max_pzs);
	lower(&limits->max_lmrs, other->max_lmrs);
	lower(&limits->max_srqs, other->max_srqs);
	lower(&limits->max_srq_eps, other->max_srq_eps);
}
