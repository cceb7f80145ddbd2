/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DAT values as text, and named attributes by name: for datinfo and datperf. */
#include "dat_text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

const char *dat_text_error(DAT_RETURN ret, char *buf, size_t len)
{
	const char *major = NULL, *minor = NULL;

	if (dat_strerror(ret, &major, &minor) != DAT_SUCCESS || !major)
		snprintf(buf, len, "DAT error 0x%x", (unsigned int)ret);
	else if (minor && *minor)
		snprintf(buf, len, "%s (%s)", major, minor);
	else
		snprintf(buf, len, "%s", major);
	return buf;
}

const char *dat_text_address(const struct sockaddr *addr, char *buf, size_t len)
{
	const void *host = NULL;

	if (addr && addr->sa_family == AF_INET)
		host = &((const struct sockaddr_in *)addr)->sin_addr;
	else if (addr && addr->sa_family == AF_INET6)
		host = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	if (!host || !inet_ntop(addr->sa_family, host, buf, (socklen_t)len))
		snprintf(buf, len, "?");
	return buf;
}

const char *dat_named_attr(const DAT_PROVIDER_ATTR *attr, const char *name)
{
	const DAT_NAMED_ATTR *named = attr->provider_specific_attr;
	int i;

	for (i = 0; i < attr->num_provider_specific_attr; i++)
		if (!strcmp(named[i].name, name))
			return named[i].value;
	return NULL;
}
