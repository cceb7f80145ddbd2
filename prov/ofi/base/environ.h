/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Variables that the environment has only while libfabric reads them.
 *
 * The program's threads may call getenv(), setenv() and fork() meanwhile. A setenv() of ours would
 * free the array of pointers that another thread's getenv() reads, and children would inherit the
 * variable. So a longer array takes the place of the array, by one store, and neither is freed.
 * Programs that another thread starts meanwhile without fork(), by posix_spawn() or system(), get
 * the variables.
 */
#ifndef DOFI_BASE_ENVIRON_H
#define DOFI_BASE_ENVIRON_H

#include "base/mutex.h"

#include <stdbool.h>

/* The most entries at a time. */
#define DOFI_LOANS 32

/* Held from dofi_environ_lend() to dofi_environ_return(). */
extern struct dofi_mutex dofi_environ_lock;

/*
 * Adds @n @entries, "NAME=VALUE", to the environment. An entry takes the place of one of the
 * program's with its name and another value. Entries must stay valid for good, because a thread may
 * keep what getenv() returned.
 */
void dofi_environ_lend(char *const *entries, unsigned n) DOFI_TAKES(dofi_environ_lock);

/*
 * Removes the entries, except those that the program has replaced. Returns whether all were in the
 * environment until now. False: without memory, or if the program or the provider of the other API
 * version removed one.
 */
bool dofi_environ_return(void) DOFI_DROPS(dofi_environ_lock);

#endif
