/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses of a host name, with a limit of time: a resolver may wait minutes for its server.
 */
#ifndef DOFI_FAB_RESOLVE_H
#define DOFI_FAB_RESOLVE_H

#include <netdb.h>
#include <stdint.h>

/*
 * Looks up @name, and waits up to @limit_ns for the answer. Returns 0 and a list, which the caller
 * frees with freeaddrinfo(); -ENOENT if the name has no address; -ETIMEDOUT, and a thread then ends
 * the lookup; or -ENOMEM or -EAGAIN if there can be no such thread. Any thread.
 */
int dofi_resolve(const char *name, int64_t limit_ns, struct addrinfo **list);

#endif
