/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The settings. Each test runs in a process of its own because settings are read once. */

#include "base/env.h"
#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

static struct capture capture;

#define LIBFABRIC_1_17 (1u << 16 | 17)

/* Simulates a privileged process, by the linker's --wrap. */
static bool privileged;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE && privileged ? 1 : __real_getauxval(type);
}

char *__real_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name)
{
	return privileged ? NULL : __real_secure_getenv(name);
}

static void forget_all(void)
{
	const struct dofi_setting *s;
	const struct dofi_foreign *f;

	for (s = dofi_setting_table; s->name; s++) {
		unsetenv(s->name);
		if (s->alias)
			unsetenv(s->alias);
	}
	for (f = dofi_foreign_table; f->name; f++) {
		unsetenv(f->name);
		if (f->alias)
			unsetenv(f->alias);
	}
}

/* Reads the settings and returns the log about them. */
static const char *read_settings(void)
{
	capture_begin(&capture);
	dofi_settings_read();
	return capture_end(&capture);
}

static bool two_processors(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

TestSuite(env, .init = forget_all);

Test(env, defaults_are_in_range)
{
	const struct dofi_setting *s;

	for (s = dofi_setting_table; s->name; s++) {
		cr_expect(s->def >= s->min && s->def <= s->max, "%s", s->name);
		cr_expect(*s->help && *s->unit, "%s", s->name);
		cr_expect(!strncmp(s->name, "DAT_OFI_", 8), "%s", s->name);
		cr_expect(strlen(s->name) <= 40 && !strchr(s->help, '\t'), "%s", s->name);
	}
}

Test(env, every_row_has_a_value_of_its_own)
{
	const struct dofi_setting *s, *t;

	for (s = dofi_setting_table; s->name; s++)
		for (t = dofi_setting_table; t != s; t++)
			cr_expect(s->value != t->value && strcmp(s->name, t->name), "%s", s->name);
}

Test(env, unset_means_default)
{
	const struct dofi_setting *s;

	cr_expect_str_eq(read_settings(), "");
	for (s = dofi_setting_table; s->name; s++)
		if (s->value != &dofi_settings.spin_us || two_processors())
			cr_expect_eq(*s->value, s->def, "%s", s->name);
}

Test(env, every_setting_takes_its_extremes)
{
	const struct dofi_setting *s;
	char text[32];

	for (s = dofi_setting_table; s->name; s++) {
		snprintf(text, sizeof(text), "%" PRId64, s->max);
		setenv(s->name, text, 1);
	}
	cr_expect_str_eq(read_settings(), "");
	for (s = dofi_setting_table; s->name; s++)
		if (s->value != &dofi_settings.spin_us || two_processors())
			cr_expect_eq(*s->value, s->max, "%s", s->name);
}

Test(env, smallest_values_are_taken)
{
	const struct dofi_setting *s;
	char text[32];

	for (s = dofi_setting_table; s->name; s++) {
		snprintf(text, sizeof(text), "%" PRId64, s->min);
		setenv(s->name, text, 1);
	}
	cr_expect_str_eq(read_settings(), "");
	for (s = dofi_setting_table; s->name; s++)
		cr_expect_eq(*s->value, s->min, "%s", s->name);
}

Test(env, hexadecimal_is_a_number)
{
	setenv("DAT_OFI_TICK_US", "0x20", 1);
	errno = ERANGE;		/* of an earlier call */
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_settings.tick_us, 32);
}

/* The default is used, and the log names the setting and its text. */
static void refused(const char *text)
{
	const char *log;

	setenv("DAT_OFI_TICK_US", text, 1);
	log = read_settings();
	cr_expect_eq(dofi_settings.tick_us, 1000);
	cr_expect(strstr(log, "DAT_OFI_TICK_US="), "%s", log);
	cr_expect(strstr(log, text), "%s", log);
	cr_expect(strstr(log, ": error: "), "%s", log);
}

