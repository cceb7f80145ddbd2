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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>

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

static int64_t microseconds(int64_t seconds, long part)
{
	return seconds * 1000000 + part;
}

/* The two times of @line, after "dat-ofi[PID] ", in microseconds. Returns the text behind them. */
static const char *times_of(const char *line, int64_t *wall, int64_t *monotonic)
{
	struct tm tm = { .tm_isdst = 0 };
	long part, seconds, monotonic_part;
	int n = 0;

	line = strptime(strchr(line, ' ') + 1, "%Y-%m-%dT%H:%M:%S", &tm);
	cr_assert(line);
	cr_assert_eq(sscanf(line, ".%6ldZ %ld.%6ld %n", &part, &seconds, &monotonic_part, &n), 3);
	*wall = microseconds(timegm(&tm), part);
	*monotonic = microseconds(seconds, monotonic_part);
	return line + n;
}

static int64_t clock_now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return microseconds(t.tv_sec, t.tv_nsec / 1000);
}

Test(log, a_line_has_process_times_subsystem_and_level)
{
	const int64_t wall = clock_now(CLOCK_REALTIME), monotonic = clock_now(CLOCK_MONOTONIC);
	int64_t at, monotonic_at;
	const char *line;
	char begin[32];

	snprintf(begin, sizeof(begin), "dat-ofi[%d] ", (int)getpid());
	dofi_log_max = DOFI_WARN;
	setenv("TZ", "Asia/Tokyo", 1);
	capture_begin(&capture);
	dofi_log(DOFI_WARN, DOFI_CM, "port %d", 7);
	line = capture_end(&capture);
	cr_expect(!strncmp(line, begin, strlen(begin)), "%s", line);
	cr_expect_str_eq(times_of(line, &at, &monotonic_at), "cm: warning: port 7\n");
	cr_expect(at >= wall && at <= clock_now(CLOCK_REALTIME));
	cr_expect(monotonic_at >= monotonic && monotonic_at <= clock_now(CLOCK_MONOTONIC));
}

/* Logs "x" for @ia, and returns the line from the level on. */
static const char *line_for(const char *ia)
{
	capture_begin(&capture);
	dofi_log_for(ia, DOFI_ERR, DOFI_CM, "x");
	return strstr(capture_end(&capture), "error: ");
}

static void *of_no_ia(void *arg)
{
	(void)arg;
	cr_expect_str_eq(line_for(NULL), "error: x\n");
	return NULL;
}

Test(log, a_line_has_the_ia_of_the_message_or_the_call_or_the_thread)
{
	pthread_t thread;

	cr_expect_str_eq(line_for(NULL), "error: x\n");
	dofi_log_thread_ia = "a";
	cr_expect_str_eq(line_for(NULL), "error: a: x\n");
	dofi_log_call_ia = "b";
	cr_expect_str_eq(line_for(NULL), "error: b: x\n");
	cr_expect_str_eq(line_for("c"), "error: c: x\n");
	pthread_create(&thread, NULL, of_no_ia, NULL);
	pthread_join(thread, NULL);
	dofi_log_call_ia = NULL;
	cr_expect_str_eq(line_for(NULL), "error: a: x\n");
}

static char directory[] = "/tmp/log_test.XXXXXX";

/* Returns the number of lines in the file @name of the directory; -1 if there is none. */
static int lines_in(const char *name)
{
	char path[128], line[1024];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	remove(path);
	return n;
}

/* Makes the file @name of a new directory the log's. */
static void log_to(const char *name)
{
	static char path[128];

	cr_assert(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	dofi_log_file = path;
}

static const char *logged_to_stderr(void)
{
	capture_begin(&capture);
	dofi_log(DOFI_ERR, DOFI_CM, "x");
	return capture_end(&capture);
}

/* Each process has its file, which may be removed. */
Test(log, a_file_takes_the_place_of_stderr)
{
	char own[32], forked[32];
	pid_t pid;

	log_to("a%p.log");
	snprintf(own, sizeof(own), "a%d.log", (int)getpid());
	cr_expect_str_eq(logged_to_stderr(), "");
	cr_expect_str_eq(logged_to_stderr(), "");
	cr_expect_eq(lines_in(own), 2);
	cr_expect_str_eq(logged_to_stderr(), "");
	pid = fork();
	if (!pid) {
		dofi_log(DOFI_ERR, DOFI_CM, "x");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	snprintf(forked, sizeof(forked), "a%d.log", (int)pid);
	cr_expect_eq(lines_in(own), 1);
	cr_expect_eq(lines_in(forked), 1);
	rmdir(directory);
}

Test(log, other_percent_signs_are_characters_of_the_name)
{
	log_to("%s%n.log");
	cr_expect_str_eq(logged_to_stderr(), "");
	cr_expect_eq(lines_in("%s%n.log"), 1);
	rmdir(directory);
}

/* The log reports the reason once. */
Test(log, stderr_has_what_the_file_does_not_take)
{
	const char *text;

	log_to("no/such/directory");
	text = logged_to_stderr();
	cr_expect(strstr(text, "DAT_OFI_LOG_FILE=/tmp/log_test."), "%s", text);
	cr_expect(strstr(text, ": No such file or directory\n"), "%s", text);
	cr_expect(strstr(text, "cm: error: x\n"), "%s", text);
	text = logged_to_stderr();
	cr_expect(!strstr(text, "DAT_OFI_LOG_FILE"), "%s", text);
	cr_expect(strstr(text, "cm: error: x\n"), "%s", text);
	rmdir(directory);
}

/* Opening a FIFO without a reader, and writing to a full device, fail at once. */
Test(log, a_file_that_is_no_regular_one_delays_nothing)
{
	log_to("fifo");
	cr_assert_eq(mkfifo(dofi_log_file, 0600), 0);
	cr_expect(strstr(logged_to_stderr(), "cm: error: x\n"));
	remove(dofi_log_file);
	rmdir(directory);
	dofi_log_file = "/dev/full";
	cr_expect(strstr(logged_to_stderr(), "cm: error: x\n"));
}

Test(log, every_subsystem_has_a_name)
{
	static const char *const name[] = { "core", "fabric", "cm", "ep", "evd", "mem" };
	char expected[64];
	int i;

	for (i = DOFI_CORE; i <= DOFI_MEM; i++) {
		capture_begin(&capture);
		dofi_log(DOFI_ERR, (enum dofi_log_subsys)i, "x");
		snprintf(expected, sizeof(expected), " %s: error: x\n", name[i]);
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

	for (n = 0; n < 1500; n += n > 450 && n < 610 ? 1 : 37) {
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

	cr_expect(got <= 600);
	cr_expect(got >= 598);
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
