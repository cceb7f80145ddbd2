/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ways of a PZ, and its EPs by number. Progress thread only. */
#ifndef DOFI_XPORT_UD_PZ_H
#define DOFI_XPORT_UD_PZ_H

#include "xport/ud/ud.h"

/*
 * Sets *@upz to the datagram service's state of @pz, which the first call makes. Returns 0 or a
 * negative errno.
 */
int ud_pz_open(struct dofi_pz *pz, struct ud_pz **upz);
/* Opens the net of @upz, if that is not open. Its IA has one. 0 or a negative errno. */
int ud_pz_open_net(struct ud_pz *upz);
/* dofi_datagrams.pz_close. Waits up to UD_PATIENCE_NS until the fabric has all copies. */
void ud_pz_close(struct dofi_pz *pz);

/* Gives @uep a free number, by which datagrams find it. 0, -ENOMEM or -ENOSPC. */
int ud_pz_add(struct ud_pz *upz, struct ud_ep *uep);
/* Hides @uep from datagrams and sweeps. */
void ud_pz_remove(struct ud_ep *uep);

#endif
