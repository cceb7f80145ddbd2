/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two transports for one IA: shared memory for peers on this host, and the connected fabric for all
 * others.
 *
 * The IA is the connected transport's. Each of its service points listens for peers on this host as
 * well (xport/cm/listen.h), and a connection to an address of this host tries shared memory first.
 * It uses the fabric if the request fails there: without a listener, or with a peer that cannot
 * share memory: another user, another layout of the rings, or no descriptors. Another network
 * namespace is another host.
 * An EP has the transport of its connection, and that transport's CQ, as long as it is connected.
 */
#ifndef DOFI_XPORT_LOCAL_OR_NET_H
#define DOFI_XPORT_LOCAL_OR_NET_H

#include "obj/xport.h"

/* dofi_xports.add_local */
int dofi_local_or_net_add(struct dofi_ia *ia);

#endif
