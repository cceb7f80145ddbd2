/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes the scheduler run a thread soon after a wakeup. */
#ifndef DOFI_BASE_PROMPT_H
#define DOFI_BASE_PROMPT_H

/*
 * Asks the kernel to run the calling thread soon after each wakeup: without timer slack (prctl(2)),
 * and in short slices (sched_setattr(2)). Since Linux 6.12, a thread with a short slice preempts
 * one with a longer slice. The share of the processor and the nice value do not change. Needs no
 * privilege. Does nothing on kernels without these.
 */
void dofi_prompt(void);

#endif
