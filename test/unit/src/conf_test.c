/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat.conf: each recorded file in test/data/dat.conf gives the recorded entries and errors. */

#include "conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_entry(void *out, unsigned int line, const struct dreg_conf_entry *e)
{
	fprintf(out, "%u: %s %c%u.%u %s %s [%s] [%s] [%s] [%s]\n", line, e->name,
		e->user ? 'u' : 'k', e->major, e->minor,
		e->threadsafe ? "threadsafe" : "nonthreadsafe",
		e->usable ? "default" : "nondefault", e->library, e->version, e->ia_params,
		e->platform_params);
}

static void print_bad(void *out, unsigned int line, const char *reason, bool ends)
{
	fprintf(out, "%u: bad: %s%s\n", line, reason, ends ? ", the last line read" : "");
}

static FILE *data(const char *name, const char *suffix)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/test/data/dat.conf/%s.%s", top ? top : ".", name, suffix);
	f = fopen(path, "r");
	cr_assert(f, "%s: %s", path, strerror(errno));
	return f;
}

static char *slurp(FILE *f)
{
	char *text = NULL;
	size_t size = 0;

	if (getdelim(&text, &size, EOF, f) < 0)
		text[0] = '\0';
	fclose(f);
	return text;
}

static char *parse(FILE *f)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const struct dreg_conf_sink sink = { print_entry, print_bad, out };

	dreg_conf_read(f, &sink);
	fclose(f);
	fclose(out);
	return text;
}

static void recorded(const char *name)
{
	char *is = parse(data(name, "conf"));
	char *should = slurp(data(name, "expected"));

	cr_expect_str_eq(is, should);
	free(is);
	free(should);
}

Test(conf, plain) { recorded("plain"); }
Test(conf, crlf) { recorded("crlf"); }
Test(conf, last_line_without_newline) { recorded("no-newline"); }
Test(conf, quotes) { recorded("quotes"); }
Test(conf, blanks_and_comments) { recorded("blanks"); }
Test(conf, number_of_fields) { recorded("fields"); }
Test(conf, keywords_are_exact) { recorded("keywords"); }
Test(conf, versions) { recorded("versions"); }
Test(conf, names) { recorded("names"); }
Test(conf, empty) { recorded("empty"); }

/* The installed file: no bad line, and each name for both API versions. */
Test(conf, our_own_file)
{
	const char *top = getenv("top_srcdir"), *name[] = {
		"ofi", "ofi-tcp", "ofi-sockets", "ofi-shm", "ofi-verbs", "ofi-tcp-rdm",
		"ofi-sockets-rdm", "ofi-rxm", "ofi-efa",
	};
	char path[4096], want[64], *text;
	size_t i, api;
	FILE *f;

	snprintf(path, sizeof(path), "%s/contrib/dat.conf.in", top ? top : ".");
	f = fopen(path, "r");
	cr_assert(f, "%s: %s", path, strerror(errno));
	text = parse(f);
	cr_expect_null(strstr(text, ": bad: "), "%s", text);
	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		for (api = 0; api < 2; api++) {
			snprintf(want, sizeof(want), ": %s u%s nonthreadsafe default ", name[i],
				 api ? "2.0" : "1.2");
			cr_expect(strstr(text, want), "%s", want);
		}
	free(text);
}

Test(conf, directory_is_an_error)
{
	FILE *f = fopen("/", "r");
	char *text;

	cr_assert(f);
	text = parse(f);
	cr_expect_str_eq(text, "1: bad: Is a directory, the last line read\n");
	free(text);
}

/* No prefix of a valid line parses like the whole line, and nothing is read past the end. */
Test(conf, truncated_anywhere)
{
	static const char whole[] = "\"a\\\"b\" u2.0 threadsafe default lib.so d.2.0 \"x\" \"y\"";
	struct dreg_conf_entry entry;
	const char *reason;
	size_t n;

	for (n = 0; n < sizeof(whole); n++) {
		char *line = strndup(whole, n); /* exact size, for the sanitizers */
		enum dreg_conf_kind kind = dreg_conf_parse(line, n, &entry, &reason);

		cr_expect_eq(kind, n == 0 ? DREG_CONF_BLANK :
				   n == sizeof(whole) - 1 ? DREG_CONF_ENTRY : DREG_CONF_BAD,
			     "%zu bytes", n);
		free(line);
	}
}

