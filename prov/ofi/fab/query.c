/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which fabric fits an IA: dat.conf parameters, FI_PROVIDER and policy in, one fi_info out. */

#include "fab/query.h"

#include "base/env.h"
#include "base/log.h"
#include "fab/info.h"
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

static bool loopback(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	return sa->sa_family == AF_INET && (ntohl(in->sin_addr.s_addr) >> 24) == 127;
}

/* Most uDAPL programs understand only IPv4 addresses (they exchange them as text). */
static bool has_ipv4(const struct fi_info *info)
{
	return info->src_addr && info->src_addrlen >= sizeof(struct sockaddr_in) &&
	       ((const struct sockaddr *)info->src_addr)->sa_family == AF_INET;
}

/*
 * rxm of libfabric 2.7 has several connections to a peer, and keeps less order than was requested.
 */
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

/*
 * Connected endpoints follow rules of libfabric; connectionless ones are used only if their quirks
 * are known.
 */
static bool is_usable(const struct fi_info *info)
{
	if (info->ep_attr->type == FI_EP_MSG)
		return !is_layered(info);
	return info->ep_attr->type == FI_EP_RDM && quirk_of(info)->rdm && keeps_order(info);
}

/* A layer over another fabric is used only by name: most fabrics need none. */
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

/* libfabric may offer a device that has another address than the wanted one. */
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

/* In bits per second; 0 if unknown. */
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

/* Of equally fast devices the nearer one is preferred; libfabric lists fast ones first. */
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

#define MR_MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* The peer learns by a send that earlier writes are done. */
#define WRITES_ORDERED (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW)

static const struct dofi_query connected = {
	.type = FI_EP_MSG, .caps = FI_MSG | FI_RMA, .order = WRITES_ORDERED, .mode = FI_RX_CQ_DATA,
	.mr_mode = MR_MODES,
};

/* What each connectionless fabric offers; rdm_query() is for a certain one. */
static const struct dofi_query connectionless = {
	.type = FI_EP_RDM, .caps = FI_MSG | FI_TAGGED, .order = FI_ORDER_SAS, .mr_mode = MR_MODES,
};

static struct dofi_query rdm_query(const struct dofi_quirk *quirk)
{
	struct dofi_query q = connectionless;

	if (dofi_quirk_target_rdma(quirk)) {
		q.mr_mode = 0;	/* nothing is registered */
		return q;
	}
	q.caps |= FI_RMA;
	q.order = WRITES_ORDERED;
	return q;
}

static struct fi_info *hints_make(const struct dofi_query *q, const char *provider)
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

static int info_list(const struct dofi_params *params, const struct dofi_query *q,
		     struct fi_info **list)
{
	struct fi_info *hints = hints_make(q, params->provider);
	const char *node = params->address[0] ? params->address : NULL;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	dofi_settings_give(fi_version());
	ret = fi_getinfo(DOFI_FI_VERSION, node, NULL, node ? FI_SOURCE : 0, hints, list);
	/* verbs (1.17) lists its IPv6 addresses, but does not find a requested one */
	if (ret == -FI_ENODATA && node)
		ret = fi_getinfo(DOFI_FI_VERSION, NULL, NULL, 0, hints, list);
	fi_freeinfo(hints);
	return ret;
}

/* Returns why the fabric is not used, for the log; NULL if there is nothing to say. */
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

/* Logs why a listed fabric is not used. Returns whether there is a reason. */
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

static int info_find(const struct dofi_params *params, const struct dofi_query *q,
		     struct fi_info **info)
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

/* Finds a connectionless fabric, and then requests what this fabric needs. */
static int rdm_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info)
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

bool dofi_query_also(const struct fi_info *info, const struct dofi_query *q)
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
 * Returns whether an interface of this host has the address @text. Software fabrics accept any
 * source address, and then every listen and connect fails.
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

/* Connected endpoints are preferred: libfabric manages them, and reports their end. */
static int fabric_find(const struct dofi_params *params, struct dofi_query *q,
		       struct fi_info **info)
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
 * Logs why there is no fabric. libfabric leaves out shm, without a reason, if /dev/shm has less
 * space than one region per processor. So that is the reason if libfabric has shm, no filter
 * excludes it, and none is offered.
 */
static int why_nothing(const struct dofi_params *params)
{
	if (strcmp(params->provider, "shm") || params->domain[0] || params->address[0] ||
	    secure_getenv("FI_PROVIDER") || !provider_exists("shm"))
		return -FI_ENODATA;
	dofi_log(DOFI_ERR, DOFI_FAB, "too little free space in /dev/shm");
	return -ENOSPC;
}

int dofi_query_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info)
{
	int ret = fabric_find(params, q, info);

	if (ret && ret != -FI_EOPNOTSUPP)
		log_nothing(params);
	return ret == -FI_ENODATA ? why_nothing(params) : ret;
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
