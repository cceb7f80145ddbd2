/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Basic types of DAT 1.2 on this platform, and the system headers they need. */

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
typedef uint32_t DAT_UINT32;	/* 32 bits, unsigned */
typedef uint64_t DAT_UINT64;	/* 64 bits, unsigned */
/* the widest unsigned integer */
typedef unsigned long long DAT_UVERYLONG;
typedef int DAT_COUNT;		/* a count; negative values are special */
typedef void *DAT_PVOID;	/* an address in this process */
typedef DAT_UINT64 DAT_PADDR;	/* a physical address; no user-level call takes one */

/*
 * Addresses
 */
typedef struct sockaddr DAT_SOCK_ADDR;		/* the target of a DAT_IA_ADDRESS_PTR */
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;	/* an IPv6 address */

#define DAT_AF_INET	AF_INET	/* address families of the above */
#define DAT_AF_INET6	AF_INET6

#define DAT_OPTIMAL_ALIGNMENT	256	/* buffer alignment, in bytes, that suits every adapter */

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
