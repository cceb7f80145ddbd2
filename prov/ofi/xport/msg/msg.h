/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: one FI_EP_MSG endpoint per connection, libfabric's connection manager.
 */
#ifndef DOFI_XPORT_MSG_MSG_H
#define DOFI_XPORT_MSG_MSG_H

#include "obj/xport.h"

extern const struct dofi_xport dofi_msg_xport;

#endif
