/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which address of this host peers on other hosts are likely to reach. */

#include "fab/reach.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Flags of a route (linux/route.h, linux/ipv6_route.h). */
#define UP 0x1u
#define REJECT 0x200u

/* An interface below a bond, a VLAN or a bridge may have others below it. */
#define DEEPEST 4

static FILE *file_open(const char *dir, const char *name, const char *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, file);
	return fopen(path, "re");
}

/*
 * Writes the interface of the default route with the least metric. The kernel's last route of IPv6
 * rejects all that no other takes.
 */
static void default_route(const char *procfs, bool ipv6, char *interface)
{
	unsigned to, length, flags, metric, least = UINT_MAX;
	FILE *f = file_open(procfs, ipv6 ? "ipv6_route" : "route", "");
	char line[256], to6[33], name[IF_NAMESIZE];
	int n;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (ipv6)
			n = sscanf(line, "%32s %x %*s %*x %*s %x %*x %*x %x %15s", to6, &length,
				   &metric, &flags, name);
		else
			n = sscanf(line, "%15s %x %*x %x %*u %*u %u %x", name, &to, &flags,
				   &metric, &length);
		if (n == 5 && !length && (ipv6 ? strspn(to6, "0") == 32 : !to) && flags & UP &&
		    !(flags & REJECT) && metric < least) {
			least = metric;
			strcpy(interface, name);
		}
	}
	fclose(f);
}

void dofi_routes_read(struct dofi_routes *routes, const char *sysfs, const char *procfs)
{
	*routes = (struct dofi_routes){ .sysfs = sysfs };
	default_route(procfs, false, routes->interface[0]);
	default_route(procfs, true, routes->interface[1]);
}

static bool has(const struct dofi_routes *routes, const char *interface, const char *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", routes->sysfs, interface, file);
	return !access(path, F_OK);
}

/* Returns whether a device is behind @interface, or behind one that it is made of. */
static bool has_device(const struct dofi_routes *routes, const char *interface, int depth)
{
	static const char lower[] = "lower_";
	char path[PATH_MAX];
	bool found = has(routes, interface, "device");
	struct dirent *d;
	DIR *dir;

	if (found || depth == DEEPEST)
		return found;
	snprintf(path, sizeof(path), "%s/%s", routes->sysfs, interface);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir)))
		if (!strncmp(d->d_name, lower, sizeof(lower) - 1))
			found = has_device(routes, d->d_name + sizeof(lower) - 1, depth + 1);
	if (dir)
		closedir(dir);
	return found;
}

/* In this order they are preferred. */
enum { DEFAULT_ROUTE, DEVICE, OTHER, BRIDGE_OR_TUNNEL, KINDS };

enum { GLOBAL, LINK_LOCAL, LOOPBACK, SCOPES };

static int scope_of(const struct sockaddr *sa)
{
	const struct in6_addr *a6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;
	in_addr_t a4;

	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(a6) ? LOOPBACK :
		       IN6_IS_ADDR_LINKLOCAL(a6) ? LINK_LOCAL : GLOBAL;
	a4 = ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr);
	return a4 >> 24 == 127 ? LOOPBACK : a4 >> 16 == (169u << 8 | 254) ? LINK_LOCAL : GLOBAL;
}

bool dofi_reach_is_loopback(const struct sockaddr *sa)
{
	return (sa->sa_family == AF_INET || sa->sa_family == AF_INET6) && scope_of(sa) == LOOPBACK;
}

_Static_assert(SCOPES * 2 * KINDS * 2 <= DOFI_REACH_RANKS, "all ranks are different");

int dofi_reach_rank(const struct dofi_routes *routes, const char *interface,
		    const struct sockaddr *sa)
{
	FILE *f = file_open(routes->sysfs, interface, "/operstate");
	char state[32] = "";
	bool down;
	int kind;

	/* the kernel does not know the state of some, as of a tunnel */
	if (f && !fgets(state, sizeof(state), f))
		state[0] = 0;
	if (f)
		fclose(f);
	down = !strncmp(state, "down", 4) || !strncmp(state, "lowerlayerdown", 14) ||
	       !strncmp(state, "notpresent", 10);
	if (!interface[0])
		kind = OTHER;
	else if (!strcmp(interface, routes->interface[0]) ||
		 !strcmp(interface, routes->interface[1]))
		kind = DEFAULT_ROUTE;
	else if (has_device(routes, interface, 0))
		kind = DEVICE;
	else if (has(routes, interface, "bridge") || has(routes, interface, "tun_flags"))
		kind = BRIDGE_OR_TUNNEL;
	else
		kind = OTHER;
	return ((scope_of(sa) * 2 + down) * KINDS + kind) * 2 +
	       (sa->sa_family == AF_INET6);
}

socklen_t dofi_address_size(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

bool dofi_reach_host(struct sockaddr_storage *address)
{
	int rank, best = DOFI_REACH_RANKS;
	struct dofi_routes routes;
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return false;
	dofi_routes_read(&routes, DOFI_REACH_SYSFS, DOFI_REACH_PROCFS);
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr *sa = i->ifa_addr;

		if (!sa || !(i->ifa_flags & IFF_UP) ||
		    (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
			continue;
		rank = dofi_reach_rank(&routes, i->ifa_name, sa);
		if (rank < best) {
			best = rank;
			memcpy(address, sa, dofi_address_size(sa));
		}
	}
	freeifaddrs(list);
	return best < DOFI_REACH_RANKS;
}
