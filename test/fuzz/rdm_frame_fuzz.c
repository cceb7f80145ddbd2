/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unpacks any bytes as a frame of a connectionless fabric, with the header in front of the data
 * or in 64 bits of remote CQ data. An accepted frame must pack to its original bytes.
 */

#include "fuzz.h"
#include "xport/rdm/frame.h"

#include <string.h>

#define MOST (RDM_FRAME_FULL + RDM_FRAME_SEGMENTS * RDM_FRAME_SEGMENT)

/* Header and data fill the frame, and the segments add up to the operation's length. */
static void is_sound(const struct rdm_frame *f, const uint8_t *bytes, size_t len)
{
	const size_t head = rdm_frame_head(f);
	uint64_t sum = 0;
	uint32_t i;

	fuzz_expect(f->kind && f->kind < RDM_FRAME_KINDS && f->n_segments <= RDM_FRAME_SEGMENTS);
	fuzz_expect(head + f->data_size == len);
	fuzz_expect(!f->data_size || f->data == bytes + head);
	for (i = 0; i < f->n_segments; i++) {
		fuzz_expect(f->segment[i].iov_len <= f->length - sum);
		sum += f->segment[i].iov_len;
	}
	fuzz_expect(!f->n_segments || sum == f->length);
	fuzz_expect(f->kind != RDM_FRAME_FIRST || (f->data_size && f->data_size < f->length));
	fuzz_expect(f->kind != RDM_FRAME_MORE || f->data_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char buf[MOST];
	struct rdm_frame f = { .kind = 0 };
	size_t packed;

	if (rdm_frame_unpack(bytes, len, &f))
		return 0;
	is_sound(&f, bytes, len);
	packed = rdm_frame_pack(buf, &f);
	fuzz_expect(packed + f.data_size == len);
	fuzz_expect(!memcmp(buf, bytes, packed));
	return 0;
}
