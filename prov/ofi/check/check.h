/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verifies the objects of all IAs. Only in builds with --enable-debug, for tests. */
#ifndef DOFI_CHECK_CHECK_H
#define DOFI_CHECK_CHECK_H

/*
 * Verifies what holds for each object while no thread of the program is in a call. Prints the
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

#endif
