/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer's memory that the transport may write to. Includes no DAT header, because the parser of
 * private data is compiled without a DAT version.
 */
#ifndef DOFI_OBJ_MAILBOX_H
#define DOFI_OBJ_MAILBOX_H

#include <stdint.h>

/* Key 0 if there is none. */
struct dofi_mailbox {
	uint64_t addr;
	uint32_t key;
	uint32_t id;			/* the peer's name for it */
};

#endif
