/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mailboxes: atomic operations over connections that lack them, and goodbyes. */

#include "xport/msg/msg.h"

#include "base/log.h"
#include "obj/ep/ep_dto.h"
#include "obj/mem/lmr.h"

#include <endian.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stddef.h>
#include <string.h>

/* A request. All numbers are big-endian. */
struct request {
	uint32_t number;
	uint32_t key;
	uint64_t addr;
	uint64_t operand;
	uint64_t compare;
	uint64_t swap;			/* 1: compare and swap, 0: fetch and add */
};

struct reply {
	uint32_t number;
	uint32_t refused;		/* 1: the memory may not be used that way */
	uint64_t old;
};

struct msg_mail {
	/* written by the peer */
	struct {
		struct request request[MSG_MAIL_SLOTS];
		struct reply reply[MSG_MAIL_SLOTS];
	} in;

	struct dofi_mr mr;		/* registration of the mailbox */
	/* protected by the EP lock */
	/* number of our last request, and of the last reply to us */
	uint32_t asked, answered;
	/* number of the peer's last request that was carried out, and of our last reply */
	uint32_t served, replied;
	struct dofi_dto *dto[MSG_MAIL_SLOTS];
	struct reply reply[MSG_MAIL_SLOTS]; /* replies that are still to be sent */
};

/* The key of a mailbox without memory, which has a number alone. No memory is at address 0. */
#define NO_KEY 1

static unsigned slot(uint32_t number)
{
	return number % MSG_MAIL_SLOTS;
}

bool msg_mail_offered(const struct dofi_ia *ia)
{
	return DAT_VERSION_MAJOR >= 2 && ia->fabric.cq_data;
}

/* Where the fabric sends goodbyes, an EP without a mailbox has a number alone. */
int msg_mail_open(struct dofi_ep *ep, struct msg_mail **mail, struct dofi_mailbox *own)
{
	const bool sends_bye = ep->obj.ia->fabric.sends_bye;
	struct msg_mail *m = NULL;
	struct dofi_mr_request memory = { .len = sizeof(m->in), .remote = FI_REMOTE_WRITE };
	int ret;

	*own = (struct dofi_mailbox){ .key = sends_bye ? NO_KEY : 0 };
	if (msg_mail_offered(ep->obj.ia)) {
		m = dofi_block_get(sizeof(*m));
		if (!m)
			return -ENOMEM;
		memory.addr = &m->in;
		ret = dofi_mr_open(&ep->pz->domain, &memory, &m->mr);
		if (ret) {
			dofi_block_put(m, sizeof(*m));
			return ret;
		}
		own->addr = (uintptr_t)&m->in;
		own->key = m->mr.key;
	}
	if (own->key)
		own->id = dofi_pool_index(ep) | (sends_bye ? MSG_SENDS_BYE : 0);
	*mail = m;
	return 0;
}

void msg_mail_close(struct msg_mail *mail)
{
	int ret;

	if (!mail)
		return;
	ret = dofi_mr_close(&mail->mr);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_CM, "closing a mailbox: %s", fi_strerror(-ret));
	dofi_block_put(mail, sizeof(*mail));
}

/* Writes to the peer's mailbox. The write is injected, and has no completion. */
static int post(struct dofi_ep *ep, const void *letter, size_t size, size_t offset)
	DOFI_NEEDS(ep->lock)
{
	const struct dofi_mailbox *to = &ep->mailbox;

	return (int)fi_inject_writedata(ep->fid, letter, size, to->id, 0, to->addr + offset,
					to->key);
}

int msg_mail_submit(struct dofi_ep *ep, struct dofi_dto *dto)
{
	struct msg_mail *m = msg_part(ep)->mail;
	uint32_t number = m->asked + 1;
	const struct request request = {
		.number = htobe32(number),
		.key = htobe32(dto->remote_key),
		.addr = htobe64(dto->remote_addr),
		.operand = htobe64(dto->operand),
		.compare = htobe64(dto->compare),
		.swap = htobe64(dto->kind == DOFI_DTO_CMP_SWAP),
	};
	int ret;

	dofi_mutex_assert_held(&ep->lock);
	if (m->asked - m->answered == MSG_MAIL_SLOTS)
		return -FI_EAGAIN;
	ret = post(ep, &request, sizeof(request),
		   offsetof(struct msg_mail, in.request[slot(number)]));
	if (ret)
		return ret;
	m->asked = number;
	m->dto[slot(number)] = dto;
	ep->atomics++;
	return 0;
}

