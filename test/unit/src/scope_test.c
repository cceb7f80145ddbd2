/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A provider that is not linked with a registry finds this project's registry, even if the program
 * loaded that with RTLD_LOCAL.
 */

#include "dat_select.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char conf[] = "/tmp/dat-scope-test-XXXXXX";
static void *registry;

/* The file @name of the build tree. */
static const char *built(const char *name)
{
	const char *top = getenv("top_builddir");
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	cr_assert_eq(access(path, R_OK), 0, "%s is missing", path);
	return path;
}

static void load(void)
{
	FILE *f = fdopen(mkstemp(conf), "w");

	cr_assert(f);
	fprintf(f, "stub u2.0 nonthreadsafe default %s stub.2.0 \"\" \"\"\n",
		built("test/unit/src/.libs/unlinked.so"));
	fclose(f);
	setenv("DAT_OVERRIDE", conf, 1);
	registry = dlopen(built(".libs/libdat2.so.2"), RTLD_NOW | RTLD_LOCAL);
	cr_assert(registry, "%s", dlerror());
}

static void unload(void)
{
	unlink(conf);
}

/* Opens and closes an IA of this provider. */
static DAT_RETURN use_provider(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN (*openv)(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE *, DAT_IA_HANDLE *,
			    DAT_UINT32, DAT_UINT32, DAT_BOOLEAN);
	DAT_RETURN (*closes)(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);
	DAT_RETURN ret;

	*(void **)&openv = dlsym(registry, "dat_ia_openv");
	*(void **)&closes = dlsym(registry, "dat_ia_close");
	ret = openv((DAT_NAME_PTR) "stub", 8, &async, &ia, 2, 0, DAT_FALSE);
	return ret == DAT_SUCCESS ? closes(ia, DAT_CLOSE_ABRUPT_FLAG) : ret;
}

Test(scope, provider_without_a_registry_of_its_own, .init = load, .fini = unload)
{
	cr_assert_null(dlsym(RTLD_DEFAULT, "dat_ia_openv"));
	cr_expect_eq(use_provider(), DAT_SUCCESS);
}

Test(scope, registry_can_be_unloaded_afterwards, .init = load, .fini = unload)
{
	use_provider();
	cr_expect_eq(dlclose(registry), 0);
	cr_expect_null(dlopen(built(".libs/libdat2.so.2"), RTLD_NOW | RTLD_NOLOAD));
}
