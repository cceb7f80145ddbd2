/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening an IA, querying it, and closing it with or without objects on it. */

#include "obj/fixture.h"

#include "base/env.h"
#include "registry.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static DAT_IA_ATTR attr;
static DAT_PROVIDER_ATTR provider_attr;

/* Opening */

TestSuite(ia_open, .init = fabric_init);

/* Opening fails with @err and leaves nothing behind. */
static void fails(int err)
{
	struct dofi_ia *opened = (struct dofi_ia *)NOWHERE;

	cr_expect_eq(ia_try_open(&opened), err);
	cr_expect_eq(opened, (struct dofi_ia *)NOWHERE);
	cr_expect_eq(fake.open, 0);
	cr_expect_eq(dofi_ia_pool.used, 0);
}

static int no_fabric(const char *node, uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info)
{
	return -FI_ENODATA;
}

Test(ia_open, without_a_matching_fabric)
{
	fake.getinfo = no_fabric;
	fails(-FI_ENODATA);
}

Test(ia_open, without_opening_the_fabric)
{
	fake.fault.fabric = -FI_ENODEV;
	fails(-FI_ENODEV);
}

Test(ia_open, without_an_event_queue)
{
	fake.fault.eq_open = -FI_EMFILE;
	fails(-FI_EMFILE);
}

Test(ia_open, without_a_passive_endpoint_there_is_no_private_data)
{
	fake.fault.passive_ep = -FI_ENOSYS;
	fails(-ENOTSUP);
}

Test(ia_open, without_memory_for_a_passive_endpoint)
{
	fake.fault.passive_ep = -FI_ENOMEM;
	fails(-FI_ENOMEM);
}

Test(ia_open, without_the_size_of_private_data)
{
	fake.fault.getopt = -FI_ENOPROTOOPT;
	fails(-ENOTSUP);
}

static int asked, with_address;

static int note_address(struct fi_info *info, struct fid_pep **pep)
{
	asked++;
	with_address += info->src_addr != NULL;
	return -FI_ENOSYS;
}

/* A passive endpoint with an address needs a port, and none may be free. */
Test(ia_open, asks_for_the_size_of_private_data_without_an_address)
{
	fake.passive_ep = note_address;
	fails(-ENOTSUP);
	cr_expect_eq(asked, 1);
	cr_expect_eq(with_address, 0);
}

Test(ia_open, with_no_room_beyond_the_transports_header)
{
	fake.cm_data_size = 12;
	fails(-ENOTSUP);
}

Test(ia_open, with_a_transport_that_fails)
{
	transport.ia_init_result = -ENOMEM;
	fails(-ENOMEM);
	cr_expect_eq(transport.ia_finis, 0);
}

Test(ia_open, works_again_after_it_failed)
{
	fake.fault.fabric = -FI_ENODEV;
	fails(-FI_ENODEV);
	fake.fault.fabric = 0;
	cr_assert_eq(ia_try_open(&ia), 0);
	ia_fini();
}

Test(ia_open, one_byte_of_private_data_is_enough)
{
	fake.cm_data_size = 13;
	cr_assert_eq(ia_try_open(&ia), 0);
	cr_expect_eq(ia->max_private_data, 1);
	ia_fini();
}

Test(ia_open, a_transport_that_carries_requests_itself_says_how_much)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };
	const struct dofi_params any = { .provider = "" };
	struct dofi_xport own = transport_ops;
	const struct dofi_xports xports = { .connected = &own };
	struct dofi_ia *opened;

	fake.cm_data_size = 99;
	own.cm_data_size = own.header_size + 7;
	cr_assert_eq(dofi_ia_open(&provider, &any, &xports, true, &opened), 0);
	cr_expect_eq(opened->max_private_data, 7);
	succeed(dofi_ia_close(opened, DAT_CLOSE_ABRUPT_FLAG));
}

/* The setting counts, else ia_params, else the API version. */
static bool opens_strict(long setting, const char *ia_params)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };
	const struct dofi_xports xports = { .connected = &transport_ops };
	struct dofi_params params = { .provider = "" };
	bool strict;

	dofi_settings.strict = setting;
	snprintf(params.strict, sizeof(params.strict), "%s", ia_params);
	cr_assert_eq(dofi_ia_open(&provider, &params, &xports, true, &ia), 0);
	strict = ia->strict;
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return strict;
}

