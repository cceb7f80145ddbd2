/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events for an EVD: software events that are numbered, and connection events. */
#ifndef UNIT_OBJ_EVD_ONE_H
#define UNIT_OBJ_EVD_ONE_H

#include "obj/fixture.h"

static inline void post_numbers(DAT_EVD_HANDLE to, uintptr_t first, unsigned n)
{
	while (n--)
		succeed(post_number(to, first++));
}

static inline void push_connection(DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep)
{
	struct dofi_event event = { .number = number };

	event.data.connect_event_data.ep_handle = ep;
	cr_assert_eq(dofi_evd_push(evd, &event), 0);
}

#endif
