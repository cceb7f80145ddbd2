/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of rings: whether the user allows it, and how it describes itself. */

#include "rings/rings.h"

#include "fab/quirks.h"

#include <stdlib.h>
#include <string.h>

static const struct dofi_quirk quirk = {
	.provider = DOFI_RINGS_NAME, .rdm = true, .no_keys = true, .frame_size = DOFI_LINK_FRAME,
	.reason = "our own: the target does RDMA, and frames are copied into the ring",
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

/* FI_PROVIDER lists the providers that are used, or, after a ^, those that are not. */
static bool is_allowed(void)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (!filter || !*filter)
		return true;
	return *filter == '^' ? !lists(filter + 1, "shm") : lists(filter, "shm");
}

static struct fi_info *describe(void)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->fabric_attr->prov_name = strdup(DOFI_RINGS_NAME);
	if (!info->fabric_attr->prov_name) {
		fi_freeinfo(info);
		return NULL;
	}
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->tx_attr->inject_size = DOFI_LINK_FRAME;
	info->tx_attr->iov_limit = info->rx_attr->iov_limit = SIZE_MAX;
	info->domain_attr->threading = FI_THREAD_SAFE;
	return info;
}

int dofi_rings_choose(struct dofi_fabric_choice *choice)
{
	struct fi_info *info;

	choice->info = NULL;
	if (!is_allowed())
		return -FI_ENODATA;
	info = describe();
	if (!info)
		return -FI_ENOMEM;
	*choice = (struct dofi_fabric_choice){
		.info = info, .mr_style = DOFI_MR_VIRTUAL, .rdm = true, .target_rdma = true,
		.write_ordered = true, .zero_based = true, .scoped_keys = true, .cq_data = true,
		.sends_bye = true, .frame_size = DOFI_LINK_FRAME, .quirk = &quirk,
	};
	return 0;
}
