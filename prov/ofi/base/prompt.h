/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How soon the scheduler runs a thread that an event woke. */
#ifndef DOFI_BASE_PROMPT_H
#define DOFI_BASE_PROMPT_H

/*
 * Asks the kernel to run the calling thread soon after each wakeup: without timer slack (prctl(2)), and in short
 * slices (sched_setattr(2)), which Linux since 6.12 lets preempt a thread with a longer one. The share of the
 * processor and the nice value stay as they are. No privilege is needed; where the kernel has none of it, nothing
 * changes.
 */
void dofi_prompt(void);

#endif
