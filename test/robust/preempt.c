/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A preload library: memcpy() of 8 to 64 bytes stores as glibc's does, a first and a last part that
 * overlap. In threads other than the main one it sleeps between the two, at every fourth copy, as
 * if the kernel had preempted the thread there.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 64
#define EACH 4

void *memcpy(void *restrict to, const void *restrict from, size_t len);

static bool is_main_thread(void)
{
	static _Thread_local pid_t tid;

	if (!tid)
		tid = (pid_t)syscall(SYS_gettid);
	return tid == getpid();
}

/* Both parts are loaded before the first is stored. */
static void copy_in_parts(char *to, const char *from, size_t len)
{
	const struct timespec pause = { .tv_nsec = 30000 };
	static atomic_uint copies;
	char part[2][LONGEST];
	size_t n = LONGEST;

	while (n > len)
		n /= 2;
	memmove(part[0], from, n);
	memmove(part[1], from + len - n, n);
	memmove(to, part[0], n);
	if (atomic_fetch_add(&copies, 1) % EACH == 0)
		nanosleep(&pause, NULL);
	memmove(to + len - n, part[1], n);
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	if (len < 8 || len > LONGEST || is_main_thread())
		return memmove(to, from, len);
	copy_in_parts(to, from, len);
	return to;
}
