/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The remedy for the reason of an IA's failure. */
#include "info_fix.h"

#include "info_checks.h"

#include <stdio.h>
#include <string.h>

static void rdma_text(char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];

	check_rdma(found, sizeof(found));
	snprintf(text, len, "RDMA devices: %s", found);
}

static void shm_text(char *text, size_t len)
{
	char found[CHECK_TEXT_MAX];

	check_shm(found, sizeof(found));
	snprintf(text, len, "/dev/shm: %s", found);
}

/* The first row applies that has its word in the reason. */
static const struct {
	const char *word, *advice;
	void (*find)(char *text, size_t len); /* in place of a fixed advice */
} rows[] = {
	{ "FI_PROVIDER=", "unset FI_PROVIDER, or correct it", NULL },
	{ "FI_PROVIDER is set", "unset FI_PROVIDER", NULL },
	{ "provider=verbs finds no device", NULL, rdma_text },
	{ "provider=efa finds no device",
	  "EFA needs an instance with an EFA adapter and its driver", NULL },
	{ "/dev/shm", NULL, shm_text },
	{ "shared memory", NULL, shm_text },
	{ "or newer is needed", "install it, or remove the line from dat.conf", NULL },
	{ "has no such provider", "correct dat.conf, or install a libfabric that has it", NULL },
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
	{ "no connection", "a firewall may drop TCP on this host's own address", NULL },
};

void fix_find(const char *reason, char *text, size_t len)
{
	size_t i;

	text[0] = '\0';
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
