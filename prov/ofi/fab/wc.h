/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work completion statuses of verbs. */
#ifndef DOFI_FAB_WC_H
#define DOFI_FAB_WC_H

/*
 * Returns the errno for the work completion status @status, or @err, the fabric's own, if there is
 * none for it.
 */
int dofi_wc_errno(int status, int err);

#endif
