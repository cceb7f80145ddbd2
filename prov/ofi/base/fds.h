/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps descriptors 0, 1 and 2 from libfabric where the program has closed them. */
#ifndef DOFI_BASE_FDS_H
#define DOFI_BASE_FDS_H



/*
 * Call before anything is opened. A socket with number 1 would receive what the program prints. A
 * closed descriptor is replaced by one that cannot be read or written, and stays open: the program
 * still gets EBADF. Preserves errno. Any thread.
 */
void dofi_std_fds_hold(void);

/* The kernel's table of this process's descriptors. */

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
