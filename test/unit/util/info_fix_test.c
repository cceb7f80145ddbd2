/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedies for the reasons of failures. */
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
	char text[CHECK_TEXT_MAX];

	fix_find(reason, text, sizeof(text));
	cr_expect(*advice ? strstr(text, advice) != NULL : !*text, "%s: %s", reason, text);
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
		snprintf(reason, sizeof(reason),
			 "DAT_INSUFFICIENT_RESOURCES: opening fabric tcp: %s",
			 strerror(rows[i].err));
		check(reason, rows[i].advice);
		/* an errno says more than the part that failed */
		snprintf(reason, sizeof(reason), "cannot load libfabric.so.1: %s",
			 strerror(rows[i].err));
		check(reason, *rows[i].advice ? rows[i].advice : "install libfabric");
	}
}

Test(info_fix, offers)
{
	check("libfabric offers none for provider=tpc", "no such provider");
	check("libfabric offers none for provider=tcp", "no device has endpoints");
	check("libfabric offers none for provider=tcp address=1.2.3.4", "this address");
	check("libfabric offers none for provider=tcp endpoint=rdm", "such endpoints");
	check("libfabric offers none for provider=verbs", "RDMA devices: no device");
	check("libfabric offers none for provider=shm", "/dev/shm: too small");
	setenv("FI_PROVIDER", "sockets", 1);
	check("libfabric offers none for provider=tcp", "FI_PROVIDER=sockets excludes it");
	setenv("FI_PROVIDER", "^udp", 1);
	check("libfabric offers none for provider=tcp", "no device has endpoints");
}

Test(info_fix, own_address)
{
	lo = true;
	check("no connection within 10 s: the host cannot be reached", "a firewall may");
	lo = false;
	check("no connection within 10 s: the host cannot be reached", "lo is down");
}

Test(info_fix, unknown)
{
	check("", "");
	check("something else", "");
}