Test(env, empty_text_is_refused) { refused(""); }
Test(env, a_word_is_refused) { refused("often"); }
Test(env, a_unit_is_refused) { refused("5ms"); }
Test(env, negative_is_refused) { refused("-20"); }
Test(env, below_the_range_is_refused) { refused("9"); }
Test(env, above_the_range_is_refused) { refused("1000001"); }
Test(env, overflow_is_refused) { refused("99999999999999999999999"); }
Test(env, trailing_blank_is_refused) { refused("20 "); }

Test(env, unknown_names_are_logged)
{
	const char *log;

	setenv("DAT_OFI_TICKS_US", "5", 1);
	setenv("DAT_OFI_LO", "3", 1);
	setenv("DAT_OFI_", "", 1);
	log = read_settings();
	cr_expect(strstr(log, "unknown setting DAT_OFI_TICKS_US\n"), "%s", log);
	cr_expect(strstr(log, "unknown setting DAT_OFI_LO\n"), "%s", log);
	cr_expect(strstr(log, "unknown setting DAT_OFI_\n"), "%s", log);
}

Test(env, an_endless_name_is_survived)
{
	char name[1024] = "DAT_OFI_";

	memset(name + 8, 'X', sizeof(name) - 9);
	setenv(name, "1", 1);
	cr_expect(strstr(read_settings(), "unknown setting DAT_OFI_XXX"), "%s", capture.text);
}

Test(env, other_variables_are_not_read)
{
	setenv("DAT_OFIX", "5", 1);
	setenv("DAT_OVERRIDE", "/nowhere", 1);
	cr_expect_str_eq(read_settings(), "");
}

/* Settings of other DAT providers */

