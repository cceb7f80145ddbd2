/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The settings: each test is a process of its own, because they are read once. */

#include "base/env.h"
#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static struct capture capture;

static void forget_all(void)
{
	const struct dofi_setting *s;

	for (s = dofi_setting_table; s->name; s++)
		unsetenv(s->name);
}

/* Reads the settings; what was logged about them. */
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
		snprintf(text, sizeof(text), "%ld", s->max);
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
		snprintf(text, sizeof(text), "%ld", s->min);
		setenv(s->name, text, 1);
	}
	cr_expect_str_eq(read_settings(), "");
	for (s = dofi_setting_table; s->name; s++)
		cr_expect_eq(*s->value, s->min, "%s", s->name);
}

Test(env, hexadecimal_is_a_number)
{
	setenv("DAT_OFI_TICK_US", "0x20", 1);
	cr_expect_str_eq(read_settings(), "");
	cr_expect_eq(dofi_settings.tick_us, 32);
}

/* The default is used, and the log names setting and text. */
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

Test(env, other_variables_are_not_looked_at)
{
	setenv("DAT_OFIX", "5", 1);
	setenv("DAT_OVERRIDE", "/nowhere", 1);
	cr_expect_str_eq(read_settings(), "");
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
	*(long *)arg = dofi_settings.tick_us;
	return NULL;
}

Test(env, threads_may_read_at_once)
{
	pthread_t thread[4];
	long seen[4];
	int i;

	setenv("DAT_OFI_TICK_US", "77", 1);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, read_in_thread, &seen[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_expect_eq(seen[i], 77);
	}
}
