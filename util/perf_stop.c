/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends a measurement early on SIGINT or SIGTERM. */
#include "perf_stop.h"

#include "perf.h"

/* timeout(1) sends its signal twice: to the program, and to its process group. */
#define REPEATED_NS 1000000000ull

volatile sig_atomic_t perf_stop;

static void stop(int signo)
{
	static uint64_t first_ns;

	if (!perf_stop) {
		first_ns = perf_now_ns();
		perf_stop = signo;
	} else if (perf_now_ns() - first_ns > REPEATED_NS) {
		signal(signo, SIG_DFL);
		raise(signo);
	}
}

static void handle(void (*handler)(int))
{
	/* SA_RESTART: reading the report of a child process goes on */
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void perf_stop_catch(void)
{
	handle(stop);
}

void perf_stop_ignore(void)
{
	handle(SIG_IGN);
}
