/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory of a peer that its transport may write to. */
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
