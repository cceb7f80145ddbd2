/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capabilities of an IA, as its provider tells of them by named attributes. */
#ifndef INFO_CAPS_H
#define INFO_CAPS_H

#include "info_attr.h"

/* Whether a named attribute tells of another attribute, and nothing by itself. */
bool caps_tells(const char *name);

/* How the IA's transport is, as far as the provider tells. */
void caps_print_transport(FILE *out, const DAT_PROVIDER_ATTR *pa);

/* One table of attributes of the structure at @base, under its title. */
void caps_print(FILE *out, const char *title, const struct attr *attrs, int n, const void *base,
		const DAT_PROVIDER_ATTR *pa);
void caps_json(struct json *j, const char *title, const struct attr *attrs, int n,
	       const void *base, const DAT_PROVIDER_ATTR *pa);

/* The same of endpoints: their limits are those of the IA, their defaults in @ep (or NULL). */
void caps_print_ep(FILE *out, const char *title, const DAT_IA_ATTR *ia, const DAT_EP_PARAM *ep,
		   const DAT_PROVIDER_ATTR *pa);
void caps_json_ep(struct json *j, const char *title, const DAT_IA_ATTR *ia,
		  const DAT_EP_PARAM *ep, const DAT_PROVIDER_ATTR *pa);

#endif
