/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of rings: whether the user names or allows it, and how it describes itself. */

#include "rings/rings.h"

#include "base/log.h"
#include "dat_cause.h"
#include "fab/offers.h"
#include "fab/quirks.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dofi_quirk quirk = {
	.provider = DOFI_RINGS_NAME, .shared_memory = true, .target_rdma = true,
	.frame_size = DOFI_LINK_FRAME,
	.reason = "our own: RDMA is one-sided where possible, and frames are copied",
};

/* Returns whether the list of FI_PROVIDER has @name. */
static bool lists(const char *list, const char *name)
{
	const size_t len = strlen(name);
	size_t n;

	for (; *list; list += n + (list[n] != 0)) {
		n = strcspn(list, ",;");
		if (n == len && !strncmp(list, name, n))
			return true;
	}
	return false;
}

/* The name of shared memory in FI_PROVIDER and in ia_params. */
#define SHM "shm"

/* FI_PROVIDER lists the providers that are used, or, after a ^, providers that are not. */
static bool is_allowed(void)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (!filter || !*filter)
		return true;
	return *filter == '^' ? !lists(filter + 1, SHM) : lists(filter, SHM);
}

bool dofi_rings_are_named(const struct dofi_params *params)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (!strcmp(params->endpoint, "rdm"))
		return false;
	if (params->provider[0])
		return !strcmp(params->provider, SHM);
	return filter && !strcmp(filter, SHM);
}

static int choice_make(struct dofi_fabric_choice *choice)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return -FI_ENOMEM;
	info->fabric_attr->prov_name = strdup(DOFI_RINGS_NAME);
	info->domain_attr->name = strdup(DOFI_RINGS_NAME);
	if (!info->fabric_attr->prov_name || !info->domain_attr->name) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	info->fabric_attr->fabric = &dofi_rings_fabric;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->tx_attr->inject_size = DOFI_LINK_FRAME;
	info->tx_attr->iov_limit = info->rx_attr->iov_limit = SIZE_MAX;
	info->domain_attr->threading = FI_THREAD_SAFE;
	*choice = (struct dofi_fabric_choice){
		.info = info, .mr_style = DOFI_MR_VIRTUAL, .rdm = true, .target_rdma = true,
		.write_ordered = true, .zero_based = true, .scoped_keys = true, .cq_data = true,
		.sends_bye = true, .frame_size = DOFI_LINK_FRAME, .quirk = &quirk,
	};
	return 0;
}

int dofi_rings_choose_beside(struct dofi_fabric_choice *choice)
{
	choice->info = NULL;
	return is_allowed() ? choice_make(choice) : -FI_ENODATA;
}

int dofi_rings_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice)
{
	struct sockaddr_storage address;
	struct fi_info *info;
	enum dat_cause cause = DAT_CAUSE_ADDRESS;
	char why[192] = "";
	socklen_t len;
	int ret;

	choice->info = NULL;
	if (!is_allowed()) {
		cause = DAT_CAUSE_FILTER;
		snprintf(why, sizeof(why), "FI_PROVIDER=%s excludes shm",
			 secure_getenv("FI_PROVIDER"));
	} else if (params->domain[0] && strcmp(params->domain, DOFI_RINGS_NAME)) {
		cause = DAT_CAUSE_DOMAIN;
		snprintf(why, sizeof(why), "domain=%s: shared memory has the domain "
			 DOFI_RINGS_NAME, params->domain);
	} else if (!strcmp(params->endpoint, "msg")) {
		cause = DAT_CAUSE_RINGS;
		snprintf(why, sizeof(why),
			 "shared memory has no connected endpoints (endpoint=msg)");
	} else if (params->address[0] && !dofi_address_is_local(params->address)) {
		snprintf(why, sizeof(why), "address=%s: this machine does not have the address",
			 params->address);
	}
	if (why[0]) {
		dofi_log(DOFI_WARN, DOFI_FAB, "no usable fabric: %s" DAT_CAUSE_FORMAT, why, cause);
		return -FI_ENODATA;
	}
	ret = choice_make(choice);
	if (ret || !params->address[0])
		return ret;
	info = choice->info;
	len = dofi_address_parse(params->address, &address);
	info->src_addr = len ? malloc(len) : NULL;
	if (!info->src_addr) {
		dofi_fabric_release(choice);
		return len ? -FI_ENOMEM : -FI_ENODATA;
	}
	memcpy(info->src_addr, &address, len);
	info->src_addrlen = len;
	return 0;
}

bool dofi_is_rings(const struct dofi_fabric_choice *choice)
{
	return choice->quirk == &quirk;
}
