/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A proxy between the two ends of CM sockets, which changes the bytes of their messages. */
#ifndef FUZZ_PROXY_H
#define FUZZ_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct proxy;

/*
 * Starts a proxy in a thread of its own, for requests to @to; @seed selects its changes. With
 * @local the ends connect by AF_UNIX. Ends the program if the proxy cannot be started.
 */
struct proxy *proxy_open(const struct sockaddr_storage *to, uint64_t qual, bool local,
			 uint64_t seed);
/* The qualifier of the proxy, at the address of @to. */
uint64_t proxy_qual(const struct proxy *proxy);
/* Whether connections accepted from now on are forwarded unchanged, except for the qualifier. */
void proxy_set_honest(struct proxy *proxy, bool honest);
/* The number of changed messages. */
unsigned proxy_changes(const struct proxy *proxy);
void proxy_close(struct proxy *proxy);

#endif
