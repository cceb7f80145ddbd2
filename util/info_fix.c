/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedy for the reason of an IA's failure. */
#include "info_fix.h"

#include "dat_cause.h"
#include "info_checks.h"
#include "info_libfabric.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the devices explain why verbs is not usable; libfabric may list it without any. */
static bool rdma_text(char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];

	if (check_rdma(found, sizeof(found)) == CHECK_OK)
		return false;
	snprintf(text, len, "RDMA devices: %s", found);
	return true;
}

static void shm_text(char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];

	check_shm(found, sizeof(found));
	snprintf(text, len, "/dev/shm: %s", found);
}

/* No connection to this host's own address. All traffic to own addresses passes lo. */
static void own_text(const char *reason, char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];
	bool lo;

	(void)reason;
	check_interfaces(found, sizeof(found), &lo);
	snprintf(text, len, "%s",
		 lo ? "a firewall may drop or reject TCP to this host's own address" : found);
}

/* Returns whether the value @filter of FI_PROVIDER excludes @provider, or the fabric below it. */
static bool is_excluded(const char *provider, const char *filter)
{
	char core[64];

	snprintf(core, sizeof(core), "%.*s", (int)strcspn(provider, ";"), provider);
	return filter && !strcasestr(filter, core) == (filter[0] != '^');
}

/* libfabric offers no fabric for the provider and the endpoint that @reason names. */
static void offer_text(const char *reason, char *text, size_t len)
{
	const char *filter = secure_getenv("FI_PROVIDER"), *named = strstr(reason, "provider=");
	char provider[64] = "";

	if (named)
		sscanf(named, "provider=%63s", provider);
	if (is_excluded(provider, filter))
		snprintf(text, len, "FI_PROVIDER=%s excludes it: unset FI_PROVIDER", filter);
	else if (!strcmp(provider, "verbs") && rdma_text(text, len))
		return;
	else if (!strcmp(provider, "shm"))
		shm_text(text, len);
	else if (strcmp(provider, "any") && !libfabric_has(provider))
		snprintf(text, len, "libfabric has no such provider, or the provider finds no "
			 "device: correct dat.conf, or install what is missing");
	else if (strstr(reason, " address="))
		snprintf(text, len, "it has no device with this address: correct dat.conf");
	else if (strstr(reason, " endpoint="))
		snprintf(text, len, "it has no such endpoints: correct endpoint= in dat.conf "
			 "(connectionless tcp needs libfabric 1.18)");
	else if (sizeof(size_t) < 8 && !strcmp(provider, "tcp"))
		snprintf(text, len, "tcp has no RDMA in 32-bit programs: use ofi-rxm, here and at "
			 "the peer");
	else
		snprintf(text, len, "no device has endpoints that DAT can use");
}

/* Causes that the provider, the registry and the linker name by the text of an errno. */
static const struct {
	int err;
	const char *advice;
} errors[] = {
	/* the text of EMFILE begins this one */
	{ ENFILE, "raise the system's limit of descriptors (sysctl fs.file-max)" },
	{ EMFILE, "raise the process's limit of descriptors (ulimit -n)" },
	{ EAGAIN, "raise the limit of processes and threads (ulimit -u, pids.max of the cgroup)" },
	{ ENOMEM, "raise the limits of memory (ulimit -l and -v, memory.max of the cgroup)" },
	{ ENOSPC, "make room in /dev/shm, or raise fs.epoll.max_user_watches" },
	{ EACCES, "the user lacks permission for the file or the device: correct its mode or "
		  "group" },
	{ EPERM, "a seccomp filter of the container or service forbids a system call, or a "
		 "capability is missing" },
	{ ENOSYS, "the kernel, or a seccomp filter of the container or service, lacks a system "
		  "call" },
};

/* By number of the cause. */
static const struct {
	const char *advice;
	void (*find)(const char *reason, char *text, size_t len); /* in place of a fixed advice */
} causes[DAT_CAUSES] = {
	[DAT_CAUSE_FILTER] = { "unset FI_PROVIDER, or correct it", NULL },
	[DAT_CAUSE_DOMAIN] = { "correct domain= in dat.conf", NULL },
	[DAT_CAUSE_ADDRESS] = { "correct address= in dat.conf", NULL },
	[DAT_CAUSE_INTERFACE] = { "unset FI_TCP_IFACE, or correct it", NULL },
	[DAT_CAUSE_PARAMS] = { "correct the seventh field in dat.conf", NULL },
	[DAT_CAUSE_NO_OFFER] = { NULL, offer_text },
	[DAT_CAUSE_PREVIEW] = { "correct provider= in dat.conf, or FI_PROVIDER", NULL },
	[DAT_CAUSE_LIBRARY] = { "correct the fifth field in dat.conf, or install that library",
				NULL },
	[DAT_CAUSE_LIBFABRIC] = { "install libfabric (package libfabric1)", NULL },
	[DAT_CAUSE_OLD] = { "install the libfabric that the provider was built with, or a newer "
			    "one, or build the provider here", NULL },
	[DAT_CAUSE_FOREIGN] = { "correct the fifth field in dat.conf", NULL },
	[DAT_CAUSE_RINGS] = { "correct endpoint= in dat.conf", NULL },
	[DAT_CAUSE_UNREACHED] = { NULL, own_text },
	[DAT_CAUSE_HANG] = { "run it with FI_LOG_LEVEL=info and DAT_OFI_LOG=3 to see where", NULL },
};

/* Returns the number of the cause in @reason, and removes it; 0 if there is none. */
static unsigned cause_take(char *reason)
{
	char *tag = strstr(reason, DAT_CAUSE_TAG), *end;
	unsigned long cause;

	if (!tag)
		return 0;
	cause = strtoul(tag + strlen(DAT_CAUSE_TAG), &end, 10);
	if (*end != ']')
		return 0;
	memmove(tag, end + 1, strlen(end + 1) + 1);
	return cause < DAT_CAUSES ? (unsigned)cause : 0;
}

/* Returns the advice for an errno that @reason names, or NULL. */
static const char *error_advice(const char *reason)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strstr(reason, strerror(errors[i].err)))
			return errors[i].advice;
	/* without an errno, limits are the usual reason */
	return strstr(reason, "DAT_RESOURCE_DEVICE") ?
		       "raise the limits of files and processes (ulimit -n, ulimit -u)" : NULL;
}

void fix_find(char *reason, char *text, size_t len)
{
	const unsigned cause = cause_take(reason);
	const char *advice = error_advice(reason);

	/* a later part of the log may name another cause, which is a consequence */
	while (cause_take(reason))
		;
	text[0] = '\0';
	if (!advice && causes[cause].find)
		causes[cause].find(reason, text, len);
	else if (advice || causes[cause].advice)
		snprintf(text, len, "%s", advice ? advice : causes[cause].advice);
}
