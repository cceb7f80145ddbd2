/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data that accompanies a message: immediate data, and instructions for the receiver. */
#ifndef DOFI_OBJ_CQ_DATA_H
#define DOFI_OBJ_CQ_DATA_H

#include <stdbool.h>
#include <stdint.h>

/*
 * 64 bits that go with a message: as remote CQ data where the fabric has 64 bits of that, or in the
 * preamble of a message to an endpoint of an SRQ. The upper half has a kind and a flag, the lower
 * half a value; 0 is no data. A write completes no receive of the fabric, so a write with immediate
 * data is followed by an empty message with the length of the write in its upper bits.
 */
enum dofi_cq_data_kind {
	DOFI_CQ_DATA_PLAIN = 0,		/* a message that has at most the flag */
	DOFI_CQ_DATA_INVALIDATE = 1,	/* a message: the context to be invalidated */
	DOFI_CQ_DATA_IMMED = 2,		/* a message: its immediate data */
	DOFI_CQ_DATA_WRITE_IMMED = 3,	/* a message of no bytes: the immediate data of a write */
};

#define DOFI_CQ_DATA_KIND_MASK UINT64_C(3)
#define DOFI_CQ_DATA_SOLICITED UINT64_C(4)	/* DAT_COMPLETION_SOLICITED_WAIT_FLAG of the send */
#define DOFI_CQ_DATA_LENGTH_SHIFT 35

static inline uint64_t dofi_cq_data(enum dofi_cq_data_kind kind, bool solicited, uint32_t length,
				   uint32_t value)
{
	return (uint64_t)length << DOFI_CQ_DATA_LENGTH_SHIFT |
	       (kind | (solicited ? DOFI_CQ_DATA_SOLICITED : 0)) << 32 | value;
}

static inline enum dofi_cq_data_kind dofi_cq_data_kind(uint64_t data)
{
	return (enum dofi_cq_data_kind)(data >> 32 & DOFI_CQ_DATA_KIND_MASK);
}

static inline bool dofi_cq_data_solicited(uint64_t data)
{
	return data >> 32 & DOFI_CQ_DATA_SOLICITED;
}

static inline uint32_t dofi_cq_data_length(uint64_t data)
{
	return (uint32_t)(data >> DOFI_CQ_DATA_LENGTH_SHIFT);
}

#endif
