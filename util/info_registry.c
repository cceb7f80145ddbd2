/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registered IAs, and opening one of them with its attributes. */
#include "info_registry.h"

#include "dat_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 1024
#define ASYNC_QLEN 8

int registry_read(struct registry *r)
{
	DAT_PROVIDER_INFO **list;
	char text[128];
	DAT_RETURN ret;
	int i;

	r->info = calloc(MAX_NAMES, sizeof(*r->info));
	list = calloc(MAX_NAMES, sizeof(DAT_PROVIDER_INFO *));
	if (!r->info || !list) {
		free(list);
		fputs("datinfo: out of memory\n", stderr);
		return -1;
	}
	for (i = 0; i < MAX_NAMES; i++)
		list[i] = &r->info[i];
	ret = dat_registry_list_providers(MAX_NAMES, &r->n, list);
	free(list);
	if (ret != DAT_SUCCESS) {
		fprintf(stderr, "datinfo: cannot list the registry: %s\n",
			dat_text_error(ret, text, sizeof(text)));
		return -1;
	}
	return 0;
}

bool registry_is_ours(const DAT_PROVIDER_INFO *info)
{
	return info->dapl_version_major == DAT_VERSION_MAJOR;
}

bool registry_repeats(const struct registry *r, int i)
{
	int k;

	for (k = 0; k < i; k++)
		if (registry_is_ours(&r->info[k]) &&
		    !strcmp(r->info[k].ia_name, r->info[i].ia_name))
			return true;
	return false;
}

/* Queries the attributes of an endpoint that was created with defaults. */
static bool ep_query_defaults(struct ia *ia)
{
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	if (dat_ep_create(ia->handle, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			  DAT_HANDLE_NULL, NULL, &ep) != DAT_SUCCESS)
		return false;
	ret = dat_ep_query(ep, DAT_EP_FIELD_ALL, &ia->ep);
	dat_ep_free(ep);
	return ret == DAT_SUCCESS;
}

int ia_open(const DAT_PROVIDER_INFO *info, struct ia *ia, char *err, size_t len)
{
	DAT_RETURN ret;

	memset(ia, 0, sizeof(*ia));
	ret = reason_open_info(info, ASYNC_QLEN, &ia->async_evd, &ia->handle, err, len);
	if (ret != DAT_SUCCESS)
		return -1;
	ret = dat_ia_query(ia->handle, NULL, DAT_IA_FIELD_ALL, &ia->attr, DAT_PROVIDER_FIELD_ALL,
			   &ia->provider);
	if (ret != DAT_SUCCESS) {
		dat_text_error(ret, err, len);
		dat_ia_close(ia->handle, DAT_CLOSE_ABRUPT_FLAG);
		return -1;
	}
	ia->has_ep = ep_query_defaults(ia);
	return 0;
}

const char *ia_named(const struct ia *ia, const char *name)
{
	const char *value = dat_named_attr(&ia->provider, name);

	return value ? value : "-";
}