/* Arbitrary bytes are parsed to the end, within bounds. */
Test(conf, any_bytes)
{
	static const char alphabet[] = "u2.0 \t\"\\#\r\vabk";
	struct dreg_conf_entry entry;
	unsigned int seed = 1, round, i;
	const char *reason;

	for (round = 0; round < 20000; round++) {
		size_t n = rand_r(&seed) % 60;
		char *line = malloc(n + 1);

		for (i = 0; i < n; i++)
			line[i] = alphabet[rand_r(&seed) % (sizeof(alphabet) - 1)];
		line[n] = '\0';
		if (dreg_conf_parse(line, n, &entry, &reason) == DREG_CONF_BAD)
			cr_assert(reason);
		free(line);
	}
}

/*
 * Which files there are
 */

static char dir[] = "/tmp/dat-conf-test-XXXXXX";

static void make_dir(void)
{
	cr_assert(mkdtemp(dir));
}

static char *in_dir(const char *name)
{
	char *path;

	cr_assert(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static void put(const char *name)
{
	char *path = in_dir(name);
	FILE *f = fopen(path, "w");

	cr_assert(f, "%s", path);
	fclose(f);
	free(path);
}

static void remove_dir(void)
{
	char *command;

	cr_assert(asprintf(&command, "rm -r %s", dir) > 0);
	cr_expect_eq(system(command), 0);
	free(command);
}

TestSuite(conf_files, .init = make_dir, .fini = remove_dir);

Test(conf_files, first_directory_with_a_file)
{
	const char *const dirs[] = { "/nowhere", "/dev/null", dir, "/", NULL };

	put("dat.conf");
	cr_expect_eq(dreg_conf_dir(dirs), dir);
}

Test(conf_files, first_directory_with_included_files)
{
	const char *const dirs[] = { "/nowhere", dir, "/", NULL };
	char *path = in_dir("dat.conf.d");

	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(dreg_conf_dir(dirs), dir);
	free(path);
}

Test(conf_files, no_directory)
{
	const char *const dirs[] = { "/nowhere", dir, NULL };

	put("dat.conf.old");
	cr_expect_null(dreg_conf_dir(dirs));
}

/* A link to itself cannot be read, but the administrator has chosen this directory. */
Test(conf_files, file_that_cannot_be_read_counts)
{
	const char *const dirs[] = { dir, "/", NULL };
	char *path = in_dir("dat.conf");

	cr_assert_eq(symlink("dat.conf", path), 0);
	cr_expect_eq(dreg_conf_dir(dirs), dir);
	cr_expect_null(dreg_conf_open(path));
	cr_expect_eq(errno, ELOOP);
	free(path);
}

Test(conf_files, included_files_in_order_of_their_bytes)
{
	static const char *const names[] = {
		"b.conf", "a.conf", "B.conf", "10.conf", "9.conf", ".hidden.conf", "c.conf~",
		"d.conf.dpkg-old", "conf", ".conf", "e.CONF",
	};
	char list[256] = "";
	struct dirent **d;
	size_t k;
	int n, i;

	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		put(names[k]);
	n = dreg_conf_included(dir, &d);
	cr_assert(n >= 0);
	for (i = 0; i < n; i++) {
		strcat(strcat(list, d[i]->d_name), " ");
		free(d[i]);
	}
	free(d);
	cr_expect_str_eq(list, "10.conf 9.conf B.conf a.conf b.conf ");
}

Test(conf_files, directory_that_is_missing_or_none)
{
	char *path = in_dir("file");
	struct dirent **d;

	put("file");
	cr_expect_eq(dreg_conf_included("/nowhere", &d), -ENOENT);
	cr_expect_eq(dreg_conf_included(path, &d), -ENOTDIR);
	free(path);
}
