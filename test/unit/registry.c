/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry functions that the provider calls. They record their arguments. */

#include "registry.h"

struct registry registry;

static DAT_RETURN add(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	if (registry.answer)
		return registry.answer;
	registry.added++;
	registry.provider = provider;
	registry.info = *info;
	return DAT_SUCCESS;
}

static DAT_RETURN remove_one(void)
{
	registry.removed++;
	return DAT_SUCCESS;
}

#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	return add(provider, info);
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	return remove_one();
}

DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *out)
{
	*out = registry.shown ? registry.shown : handle;
	return DAT_SUCCESS;
}
#else
DAT_RETURN dat_registry_add_provider(DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	return add(provider, info);
}

DAT_RETURN dat_registry_remove_provider(DAT_PROVIDER *provider, const DAT_PROVIDER_INFO *info)
{
	return remove_one();
}
#endif
