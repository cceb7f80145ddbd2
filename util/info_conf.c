/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Renders dat.conf entries for the fabrics of this machine. */
#include "info_conf.h"

#include <stdbool.h>
#include <string.h>

#define NAME_MAX_LEN 64

/*
 * A registry that compares thread safety exactly, such as OFED's, needs an entry of each kind:
 * programs request "nonthreadsafe" unless they were built otherwise.
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

/* True if dat.conf needs no quoting: no quote, comment sign or backslash. */
static bool is_word(const char *name, size_t len)
{
	return len && len < NAME_MAX_LEN && !memchr(name, '"', len) && !memchr(name, '#', len) &&
	       !memchr(name, '\\', len);
}

/* Returns the next blank-separated word that needs no quoting; NULL after the last. */
static const char *next_word(const char **list, char *word)
{
	size_t len;

	for (;; *list += len) {
		*list += strspn(*list, " \t");
		len = strcspn(*list, " \t");
		if (!len)
			return NULL;
		if (!is_word(*list, len))
			continue;
		snprintf(word, NAME_MAX_LEN, "%.*s", (int)len, *list);
		*list += len;
		return word;
	}
}

static bool contains(const char *list, const char *name)
{
	char word[NAME_MAX_LEN];

	while (next_word(&list, word))
		if (!strcmp(word, name))
			return true;
	return false;
}

/*
 * Names an IA. A layer loses its prefix "ofi_", and the name of its base if that is tcp, as usual.
 */
static void rdm_name(char *name, size_t size, const char *fabric, bool both)
{
	const char *layer = strstr(fabric, ";ofi_");

	if (!layer)
		snprintf(name, size, "ofi-%s%s", fabric, both ? "-rdm" : "");
	else if (!strncmp(fabric, "tcp;", 4))
		snprintf(name, size, "ofi-%s", layer + 5);
	else
		snprintf(name, size, "ofi-%.*s-%s", (int)(layer - fabric), fabric, layer + 5);
}

int conf_render(FILE *out, const char *libdir, const char *fabrics, const char *rdm)
{
	char word[NAME_MAX_LEN], name[NAME_MAX_LEN + 8], params[NAME_MAX_LEN + 32];
	const char *rest = fabrics;
	int n = 2;

	fputs("# name api thread-safety default library version ia-params "
	      "platform-params\n",
	      out);
	entries(out, libdir, "ofi", "");
	entries(out, libdir, "ofi-shm", "provider=shm");
	for (; next_word(&rest, word); n++) {
		snprintf(name, sizeof(name), "ofi-%s", word);
		snprintf(params, sizeof(params), "provider=%s", word);
		entries(out, libdir, name, params);
	}
	for (; next_word(&rdm, word); n++) {
		/* ofi-shm is the provider's own shared memory, which is no fabric of libfabric */
		bool both = contains(fabrics, word) || !strcmp(word, "shm");

		rdm_name(name, sizeof(name), word, both);
		snprintf(params, sizeof(params), "provider=%s%s", word,
			 both ? " endpoint=rdm" : "");
		entries(out, libdir, name, params);
	}
	return n;
}
