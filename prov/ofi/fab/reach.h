/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which address of this host peers on other hosts are likely to reach.
 *
 * libfabric lists the addresses of all interfaces, fast interfaces first, where a virtual bridge
 * counts as fast. A bridge of containers has the same address on each host, so peers that got it
 * from this host would connect to themselves. dat_ofi(7) has the order of preference.
 */
#ifndef DOFI_FAB_REACH_H
#define DOFI_FAB_REACH_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Where the kernel describes interfaces and routes; tests use another directory. */
#define DOFI_REACH_SYSFS "/sys/class/net"
#define DOFI_REACH_PROCFS "/proc/net"

/* The interfaces of the default routes of IPv4 and IPv6; "" where there is none. */
struct dofi_routes {
	const char *sysfs;
	char interface[2][IF_NAMESIZE];
};

void dofi_routes_read(struct dofi_routes *routes, const char *sysfs, const char *procfs);

/* Ranks are below this. */
#define DOFI_REACH_RANKS 64

/*
 * Returns the rank of the IPv4 or IPv6 address @sa of @interface: a lower one is preferred. By
 * scope first: global, link-local, loopback; then by interface: one with a carrier; the one of the
 * default route; one with a device behind it; others; bridges and tunnels; then IPv4 before IPv6.
 */
int dofi_reach_rank(const struct dofi_routes *routes, const char *interface,
		    const struct sockaddr *sa);

bool dofi_reach_is_loopback(const struct sockaddr *sa);
/* Returns the size of an IPv4 or IPv6 address. */
socklen_t dofi_address_size(const struct sockaddr *sa);

/* Writes the address of this host with the lowest rank. Returns false if no interface is up. */
bool dofi_reach_host(struct sockaddr_storage *address);

#endif
