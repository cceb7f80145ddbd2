/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes into and out of memory that is in pieces. */

#include "base/iov.h"

#include <stdbool.h>
#include <string.h>

/* How many of @len bytes at *@offset are in @piece, and where; else *@offset is what is left. */
static size_t part_of(const struct iovec *piece, size_t *offset, size_t len, void **at)
{
	size_t room;

	if (*offset >= piece->iov_len) {
		*offset -= piece->iov_len;
		return 0;
	}
	*at = (char *)piece->iov_base + *offset;
	room = piece->iov_len - *offset;
	*offset = 0;
	return len < room ? len : room;
}

/* What is short mostly is. */
static bool is_in_first(const struct iovec *iov, size_t n, size_t offset, size_t len)
{
	return n && len && !offset && len <= iov->iov_len;
}

size_t dofi_iov_scatter(const struct iovec *iov, size_t n, size_t offset, const void *from,
			size_t len)
{
	size_t done = 0, part, i;
	void *at;

	if (is_in_first(iov, n, offset, len)) {
		memcpy(iov->iov_base, from, len);
		return len;
	}
	for (i = 0; i < n && done < len; i++) {
		part = part_of(&iov[i], &offset, len - done, &at);
		if (part)
			memcpy(at, (const char *)from + done, part);
		done += part;
	}
	return done;
}

size_t dofi_iov_gather(void *to, const struct iovec *iov, size_t n, size_t offset, size_t len)
{
	size_t done = 0, part, i;
	void *at;

	if (is_in_first(iov, n, offset, len)) {
		memcpy(to, iov->iov_base, len);
		return len;
	}
	for (i = 0; i < n && done < len; i++) {
		part = part_of(&iov[i], &offset, len - done, &at);
		if (part)
			memcpy((char *)to + done, at, part);
		done += part;
	}
	return done;
}
