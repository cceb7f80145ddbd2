/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device of a fabric; and the device or interface that ia_params name in OFED's form. */

#include "fab/params.h"

#include "base/log.h"
#include "fab/offers.h"
#include "fab/reach.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Devices have one or two ports; their tables of GIDs have up to 256 rows. */
#define MOST_PORTS 8
#define MOST_GIDS 256

/* Reads the first line of an attribute of @device. */
static bool attribute_read(const char *sysfs, const char *device,
			   const char *attribute, char *text, size_t size)
{
	char path[PATH_MAX], line[64];
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", sysfs, device, attribute);
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
static struct in6_addr gid_of(const struct sockaddr *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	struct in6_addr gid = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (address->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)address)->sin6_addr;
	memcpy(&gid.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	return gid;
}

static bool gid_read(const char *sysfs, const char *device, unsigned port,
		     unsigned index, struct in6_addr *gid)
{
	char attribute[48], text[INET6_ADDRSTRLEN];

	snprintf(attribute, sizeof(attribute), "ports/%u/gids/%u", port, index);
	return attribute_read(sysfs, device, attribute, text, sizeof(text)) &&
	       inet_pton(AF_INET6, text, gid) == 1;
}

static bool port_has(const char *sysfs, const char *device, unsigned port,
		     const struct in6_addr *wanted)
{
	struct in6_addr gid;
	unsigned i;

	for (i = 0; i < MOST_GIDS && gid_read(sysfs, device, port, i, &gid); i++)
		if (!memcmp(&gid, wanted, sizeof(gid)))
			return true;
	return false;
}

void dofi_device_find(const struct fi_info *info, const struct sockaddr_storage *address,
		      const char *sysfs, struct dofi_device *device)
{
	const struct fid_nic *nic = info->nic;
	struct in6_addr gid = gid_of((const struct sockaddr *)address);
	char attribute[32], text[32];
	const char *word;
	unsigned port;

	memset(device, 0, sizeof(*device));
	if (!nic || !nic->device_attr || !nic->device_attr->name)
		return;
	snprintf(device->name, sizeof(device->name), "%s", nic->device_attr->name);
	if (nic->link_attr && nic->link_attr->mtu)
		snprintf(device->mtu, sizeof(device->mtu), "%zu", nic->link_attr->mtu);
	attribute_read(sysfs, device->name, "node_guid", device->guid, sizeof(device->guid));
	for (port = 1; port <= MOST_PORTS; port++)
		if (port_has(sysfs, device->name, port, &gid))
			break;
	/* on InfiniBand GIDs are no IP addresses: falls back to the first GID of the first port */
	if (port > MOST_PORTS) {
		port = 1;
		if (!gid_read(sysfs, device->name, port, 0, &gid))
			return;
	}
	snprintf(device->port, sizeof(device->port), "%u", port);
	inet_ntop(AF_INET6, &gid, device->gid, sizeof(device->gid));
	/* the kernel's text is "4: ACTIVE" */
	snprintf(attribute, sizeof(attribute), "ports/%u/state", port);
	if (!attribute_read(sysfs, device->name, attribute, text, sizeof(text)))
		return;
	word = strchr(text, ' ');
	if (word)
		snprintf(device->state, sizeof(device->state), "PORT_%.10s", word + 1);
}

/* A name and port in OFED's form */

static bool exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool exists(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return !access(path, F_OK);
}

static bool is_device(const struct dofi_params *p, const char *sysfs)
{
	return exists("%s/infiniband/%s", sysfs, p->name);
}

/*
 * On Ethernet the address is a GID of the port. On InfiniBand the interface has the device, and its
 * port, which the kernel counts from 0, in the file dev_port.
 */
static bool is_at_port(const struct dofi_params *p, const char *sysfs, const struct ifaddrs *a,
		       unsigned port)
{
	const struct in6_addr gid = gid_of(a->ifa_addr);
	char path[PATH_MAX];
	unsigned number;
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "%s/infiniband", sysfs);
	if (port_has(path, p->name, port, &gid))
		return true;
	if (!exists("%s/net/%s/device/infiniband/%s", sysfs, a->ifa_name, p->name))
		return false;
	snprintf(path, sizeof(path), "%s/net/%s/dev_port", sysfs, a->ifa_name);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = fscanf(f, "%u", &number) == 1 && number + 1 == port;
	fclose(f);
	return found;
}

static bool device_has(const struct dofi_params *p, const char *sysfs, const struct ifaddrs *a)
{
	unsigned port;

	if (p->port)
		return is_at_port(p, sysfs, a, p->port);
	for (port = 1; port <= MOST_PORTS; port++)
		if (is_at_port(p, sysfs, a, port))
			return true;
	return false;
}

static bool interface_has(const struct dofi_params *p, const char *sysfs, const struct ifaddrs *a)
{
	(void)sysfs;
	return !strcmp(a->ifa_name, p->name);
}

