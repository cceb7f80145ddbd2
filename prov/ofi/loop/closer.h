/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Closes descriptors of other processes, where close() may block. */
#ifndef DOFI_LOOP_CLOSER_H
#define DOFI_LOOP_CLOSER_H

#include <stdbool.h>

/*
 * Closes @fd on a thread that does nothing else: the close of a file on a network, or of a socket
 * with SO_LINGER, blocks for as long as its owner likes. Any thread.
 */
void dofi_close_apart(int fd);

/* Whether @fd is a socket that descriptors can be passed over. */
bool dofi_socket_is_local(int fd);

/*
 * Closes a socket on which the caller will receive nothing more. A local socket with unread bytes
 * is closed apart, as that also closes the descriptors that a process passed with the bytes.
 */
void dofi_close_socket(int fd);

#endif
