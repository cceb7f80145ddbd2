/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A domain's one connectionless endpoint: its address, its peers, the buffers of frames. */
#ifndef DOFI_FAB_ENDPOINT_H
#define DOFI_FAB_ENDPOINT_H

#include "fab/domain.h"

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* So many frames can arrive before one is looked at. */
#define DOFI_RDM_BUFFERS 64

/* So many are posted again at a time: each time locks the guard of the CQ. */
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

	unsigned n_buffers;
	unsigned char *memory;		/* all buffers' */
	struct fid_mr *mr;		/* of it, where the fabric wants that */
	struct dofi_rdm_buffer buffer[DOFI_RDM_BUFFERS];
	STAILQ_HEAD(, dofi_rdm_buffer) unposted; /* they wait for others, or the fabric; CQ lock, */
	unsigned n_unposted;			/* as for this */

	/* progress thread only; of a connection's direct endpoint: the EP's lock */
	LIST_HEAD(, dofi_rdm_peer) peers;
	unsigned max_peers;		/* that the fabric takes in the endpoint's life; 0: no limit */
	unsigned used_peers;		/* of these */
};

/*
 * Opens the endpoint, on @domain's CQ, and posts @n_buffers, none or up to DOFI_RDM_BUFFERS. An
 * operation completes there if it failed, or was posted with FI_COMPLETION. On shared memory its name
 * is @shm_address, "fi_shm://..."; elsewhere that is NULL. The caller saves and restores signals around the
 * call where the fabric takes some, as shm does. Progress thread only.
 */
int dofi_rdm_open(struct dofi_rdm *rdm, struct dofi_domain *domain,
		  const struct dofi_fabric_choice *choice, const char *shm_address, unsigned n_buffers);

/*
 * Closes the endpoint alone: nothing is received any more, what was posted completes as cancelled.
 * The connections that use it have ended. Progress thread only.
 */
void dofi_rdm_shut(struct dofi_rdm *rdm);

/*
 * Closes all of it; once it returns nothing completes any more. Until then buffers do, as cancelled
 * or with a last frame; dofi_rdm_repost() ignores them. The connections that use the endpoint have
 * ended. Progress thread only.
 */
void dofi_rdm_close(struct dofi_rdm *rdm);

/*
 * Adds a use of the peer at @address, any bytes that the peer sent. An address that was added before
 * is the same peer, and is to be removed as often. -EINVAL if it is no address of this fabric,
 * -ENOSPC if the fabric takes no further peer, -EHOSTUNREACH if it does not get there. Progress
 * thread only, as the field peers has it.
 */
int dofi_rdm_peer_add(struct dofi_rdm *rdm, const void *address, size_t len, fi_addr_t *peer);

/*
 * Removes a use of the peer, and with the last one the peer, if every use was @removable; otherwise
 * the fabric's entry stays until the endpoint is closed. Where peers are limited an entry is never
 * used again: libfabric's shm keeps what it noted of the peer before. Progress thread only.
 */
void dofi_rdm_peer_remove(struct dofi_rdm *rdm, fi_addr_t peer, bool removable);

/* Whether adding the peer takes no further entry of the fabric's. */
bool dofi_rdm_has_peer(const struct dofi_rdm *rdm, const void *address, size_t len);

/*
 * How many peers should still be added. Half of what the fabric takes is left to peers that come by
 * themselves: shm (1.19 and newer) makes an entry for a removed peer whose first message is late.
 */
unsigned dofi_rdm_room(const struct dofi_rdm *rdm);

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
