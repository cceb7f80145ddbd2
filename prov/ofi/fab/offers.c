/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabrics that libfabric offers on this host, and their use for an IA. */

#include "fab/offers.h"

#include "base/env.h"
#include "base/log.h"
#include "fab/info.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const struct dofi_query dofi_query_msg = {
	.type = FI_EP_MSG,
	.caps = FI_MSG | FI_RMA,
	.order = DOFI_QUERY_WRITES_ORDERED,
	.mode = FI_RX_CQ_DATA,
	.mr_mode = DOFI_QUERY_MR_MODES,
};

/* The offers of connectionless fabrics; query.c has the query of a certain one. */
const struct dofi_query dofi_query_rdm = {
	.type = FI_EP_RDM,
	.caps = FI_MSG | FI_TAGGED,
	.order = FI_ORDER_SAS,
	.mode = FI_CONTEXT | FI_CONTEXT2,
	.mr_mode = DOFI_QUERY_MR_MODES,
};

/*
 * Some fabrics offer less than requested: order (opx; rxm of libfabric 2.7, which has several
 * connections to a peer), capabilities (lnx, after another user of libfabric has made its links),
 * or a mode that the hints lack (opx: FI_ASYNC_IOV).
 */
const char *dofi_offer_refusal(const struct fi_info *info)
{
	const struct dofi_query *q = &dofi_query_rdm;

	if (dofi_offer_quirk(info)->refused)
		return dofi_offer_quirk(info)->reason;
	if (!(info->tx_attr->msg_order & info->rx_attr->msg_order & q->order))
		return "it does not keep messages in order (FI_ORDER_SAS)";
	if (q->caps & ~info->caps)
		return "it lacks messages or tags (FI_MSG, FI_TAGGED)";
	return info->mode & ~q->mode ? "it requires a mode besides contexts (fi_info.mode)" : NULL;
}

/*
 * If FI_TCP_IFACE names no interface, libfabric 2.6 offers tcp without an address. A connectionless
 * endpoint cannot listen then, and closing it frees memory twice (rxm).
 */
bool dofi_offer_has_source(const struct fi_info *info)
{
	return info->src_addr || strncmp(info->fabric_attr->prov_name, "tcp", 3);
}

bool dofi_offer_layered(const struct fi_info *info)
{
	return strchr(info->fabric_attr->prov_name, ';');
}

/* net is a preview of tcp 1.18 with defects of its own, in 1.17 alone, which has tcp, too. */
bool dofi_provider_is_preview(const char *provider)
{
	return !strcmp(provider, "net") || !strncmp(provider, "net;", 4);
}

bool dofi_offer_lacks_rdma(const struct fi_info *info)
{
	return sizeof(size_t) < sizeof(uint64_t) && info->ep_attr->type == FI_EP_MSG &&
	       dofi_offer_quirk(info)->rdma_of_64_bits;
}

/* An unknown fabric is used like one with few promises: dofi_quirk_of(). */
bool dofi_offer_usable(const struct fi_info *info)
{
	if (dofi_provider_is_preview(info->fabric_attr->prov_name))
		return false;
	if (info->ep_attr->type == FI_EP_MSG)
		return !dofi_offer_layered(info) && !dofi_offer_lacks_rdma(info);
	return info->ep_attr->type == FI_EP_RDM && !dofi_offer_refusal(info) &&
	       dofi_offer_has_source(info);
}

