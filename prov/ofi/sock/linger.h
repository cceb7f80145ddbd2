/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sees to it that a peer learns of a connection's end.
 *
 * The kernel tells the peer of a closed socket behind the data that is still to be sent. A peer that
 * posts no receives lets the stream fabrics read no data, and then would never know. So the socket
 * is kept here for a while: as long as the peer takes data it gets it all, and when nothing has
 * moved for DAT_OFI_LINGER_MS the connection is reset, which the peer's kernel sees at once.
 */
#ifndef DOFI_SOCK_LINGER_H
#define DOFI_SOCK_LINGER_H

#include "loop/progress.h"

/*
 * Keeps @fd, a connection's socket that the fabric is about to close; -1 is none. Nothing is
 * promised where there is no descriptor or memory left for it. Progress thread only.
 */
void dofi_linger_begin(struct dofi_progress *progress, int fd);

/*
 * Takes over @fd, a connection's socket, to send the @size bytes at @rest, which are copied, and then
 * to end the connection in the same way. Without memory it ends at once. Progress thread only.
 */
void dofi_linger_adopt(struct dofi_progress *progress, int fd, const void *rest, size_t size);

/* Resets the connection itself: a forked child may have its socket, too, and keep it open. */
void dofi_linger_cut(int fd);

#endif
