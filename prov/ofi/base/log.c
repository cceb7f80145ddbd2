/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's log: formats a message and writes it with one write(2), or to syslog. */

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum dofi_log_level dofi_log_max = DOFI_ERR;
unsigned dofi_log_parts = ~0u;
unsigned dofi_log_dest = DOFI_LOG_STDERR;
const char *dofi_log_file;
__thread const char *dofi_log_thread_ia, *dofi_log_call_ia;

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

/* Writes the line up to its message, of @len characters at most. Returns the length. */
static int prefix(char *line, size_t len, const char *ia, enum dofi_log_level level,
		  enum dofi_log_subsys subsys)
{
	struct timespec wall, monotonic;
	char date[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	/* in UTC, because localtime_r() reads the environment, which the program may be changing */
	strftime(date, sizeof(date), "%FT%T", gmtime_r(&wall.tv_sec, &tm));
	return snprintf(line, len, "dat-ofi[%d] %s.%06ldZ %lld.%06ld %s: %s: %s%s", (int)getpid(),
			date, wall.tv_nsec / 1000, (long long)monotonic.tv_sec,
			monotonic.tv_nsec / 1000, subsys_name[subsys], levels[level].name,
			ia ? ia : "", ia ? ": " : "");
}

/*
 * Opens the log's file, for each line: the program may close all descriptors or fork, and an
 * administrator may rename or remove the file. Returns -1 on failure.
 */
static int file_open(void)
{
	const char *process = strstr(dofi_log_file, "%p");
	char path[PATH_MAX];

	if (process)
		snprintf(path, sizeof(path), "%.*s%d%s", (int)(process - dofi_log_file),
			 dofi_log_file, (int)getpid(), process + 2);
	return open(process ? path : dofi_log_file,
		    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
}

/* One write, so that lines of several threads do not mix. */
static void stderr_write(const char *line, int n)
{
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

/* Writes a line to the log's file, or to stderr if that fails, the first time with the reason. */
static void file_write(const char *line, int n)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	const int file = file_open();
	const bool written = file >= 0 && write(file, line, n) == n;
	const int err = errno;

	if (file >= 0)
		close(file);
	if (written)
		return;
	if (!atomic_flag_test_and_set(&told))
		dprintf(STDERR_FILENO, "dat-ofi[%d] core: error: DAT_OFI_LOG_FILE=%s: %s\n",
			(int)getpid(), dofi_log_file, strerror(err));
	stderr_write(line, n);
}

void dofi_log_write(const char *ia, enum dofi_log_level level, enum dofi_log_subsys subsys,
		    const char *fmt, ...)
{
	char line[600];
	va_list ap;
	int n;

	if (!ia)
		ia = dofi_log_call_ia ? dofi_log_call_ia : dofi_log_thread_ia;
	n = prefix(line, sizeof(line), ia, level, subsys);
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';

	if (dofi_log_dest & DOFI_LOG_SYSLOG)
		syslog(levels[level].priority, "%.*s", n, line);
	if (!(dofi_log_dest & DOFI_LOG_STDERR))
		return;
	if (dofi_log_file)
		file_write(line, n);
	else
		stderr_write(line, n);
}
