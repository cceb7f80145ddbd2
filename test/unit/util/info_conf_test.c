/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dat.conf entries that datinfo renders. */
#include "info_conf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *render_both(const char *fabrics, const char *rdm, int *n)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	*n = conf_render(out, "/lib", fabrics, rdm);
	fclose(out);
	return text;
}

static char *render(const char *fabrics, int *n)
{
	return render_both(fabrics, "", n);
}

static int count(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

Test(conf, default_name_is_there_for_both_apis_and_kinds_of_program)
{
	int n;
	char *text = render("", &n);

	cr_assert_eq(n, 2);
	cr_assert_eq(count(text, "\nofi "), 4);
	cr_assert(strstr(text, "\nofi u2.0 nonthreadsafe default "
			       "/lib/libdaplofi.so.2 dapl.2.0 \"\" \"\"\n"));
	cr_assert(strstr(text, "\nofi u1.2 threadsafe default "
			       "/lib/libdaplofi.so.1 dapl.1.2 \"\" \"\"\n"));
	free(text);
}

Test(conf, no_directory_leaves_the_search_to_the_linker)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	conf_render(out, "", "", "");
	fclose(out);
	cr_assert_eq(count(text, " default libdaplofi.so."), 8);
	free(text);
}

Test(conf, each_fabric_has_a_name_of_its_own)
{
	int n;
	char *text = render("tcp  sockets\tverbs ", &n);

	cr_assert_eq(n, 5);
	cr_assert_eq(count(text, "\nofi-tcp "), 4);
	cr_assert_eq(count(text, "\nofi-sockets "), 4);
	cr_assert_eq(count(text, "\nofi-verbs "), 4);
	cr_assert_eq(count(text, " \"provider=tcp\" \"\"\n"), 4);
	free(text);
}

Test(conf, every_entry_has_eight_fields)
{
	int n, fields;
	char *text = render("tcp sockets", &n), *line, *field, *a, *b;

	for (line = strtok_r(text, "\n", &a); line; line = strtok_r(NULL, "\n", &a)) {
		if (*line == '#')
			continue;
		fields = 0;
		for (field = strtok_r(line, " ", &b); field; field = strtok_r(NULL, " ", &b))
			fields++;
		cr_assert_eq(fields, 8);
	}
	free(text);
}

Test(conf, names_that_would_break_the_grammar_are_left_out)
{
	char name[200];
	int n;

	free(render("a\"b x#y back\\slash tcp", &n));
	cr_assert_eq(n, 3);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	free(render(name, &n));
	cr_assert_eq(n, 2);
}

Test(conf, connectionless_fabrics_have_names_of_their_own)
{
	static const struct {
		const char *name, *params;
	} lines[] = {
		{ "ofi-tcp", "provider=tcp" },
		{ "ofi-tcp-rdm", "provider=tcp endpoint=rdm" },
		{ "ofi-sockets-rdm", "provider=sockets endpoint=rdm" },
		{ "ofi-shm", "provider=shm" },
		{ "ofi-shm-rdm", "provider=shm endpoint=rdm" },
		{ "ofi-efa", "provider=efa" },
		{ "ofi-rxm", "provider=tcp;ofi_rxm" },
		{ "ofi-verbs-rxm", "provider=verbs;ofi_rxm" },
	};
	char *text, line[160];
	size_t i;
	int n;

	text = render_both("tcp sockets", "tcp sockets shm\tefa tcp;ofi_rxm verbs;ofi_rxm", &n);
	cr_assert_eq(n, 10);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "\n%s ", lines[i].name);
		cr_expect_eq(count(text, line), 4, "%s", line);
		snprintf(line, sizeof(line), "\n%s u2.0 threadsafe default /lib/libdaplofi.so.2 "
					     "dapl.2.0 \"%s\" \"\"\n",
			 lines[i].name, lines[i].params);
		cr_expect_eq(count(text, line), 1, "%s", line);
	}
	free(text);
}

/* "tcp" is not a connected fabric although "tcpx" is one. */
Test(conf, a_name_within_another_is_not_both)
{
	int n;
	char *text = render_both("tcpx", "tcp", &n);

	cr_expect_eq(count(text, "\nofi-tcp "), 4);
	cr_expect_eq(count(text, "-rdm"), 0);
	free(text);
}
