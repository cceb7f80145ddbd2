/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A provider's shared library: loaded, its entry points found, unloaded. */
#ifndef DREG_LOAD_H
#define DREG_LOAD_H

#include "dat_select.h"

struct dreg_library {
	void *dl;			/* null unless loaded */
	DAT_PROVIDER_INIT_FUNC init;
	DAT_PROVIDER_FINI_FUNC fini;	/* null if it has none */
};

/*
 * dreg_library_open - loads the library @name.
 *
 * A name without a slash is looked for as the dynamic linker does, then in the
 * directory this registry's own providers are installed in. A relative path is refused in
 * a privileged process. Logs why it fails, and returns 0 or negative errno: of descriptors
 * or memory only where these were short. May run constructors, so call it without locks that a
 * provider's registration needs.
 */
int dreg_library_open(struct dreg_library *lib, const char *name);

void dreg_library_close(struct dreg_library *lib);

#endif
