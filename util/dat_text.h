/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DAT values as text, and named attributes by name: for datinfo and datperf. */
#ifndef DAT_TEXT_H
#define DAT_TEXT_H

#include "dat_select.h"

#include <stddef.h>

/* "DAT_X" or "DAT_X (DAT_Y)" for a return value; written to @buf, returned. */
const char *dat_text_error(DAT_RETURN ret, char *buf, size_t len);

/*
 * The numeric form of a socket address without its port; "?" for other families than IPv4 and IPv6.
 * Written to @buf, returned.
 */
const char *dat_text_address(const struct sockaddr *addr, char *buf, size_t len);

/* The value of the provider-specific attribute @name, NULL if there is none. */
const char *dat_named_attr(const DAT_PROVIDER_ATTR *attr, const char *name);

#endif
