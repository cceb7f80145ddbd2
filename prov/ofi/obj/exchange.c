/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exchange of addresses: what its event reports. */

#include "obj/exchange.h"

#include <string.h>

struct dofi_pool dofi_exchange_pool = DOFI_POOL_INIT("exchange", struct dofi_exchange, NULL);

#if DAT_VERSION_MAJOR >= 2
static void peer_fill(DAT_IB_EXTENSION_EVENT_DATA *extension, struct dofi_exchange *x)
{
	extension->type = (DAT_IB_EXT_TYPE)x->type;
	extension->status = x->ah ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
	extension->remote_ah.ah = x->ah;
	extension->remote_ah.qpn = x->number;
	memcpy(&extension->remote_ah.ia_addr, &x->peer, sizeof(extension->remote_ah.ia_addr));
	extension->context.as_ptr = x;
}

void dofi_exchange_extend(DAT_EVENT *event, uint32_t index)
{
	DAT_IB_EXTENSION_EVENT_DATA extension = { .type = DAT_IB_UD_CONNECT_REQUEST };
	struct dofi_exchange *x;

	if (event->event_number != (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT) {
		x = dofi_pool_at(&dofi_exchange_pool, index);
		peer_fill(&extension, x);
		atomic_store_explicit(&x->taken, true, memory_order_relaxed);
	}
	memcpy(event->event_extension_data, &extension, sizeof(extension));
}
#endif
