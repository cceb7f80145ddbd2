/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The variables of OFED's providers: each is handed on, or reported with a reason. Each test runs
 * in a process of its own, because the settings are read once.
 */

#include "base/env.h"
#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct capture capture;

static void forget_all(void)
{
	const struct dofi_ofed *o;

	for (o = dofi_ofed_table; o->name; o++) {
		unsetenv(o->name);
		if (o->sets)
			unsetenv(o->sets);
	}
	setenv("DAT_OFI_LOG", "1", 1);
}

TestSuite(ofed, .init = forget_all);

/* Reads the settings with @name=@value and returns the log. */
static const char *with(const char *name, const char *value)
{
	setenv(name, value, 1);
	capture_begin(&capture);
	dofi_settings_read();
	return capture_end(&capture);
}

/* The log has one line, which names the variable with its value and the reason. */
static void useless(const char *name, const char *reason)
{
	const char *log = with(name, "7"), *line;
	char expected[160];

	snprintf(expected, sizeof(expected), "warning: %s=7 has no effect: ", name);
	line = strstr(log, expected);
	cr_assert(line, "%s: %s", name, log);
	cr_expect(strstr(line, reason), "%s", line);
	cr_expect_eq(strchr(log, '\n'), log + strlen(log) - 1, "more than a line: %s", log);
}

Test(ofed, mtu)
{
	useless("DAPL_IB_MTU", "from the path");
}
Test(ofed, service_level)
{
	useless("DAPL_IB_SL", "from the path");
}
Test(ofed, ack_timer)
{
	useless("DAPL_ACK_TIMER", "from the path");
}
Test(ofed, ack_retry)
{
	useless("DAPL_ACK_RETRY", "a number of its own");
}
Test(ofed, rnr_retry)
{
	useless("DAPL_RNR_RETRY", "without a limit");
}
Test(ofed, partition)
{
	useless("DAPL_IB_PKEY", "the interface");
}
Test(ofed, global_routing)
{
	useless("DAPL_GLOBAL_ROUTING", "the routing header");
}
Test(ofed, arp_timeout)
{
	useless("DAPL_CM_ARP_TIMEOUT_MS", "two seconds");
}
Test(ofed, cm_retries)
{
	useless("DAPL_MAX_CM_RETRIES", "dat_ep_connect");
}
Test(ofed, interface)
{
	useless("DAPL_SCM_NETDEV", "dat.conf");
}
Test(ofed, queue_length)
{
	useless("DAPL_WR_MAX", "attributes of an endpoint");
}
Test(ofed, datagrams)
{
	useless("DAPL_UCM_REP_TIME", "datagrams");
}
Test(ofed, network_size)
{
	useless("DAPL_NETWORK_NODES", "datagrams");
}
Test(ofed, coprocessor)
{
	useless("DAPL_MCM_ALWAYS_PROXY", "coprocessors");
}
Test(ofed, level)
{
	useless("DAPL_DBG_LEVEL", "DAPL_DBG_TYPE");
}
Test(ofed, unknown)
{
	useless("DAPL_MAX_INLIN", "no provider of OFED");
}

Test(ofed, log_variables_are_honoured)
{
	unsetenv("DAT_OFI_LOG");
	setenv("DAPL_DBG_DEST", "1", 1);
	cr_expect_str_eq(with("DAPL_DBG_TYPE", "3"), "");
	cr_expect_eq(dofi_log_max, DOFI_WARN);
}

/* The line of @name in the list of settings. */
static const char *line_of(const char *name)
{
	const struct dofi_setting_line *l;
	unsigned i;

	for (i = 0; (l = dofi_settings_line(i)); i++)
		if (!strcmp(l->name + strlen(DOFI_SETTING_PREFIX), name))
			return l->text;
	cr_assert(false, "%s is not listed", name);
	return NULL;
}

static void given(const char *name, const char *value, const char *to)
{
	cr_expect_str_eq(with(name, value), "");
	dofi_settings_choose(1u << 16 | 17);
	dofi_settings_lend(DOFI_GIVE_AT_START);
	cr_assert(getenv(to), "%s", to);
	cr_expect_str_eq(getenv(to), value);
	cr_expect(dofi_environ_return());
	cr_expect(!getenv(to));
	cr_expect(strstr(line_of(to), name), "%s", line_of(to));
	cr_expect(strstr(line_of(name), to), "%s", line_of(name));
}

Test(ofed, inline_size_is_for_libfabric)
{
	given("DAPL_MAX_INLINE", "64", "FI_VERBS_INLINE_SIZE");
}
Test(ofed, rnr_timer_is_for_libfabric)
{
	given("DAPL_RNR_TIMER", "28", "FI_VERBS_MIN_RNR_TIMER");
}

Test(ofed, libfabric_variable_is_stronger)
{
	setenv("FI_VERBS_INLINE_SIZE", "128", 1);
	cr_expect(strstr(with("DAPL_MAX_INLINE", "64"), "no effect: FI_VERBS_INLINE_SIZE is set"),
		  "%s", capture.text);
	cr_expect_str_eq(getenv("FI_VERBS_INLINE_SIZE"), "128");
	cr_expect(strstr(line_of("FI_VERBS_INLINE_SIZE"), "environment"));
}

static void refused(const char *name, const char *value, const char *range)
{
	const char *log = with(name, value);

	cr_expect(strstr(log, range), "%s=%s: %s", name, value, log);
	cr_expect(strstr(log, ": error: "), "%s", log);
	dofi_settings_choose(1u << 16 | 17);
	dofi_settings_lend(DOFI_GIVE_AT_START);
	cr_expect(!getenv("FI_VERBS_INLINE_SIZE") && !getenv("FI_VERBS_MIN_RNR_TIMER"));
	dofi_environ_return();
}

Test(ofed, short_inline_size)
{
	refused("DAPL_MAX_INLINE", "0", "from 20 to 65536");
}
Test(ofed, inline_size_that_is_a_word)
{
	refused("DAPL_MAX_INLINE", "all", "from 20 to 65536");
}
Test(ofed, long_rnr_timer)
{
	refused("DAPL_RNR_TIMER", "32", "from 0 to 31");
}
Test(ofed, empty_rnr_timer)
{
	refused("DAPL_RNR_TIMER", "", "from 0 to 31");
}

Test(ofed, every_variable_is_listed_with_its_effect)
{
	const struct dofi_ofed *o;

	capture_begin(&capture);
	dofi_settings_read();
	capture_end(&capture);
	for (o = dofi_ofed_table; o->name; o++) {
		cr_expect(!o->sets != !o->why, "%s", o->name);
		cr_expect(strstr(line_of(o->name), o->sets ? o->sets : o->why), "%s",
			  line_of(o->name));
	}
}

Test(ofed, every_variable_has_one_row)
{
	const struct dofi_ofed *a, *b;

	for (a = dofi_ofed_table; a->name; a++)
		for (b = dofi_ofed_table; b < a; b++)
			cr_expect(strcmp(a->name, b->name), "%s", a->name);
}
