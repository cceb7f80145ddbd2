/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Faults of the memory that connections within a host share. */
#ifndef UNIT_XPORT_RINGS_FAULT_H
#define UNIT_XPORT_RINGS_FAULT_H

extern _Atomic int link_memfd_fault;	/* errno of memfd_create(); 0: it works */

#endif
