/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines that fit a terminal. */
#include "info_wrap.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static char *wrapped(size_t width, const char *text)
{
	char *result;
	size_t len;
	FILE *out = open_memstream(&result, &len), *f = wrap_open(out, width);

	cr_assert(f);
	fputs(text, f);
	wrap_close(f, out);
	fclose(out);
	return result;
}

static void becomes(size_t width, const char *text, const char *wanted)
{
	char *result = wrapped(width, text);

	cr_expect(!strcmp(result, wanted), "\"%s\", not \"%s\"", result, wanted);
	free(result);
}

#define BLANKS "                         "

Test(wrap, short_lines_stay)
{
	becomes(20, "", "");
	becomes(20, "\n", "\n");
	becomes(20, "one\n\n  two\nthree", "one\n\n  two\nthree");
	becomes(5, "12345\n", "12345\n");
}

Test(wrap, long_lines_break_at_blanks)
{
	becomes(10, "one two three four\nfive\n", "one two\nthree four\nfive\n");
	becomes(7, "one two three\n", "one two\nthree\n");
}

Test(wrap, words_are_not_broken)
{
	becomes(5, "  /a/long/path and more\n", "  /a/long/path\nand\nmore\n");
	becomes(5, "a-long-word\n", "a-long-word\n");
}

/* On a terminal that is wide enough the text has a column of its own. */
Test(wrap, the_text_of_a_table_continues_below_its_beginning)
{
	becomes(60, "  what             state a text of a table that is too long for its line\n",
		"  what             state a text of a table that is too long\n"
		BLANKS "for its line\n");
	becomes(60, "  what             state a text of a table that is too long for its line, and "
		    "which goes on after it\n",
		"  what             state a text of a table that is too long\n"
		BLANKS "for its line, and which goes on\n"
		BLANKS "after it\n");
}

Test(wrap, a_file_is_no_terminal)
{
	FILE *f = tmpfile();

	cr_assert(f);
	setenv("COLUMNS", "80", 1);
	cr_expect_eq(wrap_width(f), 0);
	fclose(f);
}

Test(wrap, width_of_a_terminal)
{
	const struct winsize size = { .ws_col = 70 };
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	FILE *f;

	cr_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	f = fopen(ptsname(master), "w");
	cr_assert(f);
	cr_assert_eq(ioctl(master, TIOCSWINSZ, &size), 0);
	unsetenv("COLUMNS");
	cr_expect_eq(wrap_width(f), 70);
	setenv("COLUMNS", "60", 1);
	cr_expect_eq(wrap_width(f), 60);
	fclose(f);
}
