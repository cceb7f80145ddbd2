/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common to datperf's two transports: memory, its layout, errors, time. */
#include "perf.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Areas grow with the window up to this size; large messages then cycle through fewer slots. */
#define AREA_CAP ((size_t)16 << 20)
#define CTL_AREA 4096

int perf_fail(struct perf_xport *x, const char *fmt, ...)
{
	va_list ap;

	/* the first error is the cause; later errors are its consequences */
	if (x->err[0])
		return -1;
	va_start(ap, fmt);
	vsnprintf(x->err, sizeof(x->err), fmt, ap);
	va_end(ap);
	return -1;
}

const char *perf_listen_text(unsigned int port, char *buf, size_t len)
{
	if (port)
		snprintf(buf, len, "cannot listen on port %u%s", port,
			 port < IPPORT_RESERVED ? " (ports below 1024 need privileges)" : "");
	else
		snprintf(buf, len, "cannot listen");
	return buf;
}

bool perf_test_has_size(enum perf_test test, size_t size)
{
	return size || test == PERF_SEND;
}

size_t perf_stride(size_t size)
{
	return ((size ? size : 1) + 63) & ~(size_t)63;
}

void perf_layout_init(struct perf_layout *lay, size_t size_max, unsigned int window)
{
	size_t stride = perf_stride(size_max), area = stride * window;

	if (area > AREA_CAP)
		area = AREA_CAP;
	if (area < 2 * stride)
		area = 2 * stride;
	lay->window = window;
	lay->area = (area + CTL_AREA - 1) & ~(size_t)(CTL_AREA - 1);
	lay->ctl_tx = 0;
	lay->ctl_rx = 512;
	lay->note_tx = 1024;
	lay->note_rx = 1280;
	lay->tx = CTL_AREA;
	lay->rx = lay->tx + lay->area;
	lay->total = lay->rx + lay->area;
}

unsigned int perf_slots(const struct perf_layout *lay, size_t size)
{
	size_t slots = lay->area / perf_stride(size);

	return slots < lay->window ? (unsigned int)slots : lay->window;
}

int perf_mem_alloc(struct perf_xport *x)
{
	void *mem;

	/* populated now, so that no page fault falls into a measurement */
	mem = mmap(NULL, x->lay.total, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem == MAP_FAILED)
		return perf_fail(x, "no memory for buffers of %zu bytes", x->lay.total);
	x->mem = mem;
	return 0;
}

void perf_mem_free(struct perf_xport *x)
{
	if (x->mem)
		munmap(x->mem, x->lay.total);
	x->mem = NULL;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

uint64_t perf_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t perf_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int perf_hello_check(struct perf_xport *x, const void *buf, size_t len, struct perf_hello *hello)
{
	if (perf_hello_decode(hello, buf, len) || !hello->window || !hello->endpoints ||
	    hello->endpoints > PERF_ENDPOINTS_MAX || !hello->threads ||
	    hello->threads > PERF_THREADS_MAX || hello->window > PERF_WINDOW_MAX ||
	    !hello->size_max || hello->size_max > PERF_SIZE_MAX ||
	    hello->segments > PERF_SEGMENTS_MAX) {
		x->refused = true;
		return perf_fail(x, "the peer is not a datperf of this version");
	}
	return 0;
}
