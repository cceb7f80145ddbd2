/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long it pays to poll before sleeping, learnt from earlier waits. */
#ifndef DOFI_BASE_SPIN_H
#define DOFI_BASE_SPIN_H

#include <stdint.h>

/* The longest time to poll, as a multiple of the least. */
#define DOFI_SPIN_MOST 4

/* One per object that threads wait for; all zero at first. */
struct dofi_spin {
	int64_t usual;		/* what the last short wait took, in ns */
	unsigned long_waits;	/* how many long waits followed it */
};

/*
 * Returns how long to poll, in ns: @least, or twice the time of the last wait if that was short.
 * Returns 0 if waits have been long for a while: polling would only take processor time from other
 * threads, also from the producer of the event.
 */
int64_t dofi_spin_time(const struct dofi_spin *spin, int64_t least);

/* Call after a wait of @took ns, polling and asleep. */
void dofi_spin_learn(struct dofi_spin *spin, int64_t took, int64_t least);

#endif
