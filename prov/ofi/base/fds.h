/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps descriptors 0, 1 and 2 from libfabric where the program has closed them. */
#ifndef DOFI_BASE_FDS_H
#define DOFI_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Call before anything is opened: a socket with number 1 would receive the program's output. A
 * closed descriptor is replaced for good by one that gives EBADF as well. Preserves errno.
 */
void dofi_std_fds_hold(void);

/* The kernel's table of this process's descriptors. */

/* Descriptors that the table has room for, if the process may have so many. */
#define DOFI_FD_ROOM 4096

/*
 * Lets the table grow to DOFI_FD_ROOM descriptors, if the process has one thread. With several,
 * each doubling waits 8 to 32 ms for an RCU grace period: a hundred connections at once took 50 ms
 * longer. Call before a thread starts. Preserves errno.
 */
void dofi_fd_table_grow(void);

/* Descriptors that libfabric opens */

struct dofi_fds {
	int *fd;
	size_t n;
};

/* Adds @fd, unless memory is short. Release with free(fds->fd). */
void dofi_fds_add(struct dofi_fds *fds, int fd);

/*
 * Calls @each for each descriptor in the epoll set @set and in the sets within. If the process has
 * no descriptor left to read the set, closes *@spare, which is -1 afterwards; @spare may be null.
 */
void dofi_epoll_each(int set, int *spare, void (*each)(void *arg, int fd, bool is_socket),
		     void *arg);

/*
 * Makes exec close @set, an epoll set of libfabric, and all that it contains. libfabric opens
 * descriptors without the flag; a program that this process starts would keep its connections and
 * ports open after its death.
 */
void dofi_epoll_close_on_exec(int set);

#endif
