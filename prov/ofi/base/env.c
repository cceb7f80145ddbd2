/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's settings: one table, read from the environment once. */

#include "base/env.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dofi_settings dofi_settings;

const struct dofi_setting dofi_setting_table[] = {
	{ "DAT_OFI_LOG", "level", "0 errors, 1 warnings, 2 information, 3 debug",
	  DOFI_ERR, DOFI_ERR, DOFI_DEBUG, &dofi_settings.log },
	{ "DAT_OFI_SPIN_US", "us", "how long a blocking wait polls before it sleeps",
	  50, 0, 1000000, &dofi_settings.spin_us },
	{ "DAT_OFI_PROBE_US", "us", "a queue not polled for this long is served for the program",
	  100, 1, 100000, &dofi_settings.probe_us },
	{ "DAT_OFI_TICK_US", "us", "how soon a queue that the program polls is looked at again, at first",
	  1000, 10, 1000000, &dofi_settings.tick_us },
	{ "DAT_OFI_COUNTERS", "level", "1 shows them to datinfo --counters, 2 writes them when an IA is closed, too",
	  1, 0, 2, &dofi_settings.counters },
	{ NULL, NULL, NULL, 0, 0, 0, NULL },
};

static const char prefix[] = "DAT_OFI_";

static void setting_read(const struct dofi_setting *s)
{
	const char *text = getenv(s->name);
	char *end;
	long v;

	*s->value = s->def;
	if (!text)
		return;
	errno = 0;
	v = strtol(text, &end, 0);
	if (errno || end == text || *end || v < s->min || v > s->max) {
		dofi_log(DOFI_ERR, DOFI_CORE, "%s=%s is not a number from %ld to %ld; using %ld",
			 s->name, text, s->min, s->max, s->def);
		return;
	}
	*s->value = v;
}

static const struct dofi_setting *setting_find(const char *name, size_t len)
{
	const struct dofi_setting *s;

	for (s = dofi_setting_table; s->name; s++)
		if (strlen(s->name) == len && !strncmp(s->name, name, len))
			return s;
	return NULL;
}

/* A misspelt setting would otherwise be silently without effect. */
static void name_the_unknown(void)
{
	char **e;

	for (e = environ; e && *e; e++) {
		size_t len = strcspn(*e, "=");

		if (!strncmp(*e, prefix, sizeof(prefix) - 1) && !setting_find(*e, len))
			dofi_log(DOFI_ERR, DOFI_CORE, "unknown setting %.*s", (int)len, *e);
	}
}

/* With one processor a spinning waiter only keeps the event's producer away. */
static int one_processor(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) < 2;
}

static void settings_read_once(void)
{
	const struct dofi_setting *s;

	for (s = dofi_setting_table; s->name; s++)
		setting_read(s);
	dofi_log_max = (enum dofi_log_level)dofi_settings.log;
	if (one_processor())
		dofi_settings.spin_us = 0;
	name_the_unknown();
}

void dofi_settings_read(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, settings_read_once);
}
