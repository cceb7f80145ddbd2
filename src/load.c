/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads and unloads the shared libraries of providers. */

#include "dat_cause.h"
#include "entry.h"

#include "log.h"
#include "secure_env.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Providers of 2.0 may resolve the registry, and each other's extensions, in the global scope. */
#if DAT_VERSION_MAJOR >= 2
#define LOAD_FLAGS (RTLD_NOW | RTLD_GLOBAL)
#define OWN_PROVIDER "libdaplofi.so.2"
#else
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#define OWN_PROVIDER "libdaplofi.so.1"
#endif

/*
 * Some providers are not linked with a registry and resolve its symbols in the global scope. This
 * library is missing there if the program loaded it with RTLD_LOCAL; opening it again adds it.
 */
static void export_registry(void)
{
	Dl_info self;
	void *dl;

	if (LOAD_FLAGS & RTLD_GLOBAL && dladdr((void *)export_registry, &self)) {
		dl = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
		if (dl)
			dlclose(dl);
	}
}

/*
 * Runs when this library is loaded, usually before main(): libraries that libfabric depends on open
 * files named by the environment as soon as they are loaded, before a provider can act.
 */
static void __attribute__((constructor)) drop_unsafe_env(void)
{
	secure_env_drop();
}

/* The dynamic linker reports a system error only as text. */
static int error_of(const char *text)
{
	static const int shortages[] = { EMFILE, ENFILE, ENOMEM };
	size_t i;

	for (i = 0; i < sizeof(shortages) / sizeof(shortages[0]); i++)
		if (strstr(text, strerror(shortages[i])))
			return -shortages[i];
	return -ENOENT;
}

/* What to add to @text if the missing file @name is a provider of OFED, of any release. */
static const char *advice(const char *name, const char *text)
{
	static const char *const names[] = {
		"libdaplofa.", "libdaploscm.", "libdaploucm.", "libdaplomcm.",
		"libdaplcma.", "libdaplscm.", "libdaplucm.", "libdaplmcm.",
	};
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	size_t i;

	if (strncmp(text, name, strlen(name)) || !strstr(text, strerror(ENOENT)))
		return "";
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return "; OFED's provider is not installed, this package's is "
			       OWN_PROVIDER;
	return "";
}

/* Returns the cause in the dynamic linker's message @text. */
static enum dat_cause cause_of(const char *text)
{
	if (strstr(text, "version `FABRIC_"))
		return DAT_CAUSE_OLD;
	return strstr(text, "libfabric.so") ? DAT_CAUSE_LIBFABRIC : DAT_CAUSE_LIBRARY;
}

int dreg_library_open(struct dreg_library *lib, const char *name)
{
	char first[512], installed[4096];
	const char *text;
	int len;

	/* the caller of a privileged program chooses its working directory */
	if (secure_env_is_on() && strchr(name, '/') && name[0] != '/') {
		dreg_log(DREG_LOG_ERROR,
			 "cannot load %s: a privileged program may not use a relative path"
			 DAT_CAUSE_FORMAT, name, DAT_CAUSE_LIBRARY);
		return -EPERM;
	}
	export_registry();
	lib->dl = dlopen(name, LOAD_FLAGS);
	if (!lib->dl) {
		snprintf(first, sizeof(first), "%s", dlerror());
		len = snprintf(installed, sizeof(installed), "%s/%s", DAT_LIBDIR, name);
		if (!strchr(name, '/') && len < (int)sizeof(installed) && !access(installed, R_OK))
			lib->dl = dlopen(installed, LOAD_FLAGS);
	}
	if (!lib->dl) {
		text = dlerror();
		text = text ? text : first;
		dreg_log(DREG_LOG_ERROR, "cannot load %s: %s%s" DAT_CAUSE_FORMAT, name, text,
			 advice(name, text), cause_of(text));
		return error_of(text);
	}
	lib->init = (DAT_PROVIDER_INIT_FUNC)dlsym(lib->dl, DAT_PROVIDER_INIT_FUNC_STR);
	lib->fini = (DAT_PROVIDER_FINI_FUNC)dlsym(lib->dl, DAT_PROVIDER_FINI_FUNC_STR);
	if (!lib->init) {
		dreg_log(DREG_LOG_ERROR, "%s is not a provider: it lacks %s" DAT_CAUSE_FORMAT, name,
			 DAT_PROVIDER_INIT_FUNC_STR, DAT_CAUSE_FOREIGN);
		dreg_library_close(lib);
		return -ENOEXEC;
	}
	dreg_log(DREG_LOG_PROVIDER_API, "loaded %s", name);
	return 0;
}

void dreg_library_close(struct dreg_library *lib)
{
	if (lib->dl)
		dlclose(lib->dl);
	memset(lib, 0, sizeof(*lib));
}
