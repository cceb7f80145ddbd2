/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dynamic registry: what providers have registered, their function tables, and which
 * of them are in use.
 *
 * Opening an IA takes an entry of the static registry, loads its library if nobody has,
 * and uses the table it registers.
 *
 * Locks, in the order they are taken: an entry's, the dynamic linker's, the
 * registry's. A provider is called with none of the last two held.
 */
#ifndef DREG_REGISTRY_H
#define DREG_REGISTRY_H

#include "entry.h"

/* One open IA, seen from here: keeps its provider's library loaded. */
struct dreg_use;

/*
 * dreg_use_get - finds and loads a provider that serves a request.
 *
 * On success @use must be given to dreg_use_put() when the IA is closed or could not
 * be opened. Else PROVIDER_NOT_FOUND, with the subtype of the first thing that no
 * entry could serve, or INSUFFICIENT_RESOURCES.
 */
DAT_RETURN dreg_use_get(const struct dreg_request *request, struct dreg_use **use);

/* dreg_use_put - lets go; the last use of a library stops and unloads it. */
void dreg_use_put(struct dreg_use *use);

const DAT_PROVIDER *dreg_use_provider(const struct dreg_use *use);

/* dreg_use_attach - remembers the use of an open IA, for dreg_use_detach(). */
void dreg_use_attach(struct dreg_use *use, DAT_IA_HANDLE ia);

/*
 * dreg_use_detach - takes back dreg_use_attach(); null if there is none.
 *
 * Waits for calls that the registry itself makes on that IA.
 */
struct dreg_use *dreg_use_detach(DAT_IA_HANDLE ia);

#endif
