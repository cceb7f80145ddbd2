/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The static registry: the lines of dat.conf, and the lines that match a request. */
#ifndef DREG_ENTRY_H
#define DREG_ENTRY_H

#include "dat_select.h"
#include "lock.h"

#include <stdbool.h>

/* load.c: loads a provider's shared library, finds its entry points, unloads it. */
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

/* A line of dat.conf that user-level libraries may open, of any API version. */
struct dreg_entry {
	DAT_PROVIDER_INFO info;
	char *library;
	char *ia_params;
	char *origin;			/* "FILE:LINE" */
	struct dreg_entry *next;	/* in file order; never changes */
	struct dreg_lock lock;		/* held while loading and unloading; guards users and lib */
	unsigned int users;		/* open uses; the library is loaded while there are any */
	struct dreg_library lib;
};

/* Request of a dat_ia_openv() call. */
struct dreg_request {
	const char *name;
	DAT_UINT32 major, minor;
	bool threadsafe;
};

/*
 * Reads dat.conf, unless it has been read. Returns 0, or negative errno if descriptors or memory
 * ran out. In that case there are no entries, and the next call tries again.
 */
int dreg_entries_read(void);

/* Returns the first entry; null before dreg_entries_read() has succeeded. */
struct dreg_entry *dreg_entries(void);

/* Frees all entries; no IA may be open. */
void dreg_entries_free(void);

/*
 * Lists the entries that match a request, best first, ties in file order. Returns a null-terminated
 * array that the caller frees, or null without memory. Raises *@lacking to the subtype of the first
 * requirement that no entry meets.
 */
struct dreg_entry **dreg_entry_candidates(const struct dreg_request *rq,
					  DAT_RETURN_SUBTYPE *lacking);

/* Ranks how well a provider matches a request: the lowest rank is the best. */
uint64_t dreg_match(const DAT_PROVIDER_INFO *info, const struct dreg_request *rq,
		    DAT_RETURN_SUBTYPE *lacking);

#define DREG_NO_MATCH UINT64_MAX

/* Whether this library can call the functions of such a provider. */
bool dreg_loadable(const DAT_PROVIDER_INFO *info);

bool dreg_info_same(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b);

#endif
