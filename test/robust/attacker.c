/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A shared object that reports when it is loaded, as an attacker's in a privileged program. */

#include <unistd.h>

static void __attribute__((constructor)) attack(void)
{
	static const char text[] = "the attacker's code runs\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}
