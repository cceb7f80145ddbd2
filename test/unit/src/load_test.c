/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loading libraries that are missing, broken or no providers, and the contents of a valid one.
 * registry_test.c tests how often each is loaded.
 */

#include "entry.h"

#include "log.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* This program's copy of load.c uses DAT_LIBDIR as its library directory. */
#define LONE		"lone.so"
#define UNRESOLVED	"unresolved.so"

static char logged[2048];
static enum dreg_log_type log_type;

void dreg_log(enum dreg_log_type type, const char *fmt, ...)
{
	va_list ap;

	log_type = type;
	va_start(ap, fmt);
	vsnprintf(logged, sizeof(logged), fmt, ap);
	va_end(ap);
}

/* Simulates a privileged process, by the linker's --wrap. */
static bool privileged;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE && privileged ? 1 : __real_getauxval(type);
}

static struct dreg_library lib;

static bool loaded(const char *path)
{
	void *dl = dlopen(path, RTLD_NOLOAD | RTLD_NOW);

	if (dl)
		dlclose(dl);
	return dl;
}

static const char *whole(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", DAT_LIBDIR, name);
	cr_assert_eq(access(path, R_OK), 0, "%s is missing", path);
	return path;
}

static void check_failed(const char *name, int err)
{
	cr_expect_eq(dreg_library_open(&lib, name), err);
	cr_expect_null(lib.dl);
	cr_expect_eq(log_type, DREG_LOG_ERROR);
	cr_expect(strstr(logged, name), "%s", logged);
}

/*
 * Files that are no libraries
 */

static char path[] = "/tmp/dat-load-test-XXXXXX";

static void write_file(const void *bytes, size_t len)
{
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

Test(load, missing_path)
{
	check_failed("/nowhere/libprovider.so", -ENOENT);
	cr_expect(strstr(logged, strerror(ENOENT)), "%s", logged);
}

Test(load, missing_name)
{
	check_failed("libnoprovider.so.9", -ENOENT);
	cr_expect(strstr(logged, strerror(ENOENT)), "%s", logged);
}

/* A name of OFED's is explained, another one is not. */
Test(load, missing_provider_of_ofed)
{
	check_failed("libdaplcma.so.9", -ENOENT);
	cr_expect(strstr(logged, "; OFED's provider is not installed, "
				 "this package's is libdaplofi.so."), "%s", logged);
	check_failed("/nowhere/libdaplomcm.so.2", -ENOENT);
	cr_expect(strstr(logged, "; OFED's provider is not installed"), "%s", logged);
	check_failed("libdaplofi.so.9", -ENOENT);
	cr_expect_null(strstr(logged, "OFED"), "%s", logged);
}

Test(load, directory)
{
	check_failed("/tmp/", -ENOENT);
}

Test(load, name_that_fits_no_path)
{
	char name[5000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(dreg_library_open(&lib, name), -ENOENT);
	cr_expect_null(lib.dl);
}

Test(load, empty_file, .fini = remove_file)
{
	write_file("", 0);
	check_failed(path, -ENOENT);
}

Test(load, text_file, .fini = remove_file)
{
	write_file("not a library\n", 14);
	check_failed(path, -ENOENT);
}

Test(load, library_cut_off_behind_its_magic, .fini = remove_file)
{
	write_file("\177ELF\2\1\1", 7);
	check_failed(path, -ENOENT);
}

Test(load, library_with_an_undefined_symbol)
{
	check_failed(whole(UNRESOLVED), -ENOENT);
	cr_expect(strstr(logged, "odd_library_needs"), "%s", logged);
}

Test(load, library_without_an_entry_point_is_unloaded)
{
	cr_assert(!loaded("libBrokenLocale.so.1"));
	check_failed("libBrokenLocale.so.1", -ENOEXEC);
	cr_expect(strstr(logged, "dat_provider_init"), "%s", logged);
	cr_expect_null((void *)lib.init);
	cr_expect(!loaded("libBrokenLocale.so.1"));
}

/*
 * The library directory
 */

Test(load, installed_library_by_name)
{
	cr_expect_eq(dreg_library_open(&lib, LONE), 0);
	cr_expect(loaded(whole(LONE)));
	dreg_library_close(&lib);
}

Test(load, broken_installed_library_says_why)
{
	check_failed(UNRESOLVED, -ENOENT);
	cr_expect(strstr(logged, "odd_library_needs"), "%s", logged);
}

Test(load, name_with_a_slash_is_not_looked_for)
{
	check_failed("./" LONE, -ENOENT);
}

/*
 * Privileged processes
 */

Test(load, relative_path_is_nothing_for_a_privileged_process)
{
	char here[4096], *slash;

	strcpy(here, whole(LONE));
	slash = strrchr(here, '/');
	*slash = '\0';
	cr_assert_eq(chdir(here), 0);
	cr_expect_eq(dreg_library_open(&lib, "./" LONE), 0);
	dreg_library_close(&lib);
	privileged = true;
	check_failed("./" LONE, -EPERM);
	check_failed("../.libs/" LONE, -EPERM);
	cr_expect(!loaded(whole(LONE)));
}

Test(load, other_names_are_for_a_privileged_process_too)
{
	privileged = true;
	cr_expect_eq(dreg_library_open(&lib, whole(LONE)), 0);
	dreg_library_close(&lib);
	cr_expect_eq(dreg_library_open(&lib, LONE), 0);
	dreg_library_close(&lib);
}

/*
 * Libraries
 */

Test(load, provider_that_cannot_be_stopped)
{
	cr_expect_eq(dreg_library_open(&lib, whole(LONE)), 0);
	cr_expect_eq((void *)lib.init, dlsym(lib.dl, "dat_provider_init"));
	cr_expect_null((void *)lib.fini);
	cr_expect_eq(log_type, DREG_LOG_PROVIDER_API);
	dreg_library_close(&lib);
}

Test(load, closed_library_is_forgotten)
{
	cr_assert_eq(dreg_library_open(&lib, whole(LONE)), 0);
	dreg_library_close(&lib);
	cr_expect_null(lib.dl);
	cr_expect_null((void *)lib.init);
	cr_expect(!loaded(whole(LONE)));
	dreg_library_close(&lib);	/* does nothing */
}

Test(load, each_open_holds_the_library)
{
	struct dreg_library second;

	cr_assert_eq(dreg_library_open(&lib, whole(LONE)), 0);
	cr_assert_eq(dreg_library_open(&second, whole(LONE)), 0);
	dreg_library_close(&lib);
	cr_expect(loaded(whole(LONE)));
	cr_expect_eq((void *)second.init, dlsym(second.dl, "dat_provider_init"));
	dreg_library_close(&second);
	cr_expect(!loaded(whole(LONE)));
}

Test(load, only_2_0_providers_show_their_symbols)
{
	cr_assert_eq(dreg_library_open(&lib, whole(LONE)), 0);
	cr_expect_eq(!!dlsym(RTLD_DEFAULT, "odd_library_mark"), DAT_VERSION_MAJOR >= 2);
	dreg_library_close(&lib);
}
