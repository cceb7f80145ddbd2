/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drops variables from the environment of a privileged process. Not installed; uses no DAT type.
 *
 * The libraries below a provider read the environment without checking privileges: a variable may
 * name a shared object to load or a file to write. The caller of a set-user-ID program chooses its
 * environment, and must not choose code that runs with another user's rights.
 */
#ifndef SECURE_ENV_H
#define SECURE_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/*
 * True if exec raised the privileges of this process: set-user-ID, set-group-ID or file
 * capabilities. secure_getenv() tests AT_SECURE too. A process that changed its IDs later has the
 * environment of its own user.
 */
static inline bool secure_env_is_on(void)
{
	return getauxval(AT_SECURE);
}

/* Whether a library below a provider reads the variable at @entry, "NAME=VALUE". */
static inline bool secure_env_is_foreign(const char *entry)
{
	static const char *const prefixes[] = {
		"FI_", "OFI_",		/* libfabric: FI_PROVIDER_PATH names code */
		"HWLOC_",		/* hwloc: HWLOC_PLUGINS_PATH names code */
		/* files, some written when it is loaded */
		"HFI_", "IPATH_", "PSM_", "PSM2_", "PSM3_",
		"UCX_",			/* UCX_MODULE_DIR names code, UCX_LOG_FILE a file */
		"IBV_", "RDMAV_", "MLX4_", "MLX5_",		/* rdma-core: MLX5_DEBUG_FILE */
		"CUDA_", "HSA_", "ZE_",	/* accelerator libraries that libfabric looks for */
	};
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * In a privileged process, drops these variables. Those that the program itself set are dropped
 * too, as they cannot be distinguished.
 */
static inline void secure_env_drop(void)
{
	char name[128];		/* longer than any name that a library reads */
	char **e = environ;
	size_t len;

	if (!secure_env_is_on())
		return;
	while (e && *e) {
		len = strcspn(*e, "=");
		if (!(*e)[len] || len >= sizeof(name) || !secure_env_is_foreign(*e)) {
			e++;
			continue;
		}
		memcpy(name, *e, len);
		name[len] = '\0';
		/* unsetenv() moves the next variable to this entry. */
		if (unsetenv(name))
			e++;
	}
}

#endif
