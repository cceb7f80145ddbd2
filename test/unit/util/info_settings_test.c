/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The settings that datinfo reads from named attributes. */
#include "info_settings.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static DAT_NAMED_ATTR named[8];
static int n_named;

static void attr_add(const char *name, const char *value)
{
	named[n_named++] = (DAT_NAMED_ATTR){ name, value };
}

static DAT_PROVIDER_ATTR provider(void)
{
	return (DAT_PROVIDER_ATTR){ .num_provider_specific_attr = n_named,
				    .provider_specific_attr = named };
}

static char *text(bool as_json)
{
	DAT_PROVIDER_ATTR pa = provider();
	size_t len;
	char *p;
	FILE *out = open_memstream(&p, &len);
	struct json j = { .out = out };

	if (as_json) {
		json_array(&j, NULL);
		settings_json(&j, &pa);
		json_end(&j, ']');
	} else {
		settings_print(out, &pa);
	}
	fclose(out);
	return p;
}

static bool reported(void)
{
	DAT_PROVIDER_ATTR pa = provider();

	return settings_reported(&pa);
}

Test(settings, provider_without_settings_reports_none)
{
	attr_add("OFI_PROVIDER", "tcp");
	attr_add("OFI_SETTING", "no colon");
	cr_assert(!reported());
	attr_add("OFI_SETTING:A", "");
	cr_assert(reported());
}

Test(settings, a_line_has_all_fields)
{
	char *p;

	attr_add("OFI_PROVIDER", "tcp");
	attr_add("OFI_SETTING:DAT_OFI_X_US", "us\tenvironment\thow long\t17");
	p = text(false);
	cr_assert(strstr(p,
			 "\nDAT_OFI_X_US               17         us     environment   how long\n"),
		  "%s", p);
	cr_assert(!strstr(p, "tcp"), "%s", p);
	free(p);
}

Test(settings, json_has_all_fields)
{
	char *p;

	attr_add("OFI_SETTING:DAT_OFI_X_US", "us\tenvironment\thow long\t17");
	p = text(true);
	cr_assert(strstr(p, "\"DAT_OFI_X_US\"") && strstr(p, "\"17\"") && strstr(p, "\"us\"") &&
		  strstr(p, "\"environment\"") && strstr(p, "\"how long\""), "%s", p);
	free(p);
}

Test(settings, a_value_may_have_tabs)
{
	char *p;

	attr_add("OFI_SETTING:DAT_OVERRIDE", "path\tdefault\thelp\t/a\tb");
	p = text(false);
	cr_assert(strstr(p, "/a\tb "), "%s", p);
	free(p);
}

Test(settings, too_few_fields_are_empty_ones)
{
	char *p;

	attr_add("OFI_SETTING:A", "");
	attr_add("OFI_SETTING:B", "us\tdefault");
	attr_add("OFI_SETTING:", "us");
	p = text(false);
	cr_assert(strstr(p, "\nA ") && strstr(p, "\nB "), "%s", p);
	free(p);
}

Test(settings, long_fields_are_cut)
{
	char value[4096], *p;

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = 0;
	attr_add("OFI_SETTING:A", value);
	p = text(false);
	cr_assert(strlen(p) < 1024);
	free(p);
}

static void judged(const char *wanted)
{
	const DAT_PROVIDER_ATTR pa = provider();
	char judgement[256];

	settings_judge(&pa, judgement, sizeof(judgement));
	cr_expect(!strcmp(judgement, wanted), "%s", judgement);
}

Test(settings, the_environment_is_judged)
{
	attr_add("OFI_SETTING:DAT_OFI_TICK_US", "us\tdefault\thelp\t1000");
	attr_add("OFI_SETTING:DAT_OFI_SPIN_US", "us\tenvironment\thelp\t5");
	clearenv();
	judged("");
	setenv("DAT_OFI_SPIN_US", "5", 1);
	setenv("DAT_OFIS", "1", 1);
	judged("");
	setenv("DAT_OFI_TICK_US", "soon", 1);
	judged("DAT_OFI_TICK_US=soon is no valid value: 1000 counts");
	setenv("DAT_OFI_TICKS", "2", 1);
	judged("DAT_OFI_TICK_US=soon is no valid value: 1000 counts; DAT_OFI_TICKS is no setting");
}
