/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an IA has in /dev/shm: a page that tells its peers that it lives, and whether it sleeps.
 *
 * Nobody but the kernel says who lives: xport/rdm/shm/files.h. Mapping a peer's page, and finding in
 * it what the peer said is there, proves that the two share memory.
 */
#ifndef DOFI_SHM_PAGE_H
#define DOFI_SHM_PAGE_H

#include "loop/fork.h"
#include "xport/rdm/shm/lock.h"
#include "fab/lead.h"
#include "xport/rdm/shm/files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define DOFI_SHM_COOKIE 16

/* The file. Peers are of the same user; all up to the cookie stays as it was made. */
struct dofi_shm_page {
	uint64_t magic;
	uint32_t version;
	uint32_t unused;
	uint8_t cookie[DOFI_SHM_COOKIE];
	/* a cache line of its own: whoever has given the owner something counts it here; */
	_Alignas(64) _Atomic uint32_t sent;
	_Atomic uint32_t asleep;		/* and if this is not 0 sets it to 0, and wakes the owner */
	_Alignas(64) _Atomic uint64_t holder;	/* to the fabric's endpoints of the owner */
};

/* The bits of a page's asleep. */
#define DOFI_SHM_THREAD 1	/* the progress thread sleeps: ring by the side connection */
#define DOFI_SHM_LEADER 2	/* leaders of CQs sleep on this word itself, a futex */

struct dofi_shm {
	struct dofi_shm_page *page;	/* NULL when there is none */
	char name[DOFI_SHM_NAME];
	unsigned endpoints;		/* addresses given */
	struct dofi_robust robust;		/* to them */
	struct dofi_lead_word lead;	/* DOFI_SHM_LEADER of the page's asleep */
	struct dofi_fork_fd fd;		/* has the lock */
	pid_t owner;
};

/* Makes the page, and removes what the dead have left. Any thread. */
int dofi_shm_open(struct dofi_shm *shm);

/*
 * After the endpoints: removes the page, and the fabric's files if it left any. What is all zero
 * may be closed. In a forked child nothing of its parent's goes.
 */
void dofi_shm_close(struct dofi_shm *shm);

/* The next endpoint's address for libfabric, "fi_shm://NAME.NUMBER". */
int dofi_shm_endpoint(struct dofi_shm *shm, char *address, size_t size);

/*
 * Whether @address, of any @len bytes, is that of an endpoint which page @name's owner has. 0, -EPROTO
 * if it is no address of that owner's, -ENOENT if the owner has no such endpoint (any more).
 */
int dofi_shm_endpoint_check(const char *name, const void *address, size_t len);

/*
 * The owner is about to wait; what its peers gave it before is to be looked at after this, and not
 * only what is counted.
 */
static inline void dofi_shm_sleep_begin(struct dofi_shm *shm)
{
	/* a barrier, as dofi_shm_notify() has one */
	atomic_fetch_or(&shm->page->asleep, DOFI_SHM_THREAD);
}

static inline void dofi_shm_sleep_end(struct dofi_shm *shm)
{
	atomic_fetch_and_explicit(&shm->page->asleep, ~DOFI_SHM_THREAD, memory_order_relaxed);
}

/* A peer's page. An IA's connections to the same one share it. */
struct dofi_shm_peer {
	struct dofi_shm_page *page;
	struct dofi_robust robust;		/* with its name */
	unsigned users;			/* under the list's lock */
	LIST_ENTRY(dofi_shm_peer) link;
};

/*
 * Maps the page of a peer, or of this process, for an IA that has its own open. @name and @cookie may be anything that the network
 * brought; @name has an end. Errors are those of dofi_shm_file_open(); another cookie is -EPROTO.
 */
int dofi_shm_map(const struct dofi_shm *shm, const char *name,
		 const uint8_t cookie[DOFI_SHM_COOKIE], struct dofi_shm_peer **peer);
void dofi_shm_unmap(struct dofi_shm_peer *peer);

/* Wakes the peer's threads that sleep on @peer's page. Whether the caller has to wake the progress thread, too. */
static inline bool dofi_shm_wake(struct dofi_shm_peer *peer)
{
	uint32_t asleep = atomic_exchange_explicit(&peer->page->asleep, 0, memory_order_relaxed);

	if (asleep & DOFI_SHM_LEADER)
		dofi_word_wake(&peer->page->asleep);
	return asleep & ~DOFI_SHM_LEADER;
}

/* Call after the peer was given something. Whether the caller has to wake the peer's progress thread. */
static inline bool dofi_shm_notify(struct dofi_shm_peer *peer)
{
	/* either this sees that it sleeps, or it sees what it was given: dofi_shm_sleep_begin() */
	atomic_fetch_add(&peer->page->sent, 1);
	return atomic_load_explicit(&peer->page->asleep, memory_order_relaxed) && dofi_shm_wake(peer);
}

#endif
