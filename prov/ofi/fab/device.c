/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device of a fabric: its name, its port, and the state of that. */

#include "fab/device.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <string.h>

/* Devices have one or two ports; their tables of GIDs have up to 256 rows. */
#define MOST_PORTS 8
#define MOST_GIDS 256

/* Reads the first line of an attribute of @device. */
static bool attribute_read(const char *sysfs, const struct dofi_device *device,
			   const char *attribute, char *text, size_t size)
{
	char path[PATH_MAX], line[64];
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", sysfs, device->name, attribute);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = fgets(line, sizeof(line), f);
	fclose(f);
	if (found)
		snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
	return found;
}

/* A port of an IPv4 network has a GID that contains the address. */
static struct in6_addr gid_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	struct in6_addr gid = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (address->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)address)->sin6_addr;
	memcpy(&gid.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	return gid;
}

static bool gid_read(const char *sysfs, const struct dofi_device *device, unsigned port,
		     unsigned index, struct in6_addr *gid)
{
	char attribute[48], text[INET6_ADDRSTRLEN];

	snprintf(attribute, sizeof(attribute), "ports/%u/gids/%u", port, index);
	return attribute_read(sysfs, device, attribute, text, sizeof(text)) &&
	       inet_pton(AF_INET6, text, gid) == 1;
}

static bool port_has(const char *sysfs, const struct dofi_device *device, unsigned port,
		     const struct in6_addr *wanted)
{
	struct in6_addr gid;
	unsigned i;

	for (i = 0; i < MOST_GIDS && gid_read(sysfs, device, port, i, &gid); i++)
		if (!memcmp(&gid, wanted, sizeof(gid)))
			return true;
	return false;
}

/* On InfiniBand GIDs are no IP addresses: falls back to the first GID of the first port. */
static unsigned port_find(const char *sysfs, const struct dofi_device *device, struct in6_addr *gid)
{
	unsigned port;

	for (port = 1; port <= MOST_PORTS; port++)
		if (port_has(sysfs, device, port, gid))
			return port;
	return gid_read(sysfs, device, 1, 0, gid) ? 1 : 0;
}

/* The kernel's text is "4: ACTIVE". */
static void state_find(const char *sysfs, struct dofi_device *device)
{
	char attribute[32], text[32];
	const char *word;

	snprintf(attribute, sizeof(attribute), "ports/%s/state", device->port);
	if (!attribute_read(sysfs, device, attribute, text, sizeof(text)))
		return;
	word = strchr(text, ' ');
	if (word)
		snprintf(device->state, sizeof(device->state), "PORT_%.10s", word + 1);
}

void dofi_device_find(const struct fi_info *info, const struct sockaddr_storage *address,
		      const char *sysfs, struct dofi_device *device)
{
	const struct fid_nic *nic = info->nic;
	struct in6_addr gid = gid_of(address);
	unsigned port;

	memset(device, 0, sizeof(*device));
	if (!nic || !nic->device_attr || !nic->device_attr->name)
		return;
	snprintf(device->name, sizeof(device->name), "%s", nic->device_attr->name);
	if (nic->link_attr && nic->link_attr->mtu)
		snprintf(device->mtu, sizeof(device->mtu), "%zu", nic->link_attr->mtu);
	attribute_read(sysfs, device, "node_guid", device->guid, sizeof(device->guid));
	port = port_find(sysfs, device, &gid);
	if (!port)
		return;
	snprintf(device->port, sizeof(device->port), "%u", port);
	inet_ntop(AF_INET6, &gid, device->gid, sizeof(device->gid));
	state_find(sysfs, device);
}

bool dofi_device_port_has(const char *sysfs, const char *name, unsigned port,
			  const struct sockaddr_storage *address)
{
	const struct in6_addr gid = gid_of(address);
	struct dofi_device device;

	snprintf(device.name, sizeof(device.name), "%s", name);
	return port_has(sysfs, &device, port, &gid);
}
