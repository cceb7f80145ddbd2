/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The JSON writer. */
#include "json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t len;

static struct json begin(void)
{
	return (struct json){ .out = open_memstream(&text, &len) };
}

static void expect(struct json *j, const char *want)
{
	fclose(j->out);
	cr_assert_str_eq(text, want);
	free(text);
}

Test(json, members_are_separated_and_indented)
{
	struct json j = begin();

	json_object(&j, NULL);
	json_uint(&j, "a", 18446744073709551615ull);
	json_array(&j, "b");
	json_int(&j, NULL, -2);
	json_bool(&j, NULL, true);
	json_end(&j, ']');
	json_string(&j, "c", NULL);
	json_end(&j, '}');
	expect(&j, "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    -2,\n"
		   "    true\n  ],\n  \"c\": null\n}\n");
}

Test(json, empty_levels_stay_on_one_line)
{
	struct json j = begin();

	json_object(&j, NULL);
	json_array(&j, "x");
	json_end(&j, ']');
	json_object(&j, "y");
	json_end(&j, '}');
	json_end(&j, '}');
	expect(&j, "{\n  \"x\": [],\n  \"y\": {}\n}\n");
}

Test(json, quotes_backslashes_and_controls_are_escaped)
{
	struct json j = begin();

	json_string(&j, NULL, "a\"b\\c\n\t\x01\x7f");
	expect(&j, "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\"");
}

Test(json, names_are_escaped_too)
{
	struct json j = begin();

	json_object(&j, NULL);
	json_bool(&j, "a\"", false);
	json_end(&j, '}');
	expect(&j, "{\n  \"a\\\"\": false\n}\n");
}

Test(json, valid_utf8_passes)
{
	struct json j = begin();

	json_string(&j, NULL, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	expect(&j, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

Test(json, broken_utf8_becomes_the_replacement_character)
{
	/* lone continuation, truncated, overlong, surrogate, beyond Unicode */
	static const char *const bad[] = {
		"\x80",		"\xc3",		"\xe2\x82",	    "\xc0\xaf",
		"\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json j = begin();
		const char *s;

		json_string(&j, NULL, bad[i]);
		fclose(j.out);
		cr_assert_eq(strncmp(text, "\"\\ufffd", 7), 0, "%zu: %s", i, text);
		for (s = text; *s; s++)
			cr_assert_lt((unsigned char)*s, 0x80, "%zu", i);
		free(text);
	}
}

Test(json, doubles_have_four_decimals_and_are_finite)
{
	struct json j = begin();

	json_array(&j, NULL);
	json_double(&j, NULL, 1.5);
	json_double(&j, NULL, INFINITY);
	json_double(&j, NULL, NAN);
	json_end(&j, ']');
	expect(&j, "[\n  1.5000,\n  null,\n  null\n]\n");
}
