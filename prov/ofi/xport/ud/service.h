/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The datagram service of all fabrics. */
#ifndef DOFI_XPORT_UD_SERVICE_H
#define DOFI_XPORT_UD_SERVICE_H

#include "obj/datagram.h"

extern const struct dofi_datagrams dofi_ud_datagrams;

#endif
