/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The segments of a post, checked and copied to a slot. */

#include "obj/mem/segments.h"

#include "obj/mem/lmr.h"

DAT_RETURN dofi_dto_load(struct dofi_dto *dto, const struct dofi_pz *pz, uint64_t most, DAT_COUNT n,
			 const DAT_LMR_TRIPLET *iov)
{
	const DAT_MEM_PRIV_FLAGS priv =
		dofi_dto_is(dto->kind, DOFI_DTO_READS | 1u << DOFI_DTO_RECV) ?
			DAT_MEM_PRIV_LOCAL_WRITE_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG;
	uint32_t *context = dofi_dto_contexts(dto);
	struct iovec *to = dto->iov;
	void **desc = dto->desc;
	uint64_t left = most;

	for (; n; n--, iov++) {
		const uint64_t addr = iov->virtual_address, len = iov->segment_length;
		const struct dofi_lmr *lmr;

		if (!len)
			continue;
		lmr = dofi_lmr_at(iov->lmr_context);
		if (__builtin_expect(!dofi_lmr_allows(lmr, addr, len, pz, priv), 0))
			return dofi_lmr_refusal(lmr, addr, len, pz, priv);
		/* compares with the rest, as a sum could wrap: in 1.2 lengths have 64 bits */
		if (__builtin_expect(len > left, 0))
			return DOFI_RET(DAT_LENGTH_ERROR, 0);
		left -= len;
		*to++ = (struct iovec){ dofi_lmr_memory(lmr, addr), len };
		*desc++ = lmr->desc;
		*context++ = iov->lmr_context;
	}
	dto->n_iov = (uint8_t)(to - dto->iov);
	dto->length = most - left;
	return DAT_SUCCESS;
}

void dofi_dto_trim(struct dofi_dto *dto, uint64_t length)
{
	uint64_t left = length;
	uint8_t i;

	for (i = 0; i < dto->n_iov && left; i++) {
		if (dto->iov[i].iov_len > left)
			dto->iov[i].iov_len = left;
		left -= dto->iov[i].iov_len;
	}
	dto->n_iov = i;
	dto->length = length;
}
