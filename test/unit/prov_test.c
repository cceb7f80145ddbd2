/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's entry points: registration, its dat.conf entries, opening an IA. */

#include "obj/fixture.h"

#include "base/env.h"
#include "capture.h"
#include "nomem.h"
#include "registry.h"

#include <stdio.h>

/* prov.c declares them itself, because they belong to the registry's loader and not to a header. */
void DAT_PROVIDER_INIT_FUNC_NAME(const DAT_PROVIDER_INFO *info, const char *ia_params);
void DAT_PROVIDER_FINI_FUNC_NAME(const DAT_PROVIDER_INFO *info);

static DAT_PROVIDER_INFO info = {
	.ia_name = "test-ia", .dapl_version_major = 7, .dapl_version_minor = 3,
	.is_thread_safe = DAT_TRUE,
};

static DAT_EVD_HANDLE async_evd;
static DAT_IA_HANDLE opened;
static struct capture said;

static void load(const char *ia_params)
{
	DAT_PROVIDER_INIT_FUNC_NAME(&info, ia_params);
}

static void init(void)
{
	fabric_init();
	load("");
}

static DAT_RETURN open_ia(void)
{
	return registry.provider->ia_open_func("test-ia", 8, &async_evd, &opened);
}

static void close_ia(DAT_IA_HANDLE handle)
{
	succeed(dofi_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG));
}

/* Checks that no object of the fabric or of the provider is left. */
static void fini(void)
{
	ia_fini();
}

TestSuite(prov, .init = init, .fini = fini);

/* Loading and unloading */

Test(prov, the_registry_refuses)
{
	static DAT_PROVIDER_INFO other = { .ia_name = "refused-ia" };

	registry.answer = DOFI_RET(DAT_INSUFFICIENT_RESOURCES, 0);
	capture_begin(&said);
	DAT_PROVIDER_INIT_FUNC_NAME(&other, "");
	cr_expect(strstr(capture_end(&said), "refused-ia"), "%s", said.text);
	DAT_PROVIDER_FINI_FUNC_NAME(&other);
	cr_expect_eq(registry.removed, 0);
	expect_ret(registry.provider->ia_open_func("refused-ia", 8, &async_evd, &opened),
		   DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

Test(prov, loading_without_memory_registers_nothing)
{
	static DAT_PROVIDER_INFO other = { .ia_name = "other-ia" };
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		DAT_PROVIDER_INIT_FUNC_NAME(&other, "");
		if (!nomem_failed())
			break;
		cr_expect_eq(registry.added, 1);
		DAT_PROVIDER_FINI_FUNC_NAME(&other);
		cr_expect_eq(registry.removed, 0);
	}
	cr_expect_eq(n, 2, "the entry and its parameters: %d", n);
	DAT_PROVIDER_FINI_FUNC_NAME(&other);
	cr_expect_eq(registry.removed, 1);
}

/* Unloading an entry that differs from the loaded one changes nothing. */
static void fini_finds_nothing(const DAT_PROVIDER_INFO *other)
{
	DAT_PROVIDER_FINI_FUNC_NAME(other);
	cr_expect_eq(registry.removed, 0);
	succeed(open_ia());
	close_ia(opened);
}

Test(prov, unloading_another_name)
{
	DAT_PROVIDER_INFO other = info;

	strcpy(other.ia_name, "test-i");
	fini_finds_nothing(&other);
}

Test(prov, unloading_another_major_version)
{
	DAT_PROVIDER_INFO other = info;

	other.dapl_version_major++;
	fini_finds_nothing(&other);
}

Test(prov, unloading_another_minor_version)
{
	DAT_PROVIDER_INFO other = info;

	other.dapl_version_minor++;
	fini_finds_nothing(&other);
}

Test(prov, unloading_another_thread_safety)
{
	DAT_PROVIDER_INFO other = info;

	other.is_thread_safe = DAT_FALSE;
	fini_finds_nothing(&other);
}

Test(prov, unloading_removes_it_once)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	cr_expect_eq(registry.removed, 1);
}

