/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An EP that is connected to a peer of the test, and the frames between them. */

#include "xport/coupled.h"

struct peer peer;
DAT_EP_HANDLE ep;
unsigned char theirs[BIG];

void fill(unsigned char bytes[BIG], unsigned step)
{
	size_t i;

	for (i = 0; i < BIG; i++)
		bytes[i] = (unsigned char)(i * step + i / 256);
}

static void init_on(const char *provider)
{
	rdm_init_on(provider);
	ep = ep_make();
	peer_couple(&peer, ep);
	fill(theirs, 5);
}

void coupled_init(void)
{
	init_on("shm");
}

void coupled_init_apart(void)
{
	struct dofi_cm_msg request;

	rdm_init();
	ep = ep_make();
	request = peer_msg(&peer, DOFI_CM_REQUEST);
	request.alive_addr = 0x10;
	peer.blind = true;
	peer_couple_as(&peer, ep, &request, false);
	fill(theirs, 5);
}

void coupled_init_sockets(void)
{
	init_on("sockets");
}

void couple_narrow(uint32_t window)
{
	struct dofi_cm_msg request = peer_msg(&peer, DOFI_CM_REQUEST);

	ep = ep_make();
	request.window = window;
	peer_couple_as(&peer, ep, &request, true);
	fill(big, 7);
}

bool names(const struct rdm_frame *f, uint32_t i, const void *at, size_t length)
{
	return f->segment[i].iov_base == at && f->segment[i].iov_len == length;
}

bool all_zero(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	while (n && !*p)
		p++, n--;
	return !n;
}

/* The program */

const DAT_COMPLETION_FLAGS plain = DAT_COMPLETION_DEFAULT_FLAG;

void receive_with(DAT_EP_HANDLE with, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);

	succeed(dofi_ep_post_recv(with, 1, &iov, cookie_of(cookie), plain));
}

void receive(size_t offset, size_t length, uint64_t cookie)
{
	receive_with(ep, offset, length, cookie);
}

void got(uint64_t cookie, uint64_t length)
{
	done(cookie);
	cr_expect_eq(done_length, length);
}

void post_send(size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);

	succeed(dofi_ep_post_send(ep, 1, &iov, cookie_of(cookie), plain));
}

void post_write(size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);
	const DAT_RMR_TRIPLET to = remote_of(THEIR_KEY, (uintptr_t)theirs, length);

	succeed(dofi_ep_post_rdma_write(ep, 1, &iov, cookie_of(cookie), &to, plain));
}

void post_read(size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);
	const DAT_RMR_TRIPLET from = remote_of(THEIR_KEY, (uintptr_t)theirs, length);

	succeed(dofi_ep_post_rdma_read(ep, 1, &iov, cookie_of(cookie), &from, plain));
}

void done(uint64_t cookie)
{
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), cookie);
}

void breaks(void)
{
	done_await(evd, DAT_DTO_ERR_FLUSHED);
	peer_sees_break(&peer);
}

/* The peer */

void say(const void *bytes, size_t n)
{
	const struct rdm_frame f = peer_frame(&peer, RDM_FRAME_SEND);

	peer_send(&peer, &f, bytes, n);
}

struct rdm_frame about(enum rdm_frame_kind kind, uint32_t number)
{
	struct rdm_frame f = peer_frame(&peer, kind);

	f.number = number;
	return f;
}

struct rdm_frame announcement(uint32_t number, const void *at, size_t length)
{
	struct rdm_frame f = about(RDM_FRAME_RTS, number);

	f.length = length;
	f.segment[f.n_segments++] = (struct iovec){ (void *)(uintptr_t)at, length };
	return f;
}

void answer(uint32_t number, const void *data, size_t size)
{
	const struct rdm_frame f = about(RDM_FRAME_ACK, number);

	peer_send(&peer, &f, data, size);
}

void forgive(DAT_EP_HANDLE handle)
{
	struct dofi_ep *e = handle;

	dofi_mutex_lock(&e->lock);
	if (e->conn)
		rdm_conn_of(e)->refused = false;
	dofi_mutex_unlock(&e->lock);
}

const struct peer_frame *answered(uint32_t number, enum rdm_result result)
{
	const struct peer_frame *a = peer_take(&peer, RDM_FRAME_ACK);

	cr_expect_eq(a->frame.number, number);
	cr_expect_eq(a->frame.key, (uint32_t)result, "%u", a->frame.key);
	forgive(ep);
	return a;
}

void give_credits(uint16_t n)
{
	struct rdm_frame f = peer_frame(&peer, RDM_FRAME_CREDIT);

	f.credits = n;
	peer_send(&peer, &f, NULL, 0);
}
