/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Restores the signal handlers that libfabric's shm replaces. */

#include "fab/signals.h"

#include "base/mutex.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <stdbool.h>
#include <string.h>

/* Held from save to restore. */
static struct dofi_mutex lock;

static const int taken[DOFI_SIGNALS] = { SIGINT, SIGTERM, SIGBUS, SIGSEGV };

/*
 * Returns whether the handler is in libfabric, or in a provider of it that is a library of its own
 * (fabric(7)).
 */
static bool is_libfabrics(const struct sigaction *action)
{
	Dl_info handler, libfabric;

	/* SIG_DFL and SIG_IGN are in no library */
	if (!dladdr((void *)action->sa_sigaction, &handler) ||
	    !dladdr((void *)fi_freeinfo, &libfabric))
		return false;
	return handler.dli_fbase == libfabric.dli_fbase || strstr(handler.dli_fname, "-fi.so");
}

void dofi_signals_save(struct dofi_signals *s) DOFI_TAKES(lock)
{
	int i;

	dofi_mutex_lock(&lock);
	for (i = 0; i < DOFI_SIGNALS; i++)
		sigaction(taken[i], NULL, &s->before[i]);
}

void dofi_signals_restore(const struct dofi_signals *s) DOFI_DROPS(lock)
{
	struct sigaction now;
	int i;

	for (i = 0; i < DOFI_SIGNALS; i++)
		if (!sigaction(taken[i], NULL, &now) && is_libfabrics(&now))
			sigaction(taken[i], &s->before[i], NULL);
	dofi_mutex_unlock(&lock);
}
