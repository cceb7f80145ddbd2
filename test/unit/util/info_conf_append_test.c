/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appending to dat.conf: old entries stay, nothing is added twice, a failure changes nothing. */
#include "info_conf_append.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* DAT_CONFDIR is "." here, a directory of the test. */
static char dir[] = "/tmp/dat-append-test-XXXXXX";

static void set_up(void)
{
	unsetenv("DAT_OVERRIDE");
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void tear_down(void)
{
	char command[64];

	cr_assert_eq(chdir("/"), 0);
	sprintf(command, "rm -r %s", dir);
	cr_expect_eq(system(command), 0);
}

TestSuite(append, .init = set_up, .fini = tear_down);

#define LINE(name, api, threads) name " " api " " threads " default lib.so d.1.0 \"\" \"\"\n"
#define A LINE("a", "u2.0", "threadsafe")
#define B LINE("b", "u2.0", "threadsafe")

static void put(const char *text)
{
	FILE *f = fopen("dat.conf", "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

static const char *content(const char *name)
{
	static char text[65536];
	FILE *f = fopen(name, "r");
	size_t n;

	if (!f)
		return "none";
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Appends @lines to a file with @old. Checks their number and the result; no other file is left. */
static void appends(const char *old, const char *lines, int n, const char *new)
{
	put(old);
	cr_expect_eq(conf_append("dat.conf", lines), n);
	cr_expect_str_eq(content("dat.conf"), new);
	cr_expect_eq(system("test \"$(ls -A)\" = dat.conf"), 0);
}

Test(append, lines_follow_those_of_the_file)
{
	appends("# mine\n" A, "# a comment\n" B, 1, "# mine\n" A B);
}

Test(append, nothing_is_added_twice)
{
	appends(A B, A B, 0, A B);
}

Test(append, entry_with_another_library_is_there)
{
	appends("a u2.0 threadsafe default mine.so d.1.0 \"x\" \"\"\n", A B, 1,
		"a u2.0 threadsafe default mine.so d.1.0 \"x\" \"\"\n" B);
}

Test(append, entry_of_another_kind_is_not_there)
{
	appends(A, LINE("a", "u1.2", "threadsafe") LINE("a", "u2.0", "nonthreadsafe"), 2,
		A LINE("a", "u1.2", "threadsafe") LINE("a", "u2.0", "nonthreadsafe"));
}

Test(append, entry_in_a_comment_is_not_there)
{
	appends("#" A, A, 1, "#" A A);
}

Test(append, last_line_without_an_end)
{
	appends("# mine", A, 1, "# mine\n" A);
}

Test(append, bad_lines_stay)
{
	appends("broken\n", A, 1, "broken\n" A);
}

Test(append, empty_file)
{
	appends("", A, 1, A);
}

Test(append, missing_file_is_made)
{
	struct stat st;

	cr_expect_eq(conf_append("dat.conf", A), 1);
	cr_expect_str_eq(content("dat.conf"), A);
	cr_assert_eq(stat("dat.conf", &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0644);
}

Test(append, mode_stays)
{
	struct stat st;

	put(A);
	cr_assert_eq(chmod("dat.conf", 0640), 0);
	cr_expect_eq(conf_append("dat.conf", B), 1);
	cr_assert_eq(stat("dat.conf", &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0640);
}

Test(append, link_stays)
{
	struct stat st;

	put(A);
	cr_assert_eq(symlink("dat.conf", "link"), 0);
	cr_expect_eq(conf_append("link", B), 1);
	cr_assert_eq(lstat("link", &st), 0);
	cr_expect(S_ISLNK(st.st_mode));
	cr_expect_str_eq(content("dat.conf"), A B);
}

/* A reader that has the old file open still reads it whole. */
Test(append, file_is_replaced_in_one_step)
{
	char text[512];
	size_t n;
	FILE *f;

	put(A);
	f = fopen("dat.conf", "r");
	cr_assert(f);
	cr_expect_eq(conf_append("dat.conf", B), 1);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	cr_expect_str_eq(text, A);
}

/* The registry reads 1 MiB. */
Test(append, a_file_whose_end_is_ignored_is_refused)
{
	FILE *f = fopen("dat.conf", "w");
	struct stat st;
	size_t n = 0;

	cr_assert(f);
	while (n < (1 << 20) - strlen(A) - 200)
		n += (size_t)fprintf(f, "# %098d\n", 0);
	fclose(f);
	cr_expect_eq(conf_append("dat.conf", A), 1);
	f = fopen("dat.conf", "a");
	for (n = 0; n < 3; n++)
		fprintf(f, "# %098d\n", 0);
	fclose(f);
	cr_expect_eq(conf_append("dat.conf", B), -EFBIG);
	cr_expect_eq(stat("dat.conf", &st), 0);
	cr_expect(st.st_size > 1 << 20);
	cr_expect(access("dat.conf.new", F_OK), "the new file stays");
}

Test(append, a_file_that_a_killed_call_left_is_replaced)
{
	FILE *f = fopen("dat.conf.new", "w");

	fputs(B, f);
	fclose(f);
	put("");
	cr_expect_eq(conf_append("dat.conf", A), 1);
	cr_expect_str_eq(content("dat.conf"), A);
	cr_expect(access("dat.conf.new", F_OK), "the new file stays");
}

Test(append, directory_is_refused)
{
	cr_assert_eq(mkdir("dat.conf", 0700), 0);
	cr_expect_eq(conf_append("dat.conf", A), -EINVAL);
}

Test(append, device_is_refused)
{
	cr_expect_eq(conf_append("/dev/null", A), -EINVAL);
}

Test(append, missing_directory_is_an_error)
{
	cr_expect_eq(conf_append("nowhere/dat.conf", A), -ENOENT);
}

/* Each of several calls at once adds its own entry. */
Test(append, calls_at_once_lose_nothing)
{
	char line[64];
	int i, status;

	put("");
	for (i = 0; i < 8; i++)
		if (!fork()) {
			sprintf(line, "n%d u2.0 threadsafe default lib.so d.1.0 \"\" \"\"\n", i);
			_exit(conf_append("dat.conf", line) != 1);
		}
	for (i = 0; i < 8; i++) {
		cr_assert(wait(&status) > 0);
		cr_expect_eq(status, 0);
	}
	for (i = 0; i < 8; i++) {
		sprintf(line, "n%d u2.0", i);
		cr_expect(strstr(content("dat.conf"), line), "%s", line);
	}
}

static const char *path(void)
{
	static char text[4096];

	conf_path(text, sizeof(text));
	return text;
}

Test(append, path_is_the_overriding_file)
{
	setenv("DAT_OVERRIDE", "/some/file", 1);
	cr_expect_str_eq(path(), "/some/file");
}

Test(append, path_is_next_to_included_files)
{
	cr_assert_eq(mkdir("dat.conf.d", 0700), 0);
	cr_expect_str_eq(path(), "./dat.conf");
}

static const char *override(void)
{
	const char *path = getenv("DAT_OVERRIDE");

	cr_assert(path);
	return content(path);
}

Test(append, own_library_of_the_file)
{
	put(A "x u2.0 threadsafe default /other/libdaplofa.so.2 d.2.0 \"\" \"\"\n"
	    "y u1.2 threadsafe default /old/libdaplofi.so.1 d.1.2 \"\" \"\"\n"
	    "z u2.0 threadsafe default /mine/libdaplofi.so.2 d.2.0 \"\" \"\"\n");
	cr_expect(conf_own_only("/lib"));
	cr_expect_str_eq(override(), "ofi u2.0 nonthreadsafe default \"/mine/libdaplofi.so.2\" "
				     "dapl.2.0 \"\" \"\"\n");
}

Test(append, own_library_without_an_entry)
{
	put(A);
	cr_expect(conf_own_only("/lib"));
	cr_expect(strstr(override(), " \"/lib/libdaplofi.so.2\" "), "%s", override());
}
