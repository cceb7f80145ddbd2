/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping on a descriptor, so that another thread can end the sleep, and signals end it as they
 * end a futex wait.
 *
 * Any handler ends poll(2), even with SA_RESTART, and poll(2) does not report which handler ran. So
 * a sleeping thread blocks all signals, polls a signalfd, and inspects the pending signals before
 * it unblocks them.
 */
#ifndef DOFI_BASE_NAP_H
#define DOFI_BASE_NAP_H

#include <stdint.h>

/* Returns a signalfd for dofi_nap() in any thread, or a negative errno. */
int dofi_nap_open(void);

/*
 * Sleeps. Returns 0 if @fd is readable, after dofi_nap_end(), or spuriously; -ETIMEDOUT after the
 * deadline; -EINTR if a signal handler without SA_RESTART ran in this thread; -EBUSY if a signal is
 * pending that this thread has blocked, so that the signalfd does not report others, or if a
 * descriptor is not open: the caller has to sleep in another way. @wakeup_fd is an eventfd with
 * EFD_NONBLOCK; it is empty on return.
 */
int dofi_nap(int fd, int wakeup_fd, int signals, int64_t deadline);

/* Ends the sleep on @wakeup_fd, or the next one if no thread sleeps. Any thread, any lock. */
void dofi_nap_end(int wakeup_fd);

#endif
