/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registered IAs, and opening one of them with its attributes. */
#ifndef INFO_REGISTRY_H
#define INFO_REGISTRY_H

#include "dat_select.h"
#include "open_reason.h"

#include <stdbool.h>
#include <stdio.h>

#define API_TEXT (DAT_VERSION_MAJOR >= 2 ? "2.0" : "1.2")

struct registry {
	DAT_PROVIDER_INFO *info;
	DAT_COUNT n;
};

/* An opened IA and its attributes. */
struct ia {
	DAT_IA_HANDLE handle;
	DAT_EVD_HANDLE async_evd;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
	DAT_EP_PARAM ep; /* of an EP created with defaults */
	bool has_ep;
};

/* Lists the IAs. Returns 0, or -1 with a message on stderr. The caller frees r->info. */
int registry_read(struct registry *r);

/*
 * Whether the registry of this process is another implementation's. Those of uDAPL 1.2 look alike,
 * and count as ours.
 */
bool registry_is_another(void);

/* Prints which library of the system is the registry, and whether that is this package's. */
void registry_print(FILE *out);

/* Whether this build can open the entry: it has the build's API version. */
bool registry_is_ours(const DAT_PROVIDER_INFO *info);

/* Whether an earlier entry has the name of entry @i, for the other kind of thread safety. */
bool registry_repeats(const struct registry *r, int i);

/* Opens the IA and queries its attributes. Returns 0, or -1 with the reason in @err. */
int ia_open(const DAT_PROVIDER_INFO *info, struct ia *ia, char *err, size_t len);

/* The value of the provider's attribute @name, "-" if there is none. */
const char *ia_named(const struct ia *ia, const char *name);

#endif
