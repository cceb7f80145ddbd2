/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why no fabric fits an IA: a table of reasons, the first of which that holds is logged. */

#include "fab/offers.h"

#include "base/log.h"
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

#define VERSION_TEXT 80
#define NAMES_TEXT 256

static const char *version(char text[VERSION_TEXT])
{
	dofi_version_text(fi_version(), text, VERSION_TEXT);
	return text;
}

static const char *text_or(const char *text, const char *otherwise)
{
	return text && text[0] ? text : otherwise;
}

/* Lists libfabric's providers, excluded or not; without @layers, only core providers. */
static void providers_list(char names[NAMES_TEXT], bool layers)
{
	struct fi_info *list, *i;

	names[0] = 0;
	if (fi_getinfo(DOFI_FI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		return;
	for (i = list; i; i = i->next)
		if (layers || strncmp(i->fabric_attr->prov_name, "ofi_", 4))
			dofi_names_add(names, NAMES_TEXT, i->fabric_attr->prov_name);
	fi_freeinfo(list);
}

/* Providers that libfabric lists only if they have found a device. */
static bool needs_device(const char *provider)
{
	static const char names[] = "verbs efa psm3 opx cxi gni usnic bgq";

	return dofi_names_have(names, provider);
}

/* Returns whether libfabric has each part of @provider: of "tcp;ofi_rxm" tcp and ofi_rxm. */
static bool provider_exists(const char *provider)
{
	char names[NAMES_TEXT], copy[64], *part, *save;

	providers_list(names, true);
	snprintf(copy, sizeof(copy), "%s", provider);
	for (part = strtok_r(copy, ";", &save); part; part = strtok_r(NULL, ";", &save))
		if (!dofi_names_have(names, part))
			return false;
	return true;
}

/* FI_PROVIDER: names separated by commas, which ^ in front makes exclusions */

/* Copies the names of @filter, in lower case because libfabric ignores case here. */
static void filter_copy(const char *filter, char *copy, size_t size)
{
	snprintf(copy, size, "%s", filter + (filter[0] == '^'));
	for (; *copy; copy++)
		*copy = (char)tolower((unsigned char)*copy);
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

/* A misspelt name, also among names that exist, which alone have not found a fabric. */
static bool filter_unknown(const struct dofi_params *params, char *text, size_t size)
{
	const char *filter = secure_getenv("FI_PROVIDER");
	char copy[256], names[NAMES_TEXT], v[VERSION_TEXT], *name, *save;

	(void)params;
	if (!filter || filter[0] == '^')
		return false;
	filter_copy(filter, copy, sizeof(copy));
	name = strtok_r(copy, ",", &save);
	while (name && (provider_exists(name) || needs_device(name)))
		name = strtok_r(NULL, ",", &save);
	if (!name)
		return false;
	providers_list(names, false);
	snprintf(text, size, "FI_PROVIDER=%s: libfabric %s has no provider %s, but %s", filter,
		 version(v), name, names);
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

/* A name also stands for layers over it: "tcp" for "tcp;ofi_rxm". */
static bool filter_excludes(const struct dofi_params *params, char *text, size_t size)
{
	const char *filter = secure_getenv("FI_PROVIDER");
	char copy[256], *name, *save;
	bool listed = false;
	size_t len;

	if (!filter || !params->provider[0])
		return false;
	filter_copy(filter, copy, sizeof(copy));
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		len = strlen(name);
		listed |= !strncmp(params->provider, name, len) &&
			  (!params->provider[len] || params->provider[len] == ';');
	}
	if (listed != (filter[0] == '^'))
		return false;
	snprintf(text, size, "FI_PROVIDER=%s excludes provider=%s", filter, params->provider);
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

static bool provider_unknown(const struct dofi_params *params, char *text, size_t size)
{
	char names[NAMES_TEXT], v[VERSION_TEXT];

	if (!params->provider[0] || provider_exists(params->provider) ||
	    needs_device(params->provider))
		return false;
	providers_list(names, false);
	snprintf(text, size, "provider=%s: libfabric %s has no such provider, but %s",
		 params->provider, version(v), names);
	return true;
}

static bool rdma_missing(const struct dofi_params *params, char *text, size_t size)
{
	struct fi_info *list, *i;
	bool missing = false;

	if (!params->provider[0] || !strcmp(params->endpoint, "rdm") ||
	    dofi_offers_list(params, &dofi_query_msg, &list))
		return false;
	for (i = list; i; i = i->next)
		missing |= dofi_offer_lacks_rdma(i);
	fi_freeinfo(list);
	snprintf(text, size, "provider=%s has no RDMA in 32-bit programs: use ofi-rxm, here and at "
		 "the peer", params->provider);
	return missing;
}

static bool endpoint_missing(const struct dofi_params *params, char *text, size_t size)
{
	const bool rdm = !strcmp(params->endpoint, "rdm");
	const char *hint = "";
	struct fi_info *list, *i;
	char v[VERSION_TEXT];
	bool other = false;

	if (!params->endpoint[0] ||
	    dofi_offers_list(params, rdm ? &dofi_query_msg : &dofi_query_rdm, &list))
		return false;
	for (i = list; i; i = i->next)
		other |= dofi_offer_usable(i);
	fi_freeinfo(list);
	if (rdm && !strcmp(params->provider, "tcp"))
		hint = "; libfabric 1.18 or newer is needed";
	snprintf(text, size, "provider=%s of libfabric %s has no %s endpoints (endpoint=%s)%s",
		 text_or(params->provider, "any"), version(v),
		 rdm ? "connectionless" : "connected", params->endpoint, hint);
	return other;
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

/* libfabric may offer devices, but none with the wanted address. */
static bool no_device_with_address(const struct dofi_params *params, char *text, size_t size)
{
	if (!params->address[0])
		return false;
	snprintf(text, size, "address=%s: provider=%s has no device with this address",
		 params->address, text_or(params->provider, "any"));
	return true;
}

/* Without a reason, libfabric leaves out shm if /dev/shm lacks space for a region per processor. */
static bool shm_is_short(const struct dofi_params *params, char *text, size_t size)
{
	if (strcmp(params->provider, "shm"))
		return false;
	snprintf(text, size, "too little free space in /dev/shm");
	return true;
}

/* All bits but FI_MR_BASIC and FI_MR_SCALABLE, which the headers of libfabric 2.x deprecate. */
#define MR_MODES (~3)

static bool no_endpoints(const struct dofi_params *params, char *text, size_t size)
{
	const char *what = "finds no device on this machine";
	struct fi_info *hints, *list;

	if (!params->provider[0])
		return false;
	hints = fi_allocinfo();
	if (!provider_exists(params->provider)) {
		what = "finds no device on this machine, or libfabric was built without it";
	} else if (hints) {	/* asks for anything, whatever DAT can use of it */
		hints->mode = hints->domain_attr->mode = ~0ULL;
		hints->domain_attr->mr_mode = MR_MODES;
		hints->fabric_attr->prov_name = strdup(params->provider);
		if (hints->fabric_attr->prov_name &&
		    !fi_getinfo(DOFI_FI_VERSION, NULL, NULL, 0, hints, &list)) {
			what = "has no endpoints that DAT can use";
			fi_freeinfo(list);
		}
	}
	fi_freeinfo(hints);
	snprintf(text, size, "provider=%s %s", params->provider, what);
	return true;
}

static bool nothing(const struct dofi_params *params, char *text, size_t size)
{
	char names[NAMES_TEXT], v[VERSION_TEXT];

	(void)params;
	providers_list(names, false);
	snprintf(text, size, "no provider of libfabric %s has a device here and endpoints for DAT "
		 "(%s)", version(v), names);
	return true;
}

static const struct {
	bool (*holds)(const struct dofi_params *params, char *text, size_t size);
	enum dofi_log_level level; /* DOFI_ERR if the configuration is wrong */
} reasons[] = {
	{ no_such_address, DOFI_ERR },
	{ no_such_interface, DOFI_ERR },
	{ filter_is_empty, DOFI_ERR },
	{ preview_alone, DOFI_ERR },
	{ filter_unknown, DOFI_ERR },
	{ provider_unknown, DOFI_WARN },
	{ filter_excludes, DOFI_WARN },
	{ rdma_missing, DOFI_WARN },
	{ endpoint_missing, DOFI_WARN },
	{ no_such_domain, DOFI_ERR },
	{ no_device_with_address, DOFI_WARN },
	{ filter_leaves_none, DOFI_ERR },
	{ shm_is_short, DOFI_ERR },
	{ no_endpoints, DOFI_WARN },
	{ nothing, DOFI_WARN },
};

int dofi_reason_log(const struct dofi_params *params)
{
	char text[384];
	size_t i;

	for (i = 0; !reasons[i].holds(params, text, sizeof(text)); i++)
		;
	dofi_log(reasons[i].level, DOFI_FAB, "no usable fabric: %s", text);
	return reasons[i].holds == shm_is_short ? -ENOSPC : -FI_ENODATA;
}
