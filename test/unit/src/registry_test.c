/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry with a dat.conf and a provider library (stub_provider.c): which entries are listed,
 * which line matches which program, and when libraries are loaded and unloaded.
 */

#include "dat_select.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ERR(type, subtype)	(DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype))
#define BAD_ARG(n)		ERR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define NOT_FOUND(what)		ERR(DAT_PROVIDER_NOT_FOUND, what)

#if DAT_VERSION_MAJOR >= 2
#define API "u2.0"
#define VERSION "2.0"
#define OTHER_API "u1.2"
#define LATER_API "u2.7"
#define LATER_VERSION "2.7"
#define LATEST_API "u2.10"
#else
#define API "u1.2"
#define VERSION "1.2"
#define OTHER_API "u2.0"
#define LATER_API "u1.7"
#define LATER_VERSION "1.7"
#define LATEST_API "u1.10"
#endif

/*
 * The library's trace
 */

static char trace[65536];
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

void stub_saw(const char *what);
void stub_saw(const char *what)
{
	pthread_mutex_lock(&trace_lock);
	if (strlen(trace) + strlen(what) + 2 < sizeof(trace))
		strcat(strcat(trace, what), "\n");
	pthread_mutex_unlock(&trace_lock);
}

static void check_trace(const char *want)
{
	cr_expect_str_eq(trace, want);
	trace[0] = '\0';
}

/* The path of the library, as Libtool builds it. */
static const char *stub(void)
{
	const char *top = getenv("top_builddir");
	static char path[4096];

	snprintf(path, sizeof(path), "%s/test/unit/src/.libs/stub%d.so", top ? top : ".",
		 DAT_VERSION_MAJOR);
	cr_assert_eq(access(path, R_OK), 0, "%s is missing", path);
	return path;
}

static bool stub_loaded(void)
{
	void *dl = dlopen(stub(), RTLD_NOLOAD | RTLD_NOW);

	if (dl)
		dlclose(dl);
	return dl;
}

/*
 * dat.conf and the log
 */

static char conf_path[] = "/tmp/dat-registry-test-XXXXXX";
static int log_fd;

/* Writes a dat.conf in which @ stands for the library, and captures stderr from then on. */
static void configure(const char *text)
{
	int fd = mkstemp(conf_path);
	FILE *f = fdopen(fd, "w");
	FILE *log = tmpfile();

	cr_assert(f);
	cr_assert(log);
	for (; *text; text++) {
		if (*text == '@')
			fputs(stub(), f);
		else
			fputc(*text, f);
	}
	fclose(f);
	setenv("DAT_OVERRIDE", conf_path, 1);
	log_fd = fileno(log);
	dup2(log_fd, STDERR_FILENO);
}

static void remove_conf(void)
{
	unlink(conf_path);
}

/* The log so far, without each line's "libdat[pid]: " and with FILE for the name of dat.conf. */
static const char *logged(void)
{
	static char text[8192];
	char raw[8192], *line;
	ssize_t n = pread(log_fd, raw, sizeof(raw) - 1, 0);

	raw[n > 0 ? n : 0] = text[0] = '\0';
	for (line = strtok(raw, "\n"); line; line = strtok(NULL, "\n")) {
		line = strstr(line, "]: ") + 3;
		if (!strncmp(line, conf_path, strlen(conf_path))) {
			strcat(text, "FILE");
			line += strlen(conf_path);
		}
		strcat(strcat(text, line), "\n");
	}
	return text;
}

/*
 * Opening
 */

static DAT_RETURN open_as(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
			  DAT_BOOLEAN threadsafe, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS;

	*ia = DAT_HANDLE_NULL;
	return dat_ia_openv((DAT_NAME_PTR)(uintptr_t)name, 8, &async, ia, major, minor, threadsafe);
}

static DAT_RETURN open_ia(const char *name, DAT_IA_HANDLE *ia)
{
	return open_as(name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE, ia);
}

static void close_ia(DAT_IA_HANDLE ia)
{
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
}

TestSuite(registry, .fini = remove_conf);

Test(registry, opens_and_closes)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"some params\" \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	check_trace("init a " VERSION " some params\nopen\n");
	cr_expect(stub_loaded());
	close_ia(ia);
	check_trace("close\nfini a " VERSION "\n");
	cr_expect(!stub_loaded());
	cr_expect_str_eq(logged(), "");
}

