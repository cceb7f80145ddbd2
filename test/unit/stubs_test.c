/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is not implemented: the stubs, where they are in the table, and what NEWS says of them. */

#include "stubs.h"

#include "registry.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* prov.c declares them itself: they are of the registry's loader, not of a header. */
void DAT_PROVIDER_INIT_FUNC_NAME(const DAT_PROVIDER_INFO *info, const char *ia_params);
void DAT_PROVIDER_FINI_FUNC_NAME(const DAT_PROVIDER_INFO *info);

typedef void (*function)(void);
typedef DAT_RETURN (*call_of_words)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
				    intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

struct stub {
	const char *call;
	size_t at;			/* in DAT_PROVIDER */
	function stub;
	bool in_news;			/* by its name */
};

#define STUB(name) { "dat_" #name, offsetof(DAT_PROVIDER, name##_func), (function)dofi_stub_##name, true }

static const struct stub stubs[] = {
#if DAT_VERSION_MAJOR >= 2
	STUB(csp_create),
	STUB(csp_query),
	STUB(csp_free),
	STUB(ep_common_connect),
	STUB(ep_post_send_with_invalidate),
	STUB(ep_post_rdma_read_to_rmr),
	STUB(cno_fd_create),
	STUB(cno_trigger),
	STUB(ia_ha_related),
	/* NEWS names the extension calls as a whole: the registry has many for this one */
	{ "dat_extension_op", offsetof(DAT_PROVIDER, handle_extendedop_func),
	  (function)dofi_stub_extendedop, false },
#endif
};

#define STUBS (sizeof(stubs) / sizeof(stubs[0]))
#define FIRST offsetof(DAT_PROVIDER, ia_open_func)
#define MEMBERS ((sizeof(DAT_PROVIDER) - FIRST) / sizeof(function))

/* The table that the provider gave to the registry. */
static DAT_PROVIDER table;

static void init(void)
{
	static DAT_PROVIDER_INFO info = { .ia_name = "test-ia", .is_thread_safe = DAT_TRUE };

	DAT_PROVIDER_INIT_FUNC_NAME(&info, "");
	table = *registry.provider;
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
}

static function member(size_t at)
{
	function f;

	memcpy(&f, (const char *)&table + at, sizeof(f));
	return f;
}

static const struct stub *stub_at(size_t at)
{
	size_t i;

	for (i = 0; i != STUBS; i++)
		if (stubs[i].at == at)
			return &stubs[i];
	return NULL;
}

TestSuite(stubs, .init = init);

Test(stubs, the_table_has_no_hole)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++)
		cr_expect(member(FIRST + i * sizeof(function)), "member %zu", i);
}

Test(stubs, each_is_in_its_place)
{
	size_t i;

	for (i = 0; i != STUBS; i++)
		cr_expect_eq(member(stubs[i].at), stubs[i].stub, "%s", stubs[i].call);
}

/*
 * Every call is tried with nothing but zeros. One that exists refuses the handle or an
 * argument. The C ABIs that we run on pass a caller's surplus words where they do no harm.
 */
Test(stubs, they_and_no_others_answer_not_implemented)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++) {
		size_t at = FIRST + i * sizeof(function);
		call_of_words call = (call_of_words)member(at);
		DAT_RETURN ret = call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		const struct stub *stub = stub_at(at);

		if (stub)
			cr_expect_eq(ret, DOFI_NOT_IMPLEMENTED, "%s: %#x", stub->call, (unsigned)ret);
		else
			cr_expect(DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE ||
				  DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER,
				  "member %zu: %#x", i, (unsigned)ret);
	}
}

/* NEWS */

static char news[16384];

/* The part of NEWS that lists them, for this version of DAT, read into news[]. */
static char *news_list(void)
{
	static const char begin[] = "these calls answer DAT_NOT_IMPLEMENTED:";
	const char *dir = getenv("top_srcdir");
	char path[4096], *list, *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/NEWS", dir ? dir : ".");
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	news[fread(news, 1, sizeof(news) - 1, f)] = 0;
	fclose(f);
	list = strstr(news, begin);
	cr_assert(list, "%s has no list", path);
	list += strlen(begin);
	end = strstr(list, "\n\n* ");
	cr_assert(end);
	end = strstr(end + 2, "\n\n");
	if (end)
		*end = 0;
	end = strstr(list, "* of 2.0:");
	cr_assert(end);
	if (DAT_VERSION_MAJOR < 2)
		*end = 0;
	return list;
}

static const struct stub *stub_named(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i != STUBS; i++)
		if (strlen(stubs[i].call) == len && !memcmp(stubs[i].call, name, len))
			return &stubs[i];
	return NULL;
}

/* The length of the call's name that @at begins with; 0 if it is within a word or none. */
static size_t name_at(const char *list, const char *at)
{
	size_t len = 0;

	if (strncmp(at, "dat_", 4) || (at > list && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
		return 0;
	while (isalnum((unsigned char)at[len]) || at[len] == '_')
		len++;
	return len;
}

Test(stubs, news_names_each_once)
{
	const char *list = news_list(), *p;
	size_t i, len;

	for (i = 0; i != STUBS; i++) {
		int times = 0;

		for (p = list; *p; p++) {
			len = name_at(list, p);
			times += len == strlen(stubs[i].call) && !memcmp(p, stubs[i].call, len);
		}
		cr_expect_eq(times, stubs[i].in_news, "%s", stubs[i].call);
	}
}

Test(stubs, news_names_no_other)
{
	const char *list = news_list(), *p;
	size_t len;

	for (p = list; *p; p++) {
		len = name_at(list, p);
		cr_expect(!len || stub_named(p, len), "%.*s", (int)len, p);
	}
}

Test(stubs, news_names_the_extensions_where_there_are_any)
{
	cr_expect_eq(!!strstr(news_list(), "extension calls"), DAT_VERSION_MAJOR >= 2);
}
