/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices and interfaces in OFED's form, with the real interfaces of this machine and a copy of the
 * kernel's directory that the test makes.
 */

#include "fab/params.h"

#include "fab/tree.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char sysfs[64];
static struct dofi_params params;
static char why[160];

static void put(const char *path, const char *text)
{
	tree_put(sysfs, path, text);
}

/* The interfaces, by the linker's --wrap */

static struct ifaddrs *interfaces;	/* NULL: this machine's */

int __real_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list)
{
	*list = interfaces;
	return interfaces ? 0 : __real_getifaddrs(list);
}

void __real_freeifaddrs(struct ifaddrs *list);
void __wrap_freeifaddrs(struct ifaddrs *list);
void __wrap_freeifaddrs(struct ifaddrs *list)
{
	if (list != interfaces)
		__real_freeifaddrs(list);
}

/* A device with two ports; the second has the address of the loopback interface. */
static void init(void)
{
	strcpy(sysfs, "/tmp/named-XXXXXX");
	cr_assert(mkdtemp(sysfs) != NULL);
	put("infiniband/mlx4_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	put("infiniband/mlx4_0/ports/2/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0002\n");
	put("infiniband/mlx4_0/ports/2/gids/1", "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
}

static void fini(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	cr_expect_eq(system(command), 0);
}

TestSuite(named, .init = init, .fini = fini);

static int find(const char *text)
{
	why[0] = 0;
	cr_assert_eq(dofi_params_parse(text, &params, why, sizeof(why)), 0, "%s", why);
	return dofi_named_find(&params, sysfs, why, sizeof(why));
}

static void expect(const char *provider, const char *domain, const char *address)
{
	cr_expect_str_eq(params.provider, provider);
	cr_expect_str_eq(params.domain, domain);
	cr_expect_str_eq(params.address, address);
}

Test(named, words_stay)
{
	cr_expect_eq(find("provider=tcp domain=lo"), 0);
	expect("tcp", "lo", "");
}

Test(named, interface_gives_its_address)
{
	cr_expect_eq(find("lo 0"), 0, "%s", why);
	expect("", "", "127.0.0.1");
}

Test(named, interface_gives_its_ipv4_address_behind_others)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct ifaddrs last = { .ifa_name = "ib7", .ifa_addr = (struct sockaddr *)&in };
	struct ifaddrs second = {
		.ifa_name = "ib7", .ifa_addr = (struct sockaddr *)&in6, .ifa_next = &last,
	};
	struct ifaddrs first = { .ifa_name = "ib7", .ifa_next = &second };	/* no address */

	in.sin_addr.s_addr = htonl(0x0a000001);
	interfaces = &first;
	cr_expect_eq(find("ib7 0"), 0, "%s", why);
	expect("", "", "10.0.0.1");
}

Test(named, address_in_place_of_an_interface)
{
	cr_expect_eq(find("127.0.0.1 0"), 0, "%s", why);
	expect("", "", "127.0.0.1");
}

Test(named, own_host_name_in_place_of_an_interface)
{
	char own[HOST_NAME_MAX + 4] = "";

	cr_assert_eq(gethostname(own, sizeof(own) - 3), 0);
	strcat(own, " 0");
	/* the name of a test machine may have no address */
	cr_expect(find(own) ? strstr(why, "no network interface") != NULL :
			      strncmp(params.address, "127.", 4) != 0, "%s", why);
}

Test(named, port_of_a_device_by_its_address)
{
	cr_expect_eq(find("mlx4_0 2"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

Test(named, port_without_a_number_is_any)
{
	cr_expect_eq(find("mlx4_0 0"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

/* On InfiniBand the interface is found by its device and the number of its port. */
Test(named, port_of_a_device_by_its_interface)
{
	put("net/lo/device/infiniband/mlx4_0/node_type", "");
	put("net/lo/dev_port", "0\n");
	cr_expect_eq(find("mlx4_0 1"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

static void missing(const char *text, const char *reason)
{
	cr_expect_eq(find(text), -ENODATA, "%s", text);
	cr_expect(strstr(why, reason), "%s: %s", text, why);
}

Test(named, port_without_an_address)
{
	missing("mlx4_0 1", "\"mlx4_0\" at this port has an address");
}
Test(named, missing_port)
{
	missing("mlx4_0 3", "\"mlx4_0\" has no port 3");
}
Test(named, missing_device)
{
	missing("mlx5_0 1", "no RDMA device \"mlx5_0\" (present: mlx4_0)");
}
Test(named, missing_interface)
{
	missing("ib7 0", "no network interface \"ib7\"");
}

Test(named, interface_without_an_address)
{
	put("net/ib7/dev_port", "0\n");
	missing("ib7 0", "network interface \"ib7\" has no address");
}

Test(named, no_device_at_all)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s/infiniband", sysfs);
	cr_expect_eq(system(command), 0);
	missing("mlx4_0 1", "(present: none)");
}
