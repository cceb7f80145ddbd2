/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two roles as two hosts: each has a network of its own, and there is a cable between them. */
#ifndef CABLE_H
#define CABLE_H

#include "pair.h"

#include <netinet/in.h>

/* A command of the shell, or the case is skipped. */
void command(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From here on this process, and no other, has a network with nothing but a loopback interface.
 * Before any DAT call, as for the next.
 */
void network_make(void);

/* The same in both roles, and the ends of a cable: "cable" at both. It goes with either of them. */
void cable_lay(struct pair *p);
/* One whose other end nobody has. */
void cable_lay_alone(void);
/* Pulls this role's end. */
void cable_pull(void);
/* Both roles call it, when the server's was pulled. */
void cable_mend(struct pair *p);

/* Addresses on it: 1 is the server's, 2 the client's, others are nobody's. */
struct sockaddr_in cable_address(unsigned number);

#endif
