/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device of a fabric: its name, its port, and the state of that. */
#ifndef DOFI_FAB_DEVICE_H
#define DOFI_FAB_DEVICE_H

#include <stdbool.h>
#include <sys/socket.h>

struct fi_info;

/* As text, in the format of OFED's provider; unknown members are empty. */
struct dofi_device {
	char name[64];			/* empty for software, as are all others */
	char port[12];			/* decimal, of 32 bits */
	char state[16];			/* of the port: PORT_ACTIVE, ... */
	char mtu[24];			/* of the path, in bytes */
	char gid[40];			/* of the port */
	char guid[24];			/* of the node */
};

/* Where the kernel lists the devices; tests use another directory. */
#define DOFI_DEVICE_SYSFS "/sys/class/infiniband"

/*
 * Finds the device of @info, and the port of it that has @address. The name and the MTU are from libfabric, the rest
 * from the files in @sysfs.
 */
void dofi_device_find(const struct fi_info *info, const struct sockaddr_storage *address,
		      const char *sysfs, struct dofi_device *device);

/* Whether @address is a GID of the port @port of the device @name, by the files in @sysfs. */
bool dofi_device_port_has(const char *sysfs, const char *name, unsigned port,
			  const struct sockaddr_storage *address);

#endif
