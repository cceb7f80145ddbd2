/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why no fabric fits an IA, if the configuration is wrong: a table of reasons, the first of which
 * that holds is logged. datinfo --doctor finds the others.
 */

#include "fab/offers.h"

#include "base/log.h"
#include "dat_cause.h"
#include "fab/info.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_TEXT 256

static const char *text_or(const char *text, const char *otherwise)
{
	return text[0] ? text : otherwise;
}

/* Lists libfabric's providers and layers, excluded or not. */
static void providers_list(char names[NAMES_TEXT])
{
	struct fi_info *list, *i;

	names[0] = 0;
	if (fi_getinfo(DOFI_FI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		return;
	for (i = list; i; i = i->next)
		if (strncmp(i->fabric_attr->prov_name, "ofi_hook_", 9))
			dofi_names_add(names, NAMES_TEXT, i->fabric_attr->prov_name);
	fi_freeinfo(list);
}

/* Returns whether @names have each part of @provider: of "tcp;ofi_rxm" tcp and ofi_rxm. */
static bool provider_exists(const char *names, const char *provider)
{
	/* which libfabric lists only if they have found a device */
	static const char with_device[] = "verbs efa psm3 opx cxi gni usnic bgq";
	char copy[64], *part, *save;

	snprintf(copy, sizeof(copy), "%s", provider);
	for (part = strtok_r(copy, ";", &save); part; part = strtok_r(NULL, ";", &save))
		if (!dofi_names_have(names, part) && !dofi_names_have(with_device, part))
			return false;
	return true;
}

/* The reasons. Each function returns whether its reason holds, and then writes it. */

/* Software fabrics accept any source address, and then every listen and connect fails. */
static bool no_such_address(const struct dofi_params *params, char *text, size_t size)
{
	struct in6_addr a;

	if (!params->address[0] || dofi_address_is_local(params->address))
		return false;
	if (inet_pton(AF_INET6, params->address, &a) == 1 && IN6_IS_ADDR_LINKLOCAL(&a))
		snprintf(text, size,
			 "address=%s is link-local: append its interface, as in %s%%eth0",
			 params->address, params->address);
	else
		snprintf(text, size, "address=%s is not an address of this machine",
			 params->address);
	return true;
}

/* Connectionless tcp is not used without an address: see dofi_offer_has_source(). */
static bool no_such_interface(const struct dofi_params *params, char *text, size_t size)
{
	const char *name = secure_getenv("FI_TCP_IFACE");

	if (!name || if_nametoindex(name) || strncmp(params->provider, "tcp", 3))
		return false;
	snprintf(text, size, "FI_TCP_IFACE=%s is not an interface of this machine", name);
	return true;
}

/*
 * A misspelt name in FI_PROVIDER, also among names that exist, which alone have not found a fabric.
 * The names are separated by commas; ^ in front makes exclusions.
 */
static bool filter_unknown(const struct dofi_params *params, char *text, size_t size)
{
	const char *filter = secure_getenv("FI_PROVIDER");
	char copy[256], names[NAMES_TEXT], version[80], *name, *save;

	(void)params;
	if (!filter || filter[0] == '^')
		return false;
	snprintf(copy, sizeof(copy), "%s", filter);
	for (name = copy; *name; name++)	/* libfabric ignores case here */
		*name = (char)tolower((unsigned char)*name);
	providers_list(names);
	name = strtok_r(copy, ",", &save);
	while (name && provider_exists(names, name))
		name = strtok_r(NULL, ",", &save);
	if (!name)
		return false;
	dofi_version_text(fi_version(), version, sizeof(version));
	snprintf(text, size, "FI_PROVIDER=%s: libfabric %s has no provider %s, but %s", filter,
		 version, name, names);
	return true;
}

static bool filter_is_empty(const struct dofi_params *params, char *text, size_t size)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	(void)params;
	if (!filter || filter[0])
		return false;
	snprintf(text, size, "FI_PROVIDER is set, but empty: that excludes all providers");
	return true;
}

/* The provider is net, or FI_PROVIDER leaves libfabric only net to offer. */
static bool preview_alone(const struct dofi_params *params, char *text, size_t size)
{
	const struct dofi_params any = { .provider = "" };
	const char *filter = secure_getenv("FI_PROVIDER");
	const bool named = dofi_provider_is_preview(params->provider);
	struct fi_info *list, *i;

	if (!named) {
		if (!filter || (dofi_offers_list(&any, &dofi_query_msg, &list) &&
				dofi_offers_list(&any, &dofi_query_rdm, &list)))
			return false;
		i = list;
		while (i && dofi_provider_is_preview(i->fabric_attr->prov_name))
			i = i->next;
		fi_freeinfo(list);
		if (i)
			return false;
	}
	snprintf(text, size,
		 "%s=%s: net, libfabric 1.17's preview of tcp, is not supported: use tcp",
		 named ? "provider" : "FI_PROVIDER", named ? params->provider : filter);
	return true;
}

static bool filter_leaves_none(const struct dofi_params *params, char *text, size_t size)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (!filter || params->provider[0] || params->domain[0] || params->address[0])
		return false;
	snprintf(text, size, "FI_PROVIDER=%s leaves no provider that has a device here and "
		 "endpoints for DAT", filter);
	return true;
}

