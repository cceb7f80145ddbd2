/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's table of this process's descriptors. */
#ifndef DOFI_BASE_FD_TABLE_H
#define DOFI_BASE_FD_TABLE_H

/* Descriptors that the table has room for, if the process may have so many. */
#define DOFI_FD_ROOM 4096

/*
 * Lets the table grow to DOFI_FD_ROOM descriptors, if the process has one thread. With several
 * threads each doubling waits for an RCU grace period, 8 to 32 ms, in the call that needs another
 * descriptor: a hundred connections that were requested at once took 50 ms longer. Call before a
 * thread is started. Preserves errno.
 */
void dofi_fd_table_grow(void);

#endif
