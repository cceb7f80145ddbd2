/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where devices are, on machines that are files in test/data/topo, and in a /sys of the test. */

#include "fab/info.h"

#include "base/env.h"
#include "base/log.h"
#include "capture.h"
#include "fab/fake.h"
#include "loop/progress.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the linker's --wrap replaces of the system and of hwloc, once a test has set a machine. */

static bool replaced;
static const char *has_cpu;		/* the kernel's list of nodes with processors */
static const char *allowed;		/* processors of the calling thread, as "0-3,7" */
static const char *sys_link[4][2];	/* names below /sys/class, and their link targets */
static hwloc_cpuset_t bound;		/* the processors of a thread */
static pthread_t bound_thread;
static int loads;
static bool load_fails, binding_fails;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
int __real_hwloc_topology_load(hwloc_topology_t t);
int __wrap_hwloc_topology_load(hwloc_topology_t t);
int __wrap_hwloc_get_cpubind(hwloc_topology_t t, hwloc_cpuset_t set, int flags);
int __wrap_hwloc_set_thread_cpubind(hwloc_topology_t t, pthread_t thread,
				    hwloc_const_cpuset_t set, int flags);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!replaced || strncmp(path, "/sys/", 5))
		return __real_fopen(path, mode);
	if (has_cpu && !strcmp(path, "/sys/devices/system/node/has_cpu"))
		return fmemopen((void *)has_cpu, strlen(has_cpu), "r");
	errno = ENOENT;
	return NULL;
}

char *__wrap_realpath(const char *path, char *resolved)
{
	size_t i;

	if (!replaced)
		return __real_realpath(path, resolved);
	for (i = 0; i < sizeof(sys_link) / sizeof(sys_link[0]) && sys_link[i][0]; i++)
		if (!strncmp(path, "/sys/class/", 11) && !strcmp(path + 11, sys_link[i][0]))
			return strcpy(resolved, sys_link[i][1]);
	errno = ENOENT;
	return NULL;
}

int __wrap_hwloc_topology_load(hwloc_topology_t t)
{
	loads++;
	return load_fails ? -1 : __real_hwloc_topology_load(t);
}

int __wrap_hwloc_get_cpubind(hwloc_topology_t t, hwloc_cpuset_t set, int flags)
{
	cr_expect_eq(flags, HWLOC_CPUBIND_THREAD);
	if (binding_fails)
		return -1;
	return hwloc_bitmap_list_sscanf(set, allowed);
}

int __wrap_hwloc_set_thread_cpubind(hwloc_topology_t t, pthread_t thread,
				    hwloc_const_cpuset_t set, int flags)
{
	cr_expect_eq(flags, 0);
	cr_expect(!bound, "bound twice");
	bound = hwloc_bitmap_dup(set);
	bound_thread = thread;
	return 0;
}

/* Sets the machine of test/data/topo/@file, of which this process may use the processors @cpus. */
static void machine(const char *file, const char *cpus)
{
	const char *top = getenv("top_srcdir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/test/data/topo/%s", top ? top : ".", file);
	cr_assert(!access(path, R_OK), "%s", path);	/* otherwise hwloc takes the real machine */
	setenv("HWLOC_XMLFILE", path, 1);
	dofi_settings.numa = DOFI_NUMA_BIND;
	allowed = cpus;
	replaced = true;
}

/* A network card with a PCI address that libfabric reports. */

static struct fi_info *card(const char *domain, uint8_t bus)
{
	struct fi_info *info = fake_info("verbs", "10.0.0.1");

	fake_nic(info, bus, 100000000000);
	free(info->domain_attr->name);
	info->domain_attr->name = strdup(domain);
	return info;
}

/* An interface with a name that libfabric reports. */
static struct fi_info *interface(const char *domain)
{
	struct fi_info *info = fake_info("tcp", "10.0.0.1");

	free(info->domain_attr->name);
	info->domain_attr->name = domain ? strdup(domain) : NULL;
	return info;
}

static void expect_card(uint8_t bus, int node, unsigned distance)
{
	struct fi_info *info = card("mlx5_0", bus);
	struct dofi_locality locality;

	cr_assert(dofi_topo_locate(info, &locality), "bus %02x", bus);
	cr_expect_eq(locality.node, node, "bus %02x: node %d", bus, locality.node);
	cr_expect_eq(locality.distance, distance, "bus %02x: distance %u", bus, locality.distance);
	fi_freeinfo(info);
}

/* The location of @info is unknown, and *place is not changed. */
static void expect_unknown(const struct fi_info *info)
{
	struct dofi_locality locality = { 77, 88 };

	cr_expect(!dofi_topo_locate(info, &locality));
	cr_expect(locality.node == 77 && locality.distance == 88);
}

static void expect_no_card(uint8_t bus)
{
	struct fi_info *info = card("mlx5_0", bus);

	expect_unknown(info);
	fi_freeinfo(info);
}

static void expect_interface(const char *domain, int node)
{
	struct fi_info *info = interface(domain);
	struct dofi_locality locality;

	cr_assert(dofi_topo_locate(info, &locality), "%s", domain);
	cr_expect_eq(locality.node, node, "%s: node %d", domain, locality.node);
	fi_freeinfo(info);
}

