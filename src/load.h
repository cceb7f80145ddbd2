/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads a provider's shared library, finds its entry points, unloads it. */
#ifndef DREG_LOAD_H
#define DREG_LOAD_H

#include "dat_select.h"

struct dreg_library {
	void *dl;			/* null unless loaded */
	DAT_PROVIDER_INIT_FUNC init;
	DAT_PROVIDER_FINI_FUNC fini;	/* null if it has none */
};

/*
 * Loads the library @name. The dynamic linker searches for a name without a slash first; then the
 * directory in which this registry's own providers are installed is tried. A privileged process
 * refuses a relative path. Logs the reason of a failure. Returns 0 or negative errno, the errno of
 * descriptors or memory only if they ran out. May run constructors, so call it without locks that a
 * provider's registration needs.
 */
int dreg_library_open(struct dreg_library *lib, const char *name);

void dreg_library_close(struct dreg_library *lib);

#endif
