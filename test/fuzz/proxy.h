/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands between the two ends of side connections and changes bytes of what they send. */
#ifndef FUZZ_PROXY_H
#define FUZZ_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct proxy;

/*
 * A proxy for requests to @to, in a thread of its own, whose changes follow from @seed. With @local the
 * ends connect by AF_UNIX. It fails the program if there can be none.
 */
struct proxy *proxy_open(const struct sockaddr_storage *to, uint64_t qual, bool local, uint64_t seed);
/* The qualifier that leads to it, at the address of @to. */
uint64_t proxy_qual(const struct proxy *proxy);
/* Connections that come from here on are passed on as they are, but for the qualifier; or not. */
void proxy_set_honest(struct proxy *proxy, bool honest);
/* How many messages it has changed. */
unsigned proxy_changes(const struct proxy *proxy);
void proxy_close(struct proxy *proxy);

#endif
