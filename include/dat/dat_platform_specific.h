/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Basic types of DAT @V@ on this platform, and the system headers they need. */

#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>

/* Mark a parameter as read, written, or both; they expand to nothing. */

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/*
 * Scalars
 */
typedef u_int32_t DAT_UINT32;
typedef u_int64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef int DAT_COUNT;
typedef void *DAT_PVOID;
typedef DAT_UINT64 DAT_PADDR;

/*
 * Addresses
 */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET	AF_INET
#define DAT_AF_INET6	AF_INET6

#define DAT_OPTIMAL_ALIGNMENT	0x100

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
