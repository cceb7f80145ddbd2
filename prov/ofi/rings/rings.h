/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric of our own for peers on the same host, with libfabric's interface: a domain and a
 * completion queue. Its completions are the frames in a set of rings.
 *
 * fab/cq_read.c reads this queue like any other; dofi_rings_poll() is a fast path. The queue has no
 * descriptor: dofi_rings_sleep_begin() makes peers wake a sleeping thread.
 */
#ifndef DOFI_RINGS_RINGS_H
#define DOFI_RINGS_RINGS_H

#include "fab/cq.h"
#include "fab/info.h"
#include "rings/link.h"

#include <rdma/fi_endpoint.h>

/* info->fabric_attr->prov_name */
#define DOFI_RINGS_NAME "rings"

/* The fabric: info->fabric_attr->fabric. Its domain ignores the fi_info. */
extern struct fid_fabric dofi_rings_fabric;

/* Returns whether only shared memory is requested: provider=shm without endpoint=rdm. */
bool dofi_rings_are_named(const struct dofi_params *params);

/*
 * As dofi_fabric_choose(), for an IA without another fabric. Returns 0, -ENOMEM, or -ENODATA
 * (logged) if FI_PROVIDER excludes shm, or @params have another domain, endpoint or host.
 */
int dofi_rings_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice);

/* Like dofi_rings_choose(), for an IA with another fabric for other hosts. Nothing is logged. */
int dofi_rings_choose_beside(struct dofi_fabric_choice *choice);

/* Whether @choice is of this fabric. */
bool dofi_is_rings(const struct dofi_fabric_choice *choice);

/*
 * The set of rings behind a completion queue. Its completions lead to the users of the links:
 * dofi_rings_completed().
 */
struct dofi_rings;

/* dofi_progress_ops.completed and poll of the CQ. */
dofi_completed dofi_rings_completed;
dofi_polled dofi_rings_poll;

struct dofi_rings *dofi_rings_of(const struct dofi_cq *cq);

/* Returns the endpoint of all connections of the set, which has no functions. */
struct fid_ep *dofi_rings_ep(struct dofi_rings *rings);

/* Returns the word by which peers wake a leader of the CQ; valid while the CQ is open. */
const struct dofi_lead_word *dofi_rings_lead(const struct dofi_rings *rings);

/* Stores the name of the bell by which peers wake this process, before a peer has the page. */
void dofi_rings_set_bell(struct dofi_rings *rings, const struct dofi_bell *bell);

/* Returns the descriptor of the doorbell for peers, which is open while the CQ is. */
int dofi_rings_doorbell(const struct dofi_rings *rings);

/* Adds @link, which has its user. CQ lock held. Returns 0 or -ENOMEM. */
int dofi_rings_add(struct dofi_rings *rings, struct dofi_link *link);
void dofi_rings_remove(struct dofi_rings *rings, struct dofi_link *link);

/* Returns whether a peer has ended a link since the last call, see dofi_link_end(). Any thread. */
bool dofi_rings_took_end(struct dofi_rings *rings);

/* From now on peers that send wake the thread. Call, read until the CQ is empty, then sleep. */
void dofi_rings_sleep_begin(struct dofi_rings *rings);
void dofi_rings_sleep_end(struct dofi_rings *rings);

#endif
