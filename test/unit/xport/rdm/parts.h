/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames of the peer for rendezvous messages, and receives that may get them. */
#ifndef UNIT_XPORT_RDM_PARTS_H
#define UNIT_XPORT_RDM_PARTS_H

#include "xport/coupled.h"

#include "obj/caps.h"

static inline void send_rts(uint32_t number, const void *at, size_t length)
{
	const struct rdm_frame f = announcement(number, at, length);

	peer_send(&peer, &f, NULL, 0);
}

static uint32_t part_number;		/* the number of the DATA frames, from the last CTS */

static struct peer second;
static DAT_EP_HANDLE second_ep;
static DAT_SRQ_HANDLE srq;

static inline DAT_EP_HANDLE ep_of_srq(void)
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE handle;

	cr_assert_eq(dofi_caps_ep_attr(ia, NULL, &attr), 0);
	attr.srq_soft_hw = DAT_HW_DEFAULT;
	succeed(dofi_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &handle));
	return handle;
}

static inline void init_srq(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT,
	};

	rdm_init();
	succeed(dofi_srq_create(ia, pz, &attr, &srq));
	ep = ep_of_srq();
	second_ep = ep_of_srq();
	peer_couple(&peer, ep);
	peer_couple(&second, second_ep);
	fill(theirs, 5);
	part_number = 0;
}

static inline void lend(size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = big_segment(offset, length);
	const DAT_DTO_COOKIE c = { .as_64 = cookie };

	succeed(dofi_srq_post_recv(srq, 1, &iov, c));
}

#endif