Test(prov, a_provider_can_be_loaded_again)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	load("");
	cr_expect_eq(registry.added, 2);
	succeed(open_ia());
	close_ia(opened);
}

Test(prov, the_registry_gets_name_and_version)
{
	cr_expect_eq(registry.added, 1);
	cr_expect_str_eq(registry.provider->device_name, "test-ia");
	cr_expect_str_eq(registry.info.ia_name, "test-ia");
	cr_expect_eq(registry.info.dapl_version_major, 7);
	cr_expect_eq(registry.info.dapl_version_minor, 3);
}

/* The loader may change its strings after the call. */
Test(prov, the_entry_outlives_what_it_was_made_of)
{
	char params[] = "provider=tcp";

	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	load(params);
	memset(params, '!', sizeof(params) - 1);
	strcpy(info.ia_name, "changed");
	succeed(open_ia());
	close_ia(opened);
	strcpy(info.ia_name, "test-ia");
	cr_expect_str_eq(registry.provider->device_name, "test-ia");
}

Test(prov, each_name_has_a_table_of_its_own)
{
	const DAT_PROVIDER *first = registry.provider;
	DAT_PROVIDER_INFO other = info;

	strcpy(other.ia_name, "other-ia");
	DAT_PROVIDER_INIT_FUNC_NAME(&other, "");
	cr_expect(registry.provider != first);
	cr_expect_str_eq(first->device_name, "test-ia");
	cr_expect_str_eq(registry.provider->device_name, "other-ia");
	DAT_PROVIDER_FINI_FUNC_NAME(&other);
}

/* ia_params */

/* Opening with @ia_params fails, and the log names the IA and @culprit. */
static void is_refused(const char *ia_params, const char *culprit)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	load(ia_params);
	capture_begin(&said);
	expect_ret(open_ia(), DOFI_RET(DAT_INVALID_PARAMETER, 0));
	cr_expect(strstr(capture_end(&said), culprit), "%s", said.text);
	cr_expect(strstr(said.text, "test-ia"), "%s", said.text);
	cr_expect(!opened && !async_evd);
}

Test(prov, an_unknown_key_is_named)
{
	is_refused("provider=tcp colour=red", "colour");
}

Test(prov, a_word_without_value_is_named)
{
	is_refused("eth0", "eth0");
}

Test(prov, a_value_too_long_is_named)
{
	is_refused(
		"provider=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"provider");
}

Test(prov, no_parameters_are_as_good_as_empty_ones)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	load(NULL);
	succeed(open_ia());
	close_ia(opened);
}

static char asked_for[64];		/* the first; later ones are of datagrams */

static int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **list)
{
	if (hints && hints->fabric_attr && hints->fabric_attr->prov_name && !asked_for[0])
		snprintf(asked_for, sizeof(asked_for), "%s", hints->fabric_attr->prov_name);
	*list = fake_info("sockets", "127.0.0.1");
	(*list)->ep_attr->max_msg_size = 1 << 20;
	(*list)->tx_attr->iov_limit = (*list)->rx_attr->iov_limit = 4;
	return 0;
}

Test(prov, the_entrys_parameters_choose_the_fabric)
{
	fake.getinfo = getinfo;
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	load("provider=sockets");
	succeed(open_ia());
	cr_expect_str_eq(((struct dofi_ia *)opened)->fabric.info->fabric_attr->prov_name,
			 "sockets");
	cr_expect_str_eq(asked_for, "sockets");
	close_ia(opened);
}

/* Opening */

Test(prov, open_checks_its_arguments)
{
	DAT_IA_OPEN_FUNC open = registry.provider->ia_open_func;

	expect_arg(open(NULL, 8, &async_evd, &opened), 1);
	expect_arg(open("test-ia", 0, &async_evd, &opened), 2);
	expect_arg(open("test-ia", -1, &async_evd, &opened), 2);
	expect_arg(open("test-ia", 8, NULL, &opened), 3);
	expect_arg(open("test-ia", 8, &async_evd, NULL), 4);
	cr_expect(!opened && !async_evd);
}

