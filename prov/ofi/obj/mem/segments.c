/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The segments of a post, checked and copied to a slot. */

#include "obj/mem/segments.h"

#include "obj/mem/lmr.h"

/* Checks a segment of @pz and of at most @most bytes, and appends it to the slot's. */
static inline DAT_RETURN load_segment(const struct dofi_pz *pz, uint64_t most, struct dofi_dto *dto,
				      DAT_MEM_PRIV_FLAGS priv, const DAT_LMR_TRIPLET *s)
{
	struct dofi_lmr *lmr;
	DAT_RETURN ret;

	lmr = dofi_lmr_find(s->lmr_context, s->virtual_address, s->segment_length, pz, priv, &ret);
	if (__builtin_expect(!lmr, 0))
		return ret;
	if (__builtin_expect(s->segment_length > most, 0))
		return DOFI_RET(DAT_LENGTH_ERROR, 0);
	dto->iov[dto->n_iov] = (struct iovec){ dofi_lmr_memory(lmr, s->virtual_address),
					       s->segment_length };
	dto->desc[dto->n_iov] = lmr->desc;
	dofi_dto_contexts(dto)[dto->n_iov] = s->lmr_context;
	dto->n_iov++;
	return DAT_SUCCESS;
}

/* Makes any number of segments, together of @most bytes, the slot's. */
static __attribute__((noinline)) DAT_RETURN load_many(const struct dofi_pz *pz, uint64_t most,
						      struct dofi_dto *dto, DAT_MEM_PRIV_FLAGS priv,
						      DAT_COUNT n, const DAT_LMR_TRIPLET *iov)
{
	uint64_t left = most;
	DAT_RETURN ret;
	DAT_COUNT i;

	dto->n_iov = 0;
	for (i = 0; i < n; i++) {
		if (!iov[i].segment_length)
			continue;
		/* compares with the rest, as a sum could wrap: in 1.2 lengths have 64 bits */
		ret = load_segment(pz, left, dto, priv, &iov[i]);
		if (ret)
			return ret;
		left -= iov[i].segment_length;
	}
	dto->length = most - left;
	return DAT_SUCCESS;
}

DAT_RETURN dofi_dto_load(struct dofi_dto *dto, const struct dofi_pz *pz, uint64_t most, DAT_COUNT n,
			 const DAT_LMR_TRIPLET *iov)
{
	const DAT_MEM_PRIV_FLAGS priv =
		dofi_dto_is(dto->kind, DOFI_DTO_READS | 1u << DOFI_DTO_RECV) ?
			DAT_MEM_PRIV_LOCAL_WRITE_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG;

	if (__builtin_expect(n != 1 || !iov->segment_length, 0))
		return load_many(pz, most, dto, priv, n, iov);
	dto->n_iov = 0;
	dto->length = iov->segment_length;
	return load_segment(pz, most, dto, priv, iov);
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
