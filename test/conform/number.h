/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attribute members of 32 or 64 bits, which tables describe by offset and size. */

#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of a larger member, returns the first 32 bits. */
static inline uint64_t number_get(const void *base, size_t offset, size_t size)
{
	uint64_t wide;
	uint32_t narrow;

	if (size == sizeof(wide)) {
		memcpy(&wide, (const char *)base + offset, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const char *)base + offset, sizeof(narrow));
	return narrow;
}

static inline void number_set(void *base, size_t offset, size_t size, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	if (size == sizeof(value))
		memcpy((char *)base + offset, &value, sizeof(value));
	else
		memcpy((char *)base + offset, &narrow, sizeof(narrow));
}

#endif
