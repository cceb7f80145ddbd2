/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What distinguishes hosts and PID namespaces. */

#include "host/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file has sixteen bytes in hexadecimal, with dashes in between. */
static void boot_read(uint8_t boot[16])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	int i;

	if (!f)
		return;
	for (i = 0; i < 16; i++)
		if (fscanf(f, "%*1[-]") == EOF || fscanf(f, "%2hhx", &boot[i]) != 1)
			break;
	fclose(f);
}

int dofi_host_read(struct dofi_host *host)
{
	struct dofi_host h;
	struct stat st;

	/* random, where the number is unknown */
	if (getrandom(&h, sizeof(h), 0) != sizeof(h))
		return -EIO;
	boot_read(h.boot);
	if (!stat("/proc/self/ns/pid", &st))
		h.pid_space = st.st_ino;
	h.pid = (uint32_t)getpid();
	*host = h;
	return 0;
}

bool dofi_host_shares_pids(const struct dofi_host *a, const struct dofi_host *b)
{
	return !memcmp(a->boot, b->boot, sizeof(a->boot)) && a->pid_space == b->pid_space;
}
