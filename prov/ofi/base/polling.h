/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a polling thread has stopped polling, or was preempted.
 *
 * The thread notes itself with each poll; an observer looks at it from another thread.
 */
#ifndef DOFI_BASE_POLLING_H
#define DOFI_BASE_POLLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it has no thread. */
struct dofi_polling_thread {
	/* the thread pointer of the thread that noted itself last */
	_Atomic(void *) self;
	_Atomic int tid;		/* the number of that thread; 0: not known */
	/* observer only */
	int seen;			/* tid at the last check */
	int64_t ran;		/* processor time of the thread `seen` at the last check, in ns */
};

/* Returns the thread pointer. GCC before 11 and older clang lack the builtin on x86. */
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

/* The slow path of dofi_polling_thread_note(). */
void dofi_polling_thread_change(struct dofi_polling_thread *thread);

/* Records the calling thread as the running thread. Call under a lock. */
static inline void dofi_polling_thread_note(struct dofi_polling_thread *thread)
{
	void *self = dofi_thread_pointer();

	if (__builtin_expect(atomic_load_explicit(&thread->self, memory_order_relaxed) != self, 0))
		dofi_polling_thread_change(thread);
}

/*
 * Looks at the thread. Returns the processor time that it had since the last look, in ns; INT64_MAX
 * if that is not known, or if the caller is the thread. Observer only; one system call.
 */
int64_t dofi_polling_thread_ran(struct dofi_polling_thread *thread);

/* Returns whether the thread runs or waits for a processor. Observer only; reads /proc. */
bool dofi_polling_thread_is_runnable(const struct dofi_polling_thread *thread);

/* Makes the scheduler run a thread soon after a wakeup. */

/*
 * Asks the kernel to run the calling thread soon after each wakeup: without timer slack, and in
 * short slices, with which it preempts others since Linux 6.12. The share of the processor does not
 * change. Needs no privilege; does nothing on older kernels.
 */
void dofi_ask_short_slices(void);

/* How long it pays to poll before sleeping, learnt from earlier waits. */

/* The longest time to poll, as a multiple of the least. */
#define DOFI_SPIN_MOST 4

/* One per object that threads wait for; all zero at first. */
struct dofi_spin {
	int64_t usual;		/* duration of the last short wait in ns */
	unsigned long_waits;	/* how many long waits followed it */
};

/*
 * Returns how long to poll, in ns: @least, or twice the last wait if that was short. 0 after a
 * series of long waits: polling would take the processor from the producer of the event.
 */
int64_t dofi_spin_time(const struct dofi_spin *spin, int64_t least);

/* Call after a wait of @took ns, polling and asleep. */
void dofi_spin_learn(struct dofi_spin *spin, int64_t took, int64_t least);

#endif
