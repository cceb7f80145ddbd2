/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptors that are passed with bytes through a local socket (SCM_RIGHTS). */
#ifndef DOFI_XPORT_CM_FDS_H
#define DOFI_XPORT_CM_FDS_H

#include "xport/cm/wire.h"

struct dofi_cm_fds {
	unsigned n;
	int fd[DOFI_CM_FDS];
};

/*
 * Like send(), with @fds, which is empty if that succeeds. The caller keeps the descriptors open.
 */
ssize_t dofi_cm_fds_send(int socket, const void *bytes, size_t n, struct dofi_cm_fds *fds);
/*
 * Like recv(). Adds received descriptors to @fds, and closes those that do not fit. A descriptor
 * that may block when it is closed is not added, but closed on another thread.
 */
ssize_t dofi_cm_fds_receive(int socket, void *bytes, size_t size, struct dofi_cm_fds *fds);
void dofi_cm_fds_close(struct dofi_cm_fds *fds);

#endif
