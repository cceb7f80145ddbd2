/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of CM sockets: of TCP, and the names of local ones, which tell an address and a port, too. */
#ifndef DOFI_XPORT_CM_ADDRESS_H
#define DOFI_XPORT_CM_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* @address is whole, also a name that has its NUL behind it. */
socklen_t dofi_cm_address_len(const struct sockaddr *address);
/* A socket for @address, not blocking, or a negative errno. */
int dofi_cm_socket(const struct sockaddr *address);

/* The port of an IPv4 or IPv6 address: in the same place in both. */
static inline in_port_t *dofi_cm_port(struct sockaddr_storage *address)
{
	return &((struct sockaddr_in *)address)->sin_port;
}

/* Whether two addresses are equal, but for their ports. */
bool dofi_cm_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Whether @address, whatever its port, leads to this host. */
bool dofi_cm_is_here(const struct sockaddr_storage *address);

/*
 * Names the local socket @fd, which connects to a peer that the program wants to reach at @to, by the address and port
 * that a connection over TCP would show. Without a name it can connect, too.
 */
void dofi_cm_name_socket(int fd, const struct sockaddr_storage *to);
/*
 * Puts the address and port that the name of who connected tells in the place of that name, of
 * @len bytes, which may be anything; 127.0.0.1 and no port if it tells none.
 */
void dofi_cm_show_name(struct sockaddr_storage *peer, socklen_t len);

/* Whether the process at the other end of the connected local socket @fd is of our user. */
bool dofi_cm_is_same_user(int fd);

#endif
