/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The version and the providers of libfabric. The library is loaded in a child process, so that
 * this program starts without it, and does not hang with it.
 */
#include "info_libfabric.h"

#include "info_child.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <string.h>

#define LIBRARY "libfabric.so.1"
#define OLDEST FI_VERSION(1, 17)
#define STEP_SECONDS 20

typedef int getinfo_func(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info);

static struct found {
	char text[512];
} found;

/* Adds the providers, whether FI_PROVIDER excludes them or not. */
static bool providers_add(char *text, size_t len, getinfo_func *getinfo)
{
	struct fi_info *list, *i;
	size_t used = strlen(text);

	if (getinfo(OLDEST, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		return false;
	for (i = list; i && used < len; i = i->next)
		if (strncmp(i->fabric_attr->prov_name, "ofi_hook_", 9))
			used += (size_t)snprintf(text + used, len - used, " %s",
						 i->fabric_attr->prov_name);
	return true;
}

static bool look(struct child *c, void *shared)
{
	struct found *f = shared;
	uint32_t (*version)(void);
	getinfo_func *getinfo;
	uint32_t v;
	void *dl;

	child_step(c, "loading " LIBRARY);
	dl = dlopen(LIBRARY, RTLD_NOW);
	if (!dl) {
		snprintf(f->text, sizeof(f->text), "%s; install the package libfabric1", dlerror());
		return false;
	}
	version = (uint32_t(*)(void))dlsym(dl, "fi_version");
	getinfo = (getinfo_func *)dlsym(dl, "fi_getinfo");
	if (!version || !getinfo)
		return false;
	v = version();
	if (FI_VERSION_LT(v, OLDEST)) {
		snprintf(f->text, sizeof(f->text),
			 "%u.%u, which is too old: %u.%u or newer is needed", FI_MAJOR(v),
			 FI_MINOR(v), FI_MAJOR(OLDEST), FI_MINOR(OLDEST));
		return false;
	}
	snprintf(f->text, sizeof(f->text), "%u.%u, with the providers", FI_MAJOR(v), FI_MINOR(v));
	child_step(c, "listing the providers");
	return providers_add(f->text, sizeof(f->text), getinfo);
}

void libfabric_print(FILE *out)
{
	struct child_result r;

	if (child_run(look, &found, sizeof(found), STEP_SECONDS, &r))
		return;
	fprintf(out, "  %-16s %s\n", "libfabric", found.text);
	if (r.end == CHILD_HUNG || r.end == CHILD_DIED)
		fprintf(out, "  %-16s %s: %s\n", "libfabric", r.step,
			r.end == CHILD_HUNG ? "hangs" : "died");
}

bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p;

	for (p = strstr(list, word); p; p = strstr(p + 1, word))
		if ((p == list || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
			return true;
	return false;
}

bool libfabric_has(const char *provider)
{
	char copy[64], *part, *save;

	snprintf(copy, sizeof(copy), "%s", provider);
	for (part = strtok_r(copy, ";", &save); part; part = strtok_r(NULL, ";", &save))
		if (!has_word(found.text, part))
			return false;
	return true;
}
