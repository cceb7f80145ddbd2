/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fabrics that libfabric offers, and the choice of one. */
#ifndef TEST_FAB_OFFER_H
#define TEST_FAB_OFFER_H

#include "base/log.h"
#include "capture.h"
#include "fab/info.h"
#include "fab/fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static struct capture capture;
/*
 * The choice. fi_getinfo() returns copies of the entries in this list that have the requested
 * endpoint type.
 */

static struct fi_info *offered, **offered_end = &offered;
static struct fi_info *asked;		/* a copy of the first hints */
static unsigned queries;
static char asked_node[64];
static uint64_t asked_flags;
static int answer;			/* returned for every query if not 0 */
static int order_answer;		/* returned for a query with FI_ORDER_SAW */
static int delivery_answer;		/* returned for a query with FI_DELIVERY_COMPLETE */
static int atomics_answer;		/* returned for a query with FI_ATOMIC */

/* FI_PROV_ATTR_ONLY: the offered providers, and one that has nothing to offer. */
static inline int providers_list(struct fi_info **info)
{
	struct fi_info **end = info;
	const struct fi_info *i;

	*info = fake_info("verbs", "");
	end = &(*info)->next;
	for (i = offered; i; i = i->next) {
		*end = fi_dupinfo(i);
		end = &(*end)->next;
	}
	return 0;
}

static inline int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	struct fi_info **end = info;
	const struct fi_info *i;

	queries++;
	if (answer)
		return answer;
	if (!hints)
		return providers_list(info);
	if (!asked) {
		asked = fi_dupinfo(hints);
		strncpy(asked_node, node ? node : "", sizeof(asked_node) - 1);
		asked_flags = flags;
	}
	if (hints->tx_attr->msg_order & FI_ORDER_SAW && order_answer)
		return order_answer;
	if (hints->tx_attr->op_flags & FI_DELIVERY_COMPLETE && delivery_answer)
		return delivery_answer;
	if (hints->caps & FI_ATOMIC && atomics_answer)
		return atomics_answer;
	*info = NULL;
	for (i = offered; i; i = i->next) {
		if (i->ep_attr->type != hints->ep_attr->type)
			continue;
		*end = fi_dupinfo(i);
		end = &(*end)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}

static inline struct fi_info *offer(const char *provider, const char *ip)
{
	struct fi_info *info = fake_info(provider, ip);

	fake.getinfo = getinfo;
	*offered_end = info;
	offered_end = &info->next;
	return info;
}

static struct dofi_fabric_choice choice;

/* Chooses with ia_params @text. The log is in capture.text. */
static inline int choose(const char *text)
{
	struct dofi_params params;
	char why[160];
	int ret;

	cr_assert_eq(dofi_params_parse(text, &params, why, sizeof(why)), 0);
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	ret = dofi_fabric_choose(&params, &choice);
	capture_end(&capture);
	return ret;
}

static inline const char *chosen(void)
{
	return choice.info->fabric_attr->prov_name;
}

static inline void done(void)
{
	fi_freeinfo(offered);
	fi_freeinfo(asked);
	if (choice.info)
		dofi_fabric_release(&choice);
	offered = asked = NULL;
}

static inline void make_ipv6(struct fi_info *info)
{
	struct sockaddr_in6 *in6 = calloc(1, sizeof(*in6));

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(7);
	in6->sin6_addr = in6addr_loopback;
	free(info->src_addr);
	info->src_addr = in6;
	info->src_addrlen = sizeof(*in6);
	info->addr_format = FI_SOCKADDR_IN6;
}

static inline struct fi_info *offer_rdm(const char *provider)
{
	struct fi_info *info = offer(provider, "10.0.0.1");

	info->ep_attr->type = FI_EP_RDM;
	info->caps = FI_MSG | FI_TAGGED | FI_RMA;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->tx_attr->inject_size = 4096;
	return info;
}

/* EFA's endpoints: RDMA is the device's, or emulated, or libfabric does not report that (1.17). */
static enum { EFA_DEVICE, EFA_EMULATED, EFA_SILENT } efa_rdma;
static unsigned efa_open;

static inline int efa_getopt(struct fid *fid, int level, int name, void *value, size_t *len)
{
	(void)fid;
	if (level != FI_OPT_ENDPOINT || efa_rdma == EFA_SILENT)
		return -FI_ENOPROTOOPT;
	/* reads by the device, writes not: as older devices */
	*(bool *)value = efa_rdma == EFA_EMULATED && name == -(0xefa << 16) + 2;
	*len = sizeof(bool);
	return 0;
}

static inline int efa_close(struct fid *fid)
{
	(void)fid;
	efa_open--;
	return 0;
}

static inline int efa_endpoint(struct fi_info *info, struct fid_ep **ep)
{
	static struct fi_ops_ep ops = { .size = sizeof(ops), .getopt = efa_getopt };
	static struct fi_ops fid_ops = { .size = sizeof(fid_ops), .close = efa_close };
	static struct fid_ep fid = { .fid = { .fclass = FI_CLASS_EP, .ops = &fid_ops },
				     .ops = &ops };

	(void)info;
	efa_open++;
	*ep = &fid;
	return 0;
}

static inline struct fi_info *offer_efa(void)
{
	fake_init();
	fake.replace_fabric = true;
	fake.endpoint = efa_endpoint;
	return offer_rdm("efa");
}

#endif
