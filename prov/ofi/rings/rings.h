/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric of our own for peers on the same host, as libfabric would show it: a domain and a
 * completion queue whose completions are the frames that wait in a set of rings.
 *
 * So fab/cq.c reads this queue like any other. It has no descriptor: a thread that sleeps on it
 * is woken as dofi_rings_sleep_begin() says. Connections are made and kept by the transport, each
 * with a link (rings/link.h).
 */
#ifndef DOFI_RINGS_RINGS_H
#define DOFI_RINGS_RINGS_H

#include "fab/cq.h"
#include "fab/info.h"
#include "fab/lead.h"
#include "rings/link.h"

#include <rdma/fi_endpoint.h>

/* What info->fabric_attr->prov_name is. */
#define DOFI_RINGS_NAME "rings"

/* For fi_domain(), which needs no fi_info here. */
extern struct fid_fabric dofi_rings_fabric;

/*
 * Describes the fabric as dofi_fabric_choose() would. 0, -ENOMEM, or -ENODATA if the user keeps
 * the process from shared memory by FI_PROVIDER: the list there must have, or not exclude, shm.
 * dofi_fabric_release() undoes it.
 */
int dofi_rings_choose(struct dofi_fabric_choice *choice);

/*
 * Completions of the queue: op_context is the link, buf and len the frame in the ring, and data
 * is for dofi_rings_release(), in their order. A link whose peer broke the ring completes once,
 * with no buf.
 */
struct dofi_rings;

struct dofi_rings *dofi_rings_of(const struct dofi_cq *cq);

/*
 * Stands for all connections of the set where libfabric has an endpoint; nothing is called
 * there.
 */
struct fid_ep *dofi_rings_ep(struct dofi_rings *rings);

/* What peers wake a leader of the CQ by; as long as the CQ is open. */
const struct dofi_lead_word *dofi_rings_lead(const struct dofi_rings *rings);

/* The descriptor of the doorbell for peers, open as long as the CQ. */
int dofi_rings_doorbell(const struct dofi_rings *rings);

/* CQ lock held, for these three. 0 or -ENOMEM. */
int dofi_rings_add(struct dofi_rings *rings, struct dofi_link *link);
void dofi_rings_remove(struct dofi_rings *rings, struct dofi_link *link);

static inline void dofi_rings_release(const struct fi_cq_data_entry *entry)
{
	dofi_ring_release(&((struct dofi_link *)entry->op_context)->in, entry->data);
}

/*
 * The owner is about to sleep: from here on a peer that sends wakes it. All rings are to be
 * read once more after this, and the next reads do so. Any thread.
 */
void dofi_rings_sleep_begin(struct dofi_rings *rings);
void dofi_rings_sleep_end(struct dofi_rings *rings);

#endif
