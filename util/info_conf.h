/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Renders dat.conf entries for the fabrics of this machine. */
#ifndef INFO_CONF_H
#define INFO_CONF_H

#include <stdio.h>

/*
 * Prints the entries of both API versions: "ofi", which leaves the choice to
 * the provider, one "ofi-<name>" for each of @fabrics, a list of libfabric
 * provider names separated by blanks, and one for each of @rdm, those with
 * connectionless endpoints: "ofi-<name>-rdm" if it has both kinds, "ofi-<layer>"
 * for a layer over tcp. Names that would not make a dat.conf word are left out. @libdir is where the provider's libraries are; empty to
 * leave that to the dynamic linker. Returns the number of IA names printed.
 */
int conf_render(FILE *out, const char *libdir, const char *fabrics,
		const char *rdm);

#endif
