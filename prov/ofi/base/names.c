/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of names in a string, separated by blanks. */

#include "base/names.h"

#include <stdio.h>
#include <string.h>

bool dofi_names_have(const char *names, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = strstr(names, name); p; p = strstr(p + 1, name))
		if ((p == names || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
	return false;
}

void dofi_names_add(char *names, size_t size, const char *name)
{
	size_t used = strlen(names);

	if (name && !dofi_names_have(names, name))
		snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}
