/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the tests of a program one after another, each in a child process. See
 * criterion/criterion.h.
 */

#include <criterion/criterion.h>

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define DEFAULT_TIMEOUT 30
/* Factor on timeouts: they are there to find hangs, and must not fail on a busy machine. */
#define BUSY 4

static struct plain_test *tests, **last = &tests;
static bool failed;

void plain_add(struct plain_test *test)
{
	*last = test;
	last = &test->next;
}

void plain_check(bool ok, bool fatal, const char *file, int line, const char *condition,
		 const char *fmt, ...)
{
	va_list ap;

	if (ok)
		return;
	__atomic_store_n(&failed, true, __ATOMIC_RELAXED);
	fprintf(stderr, "%s:%d: not so: %s", file, line, condition);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (fatal) {
		fflush(NULL);
		_exit(1);
	}
}

/* The options of @test. Unset ones come from its suite. */
static struct plain_options options_of(const struct plain_test *test)
{
	struct plain_options o = test->options;
	const struct plain_test *s;

	for (s = tests; s; s = s->next) {
		if (s->run || strcmp(s->suite, test->suite))
			continue;
		if (!o.init)
			o.init = s->options.init;
		if (!o.fini)
			o.fini = s->options.fini;
		if (!o.timeout)
			o.timeout = s->options.timeout;
	}
	return o;
}

/*
 * Ends with exit() and not _exit(), because checkers run there. AddressSanitizer's destructors
 * would take a tenth of a test's time, so only its search for leaks runs, which ends the process if
 * it finds one.
 */
static void run_child(const struct plain_test *test, const struct plain_options *o)
{
	alarm((unsigned)(BUSY * (o->timeout ? o->timeout : DEFAULT_TIMEOUT)));
	if (o->init)
		o->init();
	test->run();
	if (o->fini)
		o->fini();
#ifdef __SANITIZE_ADDRESS__
	__lsan_do_leak_check();
	fflush(NULL);
	_exit(failed);
#endif
	exit(failed);
}

static bool run(const struct plain_test *test)
{
	const struct plain_options o = options_of(test);
	int status;
	pid_t pid;
	bool ok;

	fflush(NULL);
	pid = fork();
	if (!pid)
		run_child(test, &o);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	ok = o.signal ? WIFSIGNALED(status) && WTERMSIG(status) == o.signal :
			WIFEXITED(status) && WEXITSTATUS(status) == o.exit_code;
	if (!ok)
		fprintf(stderr, "FAIL %s/%s: %s %d\n", test->suite, test->name,
			WIFSIGNALED(status) ? "signal" : "exit code",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return ok;
}

static bool wanted(const struct plain_test *test, const char *filter)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
	return test->run && (!filter || !fnmatch(filter, name, 0));
}

/*
 * Returns whether a line of the file DAT_TEST_EXCEPT begins with a pattern of the test's name; the
 * rest of the line is the reason.
 */
static bool excepted(const struct plain_test *test)
{
	const char *path = getenv("DAT_TEST_EXCEPT");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[256], pattern[256];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%255s", pattern) == 1 && wanted(test, pattern);
	fclose(f);
	return found;
}

static void usage(const char *program)
{
	fprintf(stderr, "usage: %s [--fail-fast] [[--filter] SUITE/TEST, a pattern]\n", program);
	exit(2);
}

/* Of Criterion's options only two are known. */
static const char *options_read(int argc, char **argv, bool *fail_fast)
{
	const char *filter = NULL;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fail-fast"))
			*fail_fast = true;
		else if (!filter && !strcmp(argv[i], "--filter") && i + 1 < argc)
			filter = argv[++i];
		else if (!filter && argv[i][0] != '-')
			filter = argv[i];
		else
			usage(argv[0]);
	}
	return filter;
}

int main(int argc, char **argv)
{
	bool fail_fast = false;
	const char *filter = options_read(argc, argv, &fail_fast);
	const struct plain_test *t;
	int ran = 0, bad = 0, left_out = 0;

	for (t = tests; t && !(bad && fail_fast); t = t->next) {
		if (!wanted(t, filter))
			continue;
		if (excepted(t)) {
			left_out++;
			continue;
		}
		ran++;
		bad += !run(t);
	}
	printf("%d tests, %d failed", ran, bad);
	if (left_out)
		printf(", %d left out by DAT_TEST_EXCEPT", left_out);
	putchar('\n');
	return bad || !ran;
}
