/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Datagrams that arrive. */
#ifndef DOFI_XPORT_UD_RECV_H
#define DOFI_XPORT_UD_RECV_H

#include "xport/ud/ud.h"

/* dofi_xport.recv: a receive stays in its slot until a datagram arrives. */
dofi_recv ud_fast_recv;

/* dofi_rdm.arrived of the endpoint of a PZ. CQ lock held. */
void ud_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		struct dofi_sink *sink);

/* dofi_progress_ops.completed of the CQ of rings: a datagram in an inbox. CQ lock held. */
void ud_ring_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* dofi_progress_ops.poll of the CQ of rings. */
dofi_polled ud_ring_poll;

#endif
