/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the capabilities of an IA, which its provider reports as named attributes. */
#ifndef INFO_CAPS_H
#define INFO_CAPS_H

#include "info_attr.h"

/* Whether a named attribute only describes another attribute. */
bool caps_is_note(const char *name);

/* Prints the properties of the IA's transport that the provider reports. */
void caps_print_transport(FILE *out, const DAT_PROVIDER_ATTR *pa);

/* Print a table of the attributes in the structure at @base, under a title. */
void caps_print(FILE *out, const char *title, const struct attr *attrs, int n, const void *base,
		const DAT_PROVIDER_ATTR *pa);
void caps_json(struct json *j, const char *title, const struct attr *attrs, int n,
	       const void *base, const DAT_PROVIDER_ATTR *pa);

/* Print a table of endpoint attributes, with limits from @ia and defaults from @ep (or NULL). */
void caps_print_ep(FILE *out, const char *title, const DAT_IA_ATTR *ia, const DAT_EP_PARAM *ep,
		   const DAT_PROVIDER_ATTR *pa);
void caps_json_ep(struct json *j, const char *title, const DAT_IA_ATTR *ia,
		  const DAT_EP_PARAM *ep, const DAT_PROVIDER_ATTR *pa);

#endif
