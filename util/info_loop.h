/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connects two endpoints of an open IA with each other, and exchanges messages. */
#ifndef INFO_LOOP_H
#define INFO_LOOP_H

#include "dat_select.h"
#include "info_child.h"

#include <stdbool.h>
#include <stddef.h>

#define LOOP_MESSAGES 1000 /* an even number: half of them in each direction */

/*
 * Connects two EPs of @ia over its own address at @address, and sends LOOP_MESSAGES of 8 bytes in
 * turns. Returns true, with the time per message in *@us; or false, with the failure in @why.
 * Reports each step to @c, which limits the time of all waits. Frees nothing: the process ends.
 */
bool loop_run(struct child *c, DAT_IA_HANDLE ia, DAT_IA_ADDRESS_PTR address, double *us, char *why,
	      size_t len);

#endif
