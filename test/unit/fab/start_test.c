/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The traits of event queues that dofi_fabric_start() passes for a fabric. */

#include "fab/topo.h"

#include "base/env.h"
#include "fab/fake.h"
#include "loop/progress.h"

#include <criterion/criterion.h>

static struct dofi_progress progress;
static const struct dofi_progress_ops ops;

static void init(void)
{
	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
}

static void fini(void)
{
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
}

TestSuite(fabric_start, .init = init, .fini = fini);

static const struct dofi_eq_traits *traits_of(const char *provider)
{
	struct fi_info *info = fake_info(provider, "");

	cr_assert_eq(dofi_fabric_start(&progress, &ops, info), 0);
	fi_freeinfo(info);
	return &progress.traits;
}

Test(fabric_start, tcp_needs_a_second_event_queue_for_passive_endpoints)
{
	const struct dofi_eq_traits *t;

	fake.version = FI_VERSION(2, 1);
	t = traits_of("tcp");
	cr_expect(t->data_in_eq && !t->fails_for_one);
	cr_expect(progress.listen_eq.fid);
}

Test(fabric_start, verbs_fails_for_one_connection)
{
	const struct dofi_eq_traits *t = traits_of("verbs");

	cr_expect(t->fails_for_one && !t->data_in_eq);
	cr_expect(!progress.listen_eq.fid);
}

Test(fabric_start, an_unknown_fabric_has_no_traits)
{
	const struct dofi_eq_traits *t = traits_of("fake");

	cr_expect(!t->data_in_eq && !t->fails_for_one);
}
