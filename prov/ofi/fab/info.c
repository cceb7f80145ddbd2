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

static char *param_slot(struct dofi_params *p, const char *key, size_t len)
{
	static const struct {
		const char *key;
		size_t offset;
	} slot[] = {
		{ "provider", offsetof(struct dofi_params, provider) },
		{ "domain", offsetof(struct dofi_params, domain) },
		{ "address", offsetof(struct dofi_params, address) },
	};
	size_t i;

	for (i = 0; i < sizeof(slot) / sizeof(slot[0]); i++)
		if (strlen(slot[i].key) == len && !strncmp(slot[i].key, key, len))
			return (char *)p + slot[i].offset;
	return NULL;
}

static int param_word(struct dofi_params *p, const char *word, size_t len,
		      char *why, size_t why_size)
{
	const char *eq = memchr(word, '=', len);
	size_t value_len;
	char *slot;

	if (!eq || eq == word) {
		snprintf(why, why_size, "\"%.*s\" is not key=value", (int)len, word);
		return -EINVAL;
	}
	slot = param_slot(p, word, eq - word);
	if (!slot) {
		snprintf(why, why_size, "unknown key \"%.*s\" (known: provider, domain, address)",
			 (int)(eq - word), word);
		return -EINVAL;
	}
	value_len = len - (eq + 1 - word);
	if (!value_len || value_len >= sizeof(p->provider)) {
		snprintf(why, why_size, "the value of \"%.*s\" has %zu characters, not 1 to %zu",
			 (int)(eq - word), word, value_len, sizeof(p->provider) - 1);
		return -EINVAL;
	}
	memcpy(slot, eq + 1, value_len);
	slot[value_len] = 0;
	return 0;
}

