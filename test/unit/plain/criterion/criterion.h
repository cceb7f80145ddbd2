/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stand-in for the part of Criterion that the provider's unit tests use.
 *
 * Criterion maps its arena where ThreadSanitizer has its shadow memory, and starts each test
 * through exec, which valgrind would have to follow. Here a test is only a forked child, so that
 * every tool works. It also serves builds without Criterion.
 */
#ifndef PLAIN_CRITERION_H
#define PLAIN_CRITERION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct plain_options {
	int unused;
	void (*init)(void);
	void (*fini)(void);
	int signal;		/* the signal that must end the test */
	int exit_code;		/* the status that the test must exit with */
	double timeout;		/* seconds, on an idle machine */
};

/* A test, or the defaults of a suite if run is NULL. */
struct plain_test {
	const char *suite, *name;
	void (*run)(void);
	struct plain_options options;
	struct plain_test *next;
};

void plain_add(struct plain_test *test);
void plain_check(bool ok, bool fatal, const char *file, int line, const char *condition,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7)));

#define PLAIN_ADD(id, ...)                                                       \
	static struct plain_test id##_test = { __VA_ARGS__ };                    \
	__attribute__((constructor)) static void id##_add(void)                  \
	{                                                                        \
		plain_add(&id##_test);                                           \
	}

#define Test(suite_, name_, ...)                                                 \
	static void suite_##_##name_##_run(void);                                \
	PLAIN_ADD(suite_##_##name_, .suite = #suite_, .name = #name_,            \
		  .run = suite_##_##name_##_run,                                 \
		  .options = { .unused = 0, __VA_ARGS__ })                       \
	static void suite_##_##name_##_run(void)

#define TestSuite(suite_, ...)                                                   \
	PLAIN_ADD(suite_, .suite = #suite_, .options = { .unused = 0, __VA_ARGS__ }) \
	_Static_assert(1, "takes the semicolon")

#define PLAIN_CHECK(fatal, condition, text, ...) \
	plain_check(condition, fatal, __FILE__, __LINE__, text, " " __VA_ARGS__)

#define cr_assert(c, ...) PLAIN_CHECK(true, !!(c), #c, __VA_ARGS__)
#define cr_expect(c, ...) PLAIN_CHECK(false, !!(c), #c, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_CHECK(true, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_CHECK(false, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN_CHECK(true, !strcmp(a, b), #a " == " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) PLAIN_CHECK(false, !strcmp(a, b), #a " == " #b, __VA_ARGS__)

#endif
