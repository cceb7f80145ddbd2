/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dynamic registry: registered providers, their function tables, and their uses. Opening an IA
 * selects an entry of the static registry, loads its library unless it is loaded, and uses the
 * table that the library registers. Lock order: an entry's lock, the dynamic linker's, the
 * registry's. A provider is called with neither of the last two held.
 */
#ifndef DREG_REGISTRY_H
#define DREG_REGISTRY_H

#include "entry.h"

/* A use of a provider by one open IA: keeps the provider's library loaded. */
struct dreg_use;

/*
 * Finds and loads a provider that serves a request. On success, pass @use to dreg_use_put() when
 * the IA is closed or could not be opened. Else returns PROVIDER_NOT_FOUND, with the subtype of the
 * first requirement that no entry meets, or with none if an entry meets all but its library cannot
 * be loaded; or INSUFFICIENT_RESOURCES.
 */
DAT_RETURN dreg_use_get(const struct dreg_request *request, struct dreg_use **use);

/* Releases a use; releasing the last use of a library stops and unloads it. */
void dreg_use_put(struct dreg_use *use);

const DAT_PROVIDER *dreg_use_provider(const struct dreg_use *use);

/* Returns "FILE:LINE" of the entry of a use; null if it has none. */
const char *dreg_use_origin(const struct dreg_use *use);

/* Records the use of an open IA, for dreg_use_detach(). */
void dreg_use_attach(struct dreg_use *use, DAT_IA_HANDLE ia);

/* Removes and returns the use of an IA, or null, after the registry's own calls on the IA. */
struct dreg_use *dreg_use_detach(DAT_IA_HANDLE ia);

#endif
