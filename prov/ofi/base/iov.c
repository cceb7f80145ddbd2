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

void dofi_iov_land(void *to, const void *from, size_t len)
{
	size_t done = len - dofi_iov_tail(to, len), n;
	union {
		uint64_t of8;
		uint32_t of4;
		uint16_t of2;
		uint8_t of1;
	} value;
	char *at;

	memcpy(to, from, done);
	for (; done < len; done += n) {
		at = (char *)to + done;
		/* as much as one aligned store can write */
		for (n = sizeof(value); n > len - done || (uintptr_t)at % n; n /= 2)
			;
		memcpy(&value, (const char *)from + done, n);
		if (n == 8)
			atomic_store_explicit((_Atomic uint64_t *)at, value.of8,
					      memory_order_release);
		else if (n == 4)
			atomic_store_explicit((_Atomic uint32_t *)at, value.of4,
					      memory_order_release);
		else if (n == 2)
			atomic_store_explicit((_Atomic uint16_t *)at, value.of2,
					      memory_order_release);
		else
			atomic_store_explicit((_Atomic uint8_t *)at, value.of1,
					      memory_order_release);
	}
}
