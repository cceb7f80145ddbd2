/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device of a fabric: its name, its port, and the port's state. */
#ifndef DOFI_FAB_DEVICE_H
#define DOFI_FAB_DEVICE_H

#include <stddef.h>
#include <sys/socket.h>

struct dofi_params;
struct fi_info;

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

/*
 * Sets provider, domain and address of @params from a name and port in OFED's form, if any. Returns
 * 0, or -ENODATA with the reason in @why.
 */
int dofi_named_find(struct dofi_params *params, const char *sysfs, char *why, size_t why_size);

#endif
