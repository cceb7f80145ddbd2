/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Variables that the environment has only while libfabric reads them. */

#include "base/environ.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dofi_mutex dofi_environ_lock;

/* What is lent. The forked child of another thread reads it, so it precedes the environment. */
static struct {
	char *added[DOFI_LOANS];
	unsigned n_added;
	struct {
		char *ours, *theirs;
	} swapped[DOFI_LOANS];
	unsigned n_swapped;
} lent DOFI_GUARDED_BY(dofi_environ_lock);

/* The arrays of ours, the newest first: leak checkers find them here. */
struct array {
	struct array *before;
	unsigned size;
	char *entry[];
};

static struct array *newest DOFI_GUARDED_BY(dofi_environ_lock);

#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
/* Stores @v in *@p if *@old is there; returns whether it was. */
#define SWAP(p, old, v) \
	__atomic_compare_exchange_n(p, old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

static bool has_name_of(const char *a, const char *b)
{
	return !strncmp(a, b, strcspn(b, "=") + 1);
}

/* Returns the first entry that has the name of @entry; NULL if there is none. */
static char *find(const char *entry)
{
	char **e, *text;

	for (e = LOAD(&environ); e && (text = LOAD(e)); e++)
		if (has_name_of(text, entry))
			return text;
	return NULL;
}

/* Returns whether the environment has the string @entry itself. */
static bool is_there(const char *entry)
{
	char **e, *text;

	for (e = LOAD(&environ); e && (text = LOAD(e)); e++)
		if (text == entry)
			return true;
	return false;
}

static bool are_added(void) DOFI_NEEDS(dofi_environ_lock)
{
	unsigned i;

	for (i = 0; i < lent.n_added && is_there(lent.added[i]); i++)
		;
	return i == lent.n_added;
}

/* Waits until calls that change the environment have ended, which hold the C library's lock. */
static void wait_for_changes(void)
{
	unsetenv("dat_ofi");	/* there is none */
}

static bool is_among(char *const *entries, unsigned n, const char *entry)
{
	unsigned i;

	for (i = 0; i < n && entries[i] != entry; i++)
		;
	return i < n;
}

/*
 * Repeats in @array, which is the environment now, what another thread's setenv() stored in @old
 * after its @n entries were copied to @seen: other values, and entries that were not seen. An
 * unsetenv() in these microseconds may be undone. A setenv() may free @old, but replaces @array
 * before, and the entries read from it are not used then. @now has room for @n entries and
 * DOFI_LOANS more, and is zero.
 */
static void catch_up(char **array, char **old, char **seen, char **now, unsigned n)
{
	unsigned i;

	wait_for_changes();
	for (i = 0; i < n + DOFI_LOANS && (now[i] = LOAD(&old[i])); i++)
		;
	wait_for_changes();
	if (LOAD(&environ) != array)
		return;
	for (i = 0; i < n + DOFI_LOANS && now[i]; i++)
		if (i < n && now[i] != seen[i] && has_name_of(now[i], seen[i]))
			SWAP(&array[i], &seen[i], now[i]);
		else if (!is_among(seen, n, now[i]) && !find(now[i]))
			putenv(now[i]);
}

/* Stores the added entries behind @n entries of @array, the first last: then all are seen. */
static void append(char **array, unsigned n) DOFI_NEEDS(dofi_environ_lock)
{
	unsigned i = lent.n_added;

	STORE(&array[n + i], NULL);
	while (i--)
		STORE(&array[n + i], lent.added[i]);
}

/* Makes a longer array the environment, unless a setenv() is faster. Returns 0 or -1. */
static int replace(char **old, unsigned n) DOFI_NEEDS(dofi_environ_lock)
{
	const unsigned size = n + 2 * DOFI_LOANS;
	struct array *a = calloc(1, sizeof(*a) + size * sizeof(a->entry[0]));
	char **seen = calloc(n + size, sizeof(*seen));
	unsigned i;

	if (!a || !seen) {
		free(a);
		free(seen);
		return -1;
	}
	for (i = 0; i < n; i++)
		a->entry[i] = seen[i] = LOAD(&old[i]);
	append(a->entry, n);
	if (SWAP(&environ, &old, a->entry)) {
		a->size = size;
		a->before = newest;
		newest = a;
		if (old)
			catch_up(a->entry, old, seen, seen + n, n);
	} else {
		free(a);
	}
	free(seen);
	return 0;
}

/* A setenv() that began before copies the old array, so that this has to be done again. */
static void add(void) DOFI_NEEDS(dofi_environ_lock)
{
	char **old;
	unsigned n;

	while (!are_added()) {
		old = LOAD(&environ);
		for (n = 0; old && LOAD(&old[n]); n++)
			;
		if (newest && old == newest->entry && n + lent.n_added < newest->size)
			append(old, n);
		else if (replace(old, n))
			break;
		wait_for_changes();
	}
}

/* The child has one thread. Another thread of the parent may have held any lock. */
static void in_child(void) DOFI_UNCHECKED_LOCKS
{
	char **to = environ, **from;
	unsigned i, k;

	for (from = environ; from && *from; from++) {
		for (i = 0; i < lent.n_added && lent.added[i] != *from; i++)
			;
		for (k = 0; k < lent.n_swapped && lent.swapped[k].ours != *from; k++)
			;
		if (k < lent.n_swapped)
			*to++ = lent.swapped[k].theirs;
		else if (i == lent.n_added)
			*to++ = *from;
	}
	if (to)
		*to = NULL;
	lent.n_added = lent.n_swapped = 0;
	dofi_mutex_init(&dofi_environ_lock);
}

static void handler_install(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

void dofi_environ_lend(char *const *entries, unsigned n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *theirs;
	unsigned i;

	pthread_once(&once, handler_install);
	dofi_mutex_lock(&dofi_environ_lock);
	for (i = 0; i < n; i++) {
		theirs = find(entries[i]);
		if (theirs && strcmp(theirs, entries[i])) {
			lent.swapped[lent.n_swapped].ours = entries[i];
			lent.swapped[lent.n_swapped].theirs = theirs;
			STORE(&lent.n_swapped, lent.n_swapped + 1);
			putenv(entries[i]);
		} else {
			lent.added[lent.n_added] = entries[i];
			STORE(&lent.n_added, lent.n_added + 1);
		}
	}
	add();
}

bool dofi_environ_return(void)
{
	const bool kept = are_added();
	char name[64];
	unsigned i;

	/* the last first: then no other entry moves, which a getenv() could miss */
	for (i = lent.n_added; i--;) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(lent.added[i], "="),
			 lent.added[i]);
		if (is_there(lent.added[i]))
			unsetenv(name);
	}
	for (i = 0; i < lent.n_swapped; i++)
		if (is_there(lent.swapped[i].ours))
			putenv(lent.swapped[i].theirs);
	lent.n_added = lent.n_swapped = 0;
	dofi_mutex_unlock(&dofi_environ_lock);
	return kept;
}