int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size)
{
	static const char blank[] = " \t";

	memset(params, 0, sizeof(*params));
	if (!text)
		return 0;
	for (text += strspn(text, blank); *text; text += strspn(text, blank)) {
		size_t len = strcspn(text, blank);
		int ret = param_word(params, text, len, why, why_size);

		if (ret)
			return ret;
		text += len;
	}
	return 0;
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

/* Lower is better; 0 means unusable. */
static int info_rank(const struct fi_info *info, const struct dofi_params *params)
{
	int rank = dofi_quirk_of(info->fabric_attr->prov_name)->rank * 4;

	if (info->ep_attr->type != FI_EP_MSG || strchr(info->fabric_attr->prov_name, ';'))
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
	struct dofi_place at, bt;

	return strcmp(a->domain_attr->name, b->domain_attr->name) &&
	       dofi_topo_place(a, &at) && dofi_topo_place(b, &bt) &&
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

/* What the connected transport asks of a fabric. */
static struct fi_info *hints_make(const char *provider)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->caps = FI_MSG | FI_RMA;
	h->ep_attr->type = FI_EP_MSG;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	/* a send announces what was written before it */
	h->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW;
	h->rx_attr->msg_order = h->tx_attr->msg_order;
	if (provider && *provider) {
		h->fabric_attr->prov_name = strdup(provider);
		if (!h->fabric_attr->prov_name) {
			fi_freeinfo(h);
			return NULL;
		}
	}
	return h;
}

static int info_list(const struct dofi_params *params, uint64_t op_flags, struct fi_info **list)
{
	struct fi_info *hints = hints_make(params->provider);
	const char *node = params->address[0] ? params->address : NULL;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->tx_attr->op_flags = op_flags;
	dofi_settings_give();
	ret = fi_getinfo(DOFI_FI_VERSION, node, NULL, node ? FI_SOURCE : 0, hints, list);
	fi_freeinfo(hints);
	return ret;
}

/*
 * Software fabrics complete a write when it is in a socket unless asked for
 * delivery; hardware has no such flag, because its acknowledgement says as much.
 */
static uint64_t write_flags(const struct fi_info *info)
{
	struct dofi_params same = { .provider = "" };
	struct fi_info *list;

	snprintf(same.provider, sizeof(same.provider), "%s", info->fabric_attr->prov_name);
	if (info_list(&same, FI_DELIVERY_COMPLETE, &list))
		return 0;
	fi_freeinfo(list);
	return FI_DELIVERY_COMPLETE;
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

static void log_nothing(const struct dofi_params *p)
{
	const char *filter = getenv("FI_PROVIDER");

	dofi_log(DOFI_WARN, DOFI_FAB,
		 "no connected fabric for provider=%s domain=%s address=%s%s%s",
		 p->provider[0] ? p->provider : "any", p->domain[0] ? p->domain : "any",
		 p->address[0] ? p->address : "any", filter ? " with FI_PROVIDER=" : "",
		 filter ? filter : "");
}

int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	const struct fi_info *best;
	struct fi_info *list;
	int ret;

	ret = params->address[0] && !address_is_local(params->address) ?
		-FI_ENODATA : info_list(params, 0, &list);
	if (ret) {
		log_nothing(params);
		return ret;
	}
	best = info_best(list, params);
	choice->info = best ? fi_dupinfo(best) : NULL;
	fi_freeinfo(list);
	if (!choice->info) {
		log_nothing(params);
		return best ? -FI_ENOMEM : -FI_ENODATA;
	}
	choice->quirk = dofi_quirk_of(choice->info->fabric_attr->prov_name);
	choice->placed = dofi_topo_place(choice->info, &choice->place);
	choice->mr_style = mr_style_set(choice->info);
	choice->write_flags = write_flags(choice->info);
	choice->zero_based = choice->mr_style == DOFI_MR_VIRTUAL && choice->quirk->takes_offset;
	choice->scoped_keys = choice->mr_style == DOFI_MR_VIRTUAL &&
			      choice->info->domain_attr->mr_key_size >= sizeof(uint64_t);
	choice->cq_data = choice->info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
			  !(choice->info->mode & FI_RX_CQ_DATA);
	/* a device has one domain for its own interface; a software fabric has no such tie */
	choice->wildcard = !choice->info->nic && !params->address[0] && !params->domain[0];
	return 0;
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

void dofi_fabric_list(char *names, size_t size)
{
	const struct dofi_params any = { .provider = "" };
	struct fi_info *list, *i;

	names[0] = 0;
	if (info_list(&any, 0, &list))
		return;
	for (i = list; i; i = i->next) {
		size_t used = strlen(names);

		if (info_rank(i, &any) && !listed(names, i->fabric_attr->prov_name))
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

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What announces a message to an endpoint of an SRQ has less than that. */
#define MIN_INJECT 20

void dofi_info_limits(const struct dofi_fabric_choice *choice, size_t cm_data_size,
		      struct dofi_limits *limits)
{
	const struct fi_info *info = choice->info;
	size_t rdma_iov = info->tx_attr->iov_limit;

	*limits = (struct dofi_limits){
		/* room to add an offset to any size without overflow */
		.max_message_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_rdma_size = least(info->ep_attr->max_msg_size, INT64_MAX),
		.max_iov = least(MAX_IOV, least(info->tx_attr->iov_limit, info->rx_attr->iov_limit)),
		.max_rdma_iov = least(MAX_IOV, rdma_iov),
		.max_eps = least(info->domain_attr->ep_cnt ? info->domain_attr->ep_cnt : 8192, 65536),
		.max_pzs = 1024,
		.max_lmrs = least(info->domain_attr->mr_cnt ? info->domain_attr->mr_cnt : 65536, 65536),
		.max_srqs = info->tx_attr->inject_size < MIN_INJECT ? 0 : 65536,
		.inject_size = least(info->tx_attr->inject_size, UINT32_MAX),
		.cm_data_size = cm_data_size,
	};
	if (limits->max_eps < 8192)
		limits->max_eps = 8192; /* the count a software fabric names is no limit of it */
	limits->max_srq_eps = limits->max_srqs ? limits->max_eps : 0;
}
