/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA device or network interface that ia_params name in OFED's form. */

#include "fab/params.h"

#include "base/log.h"
#include "base/names.h"
#include "fab/device.h"
#include "fab/offers.h"
#include "fab/reach.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Devices have one or two ports. */
#define MOST_PORTS 8

struct search {
	const struct dofi_params *params;
	const char *sysfs;
};

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

static bool is_device(const struct search *s)
{
	return exists("%s/infiniband/%s", s->sysfs, s->params->name);
}

static socklen_t address_size(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Returns the port, which the kernel counts from 0 in the file dev_port; 0 if there is no file. */
static unsigned interface_port(const struct search *s, const char *interface)
{
	char path[PATH_MAX];
	unsigned port = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/net/%s/dev_port", s->sysfs, interface);
	f = fopen(path, "re");
	if (!f)
		return 0;
	port = fscanf(f, "%u", &port) == 1 ? port + 1 : 0;
	fclose(f);
	return port;
}

/*
 * On Ethernet the address is a GID of the port. On InfiniBand it is not, but the interface belongs
 * to the device.
 */
static bool port_has(const struct search *s, const struct ifaddrs *a, unsigned port)
{
	const char *name = s->params->name;
	struct sockaddr_storage address = { 0 };
	char devices[PATH_MAX];

	memcpy(&address, a->ifa_addr, address_size(a->ifa_addr));
	snprintf(devices, sizeof(devices), "%s/infiniband", s->sysfs);
	if (dofi_device_port_has(devices, name, port, &address))
		return true;
	return exists("%s/net/%s/device/infiniband/%s", s->sysfs, a->ifa_name, name) &&
	       interface_port(s, a->ifa_name) == port;
}

static bool device_has(const struct search *s, const struct ifaddrs *a)
{
	unsigned port;

	if (s->params->port)
		return port_has(s, a, s->params->port);
	for (port = 1; port <= MOST_PORTS; port++)
		if (port_has(s, a, port))
			return true;
	return false;
}

static bool interface_has(const struct search *s, const struct ifaddrs *a)
{
	return !strcmp(a->ifa_name, s->params->name);
}

static bool is_family(const struct ifaddrs *a, sa_family_t family)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a->ifa_addr;

	if (!a->ifa_addr || a->ifa_addr->sa_family != family)
		return false;
	return family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
}

/* Writes the first address that satisfies @has, IPv4 before IPv6. Returns whether there is one. */
static bool address_find(const struct search *s,
			 bool (*has)(const struct search *, const struct ifaddrs *), char *text,
			 size_t size)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *list, *a;
	bool found = false;
	size_t i;

	if (getifaddrs(&list))
		return false;
	for (i = 0; i < sizeof(families) / sizeof(families[0]) && !found; i++)
		for (a = list; a && !found; a = a->ifa_next)
			found = is_family(a, families[i]) && has(s, a) &&
				!getnameinfo(a->ifa_addr, address_size(a->ifa_addr), text, size,
					     NULL, 0, NI_NUMERICHOST);
	freeifaddrs(list);
	return found;
}

/* Writes the names of the directory infiniband of @sysfs, or "none". */
static void devices_list(const char *sysfs, char *names, size_t size)
{
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	names[0] = 0;
	snprintf(path, sizeof(path), "%s/infiniband", sysfs);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			dofi_names_add(names, size, d->d_name);
	if (dir)
		closedir(dir);
	if (!names[0])
		snprintf(names, size, "none");
}

static int device_find(const struct search *s, struct dofi_params *p, char *why, size_t why_size)
{
	char names[64];

	if (!is_device(s)) {
		devices_list(s->sysfs, names, sizeof(names));
		snprintf(why, why_size, "this machine has no RDMA device \"%s\" (present: %s)",
			 p->name, names);
		return -ENODATA;
	}
	if (p->port && !exists("%s/infiniband/%s/ports/%u", s->sysfs, p->name, p->port)) {
		snprintf(why, why_size, "RDMA device \"%s\" has no port %u", p->name, p->port);
		return -ENODATA;
	}
	if (!address_find(s, device_has, p->address, sizeof(p->address))) {
		snprintf(why, why_size,
			 "no network interface of RDMA device \"%s\"%s has an address",
			 p->name, p->port ? " at this port" : "");
		return -ENODATA;
	}
	strcpy(p->provider, "verbs");
	memcpy(p->domain, p->name, sizeof(p->domain));
	return 0;
}

static bool address_write(const struct addrinfo *a, char *text, size_t size)
{
	return !getnameinfo(a->ai_addr, a->ai_addrlen, text, size, NULL, 0, NI_NUMERICHOST);
}

static bool numeric_take(struct dofi_params *p)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *a;
	bool found;

	if (getaddrinfo(p->name, NULL, &hints, &a))
		return false;
	found = address_write(a, p->address, sizeof(p->address));
	freeaddrinfo(a);
	return found;
}

/*
 * Sets the address of @p to the first one in @list that this host has and others can reach, or for
 * localhost to the first one. A host's own name often has the address 127.0.1.1 alone: then the
 * address is chosen as without a name. Returns false if @list has no address of this host.
 */
static bool own_address_take(struct dofi_params *p, const struct addrinfo *list)
{
	char text[sizeof(p->address)], loopback[sizeof(p->address)] = "";

	for (; list; list = list->ai_next) {
		if (!address_write(list, text, sizeof(text)) || !dofi_address_is_local(text))
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

/*
 * The name of this host, or of one of its addresses, as OFED's provider takes it. Returns false,
 * with @why empty if there is no such name.
 */
static bool host_find(struct dofi_params *p, char *why, size_t why_size)
{
	struct addrinfo *list;
	bool found;
	int ret = dofi_resolve(p->name, RESOLVE_NS, &list);

	why[0] = 0;
	if (ret) {
		if (ret != -ENOENT)
			snprintf(why, why_size, "looking up the address of \"%s\": %s", p->name,
				 strerror(-ret));
		return false;
	}
	found = own_address_take(p, list);
	freeaddrinfo(list);
	if (!found)
		snprintf(why, why_size, "\"%s\" is the name of another host", p->name);
	return found;
}

static int interface_find(const struct search *s, struct dofi_params *p, char *why, size_t why_size)
{
	if (address_find(s, interface_has, p->address, sizeof(p->address)))
		return 0;
	if (is_device(s))
		return device_find(s, p, why, why_size);
	if (exists("%s/net/%s", s->sysfs, p->name)) {
		snprintf(why, why_size, "network interface \"%s\" has no address", p->name);
		return -ENODATA;
	}
	if (numeric_take(p) || host_find(p, why, why_size))
		return 0;
	if (!why[0])
		snprintf(why, why_size,
			 "this machine has no network interface \"%s\", and no host has that name",
			 p->name);
	return -ENODATA;
}

int dofi_named_find(struct dofi_params *params, const char *sysfs, char *why, size_t why_size)
{
	const struct search s = { params, sysfs };

	if (!params->name[0])
		return 0;
	return params->port ? device_find(&s, params, why, why_size) :
			      interface_find(&s, params, why, why_size);
}
