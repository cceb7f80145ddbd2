/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Interface between a provider library and the DAT registry. */

#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#include <dat2/udat.h>
#include <dat2/udat_redirection.h>

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

/* Whether two IAs can stand in for each other. */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE		= 0,	/* no */
	DAT_HA_TRUE		= 1,	/* yes */
	DAT_HA_UNKNOWN		= 2,	/* no provider knows */
	DAT_HA_CONFLICTING	= 3,	/* the providers disagree */
	DAT_HA_EXTENSION_BASE	= 4	/* first value that belongs to an extension */
} DAT_HA_RELATIONSHIP;

/*
 * dat_registry_add_provider(3DAT) - registers a provider that can be opened.
 *
 * Called by dat_provider_init() with the information it was given. The table must stay
 * valid until dat_registry_remove_provider().
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, PROVIDER_ALREADY_REGISTERED.
 * Threads: called under the registry's own lock.
 */
extern DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER *provider,
					    const DAT_PROVIDER_INFO *provider_info);

/*
 * dat_registry_remove_provider(3DAT) - undoes dat_registry_add_provider().
 *
 * Called by dat_provider_fini().
 *
 * Fails with: INVALID_PARAMETER, PROVIDER_IN_USE.
 * Threads: called under the registry's own lock.
 */
extern DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER *provider,
					       const DAT_PROVIDER_INFO *provider_info);

/*
 * dat_registry_providers_related(3DAT) - reports whether two IAs can stand in for each
 * other.
 *
 * Fails with: INVALID_PARAMETER, INSUFFICIENT_RESOURCES, MODEL_NOT_SUPPORTED,
 *             PROVIDER_NOT_FOUND.
 * Threads: safe.
 */
extern DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia_name_1,
						 const DAT_NAME_PTR ia_name_2,
						 DAT_HA_RELATIONSHIP *relationship);

/*
 * dats_get_ia_handle - translates an IA handle between consumers and provider.
 *
 * The registry creates the IA handle that consumers hold, which may differ from the
 * provider's. Given either handle, the call returns the other. A provider calls it before
 * it passes an IA handle to a consumer, in a parameter structure or an event.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia_handle_p);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
