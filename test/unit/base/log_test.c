/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The log: levels, parts, destinations, line format, one write(2) per line. */

#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <syslog.h>

static struct capture capture;
static int evaluated;
static char syslogged[1024];
static int syslog_priority = -1;

/* By the linker's --wrap. Fortified builds call the second. */
void __wrap_syslog(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void __wrap_syslog(int priority, const char *fmt, ...)
{
	va_list ap;

	syslog_priority = priority;
	va_start(ap, fmt);
	vsnprintf(syslogged, sizeof(syslogged), fmt, ap);
	va_end(ap);
}

void __wrap___syslog_chk(int priority, int flag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap___syslog_chk(int priority, int flag, const char *fmt, ...)
{
	va_list ap;

	syslog_priority = priority;
	va_start(ap, fmt);
	vsnprintf(syslogged, sizeof(syslogged), fmt, ap);
	va_end(ap);
}

static int argument(void)
{
	return ++evaluated;
}

Test(log, only_errors_by_default)
{
	cr_expect(dofi_log_on(DOFI_ERR, DOFI_CORE));
	cr_expect(!dofi_log_on(DOFI_WARN, DOFI_CORE));
}

Test(log, levels_above_the_highest_write_nothing)
{
	enum dofi_log_level max, level;

	for (max = DOFI_SILENT; max <= DOFI_DEBUG; max++)
		for (level = DOFI_ERR; level <= DOFI_DEBUG; level++) {
			bool written;

			dofi_log_max = max;
			capture_begin(&capture);
			dofi_log(level, DOFI_EP, "text");
			written = *capture_end(&capture);
			cr_expect_eq(written, level <= max);
		}
}

/* A part that is off logs errors and warnings, but no information. */
Test(log, parts_that_are_off_log_failures)
{
	enum dofi_log_level level;

	dofi_log_max = DOFI_DEBUG;
	dofi_log_parts = 1 << DOFI_CM | 1 << DOFI_MEM;
	for (level = DOFI_ERR; level <= DOFI_DEBUG; level++) {
		cr_expect(dofi_log_on(level, DOFI_CM) && dofi_log_on(level, DOFI_MEM));
		cr_expect_eq(dofi_log_on(level, DOFI_EP), level <= DOFI_WARN);
		cr_expect_eq(dofi_log_on(level, DOFI_CORE), level <= DOFI_WARN);
	}
}

Test(log, the_system_log_has_its_own_priorities)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
	enum dofi_log_level level;

	dofi_log_max = DOFI_DEBUG;
	dofi_log_dest = DOFI_LOG_SYSLOG;
	capture_begin(&capture);
	for (level = DOFI_ERR; level <= DOFI_DEBUG; level++) {
		dofi_log(level, DOFI_EP, "level %d", level);
		cr_expect_eq(syslog_priority, priority[level]);
		cr_expect_eq(syslogged[strlen(syslogged) - 2], '0' + (int)level, "%s", syslogged);
	}
	cr_expect_str_eq(capture_end(&capture), "");
}

Test(log, both_destinations_have_the_same_line)
{
	dofi_log_dest = DOFI_LOG_STDERR | DOFI_LOG_SYSLOG;
	capture_begin(&capture);
	dofi_log(DOFI_ERR, DOFI_EP, "x");
	cr_expect_str_eq(capture_end(&capture), syslogged);
	cr_expect(*syslogged);
}

Test(log, no_destination_is_silence)
{
	dofi_log_dest = 0;
	capture_begin(&capture);
	dofi_log(DOFI_ERR, DOFI_EP, "x");
	cr_expect_str_eq(capture_end(&capture), "");
	cr_expect_eq(syslog_priority, -1);
}

Test(log, arguments_are_not_evaluated_when_off)
{
	dofi_log(DOFI_DEBUG, DOFI_EP, "%d", argument());
	cr_expect_eq(evaluated, 0);
}

Test(log, a_line_has_process_subsystem_and_level)
{
	char expected[128];

	snprintf(expected, sizeof(expected), "dat-ofi[%d] cm: warning: port 7\n", (int)getpid());
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	dofi_log(DOFI_WARN, DOFI_CM, "port %d", 7);
	cr_expect_str_eq(capture_end(&capture), expected);
}

Test(log, every_subsystem_has_a_name)
{
	static const char *const name[] = { "core", "fabric", "cm", "ep", "evd", "mem" };
	char expected[64];
	int i;

	for (i = DOFI_CORE; i <= DOFI_MEM; i++) {
		capture_begin(&capture);
		dofi_log(DOFI_ERR, (enum dofi_log_subsys)i, "x");
		snprintf(expected, sizeof(expected), "] %s: error: x\n", name[i]);
		cr_expect(strstr(capture_end(&capture), expected), "%s", capture.text);
	}
}

/*
 * Logs a message of @n characters. Returns what a datagram socket in place of stderr receives of
 * it.
 */
static ssize_t line_of(int n, char *line, size_t size)
{
	int pair[2], saved = dup(STDERR_FILENO);
	char text[2048];
	ssize_t got, more;

	memset(text, 'x', n);
	text[n] = 0;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	dup2(pair[0], STDERR_FILENO);
	dofi_log(DOFI_ERR, DOFI_CORE, "%s", text);
	dup2(saved, STDERR_FILENO);
	got = recv(pair[1], line, size, MSG_DONTWAIT);
	more = recv(pair[1], text, sizeof(text), MSG_DONTWAIT);
	cr_expect_eq(more, -1, "a second write");
	close(pair[0]);
	close(pair[1]);
	close(saved);
	return got;
}

Test(log, each_line_is_one_write)
{
	char line[2048];
	int n;

	for (n = 0; n < 1500; n += n > 400 && n < 520 ? 1 : 37) {
		ssize_t got = line_of(n, line, sizeof(line));

		cr_assert(got > 0);
		cr_assert_eq(line[got - 1], '\n');
		cr_assert_eq((ssize_t)strcspn(line, "\n"), got - 1);
		cr_assert(!memchr(line, 0, got));
	}
}

Test(log, long_lines_are_cut)
{
	char line[2048];
	ssize_t got = line_of(1500, line, sizeof(line));

	cr_expect(got <= 512);
	cr_expect(got >= 510);
	cr_expect_eq(line[got - 2], 'x');
}

Test(log, without_stderr_nothing_happens)
{
	int saved = dup(STDERR_FILENO);

	close(STDERR_FILENO);
	dofi_log(DOFI_ERR, DOFI_CORE, "unheard");
	dup2(saved, STDERR_FILENO);
	close(saved);
}

enum { THREADS = 4, LINES = 500 };

static void *write_lines(void *arg)
{
	char text[200];
	int i;

	memset(text, 'a' + (int)(long)arg, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (i = 0; i < LINES; i++)
		dofi_log(DOFI_ERR, DOFI_EP, "%s", text);
	return NULL;
}

static int whole_lines(int fd)
{
	char line[1024];
	int n = 0;
	FILE *f = fdopen(fd, "r");

	while (fgets(line, sizeof(line), f)) {
		const char *text = strstr(line, "error: ");

		cr_assert(text);
		text += 7;
		cr_assert_eq(strspn(text, (char[]){ *text, 0 }), 199);
		cr_assert_eq(text[199], '\n');
		n++;
	}
	fclose(f);
	return n;
}

Test(log, lines_of_threads_do_not_mix)
{
	pthread_t thread[THREADS];
	int saved = dup(STDERR_FILENO), file = memfd_create("log", 0);
	long i;

	/* writers of a memfd share a position without a lock, unlike a file's */
	fcntl(file, F_SETFL, O_APPEND);
	dup2(file, STDERR_FILENO);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, write_lines, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	lseek(file, 0, SEEK_SET);
	cr_expect_eq(whole_lines(file), THREADS * LINES);
}
