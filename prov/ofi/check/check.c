/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies the objects of all IAs: the walk, and the report. */

#include "check/check.h"


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_failed(const char *kind, const void *object, const char *condition, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "invariant: %s %p: %s does not hold: ", kind, object, condition);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

void check_each_ia(void (*fn)(struct dofi_ia *ia, void *arg), void *arg)
{
	struct dofi_ia *ia;
	uint32_t i;

	for (i = 0; (ia = dofi_pool_at(&dofi_ia_pool, i)); i++)
		if (dofi_obj_kind(&ia->obj) == DOFI_KIND(DAT_HANDLE_TYPE_IA))
			fn(ia, arg);
}

static void check_on_thread(void *arg)
{
	struct dofi_ia *ia = arg;

	dofi_mutex_lock(&ia->lock);
	check_objects(ia);
	check_endpoints(ia);
	check_events(ia);
	dofi_mutex_unlock(&ia->lock);
	check_loop(ia);
	check_connections(ia);
}

static void check_ia(struct dofi_ia *ia, void *arg)
{
	(void)arg;
	dofi_progress_call(&ia->progress, check_on_thread, ia);
}

void dofi_check_invariants(void)
{
	check_each_ia(check_ia, NULL);
}

static void check_if(struct dofi_ia *ia, void *handle)
{
	if (ia == handle)
		check_ia(ia, NULL);
}

void dofi_check_at_close(void *ia_handle)
{
	const char *wanted = secure_getenv("DAT_TEST_CHECK");

	if (wanted && !strcmp(wanted, "1"))
		check_each_ia(check_if, ia_handle);
}
