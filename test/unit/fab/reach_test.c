/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The address that peers can reach, on hosts with recorded interfaces and routes. */

#include "fab/reach.h"

#include "fab/tree.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64];

static void put(const char *path, const char *text)
{
	tree_put(root, path, text);
}

static void init(void)
{
	strcpy(root, "/tmp/reach-XXXXXX");
	cr_assert(mkdtemp(root) != NULL);
	put("lo/operstate", "unknown\n");
}

static void fini(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", root);
	cr_expect_eq(system(command), 0);
}

TestSuite(reach, .init = init, .fini = fini);

static void interface(const char *name, const char *state, const char *mark)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/operstate", name);
	put(path, state);
	if (!mark)
		return;
	snprintf(path, sizeof(path), "%s/%s", name, mark);
	put(path, "");
}

#define ROUTE_HEAD "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\t" \
		   "Window\tIRTT\n"

static int rank(const char *name, const char *address)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct dofi_routes routes;
	const void *sa = &a4;

	if (inet_pton(AF_INET, address, &a4.sin_addr) != 1) {
		cr_assert_eq(inet_pton(AF_INET6, address, &a6.sin6_addr), 1);
		sa = &a6;
	}
	dofi_routes_read(&routes, root, root);
	return dofi_reach_rank(&routes, name, sa);
}

/* Expects these addresses to be preferred in this order: interface, address, ..., NULL. */
static void expect_order(const char *const *list)
{
	int last = -1, next;

	for (; list[0]; list += 2, last = next) {
		next = rank(list[0], list[1]);
		cr_expect(next > last && next < DOFI_REACH_RANKS, "%s %s: %d after %d", list[0],
			  list[1], next, last);
	}
}

#define EXPECT_ORDER(...) expect_order((const char *const[]){ __VA_ARGS__, NULL })

Test(reach, host_of_containers)
{
	interface("eth0", "up\n", "device/vendor");
	interface("docker0", "up\n", "bridge/bridge_id");
	interface("br-1a2b3c", "down\n", "bridge/bridge_id");
	interface("veth12ab", "up\n", NULL);
	put("route", ROUTE_HEAD
	    "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
	    "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n");
	EXPECT_ORDER("eth0", "192.168.1.5", "eth0", "2001:db8::5", "veth12ab", "172.17.0.9",
		     "docker0", "172.17.0.1", "br-1a2b3c", "172.18.0.1",
		     "veth12ab", "fe80::1", "lo", "127.0.0.1", "lo", "::1");
}

Test(reach, host_of_containers_without_a_default_route)
{
	interface("eth0", "up\n", "device/vendor");
	interface("docker0", "up\n", "bridge/bridge_id");
	put("route", ROUTE_HEAD "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n");
	EXPECT_ORDER("eth0", "192.168.1.5", "docker0", "172.17.0.1", "lo", "127.0.0.1");
}