/* Makes libfabric's first call, in which it reads most of its variables. */
static void libfabric_start(void)
{
	struct fi_info *list;

	dofi_settings_choose(fi_version());
	dofi_settings_lend(DOFI_GIVE_AT_START);
	if (!fi_getinfo(DOFI_FI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		fi_freeinfo(list);
	if (!dofi_environ_return())
		dofi_log(DOFI_WARN, DOFI_FAB, "libfabric may not have got all its settings");
}

int dofi_offers_list(const struct dofi_params *params, const struct dofi_query *q,
		     struct fi_info **list)
{
	static pthread_once_t started = PTHREAD_ONCE_INIT;
	const char *node = params->address[0] ? params->address : NULL;
	struct fi_info *h = fi_allocinfo();
	int ret = -FI_ENOMEM;

	if (!h)
		return ret;
	h->caps = q->caps;
	h->mode = q->mode;
	h->ep_attr->type = q->type;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->mr_mode = q->mr_mode;
	h->tx_attr->op_flags = q->op_flags;
	h->tx_attr->msg_order = q->order;
	h->rx_attr->msg_order = q->order;
	if (params->provider[0]) {
		h->fabric_attr->prov_name = strdup(params->provider);
		if (!h->fabric_attr->prov_name)
			goto free_hints;
	}
	pthread_once(&started, libfabric_start);
	ret = fi_getinfo(DOFI_FI_VERSION, node, NULL, node ? FI_SOURCE : 0, h, list);
	/* verbs (1.17) lists its IPv6 addresses, but does not find a requested one */
	if (ret == -FI_ENODATA && node)
		ret = fi_getinfo(DOFI_FI_VERSION, NULL, NULL, 0, h, list);
free_hints:
	fi_freeinfo(h);
	return ret;
}

const struct sockaddr *dofi_offer_ip(const struct fi_info *info)
{
	const struct sockaddr *sa = info->src_addr;

	/* a device's own format, or a name, may begin with any bytes */
	if (!sa || info->addr_format > FI_SOCKADDR_IN6 ||
	    info->src_addrlen < sizeof(struct sockaddr_in))
		return NULL;
	return sa->sa_family == AF_INET || sa->sa_family == AF_INET6 ? sa : NULL;
}

socklen_t dofi_address_parse(const char *text, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *a;
	socklen_t len;

	if (!text[0] || getaddrinfo(text, NULL, &hints, &a))
		return 0;
	len = a->ai_addrlen;
	memcpy(address, a->ai_addr, len);
	freeaddrinfo(a);
	return len;
}

/* libfabric may offer a device that has another address than the wanted one. */
bool dofi_offer_has_address(const struct fi_info *info, const char *text)
{
	const struct sockaddr *own = dofi_offer_ip(info);
	struct sockaddr_storage wanted;

	if (!own || !dofi_address_parse(text, &wanted))
		return true;
	if (own->sa_family != wanted.ss_family)
		return false;
	if (own->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)own)->sin6_addr,
					  &((const struct sockaddr_in6 *)&wanted)->sin6_addr);
	return ((const struct sockaddr_in *)own)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)&wanted)->sin_addr.s_addr;
}

/* With a source address that no interface has, each listen and connect fails. */
bool dofi_address_is_local(const char *text)
{
	struct sockaddr_storage address;
	const socklen_t len = dofi_address_parse(text, &address);
	bool local;
	int fd;

	if (!len)
		return false;
	fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	local = fd < 0 || !bind(fd, (struct sockaddr *)&address, len);
	if (fd >= 0)
		close(fd);
	return local;
}

void dofi_fabric_list(bool rdm, char *names, size_t size)
{
	const struct dofi_params any = { .provider = "" };
	struct fi_info *list, *i;

	names[0] = 0;
	if (dofi_offers_list(&any, rdm ? &dofi_query_rdm : &dofi_query_msg, &list))
		return;
	for (i = list; i; i = i->next)
		if (dofi_offer_usable(i))
			dofi_names_add(names, size, i->fabric_attr->prov_name);
	fi_freeinfo(list);
}

/* Lists of names */

bool dofi_names_have(const char *names, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = strstr(names, name); p; p = strstr(p + 1, name))
		if ((p == names || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
	return false;
}

void dofi_names_add(char *names, size_t size, const char *name)
{
	size_t used = strlen(names);

	if (name && !dofi_names_have(names, name))
		snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}
