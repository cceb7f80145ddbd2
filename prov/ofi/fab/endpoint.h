/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connectionless endpoint of a domain: its address, its peers, the buffers for frames. */
#ifndef DOFI_FAB_ENDPOINT_H
#define DOFI_FAB_ENDPOINT_H

#include "base/table.h"
#include "fab/domain.h"

#include <rdma/fi_endpoint.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* How many buffers are posted again at a time. Each alone if the endpoint has few. */
#define DOFI_RDM_TOGETHER 8

/* No fabric's address is longer. */
#define DOFI_RDM_ADDRESS 256

struct dofi_rdm;

/* First member of each context: the fabric writes there with FI_CONTEXT or FI_CONTEXT2. */
struct dofi_rdm_context {
	struct fi_context2 fabric;
	bool is_buffer;			/* the context is a struct dofi_rdm_buffer */
};

/* A buffer that a frame arrives in. */
struct dofi_rdm_buffer {
	struct dofi_rdm_context context;
	struct dofi_rdm *rdm;
	/* of rdm->prefix + rdm->frame_size bytes; the frame follows the prefix */
	unsigned char *data;
	STAILQ_ENTRY(dofi_rdm_buffer) link; /* in rdm->unposted */
};

/*
 * An operation with the context @buffer completed: @entry->len includes the prefix, @err is 0 or
 * positive, FI_ECANCELED if the endpoint was closed. The owner passes each received buffer to
 * dofi_rdm_repost(). Any thread, CQ lock held. Must not read the CQ.
 */
typedef void dofi_rdm_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry,
			      int err, struct dofi_sink *sink);

struct dofi_rdm_peer;

struct dofi_rdm {
	struct fid_ep *fid;		/* NULL when closed */
	struct fid_av *av;
	struct dofi_cq *cq;
	dofi_rdm_arrived *arrived;
	size_t frame_size;		/* the longest frame, without its prefix */
	/*
	 * FI_MSG_PREFIX: bytes that the fabric writes before the frame in each buffer, and counts
	 * as its length. Sent messages have none: verbs alone has this mode, for receives.
	 */
	size_t prefix;
	unsigned char address[DOFI_RDM_ADDRESS]; /* its address for peers, padded with zeros */
	size_t address_len;
	uint32_t address_format;	/* FI_SOCKADDR_IN, FI_ADDR_STR, ... */

	unsigned n_buffers;
	unsigned char *memory;		/* of all buffers, and behind that buffer[] */
	struct fid_mr *mr;	/* of memory, where the fabric needs a registration; or NULL */
	struct dofi_rdm_buffer *buffer;	/* of n_buffers */
	STAILQ_HEAD(, dofi_rdm_buffer) unposted; /* buffers to be posted; CQ lock */
	unsigned n_unposted;			/* CQ lock */

	/* progress thread only */
	struct dofi_table by_address;	/* by the bytes of their addresses */
	struct dofi_table by_addr;	/* by the fabric's fi_addr_t */
	bool keeps_peers;	/* addresses stay with the fabric until the endpoint is closed */
};

struct dofi_rdm_options {
	/* frames that can arrive before the first is handled; the fabric may limit it */
	unsigned n_buffers;
	dofi_rdm_arrived *arrived;
};

/*
 * The signal handlers that libfabric's shm replaces when it opens an endpoint: one for SIGINT,
 * SIGTERM, SIGBUS and SIGSEGV removes the files of its endpoints (1.17, 2.1). An ignored signal is
 * not ignored then, and a forked child removes the files of its parent.
 */
#define DOFI_SIGNALS 4

struct dofi_signals {
	struct sigaction before[DOFI_SIGNALS];
};

/*
 * Call around opening an endpoint of any fabric, as some have shm within. Another thread that saves
 * waits for the restore. Changes by the program meanwhile stay.
 */
void dofi_signals_save(struct dofi_signals *signals);
void dofi_signals_restore(const struct dofi_signals *signals);

/*
 * Opens an endpoint of type FI_EP_RDM or FI_EP_DGRAM on @domain's CQ, and posts its buffers. An
 * operation completes there if it failed, or was posted with FI_COMPLETION, on udp unless it was
 * injected. The owner of the CQ passes completions of buffers to arrived(): dofi_rdm_is_buffer().
 * Removes signal handlers of the fabric. Progress thread only.
 */
int dofi_rdm_open(struct dofi_rdm *rdm, struct dofi_domain *domain,
		  const struct dofi_fabric_choice *choice, const struct dofi_rdm_options *options);

/*
 * Closes the endpoint but keeps its memory: posted buffers complete as cancelled, on udp not at
 * all. All connections that use it must have ended. Progress thread only.
 */
void dofi_rdm_shut(struct dofi_rdm *rdm);

/*
 * Closes the endpoint and frees its memory. Until it returns buffers may
 * complete, which dofi_rdm_repost() ignores. Progress thread only.
 */
void dofi_rdm_close(struct dofi_rdm *rdm);

/*
 * Adds a use of the peer at @address, which may be any bytes; remove it as often. Returns 0;
 * -EINVAL for an address of another form; -EHOSTUNREACH if the fabric cannot reach it, or takes no
 * further peer. Locking: see the member by_address.
 */
int dofi_rdm_peer_add(struct dofi_rdm *rdm, const void *address, size_t len, fi_addr_t *peer);

/* Removes a use of the peer, and with the last one the peer, unless the fabric keeps peers. */
void dofi_rdm_peer_remove(struct dofi_rdm *rdm, fi_addr_t peer);

/* Sets up @buffer, the context of operations with it. The owner may send with its own buffers. */
static inline void dofi_rdm_buffer_init(struct dofi_rdm_buffer *buffer, struct dofi_rdm *rdm,
					unsigned char *data)
{
	*buffer = (struct dofi_rdm_buffer){
		.context.is_buffer = true, .rdm = rdm, .data = data,
	};
}

/* Returns whether @context, which is NULL or a struct dofi_rdm_context, is a buffer. */
static inline bool dofi_rdm_is_buffer(const struct dofi_rdm_context *context)
{
	return context && context->is_buffer;
}

/* Passes a completion with the context of a buffer to the owner of its endpoint. CQ lock held. */
static inline void dofi_rdm_completed(const struct fi_cq_data_entry *entry, int err,
				      struct dofi_sink *sink)
{
	struct dofi_rdm_buffer *buffer = entry->op_context;

	buffer->rdm->arrived(buffer, entry, err, sink);
}

/* Posts a completed buffer again, or lets dofi_rdm_sweep() do so: call it from swept(). CQ lock. */
void dofi_rdm_repost(struct dofi_rdm_buffer *buffer);
void dofi_rdm_sweep(struct dofi_rdm *rdm);

#endif
