/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ensures that a peer learns of a connection's end.
 *
 * The kernel sends the end of a closed socket after the data. If the peer posts no receives, its
 * fabric reads no data, and never reaches the end. So the socket is kept open here: while the peer
 * takes data it gets all, and when no data has moved for DAT_OFI_LINGER_MS the connection is reset,
 * which the peer's kernel sees at once.
 */
#ifndef DOFI_SOCK_LINGER_H
#define DOFI_SOCK_LINGER_H

#include "loop/progress.h"

/*
 * Keeps the connection of socket @fd, which the fabric is about to close; does nothing for -1, or
 * if there is no descriptor or memory left. Progress thread only.
 */
void dofi_linger_begin(struct dofi_progress *progress, int fd);

/*
 * Takes over socket @fd, sends the @size bytes at @rest, which are copied, and then ends the
 * connection like dofi_linger_begin(). Without memory the connection ends at once. Progress thread
 * only.
 */
void dofi_linger_adopt(struct dofi_progress *progress, int fd, const void *rest, size_t size);

/* Resets the connection, also if a forked child has its socket open. */
void dofi_linger_cut(int fd);

#endif
