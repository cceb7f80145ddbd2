/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which fabric fits an IA: dat.conf parameters, FI_PROVIDER and policy in, one fi_info out. */

#include "fab/offers.h"

#include "base/log.h"
#include "fab/info.h"
#include "fab/reach.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A layer over another fabric is used only by name: most fabrics need none. */
static bool names_a_layer(const struct dofi_params *params)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	return strchr(params->provider, ';') || (filter && filter[0] != '^' && strchr(filter, ';'));
}

/* Lower is better, 0 unusable. The interface of a device does not count: programs name devices. */
static int info_rank(const struct fi_info *info, const struct dofi_params *params,
		     const struct dofi_routes *routes)
{
	const struct sockaddr *sa = dofi_offer_ip(info);
	int rank = dofi_offer_quirk(info)->rank * DOFI_REACH_RANKS;

	if (!dofi_offer_usable(info) || (dofi_offer_layered(info) && !names_a_layer(params)))
		return 0;
	if (!dofi_offer_has_address(info, params->address))
		return 0;
	if (params->domain[0] && strcmp(info->domain_attr->name, params->domain))
		return 0;
	return rank + (sa ? dofi_reach_rank(routes, info->nic ? "" : info->domain_attr->name, sa) :
			    DOFI_REACH_RANKS - 1);
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

/* Logs why a listed fabric is not used. Returns whether there is a reason. */
static bool log_refused(const struct fi_info *list, const struct dofi_params *params)
{
	const char *why = NULL;

	for (; list; list = list->next) {
		if (dofi_offer_layered(list) && !names_a_layer(params))
			continue;
		if (list->ep_attr->type == FI_EP_RDM)
			why = dofi_offer_refusal(list);
		if (why) {
			dofi_log(DOFI_ERR, DOFI_FAB, "fabric %s is not used: %s",
				 list->fabric_attr->prov_name, why);
			return true;
		}
	}
	return false;
}

static int info_find(const struct dofi_params *params, const struct dofi_query *q,
		     struct fi_info **info)
{
	const struct fi_info *i, *best = NULL;
	int rank, best_rank = INT_MAX, ret;
	struct dofi_locality here, there;
	struct dofi_routes routes;
	struct fi_info *list;

	ret = dofi_offers_list(params, q, &list);
	if (ret)
		return ret;
	dofi_routes_read(&routes, DOFI_REACH_SYSFS, DOFI_REACH_PROCFS);
	for (i = list; i; i = i->next) {
		rank = info_rank(i, params, &routes);
		if (!rank || rank > best_rank)
			continue;
		/* of equally fast devices the nearer one; libfabric lists fast ones first */
		if (rank == best_rank &&
		    (!strcmp(i->domain_attr->name, best->domain_attr->name) ||
		     !dofi_topo_locate(i, &here) || !dofi_topo_locate(best, &there) ||
		     here.distance >= there.distance || link_speed(i) != link_speed(best)))
			continue;
		best = i;
		best_rank = rank;
	}
	if (best) {
		*info = fi_dupinfo(best);
		ret = *info ? 0 : -FI_ENOMEM;
	} else {
		ret = log_refused(list, params) ? -FI_EOPNOTSUPP : -FI_ENODATA;
	}
	fi_freeinfo(list);
	return ret;
}

/* libfabric 2's FI_OPT_EFA_EMULATED_READ and _WRITE: whether this end does without the device. */
#define EMULATED_READ (FI_OPT_EFA_RNR_RETRY + 1)
#define EMULATED_WRITE (FI_OPT_EFA_RNR_RETRY + 2)

static bool emulates(struct fid_ep *ep, int option)
{
	size_t len = sizeof(bool);
	bool is;

	return fi_getopt(&ep->fid, FI_OPT_ENDPOINT, option, &is, &len) || is;
}

/* Sets @*has to whether the device of @info carries out RDMA, as an endpoint reports. */
static int device_has_rdma(struct fi_info *info, bool *has)
{
	struct fid_fabric *fabric = NULL;
	struct fid_domain *domain = NULL;
	struct fid_ep *ep;
	int ret = fi_fabric(info->fabric_attr, &fabric, NULL);

	if (!ret)
		ret = fi_domain(fabric, info, &domain, NULL);
	if (!ret)
		ret = fi_endpoint(domain, info, &ep, NULL);
	if (!ret) {
		*has = !emulates(ep, EMULATED_READ) && !emulates(ep, EMULATED_WRITE);
		fi_close(&ep->fid);
	}
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
	return ret;
}

/* Finds a connectionless fabric, and then requests it by its needs. */
static int rdm_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info)
{
	struct dofi_params same = *params;
	const struct dofi_quirk *quirk;
	struct fi_info *any;
	bool has_rdma = true;
	int ret;

	*q = dofi_query_rdm;
	ret = info_find(params, q, &any);
	if (ret)
		return ret;
	snprintf(same.provider, sizeof(same.provider), "%s", any->fabric_attr->prov_name);
	quirk = dofi_offer_quirk(any);
	if (quirk->may_emulate) {
		ret = device_has_rdma(any, &has_rdma);
		q->caps |= FI_REMOTE_COMM;	/* without FI_LOCAL_COMM: not by shared memory */
	}
	q->target_rdma = quirk->target_rdma || !has_rdma;
	if (q->target_rdma) {
		q->mr_mode = 0;	/* nothing is registered */
	} else {
		q->caps |= FI_RMA;
		q->order = DOFI_QUERY_WRITES_ORDERED;
	}
	fi_freeinfo(any);
	if (ret)
		return ret;
	ret = info_find(&same, q, info);
	if (ret != -FI_ENODATA)
		return ret;
	q->order = dofi_query_rdm.order;	/* efa */
	q->mr_mode = dofi_query_rdm.mr_mode;	/* a device that needs local memory registered */
	return info_find(&same, q, info);
}

bool dofi_query_also(const struct fi_info *info, const struct dofi_query *q)
{
	struct dofi_params same = { .provider = "" };
	struct fi_info *list;

	snprintf(same.provider, sizeof(same.provider), "%s", info->fabric_attr->prov_name);
	if (dofi_offers_list(&same, q, &list))
		return false;
	fi_freeinfo(list);
	return true;
}

/* Prefers connected endpoints: libfabric reports their end. Layers do not have them. */
int dofi_query_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info)
{
	const struct sockaddr *sa;
	int ret = -FI_ENODATA;

	if (params->address[0] && !dofi_address_is_local(params->address))
		return dofi_reason_log(params);
	*q = dofi_query_msg;
	if (strcmp(params->endpoint, "rdm") && !strchr(params->provider, ';'))
		ret = info_find(params, q, info);
	if (ret == -FI_ENODATA && strcmp(params->endpoint, "msg"))
		ret = rdm_find(params, q, info);
	if (ret == -FI_ENODATA)
		return dofi_reason_log(params);
	if (ret) {
		if (ret != -FI_EOPNOTSUPP)
			dofi_log(DOFI_WARN, DOFI_FAB, "searching a usable fabric: %s",
				 fi_strerror(-ret));
		return ret;
	}
	/* programs publish the address of the IA, and no other host reaches a loopback address */
	sa = dofi_offer_ip(*info);
	if (sa && dofi_reach_is_loopback(sa) && !params->address[0] && !params->domain[0])
		dofi_log(DOFI_WARN, DOFI_FAB,
			 "fabric %s has a loopback address only: other hosts cannot connect",
			 (*info)->fabric_attr->prov_name);
	return 0;
}
