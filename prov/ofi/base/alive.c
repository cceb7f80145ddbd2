/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A word in shared memory that shows other processes whether a thread lives. */

#include "base/alive.h"

#include "base/mutex_tsan.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= DOFI_ALIVE_WORDS * sizeof(uint32_t), "a mutex fits");

static uint32_t self(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * Returns whether the kernel has the thread's list of robust mutexes. QEMU's user-mode emulation
 * has no such list, and the C library does not report its absence.
 */
static bool robust_list_known(void)
{
	void *head;
	size_t size;

	return !syscall(SYS_get_robust_list, 0, &head, &size) && head;
}

/*
 * The mutex serves only one thread, so that trylock never fails. ThreadSanitizer follows 64 locks
 * of a thread, and a thread may hold more of these: it sees each as unlocked.
 */
static int robust_hold(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	int err;

	if (pthread_mutexattr_init(&attr))
		return -ENOTSUP;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(mutex, &attr);
	if (!err)
		err = pthread_mutex_trylock(mutex);
	if (!err && !robust_list_known()) {
		pthread_mutex_unlock(mutex);
		err = ENOTSUP;
	}
	pthread_mutexattr_destroy(&attr);
	if (err)
		return -ENOTSUP;
	DOFI_TSAN_MUTEX(pre_unlock, mutex, 0);
	DOFI_TSAN_MUTEX(post_unlock, mutex, 0);
	return 0;
}

/* Finds the word of the mutex, which is the number of the thread, as the kernel requires. */
int dofi_alive_begin(struct dofi_alive *alive)
{
	const uint32_t number = self();
	int ret = robust_hold(&alive->mutex);
	uint32_t i;

	for (i = 0; !ret && i < sizeof(alive->mutex) / sizeof(uint32_t); i++) {
		if (atomic_load(&alive->word[i]) != number)
			continue;
		alive->at = i;
		alive->value = number;
		return 0;
	}
	return -ENOTSUP;
}

/* In a forked child the thread is another one, and the word is the parent's. */
void dofi_alive_end(struct dofi_alive *alive)
{
	if (!dofi_alive_is(alive) || alive->value != self())
		return;
	DOFI_TSAN_MUTEX(pre_lock, &alive->mutex, 0);
	DOFI_TSAN_MUTEX(post_lock, &alive->mutex, 0, 0);
	pthread_mutex_unlock(&alive->mutex);
}
