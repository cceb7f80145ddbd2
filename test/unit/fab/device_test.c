/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report on an RDMA device, read from a copy of the kernel's directory that the test
 * makes.
 */

#include "fab/params.h"

#include "fab/fake.h"
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
static struct fi_info *info;
static struct fi_device_attr attr = { .name = (char *)"rxe0" };
static struct sockaddr_storage address;
static struct dofi_device device;

/* Writes @text to @path below the device's directory. */
static void attribute_write(const char *path, const char *text)
{
	char below[128];

	snprintf(below, sizeof(below), "rxe0/%s", path);
	tree_put(sysfs, below, text);
}

static void here(const char *ip)
{
	memset(&address, 0, sizeof(address));
	address.ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	inet_pton(address.ss_family, ip,
		  address.ss_family == AF_INET6 ?
			  (void *)&((struct sockaddr_in6 *)&address)->sin6_addr :
			  (void *)&((struct sockaddr_in *)&address)->sin_addr);
}

static void find(void)
{
	dofi_device_find(info, &address, sysfs, &device);
}

static void init(void)
{
	strcpy(sysfs, "/tmp/device-XXXXXX");
	cr_assert(mkdtemp(sysfs) != NULL);
	info = fake_info("verbs", "10.77.0.1");
	fake_nic(info, 1, 0);
	info->nic->device_attr = &attr;
	info->nic->link_attr->mtu = 4096;
	here("10.77.0.1");
	attribute_write("node_guid", "2408:b3ff:fee7:9d3a\n");
	attribute_write("ports/1/state", "1: DOWN\n");
	attribute_write("ports/1/gids/0", "fe80:0000:0000:0000:2408:b3ff:fee7:9d3a\n");
	attribute_write("ports/2/state", "4: ACTIVE\n");
	attribute_write("ports/2/gids/0", "fe80:0000:0000:0000:2408:b3ff:fee7:9d3b\n");
	attribute_write("ports/2/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
}

static void fini(void)
{
	char command[96];

	info->nic->device_attr = NULL;
	fi_freeinfo(info);
	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	cr_expect_eq(system(command), 0);
}

TestSuite(device, .init = init, .fini = fini);

Test(device, software_has_none)
{
	struct fid_nic *nic = info->nic;

	info->nic = NULL;
	find();
	cr_expect_str_eq(device.name, "");
	cr_expect_str_eq(device.port, "");
	info->nic = nic;
	info->nic->device_attr = NULL;
	find();
	cr_expect_str_eq(device.name, "");
}

Test(device, its_port_has_the_address)
{
	find();
	cr_expect_str_eq(device.name, "rxe0");
	cr_expect_str_eq(device.port, "2");
	cr_expect_str_eq(device.state, "PORT_ACTIVE");
	cr_expect_str_eq(device.mtu, "4096");
	cr_expect_str_eq(device.gid, "::ffff:10.77.0.1");
	cr_expect_str_eq(device.guid, "2408:b3ff:fee7:9d3a");
}

Test(device, its_port_has_the_ipv6_address)
{
	here("fe80::2408:b3ff:fee7:9d3a");
	find();
	cr_expect_str_eq(device.port, "1");
	cr_expect_str_eq(device.state, "PORT_DOWN");
	cr_expect_str_eq(device.gid, "fe80::2408:b3ff:fee7:9d3a");
}

/* InfiniBand ports have no IP addresses. */
Test(device, without_the_address_it_is_the_first_port)
{
	here("10.77.0.2");
	find();
	cr_expect_str_eq(device.port, "1");
	cr_expect_str_eq(device.gid, "fe80::2408:b3ff:fee7:9d3a");
}

Test(device, attributes_that_the_kernel_lacks_are_empty)
{
	attr.name = (char *)"hfi1_0";
	info->nic->link_attr->mtu = 0;
	find();
	cr_expect_str_eq(device.name, "hfi1_0");
	cr_expect_str_eq(device.mtu, "");
	cr_expect_str_eq(device.port, "");
	cr_expect_str_eq(device.state, "");
	cr_expect_str_eq(device.gid, "");
	cr_expect_str_eq(device.guid, "");
}

/* The attribute files are the kernel's, but their contents are not trusted. */
Test(device, odd_attributes_are_survived)
{
	attribute_write("ports/1/gids/0", "nonsense");
	attribute_write("ports/2/gids/1", "");
	attribute_write("ports/2/state", "ACTIVE");
	attribute_write(
		"node_guid",
		"a line that is longer than the attribute of any device that was ever made\n");
	find();
	cr_expect_str_eq(device.port, "");
	cr_expect_str_eq(device.state, "");
	cr_expect_eq(strlen(device.guid), sizeof(device.guid) - 1);
}

/*
 * Devices and interfaces in OFED's form, with the real interfaces of this machine and a copy of the
 * kernel's directory that the test makes.
 */

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
static void named_init(void)
{
	strcpy(sysfs, "/tmp/named-XXXXXX");
	cr_assert(mkdtemp(sysfs) != NULL);
	put("infiniband/mlx4_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	put("infiniband/mlx4_0/ports/2/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0002\n");
	put("infiniband/mlx4_0/ports/2/gids/1", "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
}

static void named_fini(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	cr_expect_eq(system(command), 0);
}

TestSuite(named, .init = named_init, .fini = named_fini);

static int named_find(const char *text)
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
	cr_expect_eq(named_find("provider=tcp domain=lo"), 0);
	expect("tcp", "lo", "");
}

Test(named, interface_gives_its_address)
{
	cr_expect_eq(named_find("lo 0"), 0, "%s", why);
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
	cr_expect_eq(named_find("ib7 0"), 0, "%s", why);
	expect("", "", "10.0.0.1");
}

Test(named, address_in_place_of_an_interface)
{
	cr_expect_eq(named_find("127.0.0.1 0"), 0, "%s", why);
	expect("", "", "127.0.0.1");
}

Test(named, own_host_name_in_place_of_an_interface)
{
	char own[HOST_NAME_MAX + 4] = "";

	cr_assert_eq(gethostname(own, sizeof(own) - 3), 0);
	strcat(own, " 0");
	/* the name of a test machine may have no address */
	cr_expect(named_find(own) ? strstr(why, "no network interface") != NULL :
			      strncmp(params.address, "127.", 4) != 0, "%s", why);
}

Test(named, port_of_a_device_by_its_address)
{
	cr_expect_eq(named_find("mlx4_0 2"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

Test(named, port_without_a_number_is_any)
{
	cr_expect_eq(named_find("mlx4_0 0"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

/* On InfiniBand the interface is found by its device and the number of its port. */
Test(named, port_of_a_device_by_its_interface)
{
	put("net/lo/device/infiniband/mlx4_0/node_type", "");
	put("net/lo/dev_port", "0\n");
	cr_expect_eq(named_find("mlx4_0 1"), 0, "%s", why);
	expect("verbs", "mlx4_0", "127.0.0.1");
}

static void missing(const char *text, const char *reason)
{
	cr_expect_eq(named_find(text), -ENODATA, "%s", text);
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
