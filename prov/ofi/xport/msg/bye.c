/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: how an orderly end differs from a lost connection. */

#include "xport/msg/msg.h"

#include "base/log.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* The key of a mailbox without memory, which has a number alone. No memory is at address 0. */
#define NO_KEY 1

void msg_bye_offer(const struct dofi_ep *ep, struct dofi_mailbox *own)
{
	if (!ep->obj.ia->fabric.sends_bye)
		return;
	if (!own->key)
		*own = (struct dofi_mailbox){ .key = NO_KEY, .id = dofi_pool_index(ep) };
	own->id |= MSG_SENDS_BYE;
}

void msg_bye_learn(struct dofi_ep *ep, const struct dofi_mailbox *peers)
{
	dofi_ep_assert_locked(ep);
	ep->mailbox = *peers;
	if (!ep->mailbox.addr)
		ep->mailbox.key = 0;
	ep->sends_bye = ep->obj.ia->fabric.sends_bye && ep->mailbox.id & MSG_SENDS_BYE;
}

/* The number, and above it the secret, which peers of other connections do not know. */
static uint64_t bye_data(uint32_t secret, uint32_t number)
{
	return (uint64_t)secret << 32 | (number & ~MSG_SENDS_BYE);
}

/* How often the goodbye is tried; a read of the CQ after each refusal may make room. */
#define BYE_TRIES 1000

void msg_bye_send(struct dofi_ep *ep, struct fid_ep *fid)
{
	static const struct iovec nothing;
	static const struct fi_rma_iov nowhere;
	const struct fi_msg_rma msg = {
		.msg_iov = &nothing, .rma_iov = &nowhere,
		.data = bye_data(ep->peer_secret, ep->mailbox.id),
	};
	ssize_t ret;
	int i;

	for (i = 0; i < BYE_TRIES; i++) {
		dofi_cq_enter(ep->cq);
		ret = fi_writemsg(fid, &msg, FI_INJECT | FI_REMOTE_CQ_DATA);
		dofi_cq_exit(ep->cq);
		if (ret != -FI_EAGAIN)
			break;
		dofi_cq_drain(ep->cq);
	}
	if (ret)
		dofi_log(DOFI_INFO, DOFI_CM, "ep %p: no goodbye: %s", (void *)ep,
			 fi_strerror((int)-ret));
}

bool msg_bye_arrived(uint64_t data)
{
	const uint32_t secret = data >> 32;
	struct dofi_ep *ep = dofi_pool_at(&dofi_ep_pool, (uint32_t)data);

	if (!secret)
		return false;
	if (ep) {
		dofi_ep_lock(ep);
		ep->got_bye |= ep->secret == secret;
		dofi_ep_unlock(ep);
	}
	return true;
}