static void expect_no_interface(const char *domain)
{
	struct fi_info *info = interface(domain);

	expect_unknown(info);
	fi_freeinfo(info);
}

/* Nodes and distances */

Test(topo, a_free_process_is_near_everything)
{
	machine("two-sockets.xml", "0-7");
	expect_card(0x17, 0, 10);
	expect_card(0xb1, 1, 10);
}

Test(topo, a_bound_process_is_near_its_own_node)
{
	machine("two-sockets.xml", "6");
	expect_card(0x17, 0, 21);
	expect_card(0xb1, 1, 10);
}

Test(topo, distances_are_those_of_the_machine)
{
	machine("clusters.xml", "0-1");
	expect_card(0x17, 1, 12);
	expect_card(0xb1, 2, 21);	/* at the nearer of the two nodes of its socket */
}

Test(topo, the_nearest_of_several_own_nodes_counts)
{
	machine("clusters.xml", "1,7");
	expect_card(0x17, 1, 12);
	expect_card(0xb1, 2, 10);
}

Test(topo, without_distances_another_node_is_remote)
{
	machine("no-distances.xml", "0-1");
	expect_card(0xb1, 1, 20);
}

Test(topo, a_device_of_a_machine_with_one_node_is_near)
{
	machine("one-node.xml", "1");
	expect_card(0x17, 0, 10);
}

Test(topo, a_process_of_unknown_binding_is_near_everything)
{
	machine("two-sockets.xml", NULL);
	binding_fails = true;
	expect_card(0x17, 0, 10);
	expect_card(0xb1, 1, 10);
}

Test(topo, a_device_that_is_near_no_node_is_unknown)
{
	struct fi_info *info;

	machine("two-sockets.xml", "0-7");
	sys_link[0][0] = "net/eno1/device";
	sys_link[0][1] = "/sys/devices/pci0000:00/0000:00:1f.6";
	expect_no_card(0x44);			/* not in the machine */
	expect_no_interface("eno1");		/* attached to the whole machine */
	info = card("mlx5_0", 0x17);
	info->nic->bus_attr->bus_type = FI_BUS_UNKNOWN;
	expect_unknown(info);
	fi_freeinfo(info);
}

/* Names */

Test(topo, names_lead_to_devices)
{
	machine("two-sockets.xml", "0-7");
	sys_link[0][0] = "net/ib0/device";
	sys_link[0][1] = "/sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0";
	sys_link[1][0] = "infiniband/mlx5_1/device";
	sys_link[1][1] = "/sys/devices/pci0000:b0/0000:b0:02.0/0000:b1:00.0";
	sys_link[2][0] = "net/eth0/device";
	sys_link[2][1] = "/sys/devices/pci0000:b0/0000:b1:00.0/virtio2";
	expect_interface("ib0", 0);
	expect_interface("mlx5_1", 1);
	expect_interface("eth0", 1);
}

Test(topo, what_is_no_device_is_unknown)
{
	machine("two-sockets.xml", "0-7");
	sys_link[0][0] = "net/usb0/device";
	sys_link[0][1] = "/sys/devices/platform/soc/0000:17:00.0x/usb1";
	sys_link[1][0] = "net/../net/ib0/device";
	sys_link[1][1] = "/sys/devices/pci0000:16/0000:17:00.0";
	expect_no_interface("lo");
	expect_no_interface("usb0");
	expect_no_interface("../net/ib0");
	expect_no_interface("");
	expect_no_interface(NULL);
}

Test(topo, an_endless_name_is_unknown)
{
	char name[2 * PATH_MAX];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	machine("two-sockets.xml", "0-7");
	expect_no_interface(name);
}

/* Which files are read, and when */

static void kernel(const char *nodes)
{
	machine("two-sockets.xml", "0-7");
	unsetenv("HWLOC_XMLFILE");
	has_cpu = nodes;
	sys_link[0][0] = "net/eth0/device";
	sys_link[0][1] = "/sys/devices/platform/eth";
}

Test(topo, hwloc_is_not_asked_on_one_node)
{
	kernel("0\n");
	expect_interface("eth0", 0);
	expect_card(0x55, 0, 10);
	expect_no_interface("lo");
	cr_expect_eq(loads, 0);
}

Test(topo, the_one_node_may_have_any_number)
{
	kernel("12\n");
	expect_interface("eth0", 12);
	cr_expect_eq(loads, 0);
}

Test(topo, a_kernel_without_nodes_has_one)
{
	kernel(NULL);
	expect_interface("eth0", 0);
	cr_expect_eq(loads, 0);
}

static void several(const char *nodes)
{
	kernel(nodes);
	expect_no_card(0xff);
	cr_expect_eq(loads, 1);
}

Test(topo, a_range_of_nodes_is_several) { several("0-1\n"); }
Test(topo, a_list_of_nodes_is_several) { several("0,8\n"); }
Test(topo, what_is_no_number_is_asked_of_hwloc) { several("?"); }

Test(topo, the_machine_is_read_once)
{
	machine("two-sockets.xml", "0-7");
	expect_card(0x17, 0, 10);
	expect_card(0xb1, 1, 10);
	cr_expect_eq(loads, 1);
}

