/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a fabric's device is in the machine, by hwloc. */

#include "fab/info.h"

#include "base/env.h"
#include "base/log.h"

#include <hwloc.h>
#include <limits.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Distances by firmware and kernel: of a node to itself, and the default to another. */
#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20

/* Written once, by machine_read(). */
static hwloc_topology_t topology;	/* NULL: not read */
static int only_node = -1;		/* the node of a machine with a single one */

/*
 * Reads nodes, processors and devices, including ones that this process may not use: a device near
 * them is far, not of unknown location. Leaves out hwloc's OS devices, for which it would load the
 * libraries of graphics cards. With a single node all devices are near, and hwloc is not needed,
 * unless HWLOC_XMLFILE replaces the machine.
 */
static void machine_read(void)
{
	hwloc_topology_t t;
	char more = '\n';
	int node = 0;
	FILE *f;

	if (dofi_settings.numa == DOFI_NUMA_OFF)
		return;
	if (!secure_getenv("HWLOC_XMLFILE")) {
		/* one number: this node has all processors; a kernel without NUMA has no file */
		f = fopen("/sys/devices/system/node/has_cpu", "re");
		if (f && (fscanf(f, "%d%c", &node, &more) < 1 || more != '\n'))
			node = -1;
		if (f)
			fclose(f);
		only_node = node;
	}
	if (only_node >= 0 || hwloc_topology_init(&t))
		return;
	hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	hwloc_topology_set_cache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (!hwloc_topology_load(t)) {
		topology = t;
		return;
	}
	dofi_log(DOFI_WARN, DOFI_FAB, "hwloc does not find the nodes of this machine");
	hwloc_topology_destroy(t);
}

static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

/* Finds the device of a network interface or RDMA adapter; software has none. */
static bool device_path(const char *name, char path[PATH_MAX])
{
	static const char *const class[] = { "infiniband", "net" };
	char link[PATH_MAX];
	size_t i;

	if (!name || strchr(name, '/'))
		return false;
	for (i = 0; i < sizeof(class) / sizeof(class[0]); i++) {
		snprintf(link, sizeof(link), "/sys/class/%s/%s/device", class[i], name);
		if (realpath(link, path))
			return true;
	}
	return false;
}

/* Finds the PCI address: the last in the path, as a virtio device is below its PCI device. */
static bool pci_of(const struct fi_info *info, struct fi_pci_attr *pci)
{
	const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;
	unsigned domain, bus_id, device, function;
	char path[PATH_MAX], *p;
	bool found = false;
	int n, len;

	if (bus && bus->bus_type == FI_BUS_PCI) {
		*pci = bus->attr.pci;
		return true;
	}
	if (!device_path(info->domain_attr->name, path))
		return false;
	for (p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		len = 0;
		n = sscanf(p, "/%4x:%2x:%2x.%1x%n", &domain, &bus_id, &device, &function, &len);
		if (n < 4 || (p[len] && p[len] != '/'))
			continue;
		*pci = (struct fi_pci_attr){ domain, bus_id, device, function };
		found = true;
	}
	return found;
}

/* Returns the object with nodes that the device is attached to; NULL for the whole machine. */
static hwloc_obj_t near_obj(const struct fi_info *info)
{
	struct fi_pci_attr pci;
	hwloc_obj_t obj;

	if (!topology || !pci_of(info, &pci))
		return NULL;
	obj = hwloc_get_pcidev_by_busid(topology, pci.domain_id, pci.bus_id, pci.device_id,
					pci.function_id);
	if (!obj)
		return NULL;
	obj = hwloc_get_non_io_ancestor_obj(topology, obj);
	if (hwloc_bitmap_iszero(obj->nodeset) ||
	    (obj == hwloc_get_root_obj(topology) && hwloc_bitmap_weight(obj->nodeset) > 1))
		return NULL;
	return obj;
}

/* Returns the least listed distance between two nodes of the sets. */
static unsigned listed_distance(hwloc_const_nodeset_t from, hwloc_const_nodeset_t to)
{
	struct hwloc_distances_s *d;
	hwloc_uint64_t least = REMOTE_DISTANCE;
	unsigned n = 1, i, k;
	bool found = false;

	if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &n, &d,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) || !n)
		return REMOTE_DISTANCE;
	for (i = 0; i < d->nbobjs; i++)
		for (k = 0; k < d->nbobjs; k++) {
			hwloc_uint64_t v = d->values[i * d->nbobjs + k];

			if (hwloc_bitmap_isset(from, d->objs[i]->os_index) &&
			    hwloc_bitmap_isset(to, d->objs[k]->os_index) && (!found || v < least)) {
				least = v;
				found = true;
			}
		}
	hwloc_distances_release(topology, d);
	return least;
}

/* Returns where the calling thread may run, to be freed by the caller; NULL without memory. */
static hwloc_cpuset_t own_cpus(void)
{
	hwloc_cpuset_t cpus = hwloc_bitmap_alloc();

	if (cpus && hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_THREAD))
		hwloc_bitmap_copy(cpus, hwloc_topology_get_topology_cpuset(topology));
	return cpus;
}

bool dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality)
{
	hwloc_nodeset_t nodes;
	hwloc_cpuset_t cpus;
	char path[PATH_MAX];
	hwloc_obj_t obj;
	bool known;

	pthread_once(&machine_once, machine_read);
	if (only_node >= 0) {
		if (!info->nic && !device_path(info->domain_attr->name, path))
			return false;
		*locality = (struct dofi_locality){ only_node, LOCAL_DISTANCE };
		return true;
	}
	obj = near_obj(info);
	if (!obj)
		return false;
	cpus = own_cpus();
	nodes = hwloc_bitmap_alloc();
	known = cpus && nodes;
	if (known) {
		hwloc_cpuset_to_nodeset(topology, cpus, nodes);
		locality->node = hwloc_bitmap_first(obj->nodeset);
		locality->distance = hwloc_bitmap_intersects(nodes, obj->nodeset) ?
			LOCAL_DISTANCE : listed_distance(nodes, obj->nodeset);
	}
	hwloc_bitmap_free(nodes);
	hwloc_bitmap_free(cpus);
	return known;
}

void dofi_topo_bind(pthread_t thread, const struct fi_info *info)
{
	hwloc_cpuset_t cpus;
	hwloc_obj_t obj;

	pthread_once(&machine_once, machine_read);
	obj = dofi_settings.numa == DOFI_NUMA_BIND ? near_obj(info) : NULL;
	cpus = obj ? own_cpus() : NULL;
	/* a binding of the user to other or to fewer processors stays */
	if (cpus && hwloc_bitmap_intersects(cpus, obj->cpuset) &&
	    !hwloc_bitmap_isincluded(cpus, obj->cpuset)) {
		hwloc_bitmap_and(cpus, cpus, obj->cpuset);
		if (!hwloc_set_thread_cpubind(topology, thread, cpus, 0))
			dofi_log(DOFI_INFO, DOFI_FAB, "the progress thread runs near node %d",
				 hwloc_bitmap_first(obj->nodeset));
	}
	hwloc_bitmap_free(cpus);
}
