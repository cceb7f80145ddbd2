/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The requests of the InfiniBand extension. Only 2.0 programs can post them. */
#ifndef DOFI_OBJ_EP_EXT_H
#define DOFI_OBJ_EP_EXT_H

#include "obj/ep.h"
#include "obj/ep_post.h"

/*
 * Each posts @p as its name says. The subtype of a wrong argument is its position in
 * dat_extension_op(): the operation's first is the third there. DAT_MODEL_NOT_SUPPORTED if the
 * fabric, or for an atomic the peer, cannot do it.
 */
DAT_RETURN dofi_ep_post_send_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_write_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_fetch_add(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_cmp_swap(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
/*
 * Datagrams, to p->ah, which is read if the EP is a datagram EP; otherwise DAT_INVALID_HANDLE is
 * returned.
 */
DAT_RETURN dofi_ep_post_send_ud(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);
DAT_RETURN dofi_ep_post_send_ud_immed(DAT_EP_HANDLE ep_handle, const struct dofi_post *p);

#endif
