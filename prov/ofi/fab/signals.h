/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Restores the signal handlers that libfabric's shm replaces.
 *
 * When it opens an endpoint, it installs a handler for SIGINT, SIGTERM, SIGBUS and SIGSEGV that
 * removes the files of this process's endpoints (seen in 1.17 and 2.1). A signal that the program
 * ignores is no longer ignored then. And a forked child that is ended by such a signal removes the
 * files of its parent, which new peers then cannot reach.
 */
#ifndef DOFI_FAB_SIGNALS_H
#define DOFI_FAB_SIGNALS_H

#include <signal.h>

#define DOFI_SIGNALS 4

struct dofi_signals {
	struct sigaction before[DOFI_SIGNALS];
};

/*
 * Call around opening an endpoint, of any fabric: some have shm within. Another thread that saves
 * waits for the restore, or it would take libfabric's for the program's. What the program changes
 * meanwhile stays.
 */
void dofi_signals_save(struct dofi_signals *signals);
void dofi_signals_restore(const struct dofi_signals *signals);

#endif