Test(registry, loads_once_and_unloads_with_the_last)
{
	DAT_IA_HANDLE one, two;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	cr_assert_eq(open_ia("a", &one), DAT_SUCCESS);
	cr_assert_eq(open_ia("a", &two), DAT_SUCCESS);
	check_trace("init a " VERSION "\nopen\nopen\n");
	close_ia(one);
	cr_expect(stub_loaded());
	check_trace("close\n");
	close_ia(two);
	check_trace("close\nfini a " VERSION "\n");
	cr_expect(!stub_loaded());
	cr_assert_eq(open_ia("a", &one), DAT_SUCCESS);
	check_trace("init a " VERSION "\nopen\n");
	close_ia(one);
}

Test(registry, failed_open_unloads)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 closed \"\"\n");
	cr_expect_eq(open_ia("a", &ia), ERR(DAT_INTERNAL_ERROR, 0));
	check_trace("init a " VERSION " closed\nfini a " VERSION "\n");
	cr_expect(!stub_loaded());
}

Test(registry, failed_close_keeps_the_library)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 busy \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), ERR(DAT_INVALID_STATE, 0));
	cr_expect(stub_loaded());
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	cr_expect(!stub_loaded());
}

Test(registry, second_close_is_refused)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	close_ia(ia);
	cr_expect_eq(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG),
		     ERR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
}

/*
 * Which line matches
 */

