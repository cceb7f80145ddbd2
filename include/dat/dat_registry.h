/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Interface between a provider library and the DAT registry. */

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
/* called once for each line of dat.conf */
#define DAT_PROVIDER_INIT_FUNC_NAME	dat_provider_init
/* called when the last IA of the line closes */
#define DAT_PROVIDER_FINI_FUNC_NAME	dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR	"dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR	"dat_provider_fini"

typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO *, const char *);
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO *);

/*
 * Registration
 */

/*
 * dat_registry_add_provider(3DAT) - registers a provider that can be opened.
 *
 * Called by dat_provider_init() with the information it was given. The table must stay
 * valid until dat_registry_remove_provider().
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, PROVIDER_ALREADY_REGISTERED.
 * Threads: called under the registry's own lock.
 */
extern DAT_RETURN dat_registry_add_provider(DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

/*
 * dat_registry_remove_provider(3DAT) - undoes dat_registry_add_provider().
 *
 * Called by dat_provider_fini().
 *
 * Fails with: INVALID_PARAMETER, PROVIDER_IN_USE.
 * Threads: called under the registry's own lock.
 */
extern DAT_RETURN dat_registry_remove_provider(DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