Test(ia_open, the_setting_decides_what_is_refused)
{
	cr_expect(!opens_strict(-1, ""));
	cr_expect(opens_strict(-1, "1"));
	cr_expect(!opens_strict(-1, "0"));
	cr_expect(!opens_strict(0, "1"));
	cr_expect(opens_strict(1, "0"));
}

Test(ia_open, opens_and_closes_often)
{
	int i;

	for (i = 0; i < 100; i++) {
		cr_assert_eq(ia_try_open(&ia), 0);
		ia_fini();
	}
	cr_expect_eq(transport.ia_inits, 100);
	cr_expect_eq(transport.ia_finis, 100);
}

/* Querying */

/*
 * An IA's report of its location and of the settings. The location comes from the linker's
 * --wrap.
 */

static const struct dofi_locality *known;

bool __wrap_dofi_topo_locate(const struct fi_info *info, struct dofi_locality *place);
bool __wrap_dofi_topo_locate(const struct fi_info *info, struct dofi_locality *place)
{
	if (known)
		*place = *known;
	return known;
}

static const char *named(const char *name)
{
	DAT_COUNT i;

	succeed(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider_attr));
	for (i = 0; i < provider_attr.num_provider_specific_attr; i++)
		if (!strcmp(provider_attr.provider_specific_attr[i].name, name))
			return provider_attr.provider_specific_attr[i].value;
	return NULL;
}

static void init_located(void)
{
	static const struct dofi_locality place = { 3, 21 };

	dofi_settings_read();
	known = &place;
	objects_init();
}

TestSuite(ia_located, .init = init_located, .fini = ia_fini);

Test(ia_located, the_node_is_reported)
{
	cr_assert(named("OFI_NUMA_NODE") && named("OFI_NUMA_DISTANCE"));
	cr_expect_str_eq(named("OFI_NUMA_NODE"), "3");
	cr_expect_str_eq(named("OFI_NUMA_DISTANCE"), "21");
}

Test(ia_located, the_settings_are_reported)
{
	const struct dofi_setting *s;
	char name[64];

	for (s = dofi_setting_table; s->name; s++) {
		snprintf(name, sizeof(name), "OFI_SETTING:%s", s->name);
		cr_expect(named(name) && strstr(named(name), s->help), "%s", name);
	}
	cr_expect(provider_attr.num_provider_specific_attr < DOFI_IA_NAMED_ATTRS);
}

TestSuite(ia, .init = objects_init, .fini = ia_fini);

Test(ia, an_unknown_node_is_not_reported)
{
	cr_expect(!named("OFI_NUMA_NODE"));
	cr_expect(!named("OFI_NUMA_DISTANCE"));
}

Test(ia, query_of_nothing_succeeds)
{
	succeed(dofi_ia_query(ia, NULL, 0, NULL, 0, NULL));
}

Test(ia, query_checks_its_arguments)
{
	expect_handle(dofi_ia_query(NULL, NULL, 0, NULL, 0, NULL), IA);
	expect_handle(dofi_ia_query(pz, NULL, 0, NULL, 0, NULL), IA);
	expect_arg(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL + 1, &attr, 0, NULL), 3);
	expect_arg(dofi_ia_query(ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL), 4);
	expect_arg(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &provider_attr), 5);
	expect_arg(dofi_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL), 6);
}

Test(ia, query_returns_the_asynchronous_evd)
{
	DAT_EVD_HANDLE h = NOWHERE;

	succeed(dofi_ia_query(ia, &h, 0, NULL, 0, NULL));
	cr_expect_eq(h, DAT_HANDLE_NULL);
	async_set(evd);
	succeed(dofi_ia_query(ia, &h, 0, NULL, 0, NULL));
	cr_expect_eq(h, evd);
}

