/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The static registry: how a line of dat.conf is handled, which file is read, and which lines match
 * a request. conf_test.c tests the grammar.
 */

#include "entry.h"

#include "conf.h"
#include "log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#if DAT_VERSION_MAJOR >= 2
#define OWN	"u2.0"
#define OTHER	"u1.2"
#else
#define OWN	"u1.2"
#define OTHER	"u2.0"
#endif
#define LINE(name, api, safe, lib) name " " api " " safe " default " lib " x.1.0 \"\" \"\"\n"
#define PLAIN	"nonthreadsafe"
#define SAFE	"threadsafe"

static char errors[4096], others[4096];

void dreg_log(enum dreg_log_type type, const char *fmt, ...)
{
	char *to = type == DREG_LOG_ERROR ? errors : others;
	size_t len = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + len, sizeof(errors) - len, fmt, ap);
	va_end(ap);
}

/* An allocation that fails, by the linker's --wrap. */
static int left = INT_MAX;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return left != INT_MAX && !left-- ? NULL : __real_calloc(n, size);
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	return left != INT_MAX && !left-- ? NULL : __real_strdup(s);
}

/* A directory of the test. Its dat.conf is found first, because DAT_CONFDIR is "." here. */

static char dir[] = "/tmp/dat-entry-test-XXXXXX";

