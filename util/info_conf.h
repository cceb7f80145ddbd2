/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Renders dat.conf entries for the fabrics of this machine. */
#ifndef INFO_CONF_H
#define INFO_CONF_H

#include <stdio.h>

/*
 * Prints the entries of both API versions: "ofi", which leaves the choice of fabric to the
 * provider; "ofi-<name>" for each of @fabrics, a blank-separated list of libfabric provider names;
 * and one for each of @rdm, the providers with connectionless endpoints: "ofi-<name>-rdm" if a
 * provider has both kinds, "ofi-<layer>" for a layer over tcp. Skips names that would not make a
 * dat.conf word. @libdir is the directory of the provider's libraries; empty leaves it to the
 * dynamic linker. Returns the number of IA names printed.
 */
int conf_render(FILE *out, const char *libdir, const char *fabrics,
		const char *rdm);

#endif
