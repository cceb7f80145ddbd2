/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens an IA through a registry of its own, which reads the build's dat.conf. privileged.sh
 * makes privileged copies of this program, which ignore DAT_OVERRIDE.
 *
 * usage: privileged IA
 */

#include "dat_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

/* The variable must be gone even if no library on this machine uses it. */
static void report_variable(const char *name)
{
	if (getenv(name))
		printf("not removed: %s\n", name);
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	if (argc != 2)
		return 2;
	ret = dat_ia_open(argv[1], 8, &async, &ia);
	printf("open 0x%x, AT_SECURE %lu, user %d\n", ret, getauxval(AT_SECURE), (int)geteuid());
	report_variable("FI_PROVIDER_PATH");
	report_variable("HWLOC_XMLFILE");
	report_variable("HWLOC_PLUGINS_PATH");
	report_variable("HFI_DEBUG_FILENAME");
	return ret != DAT_SUCCESS || dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS;
}
