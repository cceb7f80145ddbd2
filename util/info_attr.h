/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of every attribute that dat_ia_query() and dat_ep_query() return, by name. datinfo prints
 * them row by row.
 */
#ifndef INFO_ATTR_H
#define INFO_ATTR_H

#include "dat_text.h"
#include "json.h"

#include <stddef.h>

enum attr_kind {
	ATTR_TEXT,  /* an array of characters */
	ATTR_UINT,  /* unsigned, as wide as the member */
	ATTR_COUNT, /* DAT_COUNT, signed */
	ATTR_BOOL,
	ATTR_ADDRESS, /* a pointer to a socket address */
	ATTR_ENUM,    /* one of names[] */
	ATTR_FLAGS,   /* a sum of names[] */
	ATTR_MATRIX,  /* EVD stream merging */
	ATTR_OPAQUE,  /* a handle, or another value that is not printed */
};

struct attr_name {
	unsigned int value;
	const char *name;
};

struct attr {
	const char *name;
	size_t offset, size;
	enum attr_kind kind;
	const struct attr_name *names; /* ends with a NULL name */
};

extern const struct attr ia_attrs[];
extern const int ia_nattrs;
extern const struct attr provider_attrs[];
extern const int provider_nattrs;
extern const struct attr ep_attrs[]; /* of DAT_EP_PARAM */
extern const int ep_nattrs;

#define ATTR_TEXT_MAX 320

/* The value of @attr in the structure at @base; written to @buf, returned. */
const char *attr_text(const struct attr *attr, const void *base, char *buf, size_t len);

/*
 * Writes the value of @attr as JSON member @name: a number, boolean or null where it is one, else
 * text.
 */
void attr_json(const struct attr *attr, const char *name, const void *base, struct json *j);

/* Returns the provider's report about @attr under this prefix ("OFI_SOURCE"), or NULL. */
const char *attr_note(const struct attr *attr, const char *prefix, const DAT_PROVIDER_ATTR *pa);

#endif
