/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries every IA, checks the machine, and explains what does not work. */
#ifndef INFO_DOCTOR_H
#define INFO_DOCTOR_H

#include "info_registry.h"

#include <stdbool.h>
#include <stdio.h>

/* The IA that programs are expected to open; if it is not registered, the first IA is. */
#define DOCTOR_DEFAULT "ofi"

/*
 * Reads the registry, and prints the state of each IA, or of @device alone, and of the machine.
 * Returns whether @device works, or if it is NULL the default IA.
 */
bool doctor(FILE *out, const char *device);

#endif