Test(topo, a_child_knows_what_its_parent_knew)
{
	int status;
	pid_t pid;

	machine("two-sockets.xml", "0-3");
	expect_card(0x17, 0, 10);
	pid = fork();
	if (!pid) {
		expect_card(0xb1, 1, 21);
		_exit(loads != 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

Test(topo, switched_off_nothing_is_read)
{
	machine("two-sockets.xml", "0-7");
	dofi_settings.numa = DOFI_NUMA_OFF;
	expect_no_card(0x17);
	cr_expect_eq(loads, 0);
}

Test(topo, a_machine_that_cannot_be_read_is_logged)
{
	struct capture capture;

	machine("two-sockets.xml", "0-7");
	load_fails = true;
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	expect_no_card(0x17);
	cr_expect(strstr(capture_end(&capture), "hwloc does not find"), "%s", capture.text);
}

/* Where the thread runs */

static void expect_bound(const char *file, const char *cpus, uint8_t bus, const char *to)
{
	struct fi_info *info = card("mlx5_0", bus);
	char text[64] = "";

	machine(file, cpus);
	dofi_topo_bind(pthread_self(), info);
	fi_freeinfo(info);
	if (bound) {
		hwloc_bitmap_list_snprintf(text, sizeof(text), bound);
		cr_expect(pthread_equal(bound_thread, pthread_self()));
		hwloc_bitmap_free(bound);
	}
	cr_expect_str_eq(text, to, "%s", text);
}

Test(topo, a_free_thread_is_bound_near_its_device)
{
	expect_bound("two-sockets.xml", "0-7", 0xb1, "4-7");
}
Test(topo, only_where_it_may_run) { expect_bound("two-sockets.xml", "0-1,5-6", 0xb1, "5-6"); }
Test(topo, a_thread_elsewhere_stays_there) { expect_bound("two-sockets.xml", "0-3", 0xb1, ""); }
Test(topo, a_thread_that_is_near_stays_as_it_is) { expect_bound("two-sockets.xml", "5", 0xb1, ""); }
Test(topo, a_device_of_two_nodes_binds_to_both)
{
	expect_bound("clusters.xml", "0-7", 0xb1, "4-7");
}
Test(topo, a_device_of_one_cluster_binds_to_it)
{
	expect_bound("clusters.xml", "0-7", 0x17, "2-3");
}
Test(topo, on_one_node_nothing_is_bound) { expect_bound("one-node.xml", "0-1", 0x17, ""); }
Test(topo, near_no_device_nothing_is_bound) { expect_bound("two-sockets.xml", "0-7", 0x44, ""); }

Test(topo, binding_can_be_switched_off)
{
	struct fi_info *info = card("mlx5_0", 0x17);

	machine("two-sockets.xml", "0-7");
	dofi_settings.numa = DOFI_NUMA_CHOOSE;
	dofi_topo_bind(pthread_self(), info);
	cr_expect(!bound);
	fi_freeinfo(info);
	expect_card(0x17, 0, 10);
}

/* Use of the location */

static void cm_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry,
		     size_t len)
{
}

Test(topo, the_progress_thread_is_bound)
{
	static const struct dofi_progress_ops ops = { .cm_event = cm_event };
	static struct dofi_progress progress;
	struct fi_info *info = card("mlx5_0", 0x17);

	machine("two-sockets.xml", "0-7");
	fake_init();
	fake.replace_fabric = true;
	cr_assert_eq(dofi_fabric_start(&progress, &ops, info), 0);
	cr_expect(bound && pthread_equal(bound_thread, progress.thread));
	dofi_progress_stop(&progress);
	hwloc_bitmap_free(bound);
	fi_freeinfo(info);
}

static struct fi_info *cards[2];

static int two_cards(const char *node, uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info)
{
	*info = fi_dupinfo(cards[0]);
	(*info)->next = fi_dupinfo(cards[1]);
	return 0;
}

/* Of two equal cards, a process on @cpus gets the one named @domain. */
static void expect_chosen(const char *cpus, const char *domain)
{
	const struct dofi_params any = { .provider = "" };
	struct dofi_fabric_choice choice;

	machine("two-sockets.xml", cpus);
	cards[0] = card("mlx5_0", 0x17);
	cards[1] = card("mlx5_1", 0xb1);
	fake.getinfo = two_cards;
	cr_assert_eq(dofi_fabric_choose(&any, &choice), 0);
	cr_expect_str_eq(choice.info->domain_attr->name, domain);
	dofi_fabric_release(&choice);
	fi_freeinfo(cards[0]);
	fi_freeinfo(cards[1]);
}

Test(topo, a_free_process_gets_the_first_card) { expect_chosen("0-7", "mlx5_0"); }
Test(topo, a_process_at_the_first_gets_it) { expect_chosen("2", "mlx5_0"); }
Test(topo, a_process_at_the_second_gets_that) { expect_chosen("4-7", "mlx5_1"); }
Test(topo, a_process_at_both_gets_the_first) { expect_chosen("3-4", "mlx5_0"); }
