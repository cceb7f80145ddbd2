/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replaces the system's random numbers with a test's. */

#include "fab/draw.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct draw draw;

ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	if (draw.zeros > 0) {
		draw.zeros--;
		memset(buf, 0, len);
		return len;
	}
	if (draw.fixed > 0) {
		draw.fixed--;
		memcpy(buf, &draw.number, sizeof(draw.number));
		return len;
	}
	if (draw.none || draw.interruptions > 0) {
		draw.interruptions--;
		errno = draw.none ? EIO : EINTR;
		return -1;
	}
	return __real_getrandom(buf, len, flags);
}
