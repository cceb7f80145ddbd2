/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry's log: which kinds of lines are written, where to, and how long lines are cut. */

#include "log.h"

#include "../capture.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#define PREFIX (DAT_API == 2 ? "libdat2[%d]: %s\n" : "libdat[%d]: %s\n")

/* By the linker's --wrap. Fortified builds call the second. */
static char syslogged[2048];
static int priority = -1;

void __wrap_syslog(int prio, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void __wrap_syslog(int prio, const char *fmt, ...)
{
	va_list ap;

	priority = prio;
	va_start(ap, fmt);
	vsnprintf(syslogged, sizeof(syslogged), fmt, ap);
	va_end(ap);
}

void __wrap___syslog_chk(int prio, int flag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap___syslog_chk(int prio, int flag, const char *fmt, ...)
{
	va_list ap;

	priority = prio;
	va_start(ap, fmt);
	vsnprintf(syslogged, sizeof(syslogged), fmt, ap);
	va_end(ap);
}

static void environment(const char *type, const char *dest)
{
	unsetenv("DAT_DBG_TYPE");
	unsetenv("DAT_DBG_DEST");
	if (type)
		setenv("DAT_DBG_TYPE", type, 1);
	if (dest)
		setenv("DAT_DBG_DEST", dest, 1);
}

/* Writes a line of this kind. Returns the text on stderr. */
static const char *line(enum dreg_log_type type)
{
	static struct capture c;

	capture_begin(&c);
	dreg_log(type, "%s %d", "text", 42);
	return capture_end(&c);
}

static const char *whole(const char *text)
{
	static char want[256];

	snprintf(want, sizeof(want), PREFIX, (int)getpid(), text);
	return want;
}

static const enum dreg_log_type all[] = {
	DREG_LOG_ERROR, DREG_LOG_GENERIC, DREG_LOG_CONF,
	DREG_LOG_PROVIDERS, DREG_LOG_PROVIDER_API, DREG_LOG_CONSUMER_API,
};

/* Writes a line of each kind. Returns the kinds that were written, as bits. */
static int kinds_written(void)
{
	int written = 0;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (*line(all[i]))
			written |= (int)all[i];
	return written;
}

Test(log, unset_type_is_errors_alone)
{
	environment(NULL, NULL);
	cr_expect_eq(kinds_written(), DREG_LOG_ERROR);
}

Test(log, empty_type_is_as_unset)
{
	environment("", NULL);
	cr_expect_eq(kinds_written(), DREG_LOG_ERROR);
}

Test(log, type_that_is_no_number_is_as_unset)
{
	environment("verbose", NULL);
	cr_expect_eq(kinds_written(), DREG_LOG_ERROR);
}

Test(log, type_with_text_behind_it_is_as_unset)
{
	environment("0x3f,", NULL);
	cr_expect_eq(kinds_written(), DREG_LOG_ERROR);
}

Test(log, type_zero_silences_errors_too)
{
	environment("0", NULL);
	cr_expect_eq(kinds_written(), 0);
}

Test(log, type_chooses_kinds)
{
	environment("0x14", NULL);
	cr_expect_eq(kinds_written(), DREG_LOG_CONF | DREG_LOG_PROVIDER_API);
}

Test(log, type_in_decimal)
{
	environment("63", NULL);
	cr_expect_eq(kinds_written(), 0x3f);
}

Test(log, type_is_read_once)
{
	environment("2", NULL);
	cr_expect_str_eq(line(DREG_LOG_ERROR), "");
	environment("1", NULL);
	cr_expect_str_eq(line(DREG_LOG_ERROR), "");
}

Test(log, line_names_library_and_process)
{
	environment(NULL, NULL);
	cr_expect_str_eq(line(DREG_LOG_ERROR), whole("text 42"));
	cr_expect_eq(priority, -1);
}

Test(log, dest_zero_goes_nowhere)
{
	environment(NULL, "0");
	cr_expect_str_eq(line(DREG_LOG_ERROR), "");
	cr_expect_eq(priority, -1);
}

Test(log, dest_that_is_no_number_is_stderr)
{
	environment(NULL, "syslog");
	cr_expect_str_eq(line(DREG_LOG_ERROR), whole("text 42"));
	cr_expect_eq(priority, -1);
}

Test(log, dest_two_is_syslog_alone)
{
	environment(NULL, "2");
	cr_expect_str_eq(line(DREG_LOG_ERROR), "");
	cr_expect_str_eq(syslogged, whole("text 42"));
	cr_expect_eq(priority, LOG_ERR);
}

Test(log, dest_three_is_both)
{
	environment(NULL, "3");
	cr_expect_str_eq(line(DREG_LOG_ERROR), whole("text 42"));
	cr_expect_str_eq(syslogged, whole("text 42"));
}

Test(log, what_is_no_error_is_for_debugging)
{
	environment("0x3f", "2");
	line(DREG_LOG_CONF);
	cr_expect_eq(priority, LOG_DEBUG);
}

Test(log, long_line_is_cut_and_ended)
{
	char text[3000];
	struct capture c;
	const char *got;

	environment(NULL, NULL);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture_begin(&c);
	dreg_log(DREG_LOG_ERROR, "%s", text);
	got = capture_end(&c);
	cr_expect_eq(strlen(got), 1023);
	cr_expect_str_eq(got + 1021, "x\n");
}

Test(log, closed_stderr_is_survived)
{
	environment(NULL, NULL);
	close(STDERR_FILENO);
	dreg_log(DREG_LOG_ERROR, "to nobody");
}