/* DAPL_DBG_TYPE=@text sets this log level and these parts. */
static void types(const char *text, int level, unsigned parts)
{
	setenv("DAPL_DBG_TYPE", text, 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq((int)dofi_log_max, level);
	cr_expect_eq(dofi_log_parts, parts);
}

Test(env, dapl_no_type_is_silence) { types("0", DOFI_SILENT, 0); }
Test(env, dapl_errors) { types("1", DOFI_ERR, 0); }
Test(env, dapl_warnings) { types("0x3", DOFI_WARN, 0); }
Test(env, dapl_failed_transfers_are_warnings) { types("0x80", DOFI_WARN, 0); }
Test(env, dapl_exceptions_are_warnings) { types("0x400", DOFI_WARN, 0); }
Test(env, dapl_events) { types("0x7", DOFI_DEBUG, 1 << DOFI_EVD); }
Test(env, dapl_connections) { types("0x8", DOFI_DEBUG, 1 << DOFI_CM); }
Test(env, dapl_statistics_of_connections) { types("0x40000", DOFI_DEBUG, 1 << DOFI_CM); }
Test(env, dapl_endpoints) { types("16", DOFI_DEBUG, 1 << DOFI_EP); }
Test(env, dapl_the_rest)
{
	types("0x20", DOFI_DEBUG, 1 << DOFI_CORE | 1 << DOFI_FAB | 1 << DOFI_MEM);
}
Test(env, dapl_everything) { types("0xffffffff", DOFI_DEBUG, 63); }

Test(env, our_name_is_stronger_than_the_alias)
{
	setenv("DAPL_DBG_TYPE", "0xffff", 1);
	setenv("DAT_OFI_LOG", "1", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_log_max, DOFI_WARN);
}

Test(env, an_alias_that_is_no_number_is_named)
{
	setenv("DAPL_DBG_DEST", "syslog", 1);
	cr_expect(strstr(read_settings(), "DAPL_DBG_DEST=syslog is not a sum of bits; "
					  "using DAT_OFI_LOG_DEST=1\n"), "%s", capture.text);
	cr_expect_eq(dofi_log_dest, DOFI_LOG_STDERR);
}

Test(env, an_alias_is_never_negative)
{
	setenv("DAPL_DBG_TYPE", "-1", 1);
	cr_expect(strstr(read_settings(), "DAPL_DBG_TYPE=-1 is not"), "%s", capture.text);
	cr_expect_eq(dofi_log_max, DOFI_ERR);
}

Test(env, dapl_destinations_are_ours)
{
	setenv("DAPL_DBG_DEST", "3", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_log_dest, DOFI_LOG_STDERR | DOFI_LOG_SYSLOG);
}

Test(env, unknown_destinations_are_none)
{
	setenv("DAPL_DBG_DEST", "4", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_log_dest, 0);
}

/* Nothing is logged to a channel that is turned off, not even about another setting. */
Test(env, complaints_go_where_the_log_goes)
{
	setenv("DAT_OFI_LOG_DEST", "0", 1);
	setenv("DAT_OFI_TICK_US", "x", 1);
	setenv("DAT_OFI_NONSENSE", "x", 1);
	cr_expect_str_eq(read_settings(), "");
}

/* A variable of OFED that the provider does not read is named once, without its value. */
Test(env, a_variable_of_ofed_without_effect_is_named)
{
	setenv("DAT_OFI_LOG", "1", 1);
	setenv("DAPL_IB_MTU", "7", 1);
	cr_expect(strstr(read_settings(), "warning: DAPL_IB_MTU has no effect\n"), "%s",
		  capture.text);
	cr_expect_eq(strchr(capture.text, '\n'), capture.text + strlen(capture.text) - 1);
}

/* The list of settings in force */

/* The line of @name, which must occur once. */
static const char *line_of(const char *name)
{
	const struct dofi_setting_line *l;
	const char *text = NULL;
	unsigned i;

	for (i = 0; (l = dofi_settings_line(i)); i++)
		if (!strcmp(l->name + strlen(DOFI_SETTING_PREFIX), name)) {
			cr_expect(!text, "%s twice", name);
			text = l->text;
		}
	cr_assert(text, "%s", name);
	return text;
}

static void expect_line(const char *name, const char *origin, const char *value)
{
	const char *text = line_of(name), *end = strrchr(text, '\t');
	char expected[64];

	snprintf(expected, sizeof(expected), "\t%s\t", origin);
	cr_expect(strstr(text, expected), "%s: %s", name, text);
	cr_assert(end);
	cr_expect_str_eq(end + 1, value, "%s", name);
}

Test(env, every_row_has_a_line)
{
	const struct dofi_setting *s;
	const struct dofi_foreign *f;
	unsigned n = 0;

	cr_expect(!dofi_settings_line(0), "before anything was read");
	read_settings();
	for (s = dofi_setting_table; s->name; s++, n++)
		cr_expect(strstr(line_of(s->name), s->help), "%s", s->name);
	for (f = dofi_foreign_table; f->name; f++, n++)
		cr_expect(strstr(line_of(f->name), f->help), "%s", f->name);
	cr_expect(dofi_settings_line(n - 1) && !dofi_settings_line(n));
}

Test(env, a_line_has_value_and_origin)
{
	setenv("DAT_OFI_PROBE_US", "0x10", 1);
	setenv("DAT_OFI_TICK_US", "wrong", 1);
	setenv("DAPL_DBG_TYPE", "0xa", 1);
	setenv("DAT_OVERRIDE", "/a\tb", 1);
	setenv("DAT_OFI_LOG_FILE", "/no/log", 1);
	setenv("FI_OFI_RXM_TX_SIZE", "7", 1);
	read_settings();
	expect_line("DAT_OFI_PROBE_US", "environment", "16");
	expect_line("DAT_OFI_TICK_US", "default", "1000");
	expect_line("DAT_OFI_LOG", "DAPL_DBG_TYPE", "3");
	expect_line("DAT_OFI_LOG_PARTS", "DAPL_DBG_TYPE", "4");
	expect_line("DAT_OFI_LOG_DEST", "default", "1");
	expect_line("DAT_DBG_DEST", "default", "-");
	expect_line("FI_TCP_PREFETCH_RBUF_SIZE", "provider", "0");
	expect_line("FI_TCP_MAX_RX_SIZE", "provider", "128");
	expect_line("FI_OFI_RXM_TX_SIZE", "environment", "7");
	cr_expect(strstr(line_of("DAT_OVERRIDE"), "\t/a\tb"));
	expect_line("DAT_OFI_LOG_FILE", "environment", "/no/log");
	cr_expect_str_eq(dofi_log_file, "/no/log");
}

Test(env, a_long_value_is_cut)
{
	char path[4096];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	setenv("DAT_OVERRIDE", path, 1);
	read_settings();
	cr_expect_eq(strlen(line_of("DAT_OVERRIDE")),
		     sizeof(((struct dofi_setting_line *)0)->text) - 1);
}

/* libfabric's settings */

static void expect_lent(const char *name, const char *value)
{
	const char *found = getenv(name);

	if (!value)
		cr_expect(!found, "%s=%s", name, found);
	else
		cr_expect(found && !strcmp(found, value), "%s=%s", name, found ? found : "nothing");
}

/* Chooses the values for @libfabric and lends the variables of its first call. */
static void lend(uint32_t libfabric)
{
	dofi_settings_choose(libfabric);
	dofi_settings_lend(DOFI_GIVE_AT_START);
}

/* Returns what is lent; then the environment has no value but those of the test. */
static void give_back(void)
{
	cr_expect(dofi_environ_return());
}

Test(env, what_libfabric_needs_is_lent_where_the_user_gave_nothing)
{
	setenv("FI_OFI_RXM_MSG_TX_SIZE", "7", 1);
	lend(LIBFABRIC_1_17);
	expect_lent("FI_TCP_PREFETCH_RBUF_SIZE", "0");
	expect_lent("FI_TCP_MAX_RX_SIZE", "128");
	expect_lent("FI_MR_CACHE_MAX_COUNT", "0");
	expect_lent("FI_VERBS_DGRAM_USE_NAME_SERVER", "0");
	expect_lent("FI_OFI_RXM_MSG_RX_SIZE", "64");
	expect_lent("FI_OFI_RXM_MSG_TX_SIZE", "7");
	expect_lent("FI_PROVIDER", NULL);
	/* libfabric's default, an attribute, of another call */
	expect_lent("FI_TCP_IO_URING", NULL);
	expect_lent("FI_OFI_RXM_TX_SIZE", NULL);
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", NULL);
	give_back();
	expect_lent("FI_TCP_MAX_RX_SIZE", NULL);
	expect_lent("FI_OFI_RXM_MSG_RX_SIZE", NULL);
	expect_lent("FI_OFI_RXM_MSG_TX_SIZE", "7");
}

/* Switched off for libfabric; the program still sees its own value. */
static void switched_off(const char *name, const char *user, const char *value)
{
	setenv(name, user, 1);
	read_settings();
	expect_line(name, "provider", value);
	capture_begin(&capture);
	dofi_log_max = DOFI_WARN;
	lend(LIBFABRIC_1_17);
	cr_expect(strstr(capture_end(&capture), "is not used"), "%s", capture.text);
	expect_lent(name, value);
	give_back();
	expect_lent(name, user);
}

Test(env, io_uring_is_switched_off) { switched_off("FI_TCP_IO_URING", "1", "0"); }
Test(env, zero_copy_is_switched_off) { switched_off("FI_TCP_ZEROCOPY_SIZE", "0", "-1"); }

Test(env, small_buffers_of_a_layer_are_for_the_libfabric_that_does_without)
{
	read_settings();
	expect_line("FI_OFI_RXM_BUFFER_SIZE", "provider", "4096");
	lend(LIBFABRIC_1_17);
	expect_lent("FI_OFI_RXM_BUFFER_SIZE", "4096");
	give_back();
	expect_line("FI_OFI_RXM_BUFFER_SIZE", "provider", "4096");
	expect_line("FI_OFI_RXM_EAGER_LIMIT", "provider", "65600");
	dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", "65600");
	expect_lent("FI_OFI_RXM_BUFFER_SIZE", NULL);
	give_back();
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", NULL);
}

/* With 0, libfabric uses a freed endpoint when it closes a connection over verbs. */
Test(env, peers_of_a_layer_share_receives_unless_the_user_refuses)
{
	lend(LIBFABRIC_1_17 + 1);
	expect_lent("FI_OFI_RXM_USE_SRX", NULL);
	give_back();
	dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
	expect_lent("FI_OFI_RXM_USE_SRX", "1");
	give_back();
	setenv("FI_OFI_RXM_USE_SRX", "0", 1);
	dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
	expect_lent("FI_OFI_RXM_USE_SRX", "0");
	give_back();
}

Test(env, a_later_libfabric_gets_longer_buffers_of_a_layer)
{
	read_settings();
	lend(LIBFABRIC_1_17 + 1);
	expect_lent("FI_OFI_RXM_BUFFER_SIZE", "16384");
	give_back();
	expect_line("FI_OFI_RXM_BUFFER_SIZE", "provider", "16384");
	expect_line("FI_OFI_RXM_EAGER_LIMIT", "default", "-");
	expect_line("FI_OFI_RXM_TX_SIZE", "provider", "256");
	dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", NULL);
	give_back();
}

Test(env, a_later_libfabric_keeps_the_buffers_of_the_user)
{
	setenv("FI_OFI_RXM_BUFFER_SIZE", "8192", 1);
	read_settings();
	lend(LIBFABRIC_1_17 + 1);
	expect_lent("FI_OFI_RXM_BUFFER_SIZE", "8192");
	give_back();
	expect_lent("FI_OFI_RXM_BUFFER_SIZE", "8192");
	expect_line("FI_OFI_RXM_BUFFER_SIZE", "environment", "8192");
}

Test(env, a_variable_that_the_program_sets_later_is_kept)
{
	lend(LIBFABRIC_1_17);
	give_back();
	setenv("FI_OFI_RXM_EAGER_LIMIT", "20000", 1);
	dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", "20000");
	give_back();
	expect_lent("FI_OFI_RXM_EAGER_LIMIT", "20000");
}

/* OFED's variable @name has this value; libfabric gets it as @to. */
static void handed_on(const char *name, const char *value, const char *to)
{
	setenv("DAT_OFI_LOG", "1", 1);
	setenv(name, value, 1);
	cr_expect_str_eq(read_settings(), "");
	expect_line(to, name, value);
	lend(LIBFABRIC_1_17);
	expect_lent(to, value);
	give_back();
	expect_lent(to, NULL);
}

Test(env, dapl_inline_size) { handed_on("DAPL_MAX_INLINE", "64", "FI_VERBS_INLINE_SIZE"); }
Test(env, dapl_rnr_timer) { handed_on("DAPL_RNR_TIMER", "28", "FI_VERBS_MIN_RNR_TIMER"); }

Test(env, libfabric_variable_is_stronger_than_the_alias)
{
	setenv("DAPL_MAX_INLINE", "64", 1);
	setenv("FI_VERBS_INLINE_SIZE", "128", 1);
	cr_expect_str_eq(read_settings(), "");
	expect_line("FI_VERBS_INLINE_SIZE", "environment", "128");
	lend(LIBFABRIC_1_17);
	expect_lent("FI_VERBS_INLINE_SIZE", "128");
	give_back();
}

/* OFED's variable @name has a value outside its @range: the log has the range. */
static void alias_refused(const char *name, const char *value, const char *to, const char *range)
{
	setenv(name, value, 1);
	cr_expect(strstr(read_settings(), range), "%s=%s: %s", name, value, capture.text);
	cr_expect(strstr(capture.text, ": error: "), "%s", capture.text);
	expect_line(to, "default", "-");
	lend(LIBFABRIC_1_17);
	expect_lent(to, NULL);
	give_back();
}

static void inline_refused(const char *value)
{
	alias_refused("DAPL_MAX_INLINE", value, "FI_VERBS_INLINE_SIZE", "from 20 to 65536");
}

static void timer_refused(const char *value)
{
	alias_refused("DAPL_RNR_TIMER", value, "FI_VERBS_MIN_RNR_TIMER", "from 0 to 31");
}

Test(env, dapl_short_inline_size) { inline_refused("0"); }
Test(env, dapl_inline_size_that_is_a_word) { inline_refused("all"); }
Test(env, dapl_long_rnr_timer) { timer_refused("32"); }
Test(env, dapl_empty_rnr_timer) { timer_refused(""); }

Test(env, values_are_the_users_or_ours)
{
	setenv("FI_OFI_RXM_TX_SIZE", "7", 1);
	setenv("FI_TCP_IO_URING", "1", 1);
	dofi_settings_choose(LIBFABRIC_1_17);
	cr_expect_str_eq(dofi_foreign_value("FI_OFI_RXM_TX_SIZE"), "7");
	cr_expect_str_eq(dofi_foreign_value("FI_OFI_RXM_RX_SIZE"), "256");
	cr_expect_str_eq(dofi_foreign_value("FI_TCP_IO_URING"), "0");
	cr_expect(!dofi_foreign_value("FI_PROVIDER"));
	cr_expect(!dofi_foreign_value("FI_OFI_RXM_NO_SUCH"));
}

/* The manual page and the table list the same settings. */

static char *page(void)
{
	const char *top = getenv("top_srcdir");
	static char text[1 << 20];
	char path[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/man/man7/dat_ofi.7", top ? top : ".");
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	cr_assert(n > 0 && feof(f), "%s", path);
	text[n] = 0;
	fclose(f);
	return text;
}

/* The page's entry for the variable @name, with line ends replaced by blanks. */
static const char *entry_of(const char *name)
{
	char item[80], *entry, *end, *p;

	snprintf(item, sizeof(item), "\n.It Ev %s\n", name);
	entry = strstr(page(), item);
	cr_assert(entry, "%s is not in dat_ofi(7)", name);
	entry += strlen(item);
	for (end = entry; *end && strncmp(end, "\n.It", 4) && strncmp(end, "\n.El", 4); end++)
		;
	*end = 0;
	for (p = entry; *p; p++)
		if (*p == '\n')
			*p = ' ';
	return entry;
}

Test(env, the_page_has_default_and_range)
{
	const struct dofi_setting *s;
	char expected[64];

	for (s = dofi_setting_table; s->name; s++) {
		const char *entry = entry_of(s->name);

		snprintf(expected, sizeof(expected), "efault %" PRId64, s->def);
		cr_expect(strstr(entry, expected), "%s: %s: %s", s->name, expected, entry);
		snprintf(expected, sizeof(expected), "%" PRId64, s->max);
		cr_expect(strstr(entry, expected), "%s: %s: %s", s->name, expected, entry);
		if (s->alias)
			cr_expect(strstr(entry, s->alias), "%s: %s: %s", s->name, s->alias, entry);
	}
}

Test(env, the_page_has_variables_of_others)
{
	const struct dofi_foreign *f;

	for (f = dofi_foreign_table; f->name; f++) {
		const char *entry = entry_of(f->name);

		cr_expect(!f->given || strstr(entry, f->given), "%s: %s", f->name, entry);
		cr_expect(!f->later || strstr(entry, f->later), "%s: %s", f->name, entry);
		cr_expect(!f->alias || strstr(entry, f->alias), "%s: %s", f->name, entry);
	}
}

Test(env, the_page_has_no_other_settings)
{
	char *p = page();

	while ((p = strstr(p, "DAT_OFI_"))) {
		size_t len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		const struct dofi_setting *s;
		const struct dofi_foreign *f;

		for (s = dofi_setting_table; s->name; s++)
			if (strlen(s->name) == len && !strncmp(s->name, p, len))
				break;
		for (f = dofi_foreign_table; f->name; f++)
			if (strlen(f->name) == len && !strncmp(f->name, p, len))
				break;
		cr_expect(s->name || f->name || len == strlen("DAT_OFI_"), "%.*s", (int)len, p);
		p += len;
	}
}

Test(env, log_level_takes_effect)
{
	setenv("DAT_OFI_LOG", "2", 1);
	read_settings();
	cr_expect_eq(dofi_log_max, DOFI_INFO);
}

Test(env, is_read_once)
{
	setenv("DAT_OFI_TICK_US", "77", 1);
	read_settings();
	setenv("DAT_OFI_TICK_US", "88", 1);
	setenv("DAT_OFI_NONSENSE", "1", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_settings.tick_us, 77);
}

Test(env, one_processor_never_spins)
{
	cpu_set_t set, one;
	int cpu = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	setenv("DAT_OFI_SPIN_US", "500", 1);
	read_settings();
	cr_expect_eq(dofi_settings.spin_us, 0);
}

static void *read_in_thread(void *arg)
{
	dofi_settings_read();
	*(int64_t *)arg = dofi_settings.tick_us;
	return NULL;
}

Test(env, threads_may_read_at_once)
{
	pthread_t thread[4];
	int64_t seen[4];
	int i;

	setenv("DAT_OFI_TICK_US", "77", 1);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, read_in_thread, &seen[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_expect_eq(seen[i], 77);
	}
}

/*
 * Privileged processes
 */

Test(env, privileged_process_has_the_defaults)
{
	privileged = true;
	setenv("DAT_OFI_LOG", "3", 1);
	setenv("DAT_OFI_MISSPELT", "3", 1);
	setenv("DAPL_DBG_DEST", "2", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_settings.log, DOFI_ERR);
	cr_expect_eq(dofi_settings.log_dest, DOFI_LOG_STDERR);
}

Test(env, privileged_process_drops_what_libraries_read)
{
	static const char *const dropped[] = {
		"FI_PROVIDER_PATH", "FI_PROVIDER", "OFI_X", "HWLOC_XMLFILE", "HWLOC_PLUGINS_PATH",
		"HFI_DEBUG_FILENAME", "IPATH_DEBUG_FILENAME", "PSM3_X", "UCX_MODULE_DIR",
		"MLX5_DEBUG_FILE",
	};
	size_t i;

	privileged = true;
	setenv("AFI_PROVIDER", "kept", 1);
	for (i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		setenv(dropped[i], "/attacker", 1);
	setenv("PATH", "/kept", 1);
	read_settings();
	for (i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		cr_expect(!getenv(dropped[i]), "%s", dropped[i]);
	cr_expect_str_eq(getenv("AFI_PROVIDER"), "kept");
	cr_expect_str_eq(getenv("PATH"), "/kept");
}

Test(env, privileged_process_drops_a_variable_that_is_there_twice)
{
	static char *twice[] = {
		"FI_PROVIDER_PATH=/a", "A=1", "FI_PROVIDER_PATH=/b", "FI_", "FI_X=", NULL
	};

	privileged = true;
	environ = twice;
	read_settings();
	cr_expect_str_eq(environ[0], "A=1");
	cr_expect_str_eq(environ[1], "FI_");
	cr_expect(!environ[2]);
}

Test(env, privileged_process_gets_our_values)
{
	privileged = true;
	setenv("FI_OFI_RXM_MSG_TX_SIZE", "1", 1);
	read_settings();
	cr_expect(!getenv("FI_OFI_RXM_MSG_TX_SIZE"));
	lend(LIBFABRIC_1_17);
	expect_lent("FI_OFI_RXM_MSG_TX_SIZE", "64");
	give_back();
	expect_lent("FI_OFI_RXM_MSG_TX_SIZE", NULL);
}

Test(env, other_processes_keep_all)
{
	setenv("FI_PROVIDER_PATH", "/own", 1);
	setenv("HWLOC_XMLFILE", "/own", 1);
	read_settings();
	cr_expect_str_eq(getenv("FI_PROVIDER_PATH"), "/own");
	cr_expect_str_eq(getenv("HWLOC_XMLFILE"), "/own");
}