Test(registry, threadsafe_line_serves_both)
{
	DAT_IA_HANDLE ia;

	configure("a " API " threadsafe default @ stub.1.0 \"\" \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	close_ia(ia);
	check_trace("init a " VERSION " threadsafe\nopen\nclose\nfini a " VERSION " threadsafe\n");
	cr_assert_eq(open_as("a", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE, &ia),
		     DAT_SUCCESS);
	close_ia(ia);
}

Test(registry, exact_line_is_preferred)
{
	DAT_IA_HANDLE ia;

	configure("a " LATER_API " nonthreadsafe default @ stub.1.0 later \"\"\n"
		  "a " API " threadsafe default @ stub.1.0 safe \"\"\n"
		  "a " API " nonthreadsafe default @ stub.1.0 plain \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	check_trace("init a " VERSION " plain\nopen\n");
	cr_assert_eq(open_as("a", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE, &ia),
		     DAT_SUCCESS);
	check_trace("init a " VERSION " threadsafe safe\nopen\n");
}

Test(registry, highest_minor_serves_lower_ones)
{
	DAT_IA_HANDLE ia;

	configure("a " LATER_API " nonthreadsafe default @ stub.1.0 later \"\"\n"
		  "a " LATEST_API " nonthreadsafe default @ stub.1.0 latest \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	cr_expect(strstr(trace, "latest"), "%s", trace);
	close_ia(ia);
	trace[0] = '\0';
	cr_assert_eq(open_as("a", DAT_VERSION_MAJOR, 7, DAT_FALSE, &ia), DAT_SUCCESS);
	check_trace("init a " LATER_VERSION " later\nopen\n");
}

Test(registry, says_what_was_not_found)
{
	const DAT_UINT32 major = DAT_VERSION_MAJOR, minor = DAT_VERSION_MINOR;
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n"
		  "b " OTHER_API " threadsafe default @ stub.1.0 \"\" \"\"\n"
		  "c " API " threadsafe nondefault @ stub.1.0 \"\" \"\"\n");
	cr_expect_eq(open_ia("z", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(open_ia("aa", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(open_ia("", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(open_ia("c", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(open_as("a", major + 1, 0, DAT_FALSE, &ia), NOT_FOUND(DAT_MAJOR_NOT_FOUND));
	cr_expect_eq(open_ia("b", &ia), NOT_FOUND(DAT_MAJOR_NOT_FOUND));
	/* an entry exists, but this library cannot use its table */
	cr_expect_eq(open_as("b", 3 - major, 0, DAT_FALSE, &ia), NOT_FOUND(DAT_MAJOR_NOT_FOUND));
	cr_expect_eq(open_as("a", major, minor + 1, DAT_FALSE, &ia),
		     NOT_FOUND(DAT_MINOR_NOT_FOUND));
	cr_expect_eq(open_as("a", major, minor, DAT_TRUE, &ia),
		     NOT_FOUND(DAT_THREAD_SAFETY_NOT_FOUND));
	check_trace("");
}

Test(registry, names_share_a_library)
{
	DAT_IA_HANDLE a, b;

	configure("a " API " nonthreadsafe default @ stub.1.0 A \"\"\n"
		  "b " API " nonthreadsafe default @ stub.1.0 B \"\"\n");
	cr_assert_eq(open_ia("a", &a), DAT_SUCCESS);
	cr_assert_eq(open_ia("b", &b), DAT_SUCCESS);
	check_trace("init a " VERSION " A\nopen\ninit b " VERSION " B\nopen\n");
	close_ia(a);
	check_trace("close\nfini a " VERSION "\n");
	cr_expect(stub_loaded());
	close_ia(b);
	cr_expect(!stub_loaded());
}

/*
 * Lines that do not work
 */

Test(registry, missing_library_then_a_second_line)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default /nowhere/lib.so x.1.0 first \"\"\n"
		  "a " API " nonthreadsafe default @ stub.1.0 second \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	check_trace("init a " VERSION " second\nopen\n");
	cr_expect(strstr(logged(), "cannot load /nowhere/lib.so: "), "%s", logged());
}

Test(registry, library_that_does_not_register)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 silent \"\"\n"
		  "b " API " nonthreadsafe default @ stub.1.0 silent \"\"\n"
		  "b " API " nonthreadsafe default @ stub.1.0 works \"\"\n");
	cr_expect_eq(open_ia("a", &ia), NOT_FOUND(DAT_NO_SUBTYPE));
	check_trace("init a " VERSION " silent\nfini a " VERSION "\n");
	cr_expect(!stub_loaded());
	cr_expect(strstr(logged(), " does not offer a " API), "%s", logged());
	cr_expect_eq(open_ia("b", &ia), DAT_SUCCESS);
	check_trace("init b " VERSION " silent\nfini b " VERSION "\n"
		    "init b " VERSION " works\nopen\n");
}

Test(registry, library_that_registers_another_name)
{
	DAT_PROVIDER_INFO info, *list[] = { &info };
	DAT_IA_HANDLE ia;
	DAT_COUNT count;

	configure("a " API " nonthreadsafe default @ stub.1.0 other \"\"\n");
	cr_expect_eq(open_ia("a", &ia), NOT_FOUND(DAT_NO_SUBTYPE));
	cr_expect(!stub_loaded());
	/* its registration of another name is gone as well */
	cr_expect_eq(open_ia("other", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(dat_registry_list_providers(1, &count, list), DAT_SUCCESS);
	cr_expect_eq(count, 1);
}

Test(registry, library_that_leaves_its_registration)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 stay \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	close_ia(ia);
	cr_expect(!stub_loaded());
	trace[0] = '\0';
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	check_trace("init a " VERSION " stay\nopen\n");
	close_ia(ia);
}

Test(registry, library_that_is_no_provider)
{
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default libc.so.6 c.1.0 \"\" \"\"\n");
	cr_expect_eq(open_ia("a", &ia), NOT_FOUND(DAT_NO_SUBTYPE));
	cr_expect_str_eq(logged(), "libc.so.6 is not a provider: it lacks dat_provider_init "
				   "[cause 11]\n");
}

Test(registry, bad_lines_are_named)
{
	DAT_IA_HANDLE ia;

	configure("\xef\xbb\xbf# heading\nbroken\n"
		  "a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\r\n"
		  "b " API " maybe default @ stub.1.0 \"\" \"\"\n");
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	cr_expect_str_eq(logged(), "FILE:2: fewer than eight fields\n"
				   "FILE: 2 such lines are ignored; DAT_DBG_TYPE=65 logs each\n");
}

Test(registry, override_that_cannot_be_read)
{
	DAT_PROVIDER_INFO info, *list[] = { &info };
	DAT_COUNT count = 7;
	DAT_IA_HANDLE ia;

	configure("");
	unlink(conf_path);
	cr_expect_eq(dat_registry_list_providers(1, &count, list), DAT_SUCCESS);
	cr_expect_eq(count, 0);
	cr_expect_eq(open_ia("a", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect(strstr(logged(), "cannot read "), "%s", logged());
}

#define NO_DESCRIPTORS ERR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE)

/* Leaves no descriptor. Returns the former limit for setrlimit(). */
static struct rlimit take_descriptors(void)
{
	struct rlimit none, before;

	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	return before;
}

Test(registry, one_lack_of_descriptors_ends_with_it)
{
	DAT_PROVIDER_INFO info, *list[] = { &info };
	struct rlimit before;
	DAT_IA_HANDLE ia;
	DAT_COUNT count;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	before = take_descriptors();
	cr_expect_eq(open_ia("a", &ia), NO_DESCRIPTORS);
	cr_expect_eq(dat_registry_list_providers(1, &count, list), NO_DESCRIPTORS);
	setrlimit(RLIMIT_NOFILE, &before);
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	close_ia(ia);
}

Test(registry, one_lack_of_descriptors_while_loading_ends_with_it)
{
	DAT_PROVIDER_INFO info, *list[] = { &info };
	struct rlimit before;
	DAT_IA_HANDLE ia;
	DAT_COUNT count;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	cr_assert_eq(dat_registry_list_providers(1, &count, list), DAT_SUCCESS);
	before = take_descriptors();
	cr_expect_eq(open_ia("a", &ia), NO_DESCRIPTORS);
	setrlimit(RLIMIT_NOFILE, &before);
	cr_assert_eq(open_ia("a", &ia), DAT_SUCCESS);
	close_ia(ia);
}

/*
 * Listing
 */

#define LISTED								\
	"a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n"	\
	"b " API " threadsafe default @ stub.1.0 \"\" \"\"\n"		\
	"a " API " nonthreadsafe default /other.so x.1.0 \"\" \"\"\n"	\
	"a " API " threadsafe default @ stub.1.0 \"\" \"\"\n"		\
	"c " OTHER_API " threadsafe default @ stub.1.0 \"\" \"\"\n"	\
	"d " API " threadsafe nondefault @ stub.1.0 \"\" \"\"\n"	\
	"e k1.2 threadsafe default @ stub.1.0 \"\" \"\"\n"

Test(registry, lists_what_can_be_opened)
{
	DAT_PROVIDER_INFO info[5], *list[] = { &info[0], &info[1], &info[2], &info[3], &info[4] };
	DAT_COUNT count;

	configure(LISTED);
	cr_expect_eq(dat_registry_list_providers(5, &count, list), DAT_SUCCESS);
	cr_assert_eq(count, 3);
	cr_expect_str_eq(info[0].ia_name, "a");
	cr_expect_eq(info[0].is_thread_safe, DAT_FALSE);
	cr_expect_eq(info[0].dapl_version_major, DAT_VERSION_MAJOR);
	cr_expect_eq(info[0].dapl_version_minor, DAT_VERSION_MINOR);
	cr_expect_str_eq(info[1].ia_name, "b");
	cr_expect_eq(info[1].is_thread_safe, DAT_TRUE);
	cr_expect_str_eq(info[2].ia_name, "a");
	cr_expect_eq(info[2].is_thread_safe, DAT_TRUE);
	check_trace("");
}

Test(registry, list_that_is_too_short)
{
	DAT_PROVIDER_INFO info[3], *list[] = { &info[0], &info[1] };
	DAT_COUNT count;

	configure(LISTED);
	memset(info, 0, sizeof(info));
	cr_expect_eq(dat_registry_list_providers(2, &count, list), DAT_SUCCESS);
	cr_expect_eq(count, 2);
	cr_expect_str_eq(info[1].ia_name, "b");
	cr_expect_str_eq(info[2].ia_name, "");
}

Test(registry, list_with_bad_arguments)
{
	DAT_PROVIDER_INFO info, *list[] = { &info, NULL };
	DAT_COUNT count = -1;

	configure(LISTED);
	cr_expect_eq(dat_registry_list_providers(2, NULL, list), BAD_ARG(2));
	cr_expect_eq(dat_registry_list_providers(2, &count, NULL), BAD_ARG(3));
	cr_expect_eq(count, 3, "as many as the list needs");
	count = -1;
	cr_expect_eq(dat_registry_list_providers(2, &count, list), BAD_ARG(3));
	cr_expect_eq(count, 3);
	count = -1;
	cr_expect_eq(dat_registry_list_providers(0, &count, NULL), BAD_ARG(1));
	cr_expect_eq(count, 3);
	cr_expect_eq(dat_registry_list_providers(-1, &count, list), BAD_ARG(1));
}

/*
 * Providers that need no library
 */

static DAT_PROVIDER_INFO info_of(const char *name)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.is_thread_safe = DAT_TRUE,
	};

	strcpy(info.ia_name, name);
	return info;
}

static DAT_RETURN present_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			       DAT_IA_HANDLE *ia)
{
	*ia = (DAT_IA_HANDLE)0x1240;
	return DAT_SUCCESS;
}

static DAT_RETURN present_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	return DAT_SUCCESS;
}

static DAT_PROVIDER present = { .ia_open_func = present_open, .ia_close_func = present_close };

Test(registry, present_provider)
{
	DAT_PROVIDER_INFO info = info_of("here"), got, *list[] = { &got };
	DAT_IA_HANDLE ia;
	DAT_COUNT count;

	configure("");
	cr_expect_eq(dat_registry_add_provider(&present, &info), DAT_SUCCESS);
	cr_expect_eq(dat_registry_list_providers(1, &count, list), DAT_SUCCESS);
	cr_expect_eq(count, 1);
	cr_expect_str_eq(got.ia_name, "here");
	cr_assert_eq(open_ia("here", &ia), DAT_SUCCESS);
	cr_expect_eq(dat_registry_remove_provider(&present, &info), ERR(DAT_PROVIDER_IN_USE, 0));
	close_ia(ia);
	cr_expect_eq(dat_registry_remove_provider(&present, &info), DAT_SUCCESS);
	cr_expect_eq(open_ia("here", &ia), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
}

Test(registry, registration_with_bad_arguments)
{
	DAT_PROVIDER_INFO info = info_of("here"), other = info_of("there");
	DAT_PROVIDER another;

	configure("");
	cr_expect_eq(dat_registry_add_provider(NULL, &info), BAD_ARG(1));
	cr_expect_eq(dat_registry_add_provider(&present, NULL), BAD_ARG(2));
	cr_expect_eq(dat_registry_add_provider(&present, &info), DAT_SUCCESS);
	cr_expect_eq(dat_registry_add_provider(&present, &info),
		     ERR(DAT_PROVIDER_ALREADY_REGISTERED, 0));
	cr_expect_eq(dat_registry_remove_provider(NULL, &info), BAD_ARG(1));
	cr_expect_eq(dat_registry_remove_provider(&present, NULL), BAD_ARG(2));
	cr_expect_eq(dat_registry_remove_provider(&another, &info), BAD_ARG(1));
	cr_expect_eq(dat_registry_remove_provider(&present, &other), BAD_ARG(2));
	cr_expect_eq(dat_registry_remove_provider(&present, &info), DAT_SUCCESS);
	cr_expect_eq(dat_registry_remove_provider(&present, &info), BAD_ARG(2));
	memset(other.ia_name, 'x', sizeof(other.ia_name)); /* has no terminating NUL */
	cr_expect_eq(dat_registry_add_provider(&present, &other), BAD_ARG(2));
}

#if DAT_VERSION_MAJOR >= 2
Test(registry, relations)
{
	char a[] = "a", ab[] = "ab", b[] = "b", none[] = "none";
	DAT_HA_RELATIONSHIP rel = DAT_HA_CONFLICTING;
	DAT_IA_HANDLE ia;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n"
		  "ab " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n"
		  "b " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	cr_expect_eq(dat_registry_providers_related(a, ab, &rel), DAT_SUCCESS);
	cr_expect_eq(rel, DAT_HA_UNKNOWN);
	cr_assert_eq(open_ia(a, &ia), DAT_SUCCESS);
	cr_expect_eq(dat_registry_providers_related(a, ab, &rel), DAT_SUCCESS);
	cr_expect_eq(rel, DAT_HA_TRUE);
	cr_expect_eq(dat_registry_providers_related(b, a, &rel), DAT_SUCCESS);
	cr_expect_eq(rel, DAT_HA_FALSE);
	close_ia(ia);
	cr_expect_eq(dat_registry_providers_related(b, a, &rel), DAT_SUCCESS);
	cr_expect_eq(rel, DAT_HA_UNKNOWN);
	cr_expect_eq(dat_registry_providers_related(a, none, &rel),
		     NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	cr_expect_eq(dat_registry_providers_related(NULL, a, &rel), BAD_ARG(1));
	cr_expect_eq(dat_registry_providers_related(a, NULL, &rel), BAD_ARG(2));
	cr_expect_eq(dat_registry_providers_related(a, b, NULL), BAD_ARG(3));
}
#endif

/*
 * Threads
 */

static void *open_and_close(void *name)
{
	DAT_IA_HANDLE ia;
	uintptr_t failed = 0;
	int i;

	for (i = 0; i < 100; i++) {
		if (open_ia(name, &ia) != DAT_SUCCESS)
			failed++;
		else if (dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS)
			failed++;
	}
	return (void *)failed;
}

static size_t count_in_trace(const char *word)
{
	const char *at = trace;
	size_t n = 0;

	for (; (at = strstr(at, word)); at++)
		n++;
	return n;
}

Test(registry, threads_open_and_close)
{
	static char name[][2] = { "a", "a", "b", "b" };
	pthread_t thread[4];
	void *failed;
	int i;

	configure("a " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n"
		  "b " API " nonthreadsafe default @ stub.1.0 \"\" \"\"\n");
	for (i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, open_and_close, name[i]), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		cr_expect_null(failed);
	}
	cr_expect_eq(count_in_trace("open\n"), 400);
	cr_expect_eq(count_in_trace("close\n"), 400);
	cr_expect_eq(count_in_trace("init "), count_in_trace("fini "));
	cr_expect_eq(count_in_trace("refused"), 0);
	cr_expect(!stub_loaded());
}
