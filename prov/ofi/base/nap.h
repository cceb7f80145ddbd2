/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping on a descriptor of the fabric, so that another thread can end it, and a signal as it ends a futex wait.
 *
 * Any handler ends poll(2), also one that asks for a restart (SA_RESTART), and poll(2) does not say which one ran. So
 * a sleeping thread blocks all signals, polls a signalfd, and looks at the pending signals before it unblocks them.
 */
#ifndef DOFI_BASE_NAP_H
#define DOFI_BASE_NAP_H

#include <stdint.h>

/* A signalfd for dofi_nap(), of any thread; or a negative errno. */
int dofi_nap_open(void);

/*
 * Sleeps. 0: @fd is readable, or dofi_nap_end() was called, or it only seems so. -ETIMEDOUT: the deadline has passed.
 * -EINTR: a signal handler without SA_RESTART ran in this thread. -EBUSY: a signal is pending that this thread has
 * blocked, so the signalfd does not report others, or a descriptor is not open; the caller has to sleep otherwise.
 * @ring_fd is an eventfd with EFD_NONBLOCK, of which the sleeper takes what was written.
 */
int dofi_nap(int fd, int wakeup_fd, int signals, int64_t deadline);

/* Ends the sleep on @ring_fd, or the next one if there is none. Any thread, any lock. */
void dofi_nap_end(int wakeup_fd);

#endif
