/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a fuzz target with its seeds, whole and truncated at each length, or with the files named.
 */

#include "fuzz.h"

#include <dirent.h>
#include <string.h>

#define MAX_SEED 65536

/* Copies to a block of exactly this length, so that tools detect reads beyond its end. */
static void run_input(const unsigned char *bytes, size_t len)
{
	unsigned char *exact = malloc(len ? len : 1);

	if (!exact)
		abort();
	memcpy(exact, bytes, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

static void replay(const char *path)
{
	static unsigned char bytes[MAX_SEED];
	FILE *f = fopen(path, "rb");
	size_t len, n;

	if (!f) {
		perror(path);
		exit(1);
	}
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	for (n = 0; n <= len; n++)
		run_input(bytes, n);
}

static unsigned replay_directory(const char *name)
{
	DIR *dir = opendir(name);
	struct dirent *d;
	char path[4096];
	unsigned n = 0;

	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, d->d_name);
		replay(path);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir");
	char seeds[2048];
	unsigned n;
	int i;

	for (i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc > 1)
		return 0;
	snprintf(seeds, sizeof(seeds), "%s/test/fuzz/seeds/" FUZZ_SEEDS, top ? top : ".");
	n = replay_directory(seeds);
	printf("%u seeds in %s\n", n, seeds);
	return !n;
}
