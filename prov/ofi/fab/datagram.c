/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of datagrams (FI_EP_DGRAM) of an IA that connects on another fabric. */

#include "fab/datagram.h"

#include "base/log.h"
#include "fab/offers.h"
#include "fab/quirks.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#define LEAST_DATAGRAM 512		/* a useful one, with the header of the transport */

/* libfabric names the domain of a verbs device's datagrams by the device and this. */
#define VERBS_SUFFIX "-dgram"

static const struct dofi_query query = {
	.type = FI_EP_DGRAM,
	.caps = FI_MSG,
	.mode = FI_MSG_PREFIX,
	.mr_mode = DOFI_QUERY_MR_MODES,
};

static bool is_software(const char *provider)
{
	static const char *const software[] = { "tcp", "sockets" };
	size_t i;

	for (i = 0; i < sizeof(software) / sizeof(software[0]); i++)
		if (!strcmp(provider, software[i]))
			return true;
	return false;
}

static int verbs_select(const struct fi_info *main, struct dofi_params *p)
{
	const char *device = main->domain_attr->name;
	const size_t size = sizeof(p->domain);

	strcpy(p->provider, "verbs");
	return snprintf(p->domain, size, "%s" VERBS_SUFFIX, device) < (int)size ? 0 : -ENODATA;
}

/* An endpoint at a wildcard address would have no name that is of use to peers. */
static int udp_select(const struct sockaddr_storage *address, struct dofi_params *p)
{
	const socklen_t len = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
							       sizeof(struct sockaddr_in);

	strcpy(p->provider, "udp");
	return getnameinfo((const struct sockaddr *)address, len, p->address, sizeof(p->address),
			   NULL, 0, NI_NUMERICHOST) ? -ENODATA : 0;
}

/* Selects the fabric of datagrams that belongs to @main. Returns 0 or -ENODATA. */
static int select_beside(const struct dofi_fabric_choice *main,
			 const struct sockaddr_storage *address, struct dofi_params *p)
{
	const char *provider = main->info->fabric_attr->prov_name;

	*p = (struct dofi_params){ .provider = "" };
	if (main->rdm)
		return -ENODATA;
	if (is_software(provider))
		return udp_select(address, p);
	return strcmp(provider, "verbs") ? -ENODATA : verbs_select(main->info, p);
}

/* dofi_rdm_open() has no prefix in messages that are sent. */
static bool is_usable(const struct fi_info *info, const struct dofi_params *p)
{
	if (info->ep_attr->type != FI_EP_DGRAM || strcmp(info->fabric_attr->prov_name, p->provider))
		return false;
	if (p->domain[0] && strcmp(info->domain_attr->name, p->domain))
		return false;
	return dofi_offer_has_address(info, p->address) &&
	       !(info->tx_attr->mode & FI_MSG_PREFIX) &&
	       info->ep_attr->max_msg_size >= LEAST_DATAGRAM;
}

static int info_find(const struct dofi_params *p, struct fi_info **info)
{
	const struct fi_info *i;
	struct fi_info *list;
	int ret = dofi_offers_list(p, &query, &list);

	if (ret)
		return ret;
	for (i = list; i && !is_usable(i, p); i = i->next)
		;
	*info = i ? fi_dupinfo(i) : NULL;
	fi_freeinfo(list);
	return *info ? 0 : i ? -FI_ENOMEM : -FI_ENODATA;
}

/* Takes over @info. */
static void choice_make(struct fi_info *info, struct dofi_fabric_choice *choice)
{
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
}

int dofi_datagram_choose(const struct dofi_fabric_choice *main,
			 const struct sockaddr_storage *address,
			 struct dofi_fabric_choice *choice)
{
	struct dofi_params params;
	struct fi_info *info;
	int ret = select_beside(main, address, &params);

	if (!ret)
		ret = info_find(&params, &info);
	if (!ret)
		choice_make(info, choice);
	return ret;
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
