/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends the connections of sockets without losing data that has been sent.
 *
 * A socket that is closed while its peer still sends answers with a reset. The reset overtakes
 * data that the peer's fabric has not read yet, and libfabric's tcp (1.20, 1.22, 2.3 and newer)
 * discards that data. So a socket here sends the end of its own data, then reads and discards what
 * the peer still sends, and is closed when the peer has ended the connection too.
 *
 * The kernel sends the end of a closed socket after the data. If the peer posts no receives, its
 * fabric reads no data, and never reaches the end. While the peer takes data it gets all, and when
 * no data has moved for DAT_OFI_LINGER_MS the connection is reset, which the peer's kernel sees at
 * once. When the peer's host has all data, the peer may take DAT_OFI_KEEPALIVE_S to read it.
 */
#ifndef DOFI_SOCK_LINGER_H
#define DOFI_SOCK_LINGER_H

#include "loop/progress.h"

/*
 * Called once, on the progress thread: the connection has ended for the caller. @whole: the peer's
 * host has all data, and the peer has ended the connection, or is late. Otherwise it was lost.
 */
typedef void dofi_linger_ended(void *arg, bool whole);

/*
 * Keeps the connection of socket @fd, which the fabric is about to close, and ends it as described
 * above; the fabric must not shut the socket down. Returns NULL if @fd is -1, or if there is no
 * descriptor or memory left. Progress thread only, like all functions here.
 *
 * If @ended is not NULL, it is called with @arg, and the peer may take its time for the data while
 * its host responds. dofi_linger_leave() cancels that call. @acked: no data of the program was
 * outstanding, so a host that does not respond has lost none.
 */
struct dofi_linger *dofi_linger_begin(struct dofi_progress *progress, int fd,
				      dofi_linger_ended *ended, void *arg, bool acked);
/* Whether the peer's host has acknowledged all that was written to socket @fd. Any thread. */
bool dofi_linger_is_acked(int fd);
/* Ends @linger like a connection without a callback, which is not called any more. */
void dofi_linger_leave(struct dofi_linger *linger);

/* Takes over @fd: sends a copy of @rest, and lingers. Without memory the connection ends. */
void dofi_linger_adopt(struct dofi_progress *progress, int fd, const void *rest, size_t size);

/* Resets the connection, also if a forked child has its socket open. */
void dofi_linger_cut(int fd);

/*
 * Closes a socket on which the caller will receive nothing more. Any thread. A local socket with
 * unread bytes is closed on a thread of its own: that also closes the descriptors that a process,
 * perhaps another user's, passed with the bytes, which may block, as with SO_LINGER.
 */
void dofi_close_socket(int fd);

#endif
