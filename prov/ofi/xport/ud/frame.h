/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram as bytes. Pure functions.
 *
 *	byte 0     version: 0xd1
 *	byte 1     flags: UD_FRAME_IMMED, UD_FRAME_SOLICITED
 *	bytes 2-3  0
 *	bytes 4-7  number of the receiving EP
 *	8-15       key of the receiving PZ, which only its peers know
 *	16-19      immediate data, or 0
 *	then       the data
 *
 * Numbers are big-endian. A fabric may have a prefix of its own in front.
 */
#ifndef DOFI_XPORT_UD_FRAME_H
#define DOFI_XPORT_UD_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define UD_FRAME_HEADER 20

#define UD_FRAME_IMMED 1		/* has immediate data */
#define UD_FRAME_SOLICITED 2		/* the sender set the solicited flag */

struct ud_frame {
	uint8_t flags;
	uint32_t number;
	uint64_t key;
	uint32_t immed;
	const unsigned char *data;	/* of a received datagram */
	size_t size;
};

/* Packs all but the data behind @buf. */
void ud_frame_pack(unsigned char buf[UD_FRAME_HEADER], const struct ud_frame *frame);

/* Parses @len untrusted bytes, which @frame->data points into. 0 or -EPROTO. */
int ud_frame_unpack(const void *buf, size_t len, struct ud_frame *frame);

#endif
