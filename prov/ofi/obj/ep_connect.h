/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: the consumer's calls on a connection: connect, duplicate, disconnect, reset. */
#ifndef DOFI_OBJ_EP_CONNECT_H
#define DOFI_OBJ_EP_CONNECT_H

#include "obj/ep.h"

DAT_RETURN dofi_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
			   DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT data_size,
			   const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data);
#endif
DAT_RETURN dofi_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE dup_handle,
			       DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data,
			       DAT_QOS qos);
DAT_RETURN dofi_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags);
DAT_RETURN dofi_ep_reset(DAT_EP_HANDLE ep_handle);

#endif
