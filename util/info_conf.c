/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Renders dat.conf entries for the fabrics of this machine. */
#include "info_conf.h"

#include <stdbool.h>
#include <string.h>

#define NAME_MAX_LEN 64

/*
 * Registries that compare thread safety exactly, as OFED's does, need an entry
 * of each kind: programs ask for "nonthreadsafe" unless they were built otherwise.
 */
static const char *const safety[] = { "nonthreadsafe", "threadsafe" };

static const struct {
	const char *api, *library, *version;
} builds[] = {
	{ "u2.0", "libdaplofi.so.2", "dapl.2.0" },
	{ "u1.2", "libdaplofi.so.1", "dapl.1.2" },
};

static void entries(FILE *out, const char *libdir, const char *name, const char *params)
{
	size_t b, s;

	for (b = 0; b < sizeof(builds) / sizeof(builds[0]); b++)
		for (s = 0; s < sizeof(safety) / sizeof(safety[0]); s++)
			fprintf(out, "%s %s %s default %s%s%s %s \"%s\" \"\"\n", name,
				builds[b].api, safety[s], libdir, *libdir ? "/" : "",
				builds[b].library, builds[b].version, params);
}

/* Neither the grammar's quotes nor its comment sign. */
static bool is_word(const char *name, size_t len)
{
	return len && len < NAME_MAX_LEN && !memchr(name, '"', len) && !memchr(name, '#', len) &&
	       !memchr(name, '\\', len);
}

int conf_render(FILE *out, const char *libdir, const char *fabrics)
{
	char name[NAME_MAX_LEN + 8], params[NAME_MAX_LEN + 16];
	int n = 1;
	size_t len;

	fputs("# name api thread-safety default library version ia-params "
	      "platform-params\n",
	      out);
	entries(out, libdir, "ofi", "");
	for (;; fabrics += len) {
		fabrics += strspn(fabrics, " \t");
		len = strcspn(fabrics, " \t");
		if (!len)
			return n;
		if (!is_word(fabrics, len))
			continue;
		snprintf(name, sizeof(name), "ofi-%.*s", (int)len, fabrics);
		snprintf(params, sizeof(params), "provider=%.*s", (int)len, fabrics);
		entries(out, libdir, name, params);
		n++;
	}
}
