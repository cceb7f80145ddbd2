/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedy for the reason of an IA's failure. */
#include "info_fix.h"

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

/* No connection to this host's own address: packets to all of these pass lo. */
static void own_text(char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];
	bool lo;

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
	const char *filter = secure_getenv("FI_PROVIDER");
	char provider[64] = "";

	sscanf(reason, "provider=%63s", provider);
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

/* The first row applies that has its word in the reason. */
static const struct {
	const char *word, *advice;
	void (*find)(char *text, size_t len); /* in place of a fixed advice */
} rows[] = {
	{ "FI_PROVIDER=", "unset FI_PROVIDER, or correct it", NULL },
	{ "FI_PROVIDER is set", "unset FI_PROVIDER", NULL },
	{ "shared memory", NULL, shm_text },
	{ "domain=", "correct domain= in dat.conf", NULL },
	{ "address=", "correct address= in dat.conf", NULL },
	{ "ia_params", "correct the seventh field in dat.conf", NULL },
	{ "version `FABRIC_",
	  "libfabric is older than the one that the provider was built with: install that version "
	  "or a newer one, or build the provider here", NULL },
	{ "libfabric.so", "install libfabric (package libfabric1)", NULL },
	{ "cannot load", "correct the fifth field in dat.conf, or install that library", NULL },
	{ "is not a provider", "correct the fifth field in dat.conf", NULL },
	{ "DAT_RESOURCE_DEVICE", "raise the limits of files and processes (ulimit -n, ulimit -u)",
	  NULL },
	{ "hangs", "run it with FI_LOG_LEVEL=info and DAT_OFI_LOG=3 to see where", NULL },
	{ "no connection", NULL, own_text },
};

void fix_find(const char *reason, char *text, size_t len)
{
	const char *offer = strstr(reason, "offers none for ");
	size_t i;

	text[0] = '\0';
	if (offer) {
		offer_text(offer + strlen("offers none for "), text, len);
		return;
	}
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (!strstr(reason, strerror(errors[i].err)))
			continue;
		snprintf(text, len, "%s", errors[i].advice);
		return;
	}
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strstr(reason, rows[i].word))
			continue;
		if (rows[i].find)
			rows[i].find(text, len);
		else
			snprintf(text, len, "%s", rows[i].advice);
		return;
	}
}
