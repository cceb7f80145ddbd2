/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two roles as two hosts: each has its own network namespace, and a cable connects the two. */
#ifndef CABLE_H
#define CABLE_H

#include "pair.h"

#include <netinet/in.h>

/* Runs a shell command; skips the case if the command fails. */
void command(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Moves this process alone into a new network namespace that has only a loopback interface. Like
 * cable_lay() and cable_lay_alone(), call it before any DAT call.
 */
void network_make(void);

/*
 * Calls network_make() in both roles and connects them by a cable, the interface "cable" in each.
 * The cable ends with either role.
 */
void cable_lay(struct pair *p);
/* A cable with an unused other end. */
void cable_lay_alone(void);
/* Takes this role's end of the cable down. */
void cable_pull(void);
/* Repairs the cable after cable_pull() in the server; both roles call it. */
void cable_mend(struct pair *p);

/* Addresses on the cable: 1 is the server's, 2 the client's; no host has any other number. */
struct sockaddr_in cable_address(unsigned number);

#endif
