/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unpacks any bytes as a CM message; an accepted message must be unchanged after packing and
 * unpacking.
 */

#include "fuzz.h"
#include "xport/cm/wire.h"

#include <string.h>

static void same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	fuzz_expect(a_len == b_len && (!a_len || !memcmp(a, b, a_len)));
}

static void same(struct dofi_cm_msg *a, struct dofi_cm_msg *b)
{
	same_bytes(a->addr, a->addr_len, b->addr, b->addr_len);
	same_bytes(a->data, a->data_size, b->data, b->data_size);
	a->addr = b->addr = a->data = b->data = NULL;
	fuzz_expect(!memcmp(a, b, sizeof(*a)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char buf[DOFI_CM_MAX];
	struct dofi_cm_msg msg, again;
	ssize_t n = dofi_cm_unpack(bytes, len, &msg), size;

	/* a full buffer must not be reported as incomplete */
	fuzz_expect(n <= (ssize_t)len && (n || len < DOFI_CM_MAX));
	if (n <= 0)
		return 0;
	fuzz_expect(!dofi_cm_unpack(bytes, n - 1, &again));
	size = (ssize_t)dofi_cm_pack(buf, &msg);
	fuzz_expect(size <= DOFI_CM_MAX);
	fuzz_expect(dofi_cm_unpack(buf, size, &again) == size);
	same(&msg, &again);
	return 0;
}
