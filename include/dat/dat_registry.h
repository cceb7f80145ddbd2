/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* What a provider library and the DAT registry owe each other. */

#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#include <dat/udat.h>
#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Entry points that a provider library exports
 */
#define DAT_PROVIDER_INIT_FUNC_NAME	dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME	dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR	"dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR	"dat_provider_fini"

typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *, const char *);
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *);

/*
 * Registration
 */

extern DAT_RETURN dat_registry_add_provider(DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

extern DAT_RETURN dat_registry_remove_provider(DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
