/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connected transport: endpoints that the fabric takes its time to open.
 *
 * Verbs looks for the way to the peer within fi_endpoint, and waits up to two seconds for it. So
 * that nothing else of the IA waits, too, such calls have threads of their own, and the progress
 * thread goes on when they are done. All of the below is for the progress thread alone.
 */
#ifndef DOFI_XPORT_MSG_OPEN_H
#define DOFI_XPORT_MSG_OPEN_H

#include "obj/ep.h"

/* fi_endpoint returned @ret, and @fid if that is 0. @info is not its own. */
typedef void msg_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret);

/*
 * Opens an endpoint of @ep's PZ as @info says, which it takes over, and tells @opened: at once,
 * or later where opening takes time (ep->opening).
 */
void msg_open(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened);

/* @ep waits no more for what is being opened, if anything is; that will be closed. */
void msg_open_cancel(struct dofi_ep *ep);

/* dofi_xport.pz_close: waits for what is being opened there, for nobody. */
void msg_open_pz_close(struct dofi_pz *pz);

#endif