Test(ia, anothers_asynchronous_evd_is_out_of_scope)
{
	DAT_EVD_HANDLE h;

	ia->async_evd_shared = true;
	succeed(dofi_ia_query(ia, &h, 0, NULL, 0, NULL));
	cr_expect_eq(h, (DAT_EVD_HANDLE)DAT_EVD_OUT_OF_SCOPE);
}

#if DAT_VERSION_MAJOR >= 2
Test(ia, stands_in_for_no_other)
{
	char self[] = "test-ia", other[] = "some-ia";
	DAT_BOOLEAN related = DAT_TRUE;

	succeed(dofi_ia_ha_related(ia, self, &related));
	cr_expect_eq(related, DAT_FALSE);
	related = DAT_TRUE;
	succeed(dofi_ia_ha_related(ia, other, &related));
	cr_expect_eq(related, DAT_FALSE);
	expect_handle(dofi_ia_ha_related(evd, other, &related), IA);
	expect_arg(dofi_ia_ha_related(ia, NULL, &related), 2);
	expect_arg(dofi_ia_ha_related(ia, other, NULL), 3);
}
#endif

Test(ia, is_exported_as_the_program_knows_it)
{
	cr_expect_eq(dofi_ia_export(ia), (DAT_IA_HANDLE)ia);
#if DAT_VERSION_MAJOR >= 2
	registry.shown = (DAT_IA_HANDLE)3;
	cr_expect_eq(dofi_ia_export(ia), (DAT_IA_HANDLE)3);
#endif
}

/* Closing */

static void refuses_graceful(void)
{
	expect_state(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
	cr_expect(dofi_ia_check(ia));
}

Test(ia, close_checks_its_arguments)
{
	expect_handle(dofi_ia_close(NULL, DAT_CLOSE_ABRUPT_FLAG), IA);
	expect_handle(dofi_ia_close(evd, DAT_CLOSE_ABRUPT_FLAG), IA);
	expect_arg(dofi_ia_close(ia, (DAT_CLOSE_FLAGS)7), 2);
}

Test(ia, is_closed_once)
{
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	expect_handle(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), IA);
}

/* An open that fails late destroys the IA without a close. */
Test(ia, an_ia_that_is_destroyed_is_no_valid_handle)
{
	dofi_ia_destroy(ia);
	cr_assert(!dofi_ia_check(ia));
}

Test(ia, graceful_close_needs_every_kind_gone)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { 0 };
	DAT_CNO_HANDLE cno;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep = ep_make();

	succeed(dofi_cno_create(ia, no_agent, &cno));
	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	refuses_graceful();
	succeed(dofi_ep_free(ep));
	refuses_graceful();
	succeed(dofi_psp_free(psp));
	refuses_graceful();
	succeed(dofi_evd_free(evd));
	refuses_graceful();
	succeed(dofi_cno_free(cno));
	refuses_graceful();
	succeed(dofi_lmr_free(lmr));
	refuses_graceful();
	succeed(dofi_pz_free(pz));
	succeed(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

Test(ia, its_own_asynchronous_evd_does_not_keep_it_open)
{
	succeed(dofi_lmr_free(lmr));
	succeed(dofi_pz_free(pz));
	ia->async_evd = evd;
	ia->async_evd_owned = true;
	expect_state(dofi_evd_free(evd), EVD_IN_USE);
	succeed(dofi_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

Test(ia, abrupt_close_ends_connected_endpoints)
{
	DAT_EP_HANDLE a = ep_make(), b = ep_make();

	make_connected(a);
	start_connecting(b);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.closes, 2);
	expect_handle(dofi_ep_free(a), EP);
}

Test(ia, abrupt_close_answers_waiting_requests)
{
	const struct dofi_arrival arrival = { .data = "" };
	DAT_PSP_HANDLE psp;

	succeed(dofi_psp_create(ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_assert_eq(dofi_cr_arrived(psp, &arrival), 0);
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_expect_eq(transport.rejects, 1);
	cr_expect_eq(transport.why, DOFI_REJECT_PROVIDER);
	cr_expect_eq(transport.unlistens, 1);
}

Test(ia, a_forked_child_has_no_ia_of_its_parent)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		_exit(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DOFI_BAD_HANDLE(IA));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
	cr_expect_eq(transport.ia_finis, 0);
}
