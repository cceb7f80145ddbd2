/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint states: one row each. dofi_ep_state_set() changes them. */
#ifndef DOFI_OBJ_EP_STATE_H
#define DOFI_OBJ_EP_STATE_H

#include "obj/obj.h"

/* What a state allows, and what it means. */
enum {
	DOFI_EP_MAY_REQUEST = 1 << 0,	/* sends and RDMA are accepted */
	DOFI_EP_MAY_FREE = 1 << 1,
	DOFI_EP_HAS_PEER = 1 << 2,	/* the remote address is meaningful */
	DOFI_EP_IS_LIVE = 1 << 3,	/* a connection is being made, used or ended */
};

struct dofi_ep_state {
	const char *name;
	unsigned may;
	uint32_t next;			/* bits of the states that may follow */
	/* the subtype of DAT_INVALID_STATE when the state forbids a call */
	DAT_RETURN_SUBTYPE error;
};

extern const struct dofi_ep_state dofi_ep_states[];

static inline const struct dofi_ep_state *dofi_ep_state_row(DAT_EP_STATE state)
{
	return &dofi_ep_states[state];
}

#endif
