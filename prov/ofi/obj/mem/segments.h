/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The segments of a post, checked and copied to a slot. */
#ifndef DOFI_OBJ_MEM_SEGMENTS_H
#define DOFI_OBJ_MEM_SEGMENTS_H

#include "obj/mem/pz.h"
#include "wq/dto.h"

/* @most bytes, or as many as a DAT length can express. */
static inline uint64_t dofi_segment_longest(uint64_t most)
{
	return most < (dofi_seg_length)-1 ? most : (dofi_seg_length)-1;
}

/*
 * Makes @iov, of @pz and of @most bytes together, the segments of @dto. Set the kind of @dto
 * before.
 */
DAT_RETURN dofi_dto_load(struct dofi_dto *dto, const struct dofi_pz *pz, uint64_t most, DAT_COUNT n,
			 const DAT_LMR_TRIPLET *iov);

/* Shortens @dto, which has at least @length bytes, to that. */
void dofi_dto_trim(struct dofi_dto *dto, uint64_t length);

#endif
