/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies bytes into and out of memory in segments. */

#include "base/iov.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Returns how many of @len bytes at *@offset are in @piece, sets *@at, and advances *@offset. */
static size_t part_of(const struct iovec *piece, size_t *offset, size_t len, void **at)
{
	size_t rest;

	if (*offset >= piece->iov_len) {
		*offset -= piece->iov_len;
		return 0;
	}
	*at = (char *)piece->iov_base + *offset;
	rest = piece->iov_len - *offset;
	*offset = 0;
	return len < rest ? len : rest;
}

size_t dofi_iov_scatter_all(const struct iovec *iov, size_t n, size_t offset, const void *from,
			    size_t len)
{
	size_t done = 0, part, i;
	void *at;

	for (i = 0; i < n && done < len; i++) {
		part = part_of(&iov[i], &offset, len - done, &at);
		if (part)
			memcpy(at, (const char *)from + done, part);
		done += part;
	}
	return done;
}

size_t dofi_iov_gather_all(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len)
{
	size_t done = 0, part, i;
	void *at;

	for (i = 0; i < n && done < len; i++) {
		part = part_of(&iov[i], &offset, len - done, &at);
		if (part)
			memcpy((char *)to + done, at, part);
		done += part;
	}
	return done;
}

size_t dofi_iov_tail(const void *to, size_t len)
{
	const size_t beyond = ((uintptr_t)to + len) % sizeof(uint64_t);
	const size_t tail = beyond ? beyond : sizeof(uint64_t);

	return tail < len ? tail : len;
}

/* Returns how many of @len bytes at @to one store can write. */
static size_t at_once(const void *to, size_t len)
{
	size_t n = sizeof(uint64_t);

	while (n > len || (uintptr_t)to % n)
		n /= 2;
	return n;
}

static void store(void *to, const void *from, size_t n)
{
	union {
		uint64_t of8;
		uint32_t of4;
		uint16_t of2;
		uint8_t of1;
	} value;

	memcpy(&value, from, n);
	switch (n) {
	case 8:
		atomic_store_explicit((_Atomic uint64_t *)to, value.of8, memory_order_release);
		break;
	case 4:
		atomic_store_explicit((_Atomic uint32_t *)to, value.of4, memory_order_release);
		break;
	case 2:
		atomic_store_explicit((_Atomic uint16_t *)to, value.of2, memory_order_release);
		break;
	default:
		atomic_store_explicit((_Atomic uint8_t *)to, value.of1, memory_order_release);
	}
}

void dofi_iov_land(void *to, const void *from, size_t len)
{
	size_t done = len - dofi_iov_tail(to, len), n;

	memcpy(to, from, done);
	for (; done < len; done += n) {
		n = at_once((char *)to + done, len - done);
		store((char *)to + done, (const char *)from + done, n);
	}
}
