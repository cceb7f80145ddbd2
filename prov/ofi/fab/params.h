/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry: the fabric that the user selects. */
#ifndef DOFI_FAB_PARAMS_H
#define DOFI_FAB_PARAMS_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

/* The fabric that the text selects; an empty string means "any". */
struct dofi_params {
	char provider[64];
	char domain[64];
	char address[64];	/* numeric, of a local interface */
	char endpoint[64];	/* msg: connected, rdm: connectionless */
	char strict[64];	/* 0 or 1: in place of the API version's DAT_OFI_STRICT */
	/* in OFED's form, "mlx4_0 1" or "ib0 0", a device or interface; else empty */
	char name[64];
	unsigned port;		/* of the device; 0 for an interface, or for any port of a device */
};

/* Parses `key=value` words, or a name and a port. Returns 0, or -EINVAL with a sentence in @why. */
int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size);

/*
 * Looks up @name. Returns 0 and a list for freeaddrinfo(); -ENOENT without an address; -ETIMEDOUT
 * after @limit_ns, and a thread ends the lookup; or -ENOMEM or -EAGAIN without a thread. Any
 * thread.
 */
int dofi_resolve(const char *name, int64_t limit_ns, struct addrinfo **list);

#endif
