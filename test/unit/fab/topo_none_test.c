/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Without hwloc no location is known, and no thread is bound. */

#include "fab/info.h"

#include "base/env.h"
#include "fab/fake.h"

#include <criterion/criterion.h>
#include <sched.h>

Test(topo_none, no_place_is_known)
{
	struct dofi_locality locality = { 77, 88 };
	struct fi_info *info = fake_info("tcp", "10.0.0.1");

	dofi_settings.numa = DOFI_NUMA_BIND;
	cr_expect(!dofi_topo_locate(info, &locality));
	cr_expect(locality.node == 77 && locality.distance == 88);
	fi_freeinfo(info);
}

Test(topo_none, threads_stay_where_they_are)
{
	struct fi_info *info = fake_info("tcp", "10.0.0.1");
	cpu_set_t before, after;

	dofi_settings.numa = DOFI_NUMA_BIND;
	sched_getaffinity(0, sizeof(before), &before);
	dofi_topo_bind(pthread_self(), info);
	sched_getaffinity(0, sizeof(after), &after);
	cr_expect(CPU_EQUAL(&before, &after));
	fi_freeinfo(info);
}
