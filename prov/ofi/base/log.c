/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's log: formats a message and writes it with one write(2), or to syslog. */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

enum dofi_log_level dofi_log_max = DOFI_ERR;
unsigned dofi_log_parts = ~0u;
unsigned dofi_log_dest = DOFI_LOG_STDERR;

static const struct {
	const char *name;
	int priority;
} levels[] = {
	[DOFI_ERR] = { "error", LOG_ERR },
	[DOFI_WARN] = { "warning", LOG_WARNING },
	[DOFI_INFO] = { "info", LOG_INFO },
	[DOFI_DEBUG] = { "debug", LOG_DEBUG },
};

static const char *const subsys_name[] = {
	[DOFI_CORE] = "core",
	[DOFI_FAB] = "fabric",
	[DOFI_CM] = "cm",
	[DOFI_EP] = "ep",
	[DOFI_EVD] = "evd",
	[DOFI_MEM] = "mem",
};

void dofi_log_write(enum dofi_log_level level, enum dofi_log_subsys subsys, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "dat-ofi[%d] %s: %s: ", (int)getpid(),
		     subsys_name[subsys], levels[level].name);
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';

	if (dofi_log_dest & DOFI_LOG_SYSLOG)
		syslog(levels[level].priority, "%.*s", n, line);
	/* One write, so that lines of several threads do not mix. */
	if (dofi_log_dest & DOFI_LOG_STDERR && write(STDERR_FILENO, line, n) < 0)
		return;
}
