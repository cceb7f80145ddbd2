/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two transports for one IA: peers on this host are reached through its memory, all others by the
 * connected fabric, and the program does not know.
 *
 * The IA is the connected transport's. Each of its service points listens for peers on this host,
 * too (local.h), and who connects to an address of this host tries that first. It goes on by
 * the fabric if nobody listens there, or somebody with whom it shares no memory: another user,
 * another /dev/shm. Another network namespace is another host. An EP has the transport that it was
 * connected by, and its CQ, as long as the connection.
 */
#ifndef DOFI_XPORT_BOTH_H
#define DOFI_XPORT_BOTH_H

#include "obj/xport.h"

/* dofi_xports.add_local */
int dofi_both_add_local(struct dofi_ia *ia);

#endif
