/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reason found in the log of the provider and the registry. */
#include "log_lines.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *rest;

/* Returns the reason in @text; the other lines are in rest. */
static const char *reason_in(const char *text, bool warnings)
{
	static char reason[256];
	char copy[LOG_TEXT_MAX];
	size_t len;
	FILE *out = open_memstream(&rest, &len);

	snprintf(copy, sizeof(copy), "%s", text);
	log_reason(copy, out, warnings, reason, sizeof(reason));
	fclose(out);
	return reason;
}

#define TIMES "2026-11-30T22:48:30.123456Z 17466.123456"
#define WARNING "dat-ofi[7] " TIMES " fabric: warning: no device\n"
#define ERROR "dat-ofi[7] " TIMES " core: error: unknown setting: DAT_OFI_X\n"
#define REGISTRY "libdat2[7]: cannot load a.so: not found\n"

Test(log_lines, the_last_message_is_the_reason)
{
	cr_expect_str_eq(reason_in(ERROR WARNING, false), "no device");
	cr_expect_str_eq(rest, ERROR);
	cr_expect_str_eq(reason_in(WARNING REGISTRY, true), "cannot load a.so: not found");
	cr_expect_str_eq(rest, WARNING);
	cr_expect_str_eq(reason_in("libdat[7]: x: y\n", true), "x: y");
}

Test(log_lines, warnings_that_nobody_requested_are_dropped)
{
	cr_expect_str_eq(reason_in(WARNING ERROR, false), "unknown setting: DAT_OFI_X");
	cr_expect_str_eq(rest, "");
}

Test(log_lines, lines_of_other_libraries_are_no_reason)
{
	cr_expect_str_eq(reason_in("libibverbs: Warning: no device\n", false), "");
	cr_expect_str_eq(rest, "libibverbs: Warning: no device\n");
	cr_expect_str_eq(reason_in("dat-ofi[7] cut\nlibdat2[7]\n", false), "");
	cr_expect_str_eq(reason_in("", false), "");
}

Test(log_lines, without_a_reason_all_lines_are_others)
{
	char copy[] = WARNING ERROR, *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	log_reason(copy, out, false, NULL, 0);
	fclose(out);
	cr_expect_str_eq(text, ERROR);
}

Test(log_lines, stderr_is_captured)
{
	struct log_capture c;
	char text[LOG_TEXT_MAX];

	cr_assert(log_capture_begin(&c));
	fputs("by stdio\n", stderr);
	cr_expect_eq(write(STDERR_FILENO, WARNING, strlen(WARNING)), strlen(WARNING));
	log_capture_end(&c, text);
	cr_expect(strstr(text, "by stdio\n") && strstr(text, WARNING), "%s", text);
}

Test(log_lines, the_level_is_raised_once)
{
	unsetenv("DAT_OFI_LOG");
	unsetenv("DAPL_DBG_TYPE");
	cr_expect(log_raise());
	cr_expect_str_eq(getenv("DAT_OFI_LOG"), "1");
	cr_expect(log_raise());
}

Test(log_lines, the_log_goes_to_stderr)
{
	setenv("DAT_OFI_LOG_FILE", "/dev/null", 1);
	setenv("DAT_OFI_LOG_DEST", "2", 1);
	log_to_stderr();
	cr_expect(!getenv("DAT_OFI_LOG_FILE"));
	cr_expect_str_eq(getenv("DAT_OFI_LOG_DEST"), "1");
}

Test(log_lines, the_name_of_the_ia_is_removed)
{
	cr_expect_str_eq(log_without_ia("ofi-tcp: x", "ofi-tcp"), "x");
	cr_expect_str_eq(log_without_ia("ofi-tcp: x", "ofi"), "ofi-tcp: x");
	cr_expect_str_eq(log_without_ia("x: y", "ofi"), "x: y");
	cr_expect_str_eq(log_without_ia("", "ofi"), "");
}

static void keeps(const char *name, const char *value)
{
	unsetenv("DAT_OFI_LOG");
	unsetenv("DAPL_DBG_TYPE");
	setenv(name, value, 1);
	cr_expect(!log_raise());
	cr_expect_str_eq(getenv(name), value);
}

Test(log_lines, a_level_that_suffices_is_kept)
{
	keeps("DAT_OFI_LOG", "3");
	keeps("DAPL_DBG_TYPE", "0xffff");
	cr_expect(!getenv("DAT_OFI_LOG"));
}
