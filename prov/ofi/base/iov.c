/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies bytes into and out of memory in segments. */

#include "base/iov.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Copies between @bytes and the segments, in the direction @out of them. */
static inline size_t copy(const struct iovec *iov, size_t n, size_t offset, char *bytes, size_t len,
			  bool out)
{
	size_t done = 0, part, i;
	char *at;

	for (i = 0; i < n && done < len; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		at = (char *)iov[i].iov_base + offset;
		part = iov[i].iov_len - offset;
		part = part < len - done ? part : len - done;
		memcpy(out ? bytes + done : at, out ? at : bytes + done, part);
		offset = 0;
		done += part;
	}
	return done;
}

size_t dofi_iov_scatter_all(const struct iovec *iov, size_t n, size_t offset, const void *from,
			    size_t len)
{
	return copy(iov, n, offset, (char *)(uintptr_t)from, len, false);
}

size_t dofi_iov_gather_all(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len)
{
	return copy(iov, n, offset, to, len, true);
}

size_t dofi_iov_tail(const void *to, size_t len)
{
	const size_t beyond = ((uintptr_t)to + len) % sizeof(uint64_t);
	const size_t tail = beyond ? beyond : sizeof(uint64_t);

	return tail < len ? tail : len;
}

/*
 * Stores @n aligned words, in ascending order. The last store is a release, so that a thread that
 * polls the last word sees the words before it.
 */
static void words_store(char *to, const char *from, size_t n)
{
	uint64_t word;

	for (; n; n--, to += sizeof(word), from += sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		atomic_store_explicit((_Atomic uint64_t *)to, word,
				      n == 1 ? memory_order_release : memory_order_relaxed);
	}
}

void dofi_iov_land(void *to, const void *from, size_t len)
{
	const char *bytes = from;
	char *at = to, *const end = at + len;
	uint32_t of4;
	uint16_t of2;
	size_t n;

	for (; at < end; at += n, bytes += n) {
		/* as much as one aligned store can write */
		for (n = sizeof(uint64_t); n > (size_t)(end - at) || (uintptr_t)at % n; n /= 2)
			;
		if (n == sizeof(uint64_t)) {
			words_store(at, bytes, (size_t)(end - at) / n);
			n *= (size_t)(end - at) / n;
		} else if (n == sizeof(of4)) {
			memcpy(&of4, bytes, n);
			atomic_store_explicit((_Atomic uint32_t *)at, of4, memory_order_release);
		} else if (n == sizeof(of2)) {
			memcpy(&of2, bytes, n);
			atomic_store_explicit((_Atomic uint16_t *)at, of2, memory_order_release);
		} else {
			atomic_store_explicit((_Atomic char *)at, *bytes, memory_order_release);
		}
	}
}
