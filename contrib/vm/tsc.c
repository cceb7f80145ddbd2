/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints the frequency of this host's time stamp counter in kHz: an emulated processor has it too.
 */

#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

/* A value of the counter, and its time. */
struct sample {
	unsigned long long ticks;
	double ms;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Returns the sample with the fastest reading, as the host may be busy. */
static struct sample sample_take(void)
{
	struct sample best = { .ticks = 0 };
	double least = 1e9;

	for (int i = 0; i < 20; i++) {
		struct sample s = { .ms = now() };
		double took;

		s.ticks = __rdtsc();
		took = now() - s.ms;
		if (took < least) {
			least = took;
			best = s;
		}
	}
	return best;
}

int main(void)
{
	const struct timespec a_while = { .tv_nsec = 200000000 };
	struct sample first = sample_take(), last;

	nanosleep(&a_while, NULL);
	last = sample_take();
	printf("%.0f\n", (double)(last.ticks - first.ticks) / (last.ms - first.ms));
	return 0;
}
