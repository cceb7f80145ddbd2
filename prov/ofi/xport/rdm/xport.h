/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connectionless transport. */
#ifndef DOFI_XPORT_RDM_XPORT_H
#define DOFI_XPORT_RDM_XPORT_H

#include "obj/xport.h"

extern const struct dofi_xport dofi_rdm_xport;

#endif
