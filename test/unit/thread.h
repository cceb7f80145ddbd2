/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals to a thread that sleeps, and waiting until it has handled them. */
#ifndef UNIT_THREAD_H
#define UNIT_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether the thread has started and sleeps without a pending signal, or has ended. */
static inline bool thread_rests(pid_t tid)
{
	char path[64], line[128];
	bool asleep = false, quiet = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = tid ? fopen(path, "r") : NULL;
	if (!f)
		return tid;
	while (fgets(line, sizeof(line), f)) {
		asleep |= !strncmp(line, "State:\tS", 8);
		quiet |= !strncmp(line, "SigPnd:", 7) && !line[8 + strspn(line + 8, "0\n")];
	}
	fclose(f);
	return asleep && quiet;
}

/* Sends @times signals, each while the thread sleeps. Returns when it sleeps again. */
static inline void thread_disturb(pthread_t thread, pid_t tid, int times)
{
	while (times--) {
		pthread_kill(thread, SIGUSR1);
		do
			usleep(100);
		while (!thread_rests(tid));
	}
}

/* Sends signals until the thread has ended. */
static inline void thread_pester(pthread_t thread)
{
	while (pthread_tryjoin_np(thread, NULL)) {
		pthread_kill(thread, SIGUSR1);
		usleep(100);
	}
}

static inline void thread_signalled(int sig)
{
}

/* Installs a handler with @flags for the signal of thread_disturb() and thread_pester(). */
static inline void thread_handles(int flags)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = thread_signalled, .sa_flags = flags },
		  NULL);
}

#endif
