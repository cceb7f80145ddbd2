/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device below a fabric: its name, its port, and how that is. */
#ifndef DOFI_FAB_DEVICE_H
#define DOFI_FAB_DEVICE_H

#include <stdbool.h>
#include <sys/socket.h>

struct fi_info;

/* As text, in the words of OFED's provider; empty what is not known. */
struct dofi_device {
	char name[64];			/* empty: software, and so is all else */
	char port[12];			/* decimal, of 32 bits */
	char state[16];			/* of the port: PORT_ACTIVE, ... */
	char mtu[24];			/* of the path, in bytes */
	char gid[40];			/* by which peers know the port */
	char guid[24];			/* of the node */
};

/* Where the kernel tells of such devices; tests have another. */
#define DOFI_DEVICE_SYSFS "/sys/class/infiniband"

/*
 * The device of @info, as it is now; its port is the one that has @address. Libfabric tells the
 * name and the MTU, the kernel the rest, which @sysfs is the directory of.
 */
void dofi_device_find(const struct fi_info *info, const struct sockaddr_storage *address,
		      const char *sysfs, struct dofi_device *device);

#endif
