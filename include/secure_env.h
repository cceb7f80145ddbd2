/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a privileged process drops from its environment. Not installed; knows no DAT type.
 *
 * The libraries below a provider read the environment without asking for privileges: a variable
 * may name a shared object to load or a file to write. The caller of a set-user-ID program chooses
 * its environment, and must not choose code that runs with another user's rights.
 */
#ifndef SECURE_ENV_H
#define SECURE_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/*
 * True in a set-user-ID or set-group-ID program, and in one that gained file capabilities, by
 * exec. secure_getenv() goes by the same word. A process that changed its IDs later has the
 * environment of its own user.
 */
static inline bool secure_env_is_on(void)
{
	return getauxval(AT_SECURE);
}

/* Whether a library below a provider may read the variable at @entry, "NAME=VALUE". */
static inline bool secure_env_is_foreign(const char *entry)
{
	static const char *const prefixes[] = {
		"FI_", "OFI_",		/* libfabric: FI_PROVIDER_PATH names code */
		"HWLOC_",		/* hwloc: HWLOC_PLUGINS_PATH names code */
		"HFI_", "IPATH_", "PSM_", "PSM2_", "PSM3_",	/* files, some written when it is loaded */
		"UCX_",			/* UCX_MODULE_DIR names code, UCX_LOG_FILE a file */
		"IBV_", "RDMAV_", "MLX4_", "MLX5_",		/* rdma-core: MLX5_DEBUG_FILE */
		"CUDA_", "HSA_", "ZE_",	/* libraries of accelerators, which libfabric looks for */
	};
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * Drops these variables if the process is privileged, except those that @keep, if not null, names.
 * Variables that the program itself has set go as well: they look no different.
 */
static inline void secure_env_drop(bool (*keep)(const char *name, const char *value))
{
	char name[128];		/* longer than any that is read */
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
		/* Without the variable, what followed it is at the same place. */
		if ((keep && keep(name, *e + len + 1)) || unsetenv(name))
			e++;
	}
}

#endif