#define ADDRESS_TEXT sizeof(((struct dofi_params *)NULL)->address)

static bool address_write(const struct sockaddr *sa, char text[ADDRESS_TEXT])
{
	return !getnameinfo(sa, dofi_address_size(sa), text, ADDRESS_TEXT, NULL, 0,
			    NI_NUMERICHOST);
}

/* Sets the address of @p to the first that satisfies @has, not link-local, IPv4 before IPv6. */
static bool address_find(struct dofi_params *p, const char *sysfs,
			 bool (*has)(const struct dofi_params *, const char *,
				     const struct ifaddrs *))
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	const struct sockaddr *sa;
	struct ifaddrs *list, *a;
	bool found = false;
	size_t i;

	if (getifaddrs(&list))
		return false;
	for (i = 0; i < sizeof(families) / sizeof(families[0]) && !found; i++)
		for (a = list; a && !found; a = a->ifa_next) {
			sa = a->ifa_addr;
			if (!sa || sa->sa_family != families[i] ||
			    (sa->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(
					&((const struct sockaddr_in6 *)sa)->sin6_addr)))
				continue;
			found = has(p, sysfs, a) && address_write(sa, p->address);
		}
	freeifaddrs(list);
	return found;
}

static int device_find(struct dofi_params *p, const char *sysfs, char *why, size_t why_size)
{
	char names[64] = "", path[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	if (!is_device(p, sysfs)) {
		snprintf(path, sizeof(path), "%s/infiniband", sysfs);
		dir = opendir(path);
		while (dir && (d = readdir(dir)))
			if (d->d_name[0] != '.')
				dofi_names_add(names, sizeof(names), d->d_name);
		if (dir)
			closedir(dir);
		snprintf(why, why_size, "this machine has no RDMA device \"%s\" (present: %s)",
			 p->name, names[0] ? names : "none");
		return -ENODATA;
	}
	if (p->port && !exists("%s/infiniband/%s/ports/%u", sysfs, p->name, p->port)) {
		snprintf(why, why_size, "RDMA device \"%s\" has no port %u", p->name, p->port);
		return -ENODATA;
	}
	if (!address_find(p, sysfs, device_has)) {
		snprintf(why, why_size, "no network interface of RDMA device \"%s\"%s has an "
			 "address", p->name, p->port ? " at this port" : "");
		return -ENODATA;
	}
	strcpy(p->provider, "verbs");
	memcpy(p->domain, p->name, sizeof(p->domain));
	return 0;
}

/*
 * Sets the address of @p to the first in @list that this host has and others reach, for localhost
 * to any. A host's own name often is 127.0.1.1: the address is chosen as without a name then.
 * Returns false if @list has no address of this host.
 */
static bool own_address_take(struct dofi_params *p, const struct addrinfo *list)
{
	char text[ADDRESS_TEXT], loopback[ADDRESS_TEXT] = "";

	for (; list; list = list->ai_next) {
		if (!address_write(list->ai_addr, text) || !dofi_address_is_local(text))
			continue;
		if (!dofi_reach_is_loopback(list->ai_addr) ||
		    !strncmp(p->name, "localhost", strlen("localhost"))) {
			strcpy(p->address, text);
			return true;
		}
		strcpy(loopback, text);
	}
	if (loopback[0])
		dofi_log(DOFI_WARN, DOFI_FAB, "the address of \"%s\" is %s, which other hosts "
			 "cannot reach: another address of this host is taken", p->name, loopback);
	return loopback[0];
}

/* A resolver waits 5 s or more for a server that is down. */
#define RESOLVE_NS (3 * INT64_C(1000000000))

int dofi_named_find(struct dofi_params *p, const char *sysfs, char *why, size_t why_size)
{
	struct sockaddr_storage address;
	struct addrinfo *list;
	int ret;

	if (!p->name[0])
		return 0;
	if (!p->port && address_find(p, sysfs, interface_has))
		return 0;
	if (p->port || is_device(p, sysfs))
		return device_find(p, sysfs, why, why_size);
	if (exists("%s/net/%s", sysfs, p->name)) {
		snprintf(why, why_size, "network interface \"%s\" has no address", p->name);
		return -ENODATA;
	}
	if (dofi_address_parse(p->name, &address) &&
	    address_write((struct sockaddr *)&address, p->address))
		return 0;
	/* the name of this host, or of one of its addresses, as OFED's provider takes it */
	ret = dofi_resolve(p->name, RESOLVE_NS, &list);
	if (ret) {
		if (ret == -ENOENT)
			snprintf(why, why_size, "this machine has no network interface \"%s\", and "
				 "no host has that name", p->name);
		else
			snprintf(why, why_size, "looking up the address of \"%s\": %s", p->name,
				 strerror(-ret));
		return -ENODATA;
	}
	ret = own_address_take(p, list) ? 0 : -ENODATA;
	freeaddrinfo(list);
	if (ret)
		snprintf(why, why_size, "\"%s\" is the name of another host", p->name);
	return ret;
}
