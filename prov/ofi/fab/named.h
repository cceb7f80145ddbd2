/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device or network interface that ia_params name in OFED's form. */
#ifndef DOFI_FAB_NAMED_H
#define DOFI_FAB_NAMED_H

#include "fab/params.h"

/* Where the kernel lists devices and interfaces; tests use another directory. */
#define DOFI_NAMED_SYSFS "/sys/class"

/*
 * Sets provider, domain and address of @params from the name and port in OFED's form, if there are
 * any. Returns 0, or -ENODATA with the reason in @why: this machine has no such device, port or
 * interface, or it has no address.
 */
int dofi_named_find(struct dofi_params *params, const char *sysfs, char *why, size_t why_size);

#endif
