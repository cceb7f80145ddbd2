/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries every IA, checks the machine, and explains failures. */
#ifndef INFO_DOCTOR_H
#define INFO_DOCTOR_H

#include "info_registry.h"

#include <stdbool.h>
#include <stdio.h>

/* The IA that programs are expected to open; if it is not registered, the first IA is. */
#define DOCTOR_DEFAULT "ofi"

/* A datperf server. */
struct doctor_peer {
	const char *host;	/* a name or a numeric address, NULL: there is none */
	unsigned port;		/* the server's qualifier */
};

/*
 * Reads the registry, and prints the state of each IA, or of @device alone, and of the machine; or
 * with a host in @peer the state of the path to that. Returns whether @device works, or if it is
 * NULL the default IA.
 */
bool doctor(FILE *out, const char *device, const struct doctor_peer *peer);

#endif
