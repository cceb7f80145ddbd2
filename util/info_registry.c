/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registered IAs, and opening one of them with its attributes. */
#include "info_registry.h"

#include "dat_text.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NAMES 1024
#define ASYNC_QLEN 8

/* Lists up to @most IAs. Returns false if there is no memory for them. */
static bool list_up_to(struct registry *r, int most, DAT_RETURN *ret)
{
	DAT_PROVIDER_INFO **list = calloc((size_t)most, sizeof(DAT_PROVIDER_INFO *));
	int i;

	free(r->info);
	r->info = calloc((size_t)most, sizeof(*r->info));
	for (i = 0; list && r->info && i < most; i++)
		list[i] = &r->info[i];
	if (list && r->info)
		*ret = dat_registry_list_providers(most, &r->n, list);
	free(list);
	return list && r->info;
}

int registry_read(struct registry *r)
{
	DAT_RETURN ret = DAT_SUCCESS;
	int most = FIRST_NAMES;
	char text[128];
	bool listed;

	/* a list that is full may lack some; n may be the number of all */
	while ((listed = list_up_to(r, most, &ret)) && ret == DAT_SUCCESS && r->n >= most)
		most *= 2;
	if (!listed)
		fputs("datinfo: out of memory\n", stderr);
	else if (ret != DAT_SUCCESS)
		fprintf(stderr, "datinfo: cannot list the registry: %s\n",
			dat_text_error(ret, text, sizeof(text)));
	return listed && ret == DAT_SUCCESS ? 0 : -1;
}

bool registry_is_another(void)
{
#if DAT_VERSION_MAJOR >= 2
	return !dlsym(RTLD_DEFAULT, "dat_registry_providers_related");
#else
	return false;
#endif
}

void registry_print(FILE *out)
{
	Dl_info at;

	if (!dladdr((void *)dat_registry_list_providers, &at))
		return;
	if (!registry_is_another()) {
		fprintf(out, "  %-16s %s\n", "registry", at.dli_fname);
		return;
	}
	fprintf(out, "  %-16s %s, another implementation, such as OFED's: programs use it in place "
		     "of this one, with its dat.conf and without the calls that only this one has; "
		     "\"ldconfig\" after the installation, or LD_LIBRARY_PATH, selects this one\n",
		"registry", at.dli_fname);
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