void msg_mail_resume(struct dofi_ep *ep)
{
	struct msg_mail *m = msg_part(ep)->mail;

	dofi_mutex_assert_held(&ep->lock);
	/* requests that arrive before the connection is established are answered after that */
	while (ep->sq.open && m->replied != m->served) {
		unsigned p = slot(m->replied + 1);

		if (post(ep, &m->reply[p], sizeof(m->reply[p]),
			 offsetof(struct msg_mail, in.reply[p])))
			break;
		m->replied++;
	}
	if (ep->resume_pending != (m->replied != m->served)) {
		ep->resume_pending = !ep->resume_pending;
		dofi_ep_open_queues(ep);
	}
	if (ep->resume_pending && ep->sq.open)
		dofi_cq_stall(ep->cq, &ep->stall);
}

static void take_requests(struct dofi_ep *ep) DOFI_NEEDS(ep->lock)
{
	struct msg_mail *m = msg_part(ep)->mail;

	while (m->served - m->replied < MSG_MAIL_SLOTS) {
		/* a copy: the peer may overwrite the request at any time */
		const struct request r = m->in.request[slot(m->served + 1)];
		const struct dofi_atomic atomic = {
			.addr = be64toh(r.addr), .operand = be64toh(r.operand),
			.compare = be64toh(r.compare), .key = be32toh(r.key),
			.swap = be64toh(r.swap) != 0,
		};
		uint64_t old = 0;
		int ret;

		if (be32toh(r.number) != m->served + 1)
			break;
		ret = dofi_lmr_atomic(ep->pz, &atomic, &old);
		m->reply[slot(++m->served)] = (struct reply){
			.number = r.number, .refused = htobe32(ret != 0), .old = htobe64(old),
		};
	}
	msg_mail_resume(ep);
}

static void take_replies(struct dofi_ep *ep, struct dofi_sink *sink) DOFI_NEEDS(ep->lock)
{
	struct msg_mail *m = msg_part(ep)->mail;

	while (m->answered != m->asked) {
		const struct reply r = m->in.reply[slot(m->answered + 1)];
		uint64_t old = be64toh(r.old);
		struct dofi_dto *dto;

		if (be32toh(r.number) != m->answered + 1)
			break;
		dto = m->dto[slot(++m->answered)];
		ep->atomics--;
		if (!r.refused)
			memcpy(dto->iov[0].iov_base, &old, sizeof(old));
		dofi_dto_end(ep, dto, r.refused ? FI_EACCES : 0, sink);
	}
}

/* Remote CQ data with a secret is a goodbye. */
void msg_mail_arrived(uint64_t data, struct dofi_sink *sink)
{
	const uint32_t secret = data >> 32;
	struct dofi_ep *ep = dofi_pool_at(&dofi_ep_pool, (uint32_t)data & ~MSG_SENDS_BYE);

	if (!ep)
		return;
	dofi_mutex_lock(&ep->lock);
	if (secret) {
		msg_part(ep)->got_bye |= ep->secret == secret;
	} else if (msg_part(ep)->mail) {
		take_requests(ep);
		take_replies(ep, sink);
	}
	dofi_mutex_unlock(&ep->lock);
}

/* Goodbyes */

void msg_bye_learn(struct dofi_ep *ep, const struct dofi_mailbox *peers)
{
	dofi_mutex_assert_held(&ep->lock);
	ep->mailbox = *peers;
	if (!ep->mailbox.addr)
		ep->mailbox.key = 0;
	msg_part(ep)->sends_bye = ep->obj.ia->fabric.sends_bye && ep->mailbox.id & MSG_SENDS_BYE;
}

/* How often the goodbye is tried; a read of the CQ after each refusal may free space. */
#define BYE_TRIES 1000

/* The data is the number, and above it the secret, which peers of other connections do not know. */
void msg_bye_send(struct dofi_ep *ep, struct fid_ep *fid)
{
	static const struct iovec nothing;
	static const struct fi_rma_iov nowhere;
	const uint32_t number = ep->mailbox.id & ~MSG_SENDS_BYE;
	const struct fi_msg_rma msg = {
		.msg_iov = &nothing, .rma_iov = &nowhere,
		.data = (uint64_t)ep->peer_secret << 32 | number,
	};
	ssize_t ret;
	int i;

	for (i = 0; i < BYE_TRIES; i++) {
		dofi_cq_lock_access(ep->cq);
		ret = fi_writemsg(fid, &msg, FI_INJECT | FI_REMOTE_CQ_DATA);
		dofi_cq_unlock_access(ep->cq);
		if (ret != -FI_EAGAIN)
			break;
		dofi_cq_drain(ep->cq);
	}
	if (ret)
		dofi_ep_log(ep, DOFI_INFO, DOFI_CM, "no goodbye: %s", fi_strerror((int)-ret));
}
