/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The function table that the provider gives to a registry: no call is missing, and none is a stub.
 */

#include "obj/obj.h"

#include "registry.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

/* prov.c declares them itself, because they belong to the registry's loader and not to a header. */
void DAT_PROVIDER_INIT_FUNC_NAME(const DAT_PROVIDER_INFO *info, const char *ia_params);
void DAT_PROVIDER_FINI_FUNC_NAME(const DAT_PROVIDER_INFO *info);

typedef void (*function)(void);
typedef DAT_RETURN (*call_with_words)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
				    intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

#define FIRST offsetof(DAT_PROVIDER, ia_open_func)
#define MEMBERS ((sizeof(DAT_PROVIDER) - FIRST) / sizeof(function))

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

TestSuite(table, .init = init);

Test(table, has_no_hole)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++)
		cr_expect(member(FIRST + i * sizeof(function)), "member %zu", i);
}

/* One function takes a va_list, which cannot be made of zeros. ext_test.c calls it. */
static bool takes_zeros(size_t at)
{
#if DAT_VERSION_MAJOR >= 2
	return at != offsetof(DAT_PROVIDER, handle_extendedop_func);
#else
	return true;
#endif
}

/*
 * Every call is made with zeros only, and must refuse the handle or an argument. The C ABIs of the
 * supported platforms ignore a caller's surplus words.
 */
Test(table, every_call_is_implemented)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++) {
		size_t at = FIRST + i * sizeof(function);
		call_with_words call = (call_with_words)member(at);
		DAT_RETURN ret;

		if (!takes_zeros(at))
			continue;
		ret = call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		cr_expect(DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE ||
			  DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER,
			  "member %zu: %#x", i, (unsigned)ret);
	}
}
