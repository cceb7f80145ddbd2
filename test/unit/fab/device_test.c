/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is reported of an RDMA device, read from a copy of the kernel's directory that the test
 * makes.
 */

#include "fab/device.h"

#include "fab/fake.h"
#include "fab/tree.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
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
