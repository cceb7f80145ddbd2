/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies the objects of all IAs. Only in builds with --enable-debug, for tests. */
#ifndef DOFI_CHECK_CHECK_H
#define DOFI_CHECK_CHECK_H

#include "obj/ia.h"

/*
 * Verifies the invariants of each object while no thread of the program is in a call. Prints the
 * object, the condition and the values, and aborts if one does not hold. Each IA is verified on its
 * progress thread, so that this thread changes nothing meanwhile; a forked child has none, and
 * verifies nothing. No lock held.
 */
void dofi_check_invariants(void);

/*
 * Verifies the objects of the IA @ia_handle, which may be no handle, if DAT_TEST_CHECK=1, as the
 * two-process tests and the conformance suite set it. Call before the IA is closed. Other IAs are
 * left out, because threads may use them.
 */
void dofi_check_at_close(void *ia_handle);

/* The checks of each file of this directory. */

/* Aborts with the values of @fmt unless @condition holds for @object, which is a @kind. */
#define CHECK(kind, object, condition, ...)                                  \
	do {                                                                 \
		if (!(condition))                                            \
			check_failed(kind, object, #condition, __VA_ARGS__); \
	} while (0)

/* Aborts unless @a == @b, which are integers or pointers. */
#define CHECK_SAME(kind, object, a, b)                                          \
	CHECK(kind, object, (a) == (b), "%#llx, %#llx", CHECK_VALUE(a), CHECK_VALUE(b))
#define CHECK_VALUE(value) ((unsigned long long)(uintptr_t)(value))

_Noreturn void check_failed(const char *kind, const void *object, const char *condition,
			    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Each @obj of @ia that is of DAT_HANDLE_TYPE_@type. IA lock held. */
#define CHECK_EACH(obj, ia, type) \
	TAILQ_FOREACH(obj, &(ia)->children[DOFI_KIND(DAT_HANDLE_TYPE_##type)], sibling)

/* Returns the first open IA at or after *@i, and sets *@i behind it; NULL after the last. */
struct dofi_ia *check_next_ia(uint32_t *i);

/* The functions below run on the progress thread of @ia. */

/* Lists and counts of objects, how often each is referred to, and grants. IA lock held. */
void check_objects(struct dofi_ia *ia) DOFI_NEEDS(ia->lock);
/* Endpoints with their queues, and SRQs. IA lock held. */
void check_endpoints(struct dofi_ia *ia) DOFI_NEEDS(ia->lock);
/* EVDs and CNOs. IA lock held. */
void check_events(struct dofi_ia *ia) DOFI_NEEDS(ia->lock);
/* Connections of the transport xport/rdm/. No lock held. */
void check_connections(struct dofi_ia *ia) DOFI_NEEDS_NOT(ia->lock);

#endif
