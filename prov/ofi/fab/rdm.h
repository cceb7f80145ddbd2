/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A domain's one connectionless endpoint: its address, its peers, the buffers of frames. */
#ifndef DOFI_FAB_RDM_H
#define DOFI_FAB_RDM_H

#include "fab/domain.h"

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* So many frames can arrive before one is looked at. */
#define DOFI_RDM_BUFFERS 64

/* So many are posted again at a time: each time costs a way through the gate (fab/gate.h). */
#define DOFI_RDM_TOGETHER 8

/* No fabric's address is longer. */
#define DOFI_RDM_ADDRESS 256

struct dofi_rdm;

/* Where a frame arrives. */
struct dofi_rdm_buffer {
	struct dofi_rdm *rdm;
	unsigned char *data;		/* of rdm->frame_size bytes; a frame is at the start */
	STAILQ_ENTRY(dofi_rdm_buffer) link; /* in rdm->unposted */
};

struct dofi_rdm_peer;

struct dofi_rdm {
	struct fid_ep *fid;		/* NULL when closed */
	struct fid_av *av;
	struct dofi_cq *cq;
	size_t frame_size;
	unsigned char address[DOFI_RDM_ADDRESS]; /* what peers call it; the rest is zero */
	size_t address_len;
	uint32_t address_format;	/* FI_SOCKADDR_IN, FI_ADDR_STR, ... */

	unsigned char *memory;		/* all buffers' */
	struct fid_mr *mr;		/* of it, where the fabric wants that */
	struct dofi_rdm_buffer buffer[DOFI_RDM_BUFFERS];
	STAILQ_HEAD(, dofi_rdm_buffer) unposted; /* they wait for others, or the fabric; CQ lock, */
	unsigned n_unposted;			/* as for this */

	/* progress thread only */
	LIST_HEAD(, dofi_rdm_peer) peers;
	unsigned n_peers;
	unsigned max_peers;		/* 0 if there is no limit */
};

/*
 * Opens the endpoint, on @domain's CQ, and posts its buffers. An operation completes there if it
 * failed, or was posted with FI_COMPLETION. On shared memory its name is @shm_address,
 * "fi_shm://..."; elsewhere that is NULL. Progress thread only.
 */
int dofi_rdm_open(struct dofi_rdm *rdm, struct dofi_domain *domain,
		  const struct dofi_fabric_choice *choice, const char *shm_address);

/*
 * Once it returns nothing completes any more. Meanwhile buffers do, as cancelled or with a last
 * frame; dofi_rdm_repost() ignores them then. No other thread uses the endpoint. Progress thread
 * only.
 */
void dofi_rdm_close(struct dofi_rdm *rdm);

/*
 * A peer's address, as it told it: any bytes. One that was added before is the same peer, and is
 * to be removed as often. -EINVAL if it is no address of this fabric, -ENOSPC if the fabric has no
 * room for another peer, -EHOSTUNREACH if it does not get there. Progress thread only.
 */
int dofi_rdm_peer_add(struct dofi_rdm *rdm, const void *address, size_t len, fi_addr_t *peer);
/* Unless it was @heard the fabric may still wait for it, and its place is not given away. */
void dofi_rdm_peer_remove(struct dofi_rdm *rdm, fi_addr_t peer, bool heard);
/* Whether it would take no place that it does not have. */
bool dofi_rdm_has_peer(const struct dofi_rdm *rdm, const void *address, size_t len);

/* Buffers are told from operations by the highest bit of op_context, which no address has. */
#define DOFI_RDM_BUFFER_BIT ((uintptr_t)1 << 63)

static inline bool dofi_rdm_is_buffer(const void *context)
{
	return (uintptr_t)context & DOFI_RDM_BUFFER_BIT;
}

static inline struct dofi_rdm_buffer *dofi_rdm_buffer_of(const void *context)
{
	return (struct dofi_rdm_buffer *)((uintptr_t)context & ~DOFI_RDM_BUFFER_BIT);
}

/*
 * A completed buffer may receive again, when some more may. If the fabric does not take them then,
 * dofi_rdm_sweep() tries again, which is to be called from swept(). Both with the CQ's lock.
 */
void dofi_rdm_repost(struct dofi_rdm_buffer *buffer);
void dofi_rdm_sweep(struct dofi_rdm *rdm);

#endif
