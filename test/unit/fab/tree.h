/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of one of the kernel's directories, such as /sys/class. */
#ifndef TEST_FAB_TREE_H
#define TEST_FAB_TREE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Writes @text to the file @path below @root, and makes missing directories. */
static inline void tree_put(const char *root, const char *path, const char *text)
{
	char name[256], *slash;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	cr_assert(f != NULL);
	fputs(text, f);
	fclose(f);
}

#endif
