/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connectionless endpoint of a domain: its address, its peers, the buffers that frames arrive in. */
#ifndef DOFI_FAB_ENDPOINT_H
#define DOFI_FAB_ENDPOINT_H

#include "fab/domain.h"

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* How many frames can arrive before the first is handled. */
#define DOFI_RDM_BUFFERS 64

/* How many buffers are posted again at a time: posting locks the guard of the CQ. */
#define DOFI_RDM_TOGETHER 8

/* No fabric's address is longer. */
#define DOFI_RDM_ADDRESS 256

struct dofi_rdm;

/* A buffer that a frame arrives in. */
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
	unsigned char address[DOFI_RDM_ADDRESS]; /* its address for peers, padded with zeros */
	size_t address_len;
	uint32_t address_format;	/* FI_SOCKADDR_IN, FI_ADDR_STR, ... */

	unsigned n_buffers;
	unsigned char *memory;		/* of all buffers */
	struct fid_mr *mr;		/* registration of memory where the fabric needs one, or NULL */
	struct dofi_rdm_buffer buffer[DOFI_RDM_BUFFERS];
	STAILQ_HEAD(, dofi_rdm_buffer) unposted; /* buffers to be posted; CQ lock */
	unsigned n_unposted;			/* how many those are; CQ lock */

	/* progress thread only; for a direct endpoint of a connection: under the EP's lock */
	LIST_HEAD(, dofi_rdm_peer) peers;
	unsigned max_peers;		/* how many peers may be added before the endpoint is closed; 0: no limit */
	unsigned used_peers;		/* how many of them were added */
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
 * Closes the endpoint but keeps its memory: nothing is received any more, and posted buffers complete as cancelled.
 * All connections that use it must have ended. Progress thread only.
 */
void dofi_rdm_shut(struct dofi_rdm *rdm);

/*
 * Closes the endpoint and frees its memory; nothing completes after it returns. Until then buffers complete, as
 * cancelled or with a last frame; dofi_rdm_repost() ignores them. All connections that use the endpoint must have
 * ended. Progress thread only.
 */
void dofi_rdm_close(struct dofi_rdm *rdm);

/*
 * Adds a use of the peer at @address, which may be any bytes that a peer sent. An address that was added several
 * times is one peer, which has to be removed as often. Returns 0; -EINVAL if @address is no address of this fabric;
 * -ENOSPC if the fabric takes no further peer; -EHOSTUNREACH if the fabric cannot reach it. Locking: see the member
 * peers.
 */
int dofi_rdm_peer_add(struct dofi_rdm *rdm, const void *address, size_t len, fi_addr_t *peer);

/*
 * Removes a use of the peer, and with the last use the peer itself if every use was @removable; otherwise the
 * fabric's entry stays until the endpoint is closed. If peers are limited, an entry is never used again: libfabric's
 * shm keeps state of the previous peer there. Progress thread only.
 */
void dofi_rdm_peer_remove(struct dofi_rdm *rdm, fi_addr_t peer, bool removable);

/* Returns whether the peer has an entry already, so that adding it needs none. */
bool dofi_rdm_has_peer(const struct dofi_rdm *rdm, const void *address, size_t len);

/*
 * Returns how many more peers should be added. Half of the fabric's entries stay free for peers that it adds by
 * itself: shm (1.19 and newer) makes an entry for a removed peer if the peer's first message is late.
 */
unsigned dofi_rdm_free_entries(const struct dofi_rdm *rdm);

/* The highest bit of op_context distinguishes buffers from operations: no address has it. */
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
 * Posts a completed buffer again, together with DOFI_RDM_TOGETHER - 1 others. If the fabric refuses, dofi_rdm_sweep()
 * tries again; call that from swept(). Both with the CQ's lock held.
 */
void dofi_rdm_repost(struct dofi_rdm_buffer *buffer);
void dofi_rdm_sweep(struct dofi_rdm *rdm);

#endif