Test(prov, a_name_that_no_entry_has)
{
	expect_ret(registry.provider->ia_open_func("test-i", 8, &async_evd, &opened),
		   DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

Test(prov, an_entry_that_was_unloaded)
{
	DAT_IA_OPEN_FUNC open = registry.provider->ia_open_func;

	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	expect_ret(open("test-ia", 8, &async_evd, &opened),
		   DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

Test(prov, a_fabric_that_cannot_be_opened)
{
	fake.fault.fabric = -FI_ENODEV;
	cr_expect(open_ia() != DAT_SUCCESS);
	cr_expect(!opened && !async_evd);
}

Test(prov, without_room_for_the_async_evd_the_ia_is_closed_again)
{
	expect_type(registry.provider->ia_open_func("test-ia", 0x7fffffff, &async_evd, &opened),
		    DAT_INSUFFICIENT_RESOURCES);
	cr_expect(!opened && !async_evd);
	cr_expect_eq(fake.open, 0);
}

Test(prov, an_async_evd_that_is_none)
{
	async_evd = NOWHERE;
	expect_handle(open_ia(), EVD_ASYNC);
	cr_expect(!opened);
	cr_expect_eq(fake.open, 0);
}

Test(prov, an_evd_that_takes_no_async_events)
{
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL, soft;
	DAT_IA_HANDLE first;

	succeed(registry.provider->ia_open_func("test-ia", 8, &own, &first));
	succeed(dofi_evd_create(first, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &soft));
	async_evd = soft;
	expect_handle(open_ia(), EVD_ASYNC);
	close_ia(first);
}

Test(prov, an_existing_async_evd_where_none_exists)
{
	async_evd = DAT_EVD_ASYNC_EXISTS;
	expect_handle(open_ia(), EVD_ASYNC);
	cr_expect_eq(fake.open, 0);
}

Test(prov, an_existing_async_evd_of_another_name_is_not_taken)
{
	DAT_PROVIDER_INFO other = info;

	succeed(open_ia());
	strcpy(other.ia_name, "other-ia");
	DAT_PROVIDER_INIT_FUNC_NAME(&other, "");
	async_evd = DAT_EVD_ASYNC_EXISTS;
	expect_handle(registry.provider->ia_open_func("other-ia", 8, &async_evd, &opened),
		      EVD_ASYNC);
	close_ia(opened);
	DAT_PROVIDER_FINI_FUNC_NAME(&other);
}

static DAT_EVD_HANDLE async_evd_shown(DAT_IA_HANDLE handle)
{
	DAT_EVD_HANDLE shown;

	succeed(dofi_ia_query(handle, &shown, 0, NULL, 0, NULL));
	return shown;
}

Test(prov, an_async_evd_is_made)
{
	succeed(open_ia());
	cr_expect(dofi_evd_check(async_evd));
	cr_expect_eq(async_evd_shown(opened), async_evd);
	close_ia(opened);
}

/* Each object is freed before the IA is closed, and then prints its counters. */
Test(prov, counters_are_written_when_an_object_is_freed)
{
	DAT_EVD_HANDLE evd;

	dofi_settings_read();
	dofi_settings.counters = 2;
	succeed(open_ia());
	succeed(dofi_evd_create(opened, 4, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	event_none(evd);
	capture_begin(&said);
	succeed(dofi_evd_free(evd));
	cr_expect(strstr(capture_end(&said), " dequeue_not_found 1\n"), "%s", said.text);
	capture_begin(&said);
	succeed(dofi_ia_close(opened, DAT_CLOSE_GRACEFUL_FLAG));
	cr_expect(strstr(capture_end(&said), " name test-ia\n"), "%s", said.text);
	cr_expect(strstr(said.text, " evd_free 2\n"), "%s", said.text);
}

Test(prov, no_counters_are_written_unasked)
{
	dofi_settings_read();
	dofi_settings.counters = 1;
	succeed(open_ia());
	capture_begin(&said);
	close_ia(opened);
	cr_expect(!*capture_end(&said), "%s", said.text);
}

Test(prov, an_async_evd_has_room_for_a_hundred_endpoints_of_an_srq)
{
	DAT_EVD_PARAM param;

	succeed(open_ia());
	succeed(dofi_evd_query(async_evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect(param.evd_qlen >= 100);
	close_ia(opened);
	async_evd = DAT_HANDLE_NULL;
	succeed(registry.provider->ia_open_func("test-ia", 1000, &async_evd, &opened));
	succeed(dofi_evd_query(async_evd, DAT_EVD_FIELD_ALL, &param));
	cr_expect(param.evd_qlen >= 1000);
	close_ia(opened);
}

Test(prov, an_existing_async_evd_is_shared_and_not_shown)
{
	DAT_EVD_HANDLE exists = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE second;

	succeed(open_ia());
	succeed(registry.provider->ia_open_func("test-ia", 8, &exists, &second));
	cr_expect_eq(async_evd_shown(second), DAT_EVD_OUT_OF_SCOPE);
	cr_expect_eq(((struct dofi_ia *)second)->async_evd, async_evd);
	close_ia(second);
	cr_expect(dofi_evd_check(async_evd), "the first IA's EVD is its own");
	close_ia(opened);
}

Test(prov, a_shared_async_evd_may_go_first)
{
	DAT_EVD_HANDLE exists = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE second;

	succeed(open_ia());
	succeed(registry.provider->ia_open_func("test-ia", 8, &exists, &second));
	close_ia(opened);
	close_ia(second);
}

Test(prov, a_given_async_evd_is_used_and_shown)
{
	DAT_EVD_HANDLE given;
	DAT_IA_HANDLE second;

	succeed(open_ia());
	given = async_evd;
	succeed(registry.provider->ia_open_func("test-ia", 0, &given, &second));
	cr_expect_eq(given, async_evd);
	cr_expect_eq(async_evd_shown(second), async_evd);
	close_ia(second);
	close_ia(opened);
}

Test(prov, a_given_async_evd_is_in_use_until_the_ia_closes)
{
	DAT_EVD_HANDLE given;
	DAT_IA_HANDLE second;

	succeed(open_ia());
	succeed(dofi_evd_create(opened, 8, DAT_HANDLE_NULL, DAT_EVD_ASYNC_FLAG, &given));
	succeed(registry.provider->ia_open_func("test-ia", 0, &given, &second));
	expect_state(dofi_evd_free(given), EVD_IN_USE);
	close_ia(second);
	succeed(dofi_evd_free(given));
	close_ia(opened);
}

Test(prov, a_name_opens_several_ias)
{
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
	DAT_IA_HANDLE second;

	succeed(open_ia());
	succeed(registry.provider->ia_open_func("test-ia", 8, &own, &second));
	cr_expect(second != opened);
	cr_expect(own != async_evd);
	close_ia(opened);
	cr_expect(dofi_ia_check(second));
	close_ia(second);
}

/*
 * An entry for single-threaded programs has a table and parameters of its own, even under an equal
 * name.
 */
Test(prov, thread_safe_and_other_entries_are_distinguished)
{
	const DAT_PROVIDER *safe = registry.provider;
	DAT_PROVIDER_INFO other = info;

	other.is_thread_safe = DAT_FALSE;
	DAT_PROVIDER_INIT_FUNC_NAME(&other, "nonsense");
	succeed(safe->ia_open_func("test-ia", 8, &async_evd, &opened));
	cr_expect(((struct dofi_ia *)opened)->thread_safe);
	close_ia(opened);
	async_evd = DAT_HANDLE_NULL;
	expect_ret(registry.provider->ia_open_func("test-ia", 8, &async_evd, &opened),
		   DOFI_RET(DAT_INVALID_PARAMETER, 0));
	DAT_PROVIDER_FINI_FUNC_NAME(&other);
}

Test(prov, an_entry_that_is_not_thread_safe_opens)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	info.is_thread_safe = DAT_FALSE;
	load("");
	succeed(open_ia());
	cr_expect(!((struct dofi_ia *)opened)->thread_safe);
	close_ia(opened);
}
