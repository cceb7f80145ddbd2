/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry's log: reads DAT_DBG_TYPE and DAT_DBG_DEST once and writes lines.
 *
 * stdout belongs to the program: where other registries print to it, this one uses stderr.
 */

#include "log.h"

#include "dat_select.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

/* Bits of DAT_DBG_DEST. */
enum { DEST_STDERR = 1, DEST_SYSLOG = 2 };

/* types and dest are written once, by settings_read() */
static unsigned long types = DREG_LOG_ERROR;
static unsigned long dest = DEST_STDERR;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned long setting(const char *name, unsigned long def)
{
	const char *text = secure_getenv(name);
	unsigned long v;
	char *end;

	if (!text)
		return def;
	v = strtoul(text, &end, 0);
	return end == text || *end ? def : v;
}

static void settings_read(void)
{
	types = setting("DAT_DBG_TYPE", types);
	dest = setting("DAT_DBG_DEST", dest);
}

void dreg_log(enum dreg_log_type type, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	pthread_once(&once, settings_read);
	if (!(types & type))
		return;

	n = snprintf(line, sizeof(line), "libdat%s[%d]: ", DAT_VERSION_MAJOR >= 2 ? "2" : "",
		     (int)getpid());
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n] = '\n';
	line[n + 1] = '\0';

	if (dest & DEST_SYSLOG)
		syslog(type == DREG_LOG_ERROR ? LOG_ERR : LOG_DEBUG, "%s", line);
	/* One write, so that lines of several threads do not mix. */
	if (dest & DEST_STDERR && write(STDERR_FILENO, line, n + 1) < 0)
		return;
}
