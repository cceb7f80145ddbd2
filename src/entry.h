/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The static registry: the lines of dat.conf, and which of them serves a program. */
#ifndef DREG_ENTRY_H
#define DREG_ENTRY_H

#include "dat_select.h"
#include "load.h"

#include <pthread.h>
#include <stdbool.h>

/* A line of dat.conf that user-level libraries may open, of any API version. */
struct dreg_entry {
	DAT_PROVIDER_INFO info;
	char *library;
	char *ia_params;
	struct dreg_entry *next;	/* in the order of the file; never changes */
	pthread_mutex_t lock;		/* held while loading and unloading; guards the next two */
	unsigned int users;		/* uses; the library is loaded while there are some */
	struct dreg_library lib;
};

/* What a program asks dat_ia_openv() for. */
struct dreg_request {
	const char *name;
	DAT_UINT32 major, minor;
	bool threadsafe;
};

/*
 * dreg_entries_read - reads dat.conf, unless it has been read.
 *
 * Returns 0, or negative errno if descriptors or memory were short: then there are no entries,
 * and the next call tries again.
 */
int dreg_entries_read(void);

/* dreg_entries - the first entry; null before dreg_entries_read() has succeeded. */
struct dreg_entry *dreg_entries(void);

/* dreg_entries_free - for when the library is unloaded and nothing is open. */
void dreg_entries_free(void);

/*
 * dreg_entry_candidates - the entries that serve a request, best first, equals as in the file.
 *
 * Null-terminated, for the caller to free; null if there is no memory. *@lacking becomes
 * the subtype of the first thing that no entry has, if it was less.
 */
struct dreg_entry **dreg_entry_candidates(const struct dreg_request *rq,
					  DAT_RETURN_SUBTYPE *lacking);

/* dreg_match - how well a provider serves a request: the least is the best. */
uint64_t dreg_match(const DAT_PROVIDER_INFO *info, const struct dreg_request *rq,
		    DAT_RETURN_SUBTYPE *lacking);

#define DREG_NO_MATCH UINT64_MAX

/* dreg_loadable - whether this library can call the functions of such a provider. */
bool dreg_loadable(const DAT_PROVIDER_INFO *info);

bool dreg_info_same(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b);

#endif
