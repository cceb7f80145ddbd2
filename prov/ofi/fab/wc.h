/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How verbs say that an operation failed. */
#ifndef DOFI_FAB_WC_H
#define DOFI_FAB_WC_H

/*
 * The errno that stands for the work completion status @status, as obj/ep_dto.c reads it, or @err,
 * the fabric's own, where there is none.
 */
int dofi_wc_errno(int status, int err);

#endif
