/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the version of libfabric is shown, and that an untested version is logged. */

#include "fab/info.h"

#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <string.h>

TestSuite(version);

static const char *text_of(uint32_t version)
{
	static char text[48];

	dofi_version_text(version, text, sizeof(text));
	return text;
}

Test(version, a_tested_one_is_shown_as_it_is)
{
	cr_expect_str_eq(text_of(FI_VERSION(1, 17)), "1.17");
	cr_expect_str_eq(text_of(FI_VERSION(2, 6)), "2.6");
}

Test(version, a_newer_one_is_shown_as_untested)
{
	char short_text[4];

	cr_expect_str_eq(text_of(FI_VERSION(2, 7)), "2.7, untested (tested up to 2.6)");
	cr_expect_str_eq(text_of(FI_VERSION(3, 0)), "3.0, untested (tested up to 2.6)");
	dofi_version_text(FI_VERSION(2, 17), short_text, sizeof(short_text));
	cr_expect_str_eq(short_text, "2.1", "cut off, with its end");
}

static unsigned lines(void (*check)(void))
{
	struct capture c;
	const char *at;
	unsigned n = 0;

	dofi_log_max = DOFI_WARN;
	dofi_log_dest = DOFI_LOG_STDERR;
	capture_begin(&c);
	check();
	for (at = capture_end(&c); (at = strstr(at, "2.6, the newest")); at++)
		n++;
	return n;
}

static void tested(void)
{
	dofi_version_check(FI_VERSION(1, 17));
	dofi_version_check(FI_VERSION(2, 6));
}

static void untested(void)
{
	dofi_version_check(FI_VERSION(2, 7));
	dofi_version_check(FI_VERSION(2, 7));
}

Test(version, an_untested_one_is_logged_once)
{
	cr_expect_eq(lines(tested), 0);
	cr_expect_eq(lines(untested), 1);
	cr_expect_eq(lines(untested), 0);
}