/* Adds the domains that have endpoints for @q. */
static void domains_add(const struct dofi_params *params, const struct dofi_query *q,
			char names[NAMES_TEXT])
{
	struct fi_info *list, *i;

	if (dofi_offers_list(params, q, &list))
		return;
	for (i = list; i; i = i->next)
		if (dofi_offer_usable(i))
			dofi_names_add(names, NAMES_TEXT, i->domain_attr->name);
	fi_freeinfo(list);
}

static bool no_such_domain(const struct dofi_params *params, char *text, size_t size)
{
	char names[NAMES_TEXT] = "";

	if (!params->domain[0])
		return false;
	domains_add(params, &dofi_query_msg, names);
	domains_add(params, &dofi_query_rdm, names);
	if (!names[0] || dofi_names_have(names, params->domain))
		return false;
	snprintf(text, size, "domain=%s: the domains of provider=%s here are %s", params->domain,
		 text_or(params->provider, "any"), names);
	return true;
}

static const struct {
	bool (*holds)(const struct dofi_params *params, char *text, size_t size);
	enum dat_cause cause;
} reasons[] = {
	{ no_such_address, DAT_CAUSE_ADDRESS },
	{ no_such_interface, DAT_CAUSE_INTERFACE },
	{ filter_is_empty, DAT_CAUSE_FILTER },
	{ preview_alone, DAT_CAUSE_PREVIEW },
	{ filter_unknown, DAT_CAUSE_FILTER },
	{ no_such_domain, DAT_CAUSE_DOMAIN },
	{ filter_leaves_none, DAT_CAUSE_FILTER },
};

int dofi_reason_log(const struct dofi_params *params)
{
	char text[384];
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].holds(params, text, sizeof(text))) {
			dofi_log(DOFI_ERR, DOFI_FAB, "no usable fabric: %s" DAT_CAUSE_FORMAT, text,
				 reasons[i].cause);
			return -FI_ENODATA;
		}
	/* the machine lacks a device, or libfabric a provider */
	dofi_log(DOFI_WARN, DOFI_FAB,
		 "no usable fabric: libfabric offers none for provider=%s%s%s%s%s "
		 "(datinfo --doctor finds the cause)" DAT_CAUSE_FORMAT,
		 text_or(params->provider, "any"), params->endpoint[0] ? " endpoint=" : "",
		 params->endpoint, params->address[0] ? " address=" : "", params->address,
		 DAT_CAUSE_NO_OFFER);
	return -FI_ENODATA;
}
