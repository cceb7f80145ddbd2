/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedies for the reasons of failures. */
#include "dat_cause.h"
#include "info_checks.h"
#include "info_fix.h"
#include "info_libfabric.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool lo;

enum check_state check_rdma(char *text, size_t len)
{
	snprintf(text, len, "no device");
	return CHECK_NOTE;
}

enum check_state check_shm(char *text, size_t len)
{
	snprintf(text, len, "too small");
	return CHECK_NOTE;
}

enum check_state check_interfaces(char *text, size_t len, bool *has_lo)
{
	snprintf(text, len, "lo is down");
	*has_lo = lo;
	return CHECK_NOTE;
}

bool libfabric_has(const char *provider)
{
	return !strcmp(provider, "tcp");
}

static void check(const char *reason, const char *advice)
{
	char copy[512], text[CHECK_TEXT_MAX];

	snprintf(copy, sizeof(copy), "%s", reason);
	fix_find(copy, text, sizeof(text));
	cr_expect(*advice ? strstr(text, advice) != NULL : !*text, "%s: %s", reason, text);
	cr_expect(!strstr(copy, DAT_CAUSE_TAG), "%s", copy);
}

Test(info_fix, errors)
{
	static const struct {
		int err;
		const char *advice;
	} rows[] = {
		{ EMFILE, "(ulimit -n)" }, { ENFILE, "fs.file-max" }, { EAGAIN, "ulimit -u" },
		{ ENOMEM, "ulimit -l" },   { ENOSPC, "/dev/shm" },    { EACCES, "permission" },
		{ EPERM, "seccomp" },	   { ENOSYS, "seccomp" },     { EINVAL, "" },
	};
	char reason[256];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(reason, sizeof(reason), "opening fabric tcp: %s", strerror(rows[i].err));
		check(reason, rows[i].advice);
		/* an errno says more than the part that failed */
		snprintf(reason, sizeof(reason), "cannot load a.so: %s" DAT_CAUSE_FORMAT,
			 strerror(rows[i].err), DAT_CAUSE_LIBRARY);
		check(reason, *rows[i].advice ? rows[i].advice : "correct the fifth field");
	}
	check("DAT_INSUFFICIENT_RESOURCES (DAT_RESOURCE_DEVICE)", "ulimit -n");
}

/* Each number has a remedy, and no word of the reason matters. */
Test(info_fix, causes)
{
	char reason[64], text[CHECK_TEXT_MAX];
	int cause;

	for (cause = 1; cause < DAT_CAUSES; cause++) {
		snprintf(reason, sizeof(reason), "a" DAT_CAUSE_FORMAT ": b" DAT_CAUSE_FORMAT, cause,
			 DAT_CAUSE_HANG);
		fix_find(reason, text, sizeof(text));
		cr_expect(*text, "cause %d", cause);
		cr_expect_str_eq(reason, "a: b");
	}
	check("a" DAT_CAUSE_TAG "0]", "");
	check("a" DAT_CAUSE_TAG "99999999999999999999]", "");
	snprintf(reason, sizeof(reason), "a" DAT_CAUSE_TAG "1");
	fix_find(reason, text, sizeof(text));
	cr_expect(!*text);
}

Test(info_fix, the_page_lists_the_causes)
{
	const char *top = getenv("top_srcdir");
	char path[512], line[256];
	int listed = 0;
	FILE *page;

	snprintf(path, sizeof(path), "%s/man/man7/dat_ofi.7", top ? top : ".");
	page = fopen(path, "r");
	cr_assert(page, "%s", path);
	while (fgets(line, sizeof(line), page) && strcmp(line, ".Ss Causes\n"))
		;
	while (fgets(line, sizeof(line), page) && strcmp(line, ".El\n"))
		if (!strncmp(line, ".It ", 4))
			cr_expect_eq(atoi(line + 4), ++listed);
	fclose(page);
	cr_expect_eq(listed, DAT_CAUSES - 1);
}

#define NONE "libfabric offers none for "
#define SIX DAT_CAUSE_TAG "6]"

Test(info_fix, offers)
{
	check(NONE "provider=tpc" SIX, "no such provider");
	check(NONE "provider=tcp" SIX, "no device has endpoints");
	check(NONE "provider=tcp address=1.2.3.4" SIX, "this address");
	check(NONE "provider=tcp endpoint=rdm" SIX, "such endpoints");
	check(NONE "provider=verbs" SIX, "RDMA devices: no device");
	check(NONE "provider=shm" SIX, "/dev/shm: too small");
	setenv("FI_PROVIDER", "sockets", 1);
	check(NONE "provider=tcp" SIX, "FI_PROVIDER=sockets excludes it");
	setenv("FI_PROVIDER", "^udp", 1);
	check(NONE "provider=tcp" SIX, "no device has endpoints");
}

Test(info_fix, own_address)
{
	lo = true;
	check("no connection within 10 s" DAT_CAUSE_TAG "13]", "a firewall may");
	lo = false;
	check("no connection within 10 s" DAT_CAUSE_TAG "13]", "lo is down");
}

Test(info_fix, unknown)
{
	check("", "");
	check("something else", "");
}
