/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unpacks any bytes as a datagram. An accepted one must pack to its original bytes. */

#include "fuzz.h"
#include "xport/ud/frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char buf[UD_FRAME_HEADER];
	struct ud_frame f;

	if (ud_frame_unpack(bytes, len, &f))
		return 0;
	fuzz_expect(len >= UD_FRAME_HEADER);
	fuzz_expect(f.data == bytes + UD_FRAME_HEADER && f.size == len - UD_FRAME_HEADER);
	fuzz_expect(!(f.flags & ~(UD_FRAME_IMMED | UD_FRAME_SOLICITED)));
	fuzz_expect(!f.immed || f.flags & UD_FRAME_IMMED);
	ud_frame_pack(buf, &f);
	fuzz_expect(!memcmp(buf, bytes, sizeof(buf)));
	return 0;
}
