/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps descriptors 0, 1 and 2 from libfabric where the program has closed them. */
#ifndef DOFI_BASE_STD_FDS_H
#define DOFI_BASE_STD_FDS_H

/*
 * Call before anything is opened. A socket with number 1 would receive what the program prints. A
 * closed descriptor is replaced by one that cannot be read or written, and stays open: the program
 * still gets EBADF. Preserves errno. Any thread.
 */
void dofi_std_fds_hold(void);

#endif
