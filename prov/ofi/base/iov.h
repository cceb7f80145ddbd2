/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies bytes into and out of memory in segments. */
#ifndef DOFI_BASE_IOV_H
#define DOFI_BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

/* Returns whether the bytes are in the first segment, as a short message's usually are. */
static inline bool dofi_iov_in_first(const struct iovec *iov, size_t n, size_t offset, size_t len)
{
	return n && len && offset <= iov->iov_len && len <= iov->iov_len - offset;
}

/* Continue dofi_iov_scatter() and dofi_iov_gather() for several segments. */
size_t dofi_iov_scatter_all(const struct iovec *iov, size_t n, size_t offset, const void *from,
			    size_t len);
size_t dofi_iov_gather_all(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len);

/* Copies @len bytes at @from to @offset of the @n segments @iov. Returns how many fit. */
static inline size_t dofi_iov_scatter(const struct iovec *iov, size_t n, size_t offset,
				      const void *from, size_t len)
{
	if (!dofi_iov_in_first(iov, n, offset, len))
		return dofi_iov_scatter_all(iov, n, offset, from, len);
	memcpy((char *)iov->iov_base + offset, from, len);
	return len;
}

/* Copies @len bytes at @offset of the @n segments @iov to @to. Returns how many there are. */
static inline size_t dofi_iov_gather(void *to, const struct iovec *iov, size_t n, size_t offset,
				     size_t len)
{
	if (!dofi_iov_in_first(iov, n, offset, len))
		return dofi_iov_gather_all(to, iov, n, offset, len);
	memcpy(to, (const char *)iov->iov_base + offset, len);
	return len;
}

/*
 * Returns how many of @len bytes at @to are in the last aligned word, to be written last: programs
 * poll that word, and expect all before it, as on hardware. glibc's memcpy() stores the first last.
 */
size_t dofi_iov_tail(const void *to, size_t len);

/*
 * Like memcpy(), but stores each byte once, in ascending order. A thread that sees the last word
 * changed sees the rest, and may overwrite all of it at once: no store follows. glibc's memcpy()
 * stores 32 bytes twice, for example, and a preempted thread makes the second store much later.
 */
void dofi_iov_land(void *to, const void *from, size_t len);

#endif
