/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat.conf: each recorded file in test/data/dat.conf gives the recorded entries and errors. */

#include "conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_entry(void *out, unsigned int line, const struct dreg_conf_entry *e)
{
	fprintf(out, "%u: %s %c%u.%u %s %s [%s] [%s] [%s] [%s]\n", line, e->name,
		e->user ? 'u' : 'k', e->major, e->minor,
		e->threadsafe ? "threadsafe" : "nonthreadsafe",
		e->usable ? "default" : "nondefault", e->library, e->version, e->ia_params,
		e->platform_params);
}

static void print_bad(void *out, unsigned int line, const char *reason)
{
	fprintf(out, "%u: bad: %s\n", line, reason);
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
		"ofi", "ofi-tcp", "ofi-sockets", "ofi-net", "ofi-shm", "ofi-verbs", "ofi-net-rdm",
		"ofi-tcp-rdm", "ofi-sockets-rdm", "ofi-rxm", "ofi-efa",
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
	cr_expect_str_eq(text, "1: bad: Is a directory\n");
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
 * Location of the file
 */

static char dir[] = "/tmp/dat-conf-test-XXXXXX";

static void make_dir(void)
{
	cr_assert(mkdtemp(dir));
}

static char *in_dir(const char *name, const char *text)
{
	char *path;
	FILE *f;

	cr_assert(asprintf(&path, "%s/%s", dir, name) > 0);
	if (text) {
		f = fopen(path, "w");
		cr_assert(f);
		fputs(text, f);
		fclose(f);
	}
	return path;
}

static void drop(char *path)
{
	unlink(path);
	free(path);
}

Test(conf_open, first_that_exists, .init = make_dir)
{
	char *none = in_dir("none", NULL), *one = in_dir("one", "1"), *two = in_dir("two", "2");
	const char *const paths[] = { none, one, two, NULL };
	const char *path;
	FILE *f = dreg_conf_open(NULL, paths, &path);

	cr_assert(f);
	cr_expect_str_eq(path, one);
	cr_expect_eq(fgetc(f), '1');
	fclose(f);
	drop(none);
	drop(one);
	drop(two);
	rmdir(dir);
}

Test(conf_open, override_wins, .init = make_dir)
{
	char *one = in_dir("one", "1"), *two = in_dir("two", "2");
	const char *const paths[] = { one, NULL };
	const char *path;
	FILE *f = dreg_conf_open(two, paths, &path);

	cr_assert(f);
	cr_expect_str_eq(path, two);
	cr_expect_eq(fgetc(f), '2');
	fclose(f);
	drop(one);
	drop(two);
	rmdir(dir);
}

Test(conf_open, missing_override_is_not_replaced, .init = make_dir)
{
	char *one = in_dir("one", "1"), *none = in_dir("none", NULL);
	const char *const paths[] = { one, NULL };
	const char *path;

	cr_expect_null(dreg_conf_open(none, paths, &path));
	cr_expect_eq(errno, ENOENT);
	cr_expect_str_eq(path, none);
	drop(one);
	drop(none);
	rmdir(dir);
}

Test(conf_open, none_at_all, .init = make_dir)
{
	char *none = in_dir("none", NULL);
	const char *const paths[] = { none, NULL };
	const char *path = "";

	cr_expect_null(dreg_conf_open(NULL, paths, &path));
	cr_expect_null(path);
	drop(none);
	rmdir(dir);
}