static void set_up(void)
{
	unsetenv("DAT_OVERRIDE");
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void tear_down(void)
{
	char command[64];

	dreg_entries_free();
	cr_assert_eq(chdir("/"), 0);
	sprintf(command, "rm -r %s", dir);
	cr_expect_eq(system(command), 0);
}

TestSuite(entry, .init = set_up, .fini = tear_down);

static void write_conf(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

static int read_error;	/* of entries_of() */

/* The names and libraries of the entries in @text. */
static const char *entries_of(const char *text)
{
	static char list[1024];
	const struct dreg_entry *e;

	write_conf("dat.conf", text);
	read_error = dreg_entries_read();
	list[0] = '\0';
	for (e = dreg_entries(); e; e = e->next)
		sprintf(list + strlen(list), "%s=%s ", e->info.ia_name, e->library);
	return list;
}

/*
 * Lines
 */

Test(entry, bad_line_is_reported_and_skipped)
{
	cr_expect_str_eq(entries_of("broken\n" LINE("a", OWN, PLAIN, "/a.so")), "a=/a.so ");
	cr_expect_str_eq(errors, "./dat.conf:1: fewer than eight fields");
}

#define BAD_FIELD(test, line)								\
	Test(entry, test)								\
	{										\
		cr_expect_str_eq(entries_of(line LINE("b", OWN, PLAIN, "/b.so")), "b=/b.so ");	\
		cr_expect(!strncmp(errors, "./dat.conf:1: ", 14), "%s", errors);	\
	}

BAD_FIELD(bad_api_kind, LINE("a", "x2.0", PLAIN, "/a.so"))
BAD_FIELD(bad_api_version, LINE("a", "u2", PLAIN, "/a.so"))
BAD_FIELD(bad_api_number, LINE("a", "u4294967296.0", PLAIN, "/a.so"))
BAD_FIELD(bad_thread_safety, LINE("a", OWN, "safe", "/a.so"))
BAD_FIELD(bad_default, "a " OWN " " PLAIN " maybe /a.so x.1.0 \"\" \"\"\n")
BAD_FIELD(empty_name, LINE("\"\"", OWN, PLAIN, "/a.so"))
BAD_FIELD(empty_library, LINE("a", OWN, PLAIN, "\"\""))
BAD_FIELD(ninth_field, "a " OWN " " PLAIN " default /a.so x.1.0 \"\" \"\" more\n")
BAD_FIELD(unclosed_quote, "a " OWN " " PLAIN " default /a.so x.1.0 \"\" \"\n")

/* A name of @len bytes. DAT_NAME_MAX_LENGTH includes the NUL. */
static const char *conf_with_name(size_t len)
{
	static char text[1024];

	memset(text, 'n', len);
	strcpy(text + len, LINE("", OWN, PLAIN, "/a.so"));
	return text;
}

Test(entry, name_too_long)
{
	cr_expect_str_eq(entries_of(conf_with_name(DAT_NAME_MAX_LENGTH)), "");
	cr_expect(*errors);
}

Test(entry, longest_name)
{
	entries_of(conf_with_name(DAT_NAME_MAX_LENGTH - 1));
	cr_assert(dreg_entries());
	cr_expect_eq(strlen(dreg_entries()->info.ia_name), DAT_NAME_MAX_LENGTH - 1);
}

Test(entry, line_for_the_kernel_is_ignored)
{
	cr_expect_str_eq(entries_of(LINE("a", "k2.0", PLAIN, "/a.so")), "");
	cr_expect_str_eq(errors, "");
	cr_expect_str_eq(others, "./dat.conf:1: a is for the kernel, ignored");
}

Test(entry, nondefault_line_is_ignored)
{
	cr_expect_str_eq(entries_of("a " OWN " " PLAIN " nondefault /a.so x.1.0 \"\" \"\"\n"), "");
	cr_expect_str_eq(others, "./dat.conf:1: a is not a default, ignored");
}

Test(entry, fields_are_kept)
{
	const struct dreg_entry *e;

	entries_of("a u3.9 threadsafe default lib.so x.1.0 \"p \\\"q\\\"\" platform\n");
	e = dreg_entries();
	cr_assert(e);
	cr_expect_str_eq(e->info.ia_name, "a");
	cr_expect_eq(e->info.dapl_version_major, 3);
	cr_expect_eq(e->info.dapl_version_minor, 9);
	cr_expect_eq(e->info.is_thread_safe, DAT_TRUE);
	cr_expect_str_eq(e->library, "lib.so");
	cr_expect_str_eq(e->ia_params, "p \"q\"");
	cr_expect_str_eq(e->origin, "./dat.conf:1");
	cr_expect_eq(e->users, 0);
	cr_expect_null(e->lib.dl);
}

Test(entry, order_of_the_file_and_other_versions_stay)
{
	cr_expect_str_eq(entries_of(LINE("b", OTHER, PLAIN, "1") LINE("a", OWN, SAFE, "2")
				    LINE("b", OWN, PLAIN, "3")), "b=1 a=2 b=3 ");
}

/*
 * An entry makes three allocations. After a failure of any of them, the next call reads all lines.
 */
static void one_without_memory(int n)
{
	const char *conf = LINE("a", OWN, PLAIN, "1") LINE("b", OWN, PLAIN, "2")
		LINE("c", OWN, PLAIN, "3");

	left = 3 + n;
	cr_expect_str_eq(entries_of(conf), "");
	cr_expect_eq(read_error, -ENOMEM);
	cr_expect_str_eq(errors, "./dat.conf:2: no memory for b");
	cr_expect_str_eq(entries_of(conf), "a=1 b=2 c=3 ");
	cr_expect_eq(read_error, 0);
}

Test(entry, no_memory_for_an_entry)
{
	one_without_memory(0);
}

Test(entry, no_memory_for_its_library)
{
	one_without_memory(1);
}

Test(entry, no_memory_for_its_parameters)
{
	one_without_memory(2);
}

/*
 * Files
 */

Test(entry, override_that_is_missing_is_not_replaced)
{
	setenv("DAT_OVERRIDE", "other.conf", 1);
	cr_expect_str_eq(entries_of(LINE("a", OWN, PLAIN, "1")), "");
	cr_expect_str_eq(errors, "cannot read other.conf: No such file or directory");
}

/* Reads dat.conf with @text while no descriptor is left, and then restores the limit. */
static const char *without_descriptors(const char *text)
{
	struct rlimit none = { 0, 0 }, before;
	const char *list;

	write_conf("dat.conf", text);
	getrlimit(RLIMIT_NOFILE, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	read_error = dreg_entries_read();
	list = dreg_entries() ? "some" : "";
	setrlimit(RLIMIT_NOFILE, &before);
	return list;
}

Test(entry, file_is_read_when_there_are_descriptors_again)
{
	cr_expect_str_eq(without_descriptors(LINE("a", OWN, PLAIN, "1")), "");
	cr_expect_eq(read_error, -EMFILE);
	cr_expect_str_eq(errors, "cannot read ./dat.conf: Too many open files");
	cr_expect_str_eq(entries_of(LINE("a", OWN, PLAIN, "1")), "a=1 ");
	cr_expect_eq(read_error, 0);
}

/* A permanent read error is logged once, however many times the registry is called. */
static void never_read(const char *path, const char *error)
{
	setenv("DAT_OVERRIDE", path, 1);
	cr_expect_str_eq(entries_of(""), "");
	cr_expect_eq(read_error, 0);
	cr_expect_str_eq(entries_of(""), "");
	cr_expect_str_eq(errors, error);
}

Test(entry, override_that_is_a_directory)
{
	never_read("/", "cannot read /: not a regular file");
}

Test(entry, override_that_is_a_device)
{
	never_read("/dev/zero", "cannot read /dev/zero: not a regular file");
}

Test(entry, override_by_the_null_device_is_empty)
{
	never_read("/dev/null", "");
}

Test(entry, override_that_is_a_fifo)
{
	cr_assert_eq(mkfifo("other.conf", 0600), 0);
	never_read("other.conf", "cannot read other.conf: not a regular file");
}

Test(entry, longest_line_and_a_longer_one)
{
	static char text[2 * DREG_CONF_LINE_SIZE + 256];
	size_t longest = DREG_CONF_LINE_SIZE - 1;

	sprintf(text, "a " OWN " " PLAIN " default 1 x.1.0 \"\" \"\"");
	memset(text + strlen(text), ' ', longest - strlen(text));
	sprintf(text + longest, "\n" LINE("b", OWN, PLAIN, "2") "#");
	memset(text + strlen(text), 'x', longest);
	strcat(text, "\n" LINE("c", OWN, PLAIN, "3"));
	cr_expect_str_eq(entries_of(text), "a=1 b=2 c=3 ");
	cr_expect_str_eq(errors, "./dat.conf:3: the line has more than 8191 bytes");
}

Test(entry, file_that_is_too_long)
{
	FILE *f = fopen("other.conf", "w");
	int i;

	cr_assert(f);
	fputs(LINE("a", OWN, PLAIN, "1"), f);
	for (i = 0; i < DREG_CONF_FILE_SIZE / 1024; i++)
		fprintf(f, "#%1022s\n", "");
	fputs(LINE("b", OWN, PLAIN, "2"), f);
	fclose(f);
	setenv("DAT_OVERRIDE", "other.conf", 1);
	cr_expect_str_eq(entries_of(""), "a=1 ");
	cr_expect_str_eq(errors, "other.conf:1025: the file exceeds 1 MiB here; "
				 "this line and the rest are ignored");
}

Test(entry, line_that_never_ends)
{
	FILE *f = fopen("other.conf", "w");

	cr_assert(f);
	fputs(LINE("a", OWN, PLAIN, "1") "broken\n" "broken too\n", f);
	fclose(f);
	cr_assert_eq(truncate("other.conf", (off_t)1 << 40), 0);
	setenv("DAT_OVERRIDE", "other.conf", 1);
	cr_expect_str_eq(entries_of(""), "a=1 ");
	/* bad lines before it do not hide it */
	cr_expect(strstr(errors, "other.conf:4: the file exceeds 1 MiB here"), "%s", errors);
	cr_expect(strstr(errors, "other.conf:2: fewer"), "%s", errors);
	cr_expect(!strstr(errors, "other.conf:3: "), "%s", errors);
	cr_expect(strstr(errors, "other.conf: 2 such lines are ignored"), "%s", errors);
}

Test(entry, override_replaces_the_installed_file)
{
	setenv("DAT_OVERRIDE", "other.conf", 1);
	write_conf("other.conf", LINE("o", OWN, PLAIN, "2"));
	cr_expect_str_eq(entries_of(LINE("a", OWN, PLAIN, "1")), "o=2 ");
}

Test(entry, file_is_read_once)
{
	cr_expect_str_eq(entries_of(LINE("a", OWN, PLAIN, "1")), "a=1 ");
	cr_expect_str_eq(entries_of(LINE("b", OWN, PLAIN, "2")), "a=1 ");
}

Test(entry, freed_entries_are_gone)
{
	cr_expect_str_eq(entries_of(LINE("a", OWN, PLAIN, "1")), "a=1 ");
	dreg_entries_free();
	cr_expect_null(dreg_entries());
	dreg_entries_free();
}

/*
 * Included files
 */

static void include(const char *name, const char *text)
{
	char path[256];

	sprintf(path, "dat.conf.d/%s", name);
	mkdir("dat.conf.d", 0700);
	write_conf(path, text);
}

Test(entry, included_files_follow_in_order_of_their_names)
{
	include("b.conf", LINE("b", OWN, PLAIN, "2"));
	include("a.conf", LINE("a", OWN, PLAIN, "1"));
	include("c.conf~", LINE("c", OWN, PLAIN, "3"));
	cr_expect_str_eq(entries_of(LINE("z", OWN, PLAIN, "0")), "z=0 a=1 b=2 ");
	cr_expect_str_eq(errors, "");
}

Test(entry, included_files_alone)
{
	include("a.conf", LINE("a", OWN, PLAIN, "1"));
	cr_assert_eq(dreg_entries_read(), 0);
	cr_assert(dreg_entries());
	cr_expect_str_eq(dreg_entries()->library, "1");
	cr_expect_str_eq(errors, "");
}

Test(entry, included_file_and_line_of_an_error_are_named)
{
	include("a.conf", "\n" LINE("a", OWN, PLAIN, "1") "broken\n");
	cr_expect_str_eq(entries_of(""), "a=1 ");
	cr_expect_str_eq(errors, "./dat.conf.d/a.conf:3: fewer than eight fields");
}

/* The library of the file is tried first. */
Test(entry, line_of_the_file_is_tried_before_an_included_one)
{
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;
	const struct dreg_request rq = { "a", DAT_VERSION_MAJOR, 0, false };
	struct dreg_entry **list;

	include("a.conf", LINE("a", OWN, PLAIN, "later"));
	entries_of(LINE("a", OWN, PLAIN, "first"));
	list = dreg_entry_candidates(&rq, &lacking);
	cr_assert(list && list[0] && list[1]);
	cr_expect_str_eq(list[0]->library, "first");
	cr_expect_str_eq(list[1]->library, "later");
	free(list);
}

Test(entry, override_includes_no_files)
{
	include("a.conf", LINE("a", OWN, PLAIN, "1"));
	write_conf("other.conf", LINE("o", OWN, PLAIN, "2"));
	setenv("DAT_OVERRIDE", "./other.conf", 1);
	cr_expect_str_eq(entries_of(LINE("z", OWN, PLAIN, "0")), "o=2 ");
}

Test(entry, included_file_that_cannot_be_read_leaves_the_others)
{
	include("b.conf", LINE("b", OWN, PLAIN, "2"));
	cr_assert_eq(mkdir("dat.conf.d/a.conf", 0700), 0);
	cr_expect_str_eq(entries_of(""), "b=2 ");
	cr_expect_eq(read_error, 0);
	cr_expect_str_eq(errors, "cannot read ./dat.conf.d/a.conf: not a regular file");
}

Test(entry, include_directory_that_is_a_file)
{
	write_conf("dat.conf.d", LINE("a", OWN, PLAIN, "1"));
	cr_expect_str_eq(entries_of(LINE("z", OWN, PLAIN, "0")), "z=0 ");
	cr_expect_eq(read_error, 0);
	cr_expect_str_eq(errors, "cannot read ./dat.conf.d: Not a directory");
}

/* A failed attempt leaves no entry; the next one reads all files. */
Test(entry, included_files_are_read_when_there_is_memory_again)
{
	include("a.conf", LINE("a", OWN, PLAIN, "1"));
	include("b.conf", LINE("b", OWN, PLAIN, "2"));
	left = 3;
	cr_expect_str_eq(entries_of(LINE("z", OWN, PLAIN, "0")), "");
	cr_expect_eq(read_error, -ENOMEM);
	cr_expect_str_eq(errors, "./dat.conf.d/a.conf:1: no memory for a");
	cr_expect_str_eq(entries_of(LINE("z", OWN, PLAIN, "0")), "z=0 a=1 b=2 ");
	cr_expect_eq(read_error, 0);
}

/*
 * Matching
 */

static const struct dreg_request request = { "a", DAT_VERSION_MAJOR, 5, false };
static const struct dreg_request safe_request = { "a", DAT_VERSION_MAJOR, 5, true };

static DAT_PROVIDER_INFO info_of(const char *name, DAT_UINT32 major, DAT_UINT32 minor, bool safe)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = major,
		.dapl_version_minor = minor,
		.is_thread_safe = safe ? DAT_TRUE : DAT_FALSE,
	};

	strcpy(info.ia_name, name);
	return info;
}

/* The mismatch of a provider with a request, or DAT_NO_SUBTYPE if it matches. */
static DAT_RETURN_SUBTYPE lacks(DAT_PROVIDER_INFO info, const struct dreg_request *rq)
{
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;
	bool no = dreg_match(&info, rq, &lacking) == DREG_NO_MATCH;

	cr_expect_eq(no, lacking != DAT_NO_SUBTYPE);
	return lacking;
}

static uint64_t rank(DAT_UINT32 minor, bool safe, const struct dreg_request *rq)
{
	const DAT_PROVIDER_INFO info = info_of("a", DAT_VERSION_MAJOR, minor, safe);
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;

	return dreg_match(&info, rq, &lacking);
}

Test(entry, other_name)
{
	cr_expect_eq(lacks(info_of("A", DAT_VERSION_MAJOR, 5, true), &request),
		     DAT_NAME_NOT_REGISTERED);
}

Test(entry, other_major_version)
{
	cr_expect_eq(lacks(info_of("a", 3 - DAT_VERSION_MAJOR, 5, true), &request),
		     DAT_MAJOR_NOT_FOUND);
}

/* The program requests this version, but this library cannot call it. */
Test(entry, major_version_of_the_other_library)
{
	const struct dreg_request rq = { "a", 3 - DAT_VERSION_MAJOR, 5, false };

	cr_expect_eq(lacks(info_of("a", 3 - DAT_VERSION_MAJOR, 5, true), &rq), DAT_MAJOR_NOT_FOUND);
}

Test(entry, lower_minor_version)
{
	cr_expect_eq(lacks(info_of("a", DAT_VERSION_MAJOR, 4, true), &request),
		     DAT_MINOR_NOT_FOUND);
}

Test(entry, unsafe_for_a_safe_request)
{
	cr_expect_eq(lacks(info_of("a", DAT_VERSION_MAJOR, 5, false), &safe_request),
		     DAT_THREAD_SAFETY_NOT_FOUND);
}

Test(entry, nearest_miss_is_remembered)
{
	DAT_PROVIDER_INFO near = info_of("a", DAT_VERSION_MAJOR, 4, true);
	DAT_PROVIDER_INFO far = info_of("b", DAT_VERSION_MAJOR, 5, true);
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;

	dreg_match(&near, &request, &lacking);
	dreg_match(&far, &request, &lacking);
	cr_expect_eq(lacking, DAT_MINOR_NOT_FOUND);
}

Test(entry, exact_is_best)
{
	cr_expect_eq(rank(5, false, &request), 0);
	cr_expect_eq(rank(5, true, &safe_request), 0);
	cr_expect(rank(5, true, &request) > 0);
}

Test(entry, safety_without_need_before_a_later_version)
{
	cr_expect(rank(5, true, &request) < rank(6, false, &request));
	cr_expect(rank(5, true, &request) < rank(UINT32_MAX, false, &request));
}

Test(entry, higher_minor_version_before_a_lower)
{
	cr_expect(rank(9, true, &request) < rank(6, false, &request));
	cr_expect(rank(UINT32_MAX, true, &request) < rank(UINT32_MAX - 1, false, &request));
}

static const char *candidates(const struct dreg_request *rq)
{
	static char list[256];
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;
	struct dreg_entry **all = dreg_entry_candidates(rq, &lacking), **e;

	cr_assert(all);
	list[0] = '\0';
	for (e = all; *e; e++)
		strcat(strcat(list, (*e)->library), " ");
	free(all);
	return list;
}

#if DAT_VERSION_MAJOR >= 2
#define MINOR(n) "u2." n
#else
#define MINOR(n) "u1." n
#endif

Test(entry, candidates_of_an_empty_registry)
{
	entries_of("");
	cr_expect_str_eq(candidates(&request), "");
}

Test(entry, candidates_without_memory)
{
	DAT_RETURN_SUBTYPE lacking = DAT_NO_SUBTYPE;

	entries_of(LINE("a", MINOR("5"), PLAIN, "1"));
	left = 0;
	cr_expect_null(dreg_entry_candidates(&request, &lacking));
}

Test(entry, candidates_best_first_and_equals_as_in_the_file)
{
	entries_of(LINE("a", MINOR("6"), PLAIN, "later") LINE("a", MINOR("5"), SAFE, "safe")
		   LINE("b", MINOR("5"), PLAIN, "other") LINE("a", MINOR("5"), PLAIN, "one")
		   LINE("a", MINOR("4"), PLAIN, "low") LINE("a", MINOR("8"), PLAIN, "last")
		   LINE("a", MINOR("5"), PLAIN, "two"));
	cr_expect_str_eq(candidates(&request), "one two safe last later ");
	cr_expect_str_eq(candidates(&safe_request), "safe ");
}

Test(entry, same_info_differs_in_each_member)
{
	const DAT_PROVIDER_INFO a = info_of("a", 1, 2, true);
	DAT_PROVIDER_INFO b = info_of("b", 1, 2, true);

	cr_expect(!dreg_info_same(&a, &b));
	b = info_of("a", 2, 2, true);
	cr_expect(!dreg_info_same(&a, &b));
	b = info_of("a", 1, 3, true);
	cr_expect(!dreg_info_same(&a, &b));
	b = info_of("a", 1, 2, false);
	cr_expect(!dreg_info_same(&a, &b));
	b = info_of("a", 1, 2, true);
	b.is_thread_safe = (DAT_BOOLEAN)2; /* any value but 0 is true */
	cr_expect(dreg_info_same(&a, &b));
}
