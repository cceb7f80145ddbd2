/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry, which select a fabric, and devices. */
#ifndef DOFI_FAB_PARAMS_H
#define DOFI_FAB_PARAMS_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct fi_info;

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
 * after @limit_ns, and a thread ends the lookup; or -ENOMEM or -EAGAIN. Any thread.
 */
int dofi_resolve(const char *name, int64_t limit_ns, struct addrinfo **list);

/* The RDMA device of a fabric: its name, its port, and the port's state. */

/* As text, in the format of OFED's provider. Unknown members are empty, on software all. */
struct dofi_device {
	char name[64];
	char port[12];			/* decimal, of 32 bits */
	char state[16];			/* of the port: PORT_ACTIVE, ... */
	char mtu[24];			/* of the path, in bytes */
	char gid[40];			/* of the port */
	char guid[24];			/* of the node */
};

/* Where the kernel lists the devices; tests use another directory. */
#define DOFI_DEVICE_SYSFS "/sys/class/infiniband"

/* Finds the device of @info, by libfabric, and its port that has @address, by @sysfs. */
void dofi_device_find(const struct fi_info *info, const struct sockaddr_storage *address,
		      const char *sysfs, struct dofi_device *device);

/* Where the kernel lists devices and interfaces; tests use another directory. */
#define DOFI_NAMED_SYSFS "/sys/class"

/* Resolves a name and port in OFED's form, if any. Returns 0, or -ENODATA with a reason in @why. */
int dofi_named_find(struct dofi_params *params, const char *sysfs, char *why, size_t why_size);

#endif
