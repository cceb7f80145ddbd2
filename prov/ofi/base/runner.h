/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a thread that does something again and again has stopped doing it, or lacks a processor.
 *
 * The thread notes itself each time; an observer looks at it from another thread.
 */
#ifndef DOFI_BASE_RUNNER_H
#define DOFI_BASE_RUNNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it has no thread. */
struct dofi_runner {
	/* the thread pointer of the thread that noted itself last */
	_Atomic(void *) self;
	_Atomic int tid;		/* the number of that thread; 0: not known */
	/* observer only */
	int seen;			/* tid at the last check */
	/* processor time of the thread `seen` at the last check, in ns */
	int64_t ran;
};

/*
 * Returns the thread pointer. On x86 GCC before 11 and older clang lack __builtin_thread_pointer(),
 * which saves an instruction where the result is compared.
 */
static inline void *dofi_thread_pointer(void)
{
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ < 11)
	void *self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#elif defined(__i386__) && (defined(__clang__) || __GNUC__ < 11)
	void *self;

	__asm__("mov %%gs:0, %0" : "=r"(self));
	return self;
#else
	return __builtin_thread_pointer();
#endif
}

/* The slow path of dofi_runner_note(). */
void dofi_runner_change(struct dofi_runner *runner);

/* Records the calling thread as the running thread. Call under a lock. */
static inline void dofi_runner_note(struct dofi_runner *runner)
{
	void *self = dofi_thread_pointer();

	if (__builtin_expect(atomic_load_explicit(&runner->self, memory_order_relaxed) != self, 0))
		dofi_runner_change(runner);
}

/*
 * Looks at the thread. Returns the processor time that it had since the last look, in ns; INT64_MAX
 * if that is not known, or if the caller is the thread. Observer only; one system call.
 */
int64_t dofi_runner_ran(struct dofi_runner *runner);

/*
 * Whether the thread that was looked at runs, or waits for a processor: it does not sleep. Observer
 * only; reads /proc.
 */
bool dofi_runner_is_runnable(const struct dofi_runner *runner);

#endif