/* Its eth0 is one end of a veth, and has no device. */
Test(reach, container)
{
	interface("eth0", "up\n", NULL);
	interface("dummy0", "unknown\n", NULL);
	put("route", ROUTE_HEAD "eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
	EXPECT_ORDER("eth0", "172.17.0.2", "dummy0", "10.1.0.1", "lo", "127.0.0.1");
}

Test(reach, two_cards_and_the_default_route_with_the_least_metric)
{
	interface("ib0", "up\n", "device/vendor");
	interface("eth0", "up\n", "device/vendor");
	interface("eth1", "up\n", "device/vendor");
	put("route", ROUTE_HEAD
	    "eth1\t00000000\t010A000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
	    "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
	    "ib0\t0000000B\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n");
	EXPECT_ORDER("eth0", "10.0.0.5", "ib0", "11.0.0.5", "ib0", "2001:db8::5");
	cr_expect_eq(rank("eth1", "10.0.10.5"), rank("ib0", "11.0.0.5"));
}

Test(reach, ipv6_only)
{
	interface("eth0", "up\n", "device/vendor");
	interface("eth1", "up\n", "device/vendor");
	put("route", ROUTE_HEAD);
	put("ipv6_route",
	    "fd000001000000000000000000000000 40 00000000000000000000000000000000 00 "
	    "00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n"
	    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	    "fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n"
	    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	    "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n");
	EXPECT_ORDER("eth0", "fd00:1::5", "eth1", "fd00:2::5", "eth0", "fe80::5", "lo", "127.0.0.1",
		     "lo", "::1");
}

Test(reach, vpn_beside_the_default_route)
{
	interface("eth0", "up\n", "device/vendor");
	interface("tun0", "unknown\n", "tun_flags");
	put("route", ROUTE_HEAD
	    "tun0\t00000000\t01000A0A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n"
	    "tun0\t00000080\t01000A0A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n"
	    "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
	EXPECT_ORDER("eth0", "192.168.1.5", "tun0", "10.10.0.2");
}

Test(reach, bond_vlan_and_bridge_of_cards)
{
	interface("eth0", "up\n", "device/vendor");
	interface("bond0", "up\n", "lower_eth0/ifindex");
	interface("bond0.7", "up\n", "lower_bond0/ifindex");
	interface("br0", "up\n", "bridge/bridge_id");
	interface("br0", "up\n", "lower_bond0.7/ifindex");
	interface("virbr0", "up\n", "bridge/bridge_id");
	cr_expect_eq(rank("bond0", "10.0.0.1"), rank("eth0", "10.0.0.1"));
	cr_expect_eq(rank("br0", "10.0.0.1"), rank("eth0", "10.0.0.1"));
	EXPECT_ORDER("bond0.7", "10.0.0.1", "virbr0", "192.168.122.1");
}

/* The next descriptor is the one that is free now. */
static void expect_no_open_directory(void)
{
	const int free_now = dup(STDIN_FILENO);
	int after;

	close(free_now);
	rank("a", "10.0.0.1");
	after = dup(STDIN_FILENO);
	cr_expect_eq(after, free_now);
	close(after);
}

Test(reach, interfaces_that_are_made_of_each_other_have_no_device)
{
	interface("a", "up\n", "lower_b/ifindex");
	interface("b", "up\n", "lower_a/ifindex");
	cr_expect_eq(rank("a", "10.0.0.1"), rank("none", "10.0.0.1"));
	expect_no_open_directory();
}

Test(reach, interface_without_carrier)
{
	interface("eth0", "down\n", "device/vendor");
	interface("wlan0", "up\n", "device/vendor");
	interface("eth1", "lowerlayerdown\n", "device/vendor");
	interface("eth2", "notpresent\n", "device/vendor");
	put("route", ROUTE_HEAD "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
	EXPECT_ORDER("wlan0", "192.168.1.5", "eth0", "192.168.1.6", "eth1", "192.168.1.7",
		     "lo", "127.0.0.1");
	cr_expect_eq(rank("eth2", "192.168.1.7"), rank("eth1", "192.168.1.7"));
}

Test(reach, rejecting_route_is_no_default_route)
{
	interface("eth0", "up\n", NULL);
	put("route", ROUTE_HEAD "eth0\t00000000\t00000000\t0203\t0\t0\t0\t00000000\t0\t0\t0\n");
	cr_expect_eq(rank("eth0", "10.0.0.1"), rank("none", "10.0.0.1"));
}

Test(reach, lines_that_are_no_routes_are_skipped)
{
	interface("eth0", "up\n", "device/vendor");
	put("route", "\n*\neth0\n" ROUTE_HEAD);
	put("ipv6_route", "\nzz\n0000\n");
	EXPECT_ORDER("eth0", "10.0.0.1", "none", "10.0.0.1");
}

Test(reach, only_loopback)
{
	EXPECT_ORDER("lo", "127.0.0.1", "lo", "::1");
	EXPECT_ORDER("lo", "10.9.9.9", "lo", "127.0.1.1");
}

/* A fabric's domain may be no interface, and a sandbox may hide both directories. */
Test(reach, without_the_kernels_files_the_scope_decides)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct dofi_routes routes;
	int global;

	dofi_routes_read(&routes, "/nonexistent", "/nonexistent");
	a4.sin_addr.s_addr = htonl(0x0a000001);
	global = dofi_reach_rank(&routes, "", (struct sockaddr *)&a4);
	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect(global < dofi_reach_rank(&routes, "lo", (struct sockaddr *)&a4));
	cr_expect(dofi_reach_is_loopback((struct sockaddr *)&a4));
	a4.sin_family = AF_UNIX;
	cr_expect(!dofi_reach_is_loopback((struct sockaddr *)&a4));
}

/* Of the machine that runs the test. */
Test(reach, host_has_an_address_that_an_interface_has)
{
	struct sockaddr_storage host = { 0 };
	struct ifaddrs *list, *i;
	bool found = false;

	cr_assert(dofi_reach_host(&host));
	cr_assert_eq(getifaddrs(&list), 0);
	for (i = list; i; i = i->ifa_next)
		found |= i->ifa_addr && i->ifa_addr->sa_family == host.ss_family &&
			 !memcmp(i->ifa_addr, &host, host.ss_family == AF_INET6 ?
				 sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	freeifaddrs(list);
	cr_expect(found);
}
