/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The enumerators of the recorded ABI (test/abi). */
#ifndef UNIT_RECORDED_H
#define UNIT_RECORDED_H

#include "dat_select.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls @check for each enumerator of an enum in the recorded ABI. Returns their number. */
static inline int each_recorded(const char *tag,
				void (*check)(const char *name, DAT_UINT32 value))
{
	const char *top = getenv("top_srcdir");
	char path[4096], line[512], head[128], name[128];
	bool in = false;
	long long value;
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/test/abi/dat-%s.abi.json", top ? top : ".",
		 DAT_VERSION_MAJOR >= 2 ? "2.0" : "1.2");
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	snprintf(head, sizeof(head), "\"tag\": \"%s\"", tag);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "\"tag\":"))
			in = strstr(line, head);
		/* a pair: the name in one line, and its value in the next */
		if (!in || sscanf(line, " \"%127[A-Z0-9_]\",", name) != 1 ||
		    !fgets(line, sizeof(line), f) || sscanf(line, "%lld", &value) != 1)
			continue;
		check(name, (DAT_UINT32)value);
		n++;
	}
	fclose(f);
	return n;
}

#endif
