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

/* How a public symbol is declared, and its calling convention: nothing special on Linux. */
#ifndef DAT_EXPORT
#define DAT_EXPORT	extern
#endif
#ifndef DAT_API
#define DAT_API
#endif

/* An IA handle as a plain number and back. */
#define DAT_IA_HANDLE_TO_UL(a)	((unsigned long)(a))
#define DAT_UL_TO_IA_HANDLE(a)	((DAT_IA_HANDLE)(a))

/*
 * Scalars
 */
typedef u_int32_t DAT_UINT32;
typedef u_int64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef int DAT_COUNT;
typedef void *DAT_PVOID;
typedef DAT_UINT64 DAT_PADDR;
typedef int DAT_FD;

/*
 * Addresses
 */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET	AF_INET
#define DAT_AF_INET6	AF_INET6

typedef struct dat_comm {
	int domain;
	int type;
	int protocol;
} DAT_COMM;

#define DAT_OPTIMAL_ALIGNMENT	0x100

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
