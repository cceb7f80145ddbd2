/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of CM sockets, which the names of connecting local sockets contain as well. */
#ifndef DOFI_XPORT_CM_ADDRESS_H
#define DOFI_XPORT_CM_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The size of a complete @address, which may be a local name that ends with a NUL. */
socklen_t dofi_cm_address_len(const struct sockaddr *address);
/* Returns a non-blocking socket for @address, or a negative errno. */
int dofi_cm_socket(const struct sockaddr *address);

/* The port of an IPv4 or IPv6 address, which has the same offset in both. */
static inline in_port_t *dofi_cm_port(struct sockaddr_storage *address)
{
	return &((struct sockaddr_in *)address)->sin_port;
}

/* Whether two addresses are equal, without regard to their ports. */
bool dofi_cm_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Whether @address, with any port, is of this host. */
bool dofi_cm_is_here(const struct sockaddr_storage *address);

/*
 * Names the local socket @fd, which connects to @to, by the address and port of a connection over
 * TCP. If no name is free the socket stays without one, and can connect as well.
 */
void dofi_cm_name_socket(int fd, const struct sockaddr_storage *to);
/* Replaces @peer, an untrusted name of @len bytes, with the address in it, or with 127.0.0.1. */
void dofi_cm_show_name(struct sockaddr_storage *peer, socklen_t len);

/* Whether the process at the other end of the connected local socket @fd runs as our user. */
bool dofi_cm_is_same_user(int fd);

#endif
