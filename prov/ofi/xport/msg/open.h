/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: opening endpoints where that takes time.
 *
 * Verbs resolves the route to the peer within fi_endpoint, and waits up to two seconds for it. Such
 * calls have threads of their own, so that the progress thread can serve the IA meanwhile; it
 * continues when the call has returned. Progress thread only.
 */
#ifndef DOFI_XPORT_MSG_OPEN_H
#define DOFI_XPORT_MSG_OPEN_H

#include "obj/ep.h"

/* Callback: fi_endpoint returned @ret, and @fid if that is 0. Does not own @info. */
typedef void msg_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret);

/*
 * Opens an endpoint in @ep's PZ with @info, which it takes over, and calls @opened: at once, or
 * later where opening takes time (ep->opening).
 */
void msg_open(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened);

/* Cancels the opening for @ep, if there is one; its endpoint will be closed. */
void msg_open_cancel(struct dofi_ep *ep);

/* dofi_xport.pz_close: waits for openings in @pz, which were all cancelled. */
void msg_open_pz_close(struct dofi_pz *pz);

#endif
